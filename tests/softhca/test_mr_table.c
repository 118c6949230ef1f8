/*
 * test_mr_table.c - a process's table of registrations: only its owner can write
 * to it, and peers verify the owner.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "softhca/base/proc.h"
#include "softhca/base/segment.h"
#include "cmocka_all.h"
#include "softhca/link/memory/mr_table.h"
#include "softhca/link/memory/peer.h"
#include "softhca/link/memory/state.h"
#include "softhca/object/device.h"
#include "softhca/object/fabric.h"
#include "softhca/pages/memory.h"
#include "softhca/softhca.h"

enum { SLOT = 700, GENERATION = 3 };

static struct hca_fabric *fabric;
static struct ibv_device **list;

static int join(void **state)
{
	struct softhca_config c = { .node = 0 };
	static char name[32];

	snprintf(name, sizeof(name), "table.%d", (int)getpid());
	c.fabric = name;
	unsetenv("SOFTHCA_COPY");
	list = softhca_get_device_list(&c, NULL);
	if (!list)
		return -1;
	fabric = ((struct hca_device *)(void *)list[0])->fabric;
	return 0;
}

static int leave(void **state)
{
	ibv_free_device_list(list);
	return 0;
}

static bool has(unsigned guard)
{
	if (!(fabric->link_state->table_guards & guard))
		printf("this kernel does not have what is tried here (guards %u)\n",
		       fabric->link_state->table_guards);
	return fabric->link_state->table_guards & guard;
}

/* ---- Who can write ------------------------------------------------------- */

static int open_as_peer(int fd, int mode)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)getpid(), fd);
	return open(path, mode);
}

static void assert_refused(bool refused)
{
	assert_true(refused);
	assert_true(errno == EPERM || errno == EACCES || errno == EBUSY);
}

static void test_sealed(void **state)
{
	int fd = open_as_peer(fabric->table_fd, O_RDWR);
	void *at;

	if (!has(HCA_SEALED))
		skip();
	assert_true(fd >= 0);
	assert_refused(mmap(NULL, HCA_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) ==
		       MAP_FAILED);
	at = mmap(NULL, HCA_PAGE, PROT_READ, MAP_SHARED, fd, 0);
	assert_true(at != MAP_FAILED);
	assert_memory_equal(at, fabric->table, HCA_PAGE);
	assert_refused(mprotect(at, HCA_PAGE, PROT_READ | PROT_WRITE) != 0);
	munmap(at, HCA_PAGE);
	assert_refused(write(fd, "x", 1) != 1);
	assert_refused(pwrite(fd, "x", 1, HCA_PAGE) != 1);
	assert_refused(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, HCA_PAGE) != 0);
	assert_refused(ftruncate(fd, 0) != 0);
	assert_refused(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) != 0);
	close(fd);
}

/* No process can seal a segment that others are to write to. */
static void test_no_more_seals(void **state)
{
	const int own[] = { fabric->link_state->shm_fd, fabric->self_fd, hca_memory_fd() };
	unsigned i;

	for (i = 0; i < sizeof(own) / sizeof(*own); i++) {
		int fd = open_as_peer(own[i], O_RDWR);

		assert_true(fd >= 0);
		assert_refused(fcntl(fd, F_ADD_SEALS, 0x0010 /* F_SEAL_FUTURE_WRITE */) != 0 ||
			       fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) != 0);
		assert_int_equal(pwrite(fd, "", 0, 0), 0);
		close(fd);
	}
}

/* Open every new descriptor of a process, and write to it if possible. */
static void lie_in_wait(pid_t pid, int first)
{
	volatile unsigned char *at;
	char path[64];
	struct stat st;
	int i, fd, times;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (i = 0;; i++) {
		snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, first + i % 4);
		fd = open(path, O_RDWR);
		if (fd < 0)
			continue;
		at = MAP_FAILED;
		if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size)
			at = mmap(NULL, HCA_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (at != MAP_FAILED) {
			for (times = 0; times < i % 1000; times++)	/* sometimes later */
				at[0] = 1;
			munmap((void *)at, HCA_PAGE);
		}
		close(fd);
	}
}

/* Another process may be quick between creation and seals: then the segment is not used. */
static void test_quick_hands(void **state)
{
	enum { TIMES = 5000 };
	int next = dup(0), i;
	pid_t me = getpid(), other;
	unsigned guards;

	if (!has(HCA_SEALED))
		skip();
	close(next);
	other = fork();
	if (other == 0)
		lie_in_wait(me, next);
	for (i = 0; i < TIMES; i++) {
		void *at = NULL;
		int fd = hca_segment_create_own("test", 4 * HCA_PAGE, &at, &guards);

		assert_true(fd >= 0);
		assert_int_equal(guards, fabric->link_state->table_guards);
		if (i % 8 == 0)
			usleep(50);
		assert_int_equal(*(volatile unsigned char *)at, 0);
		munmap(at, 4 * HCA_PAGE);
		close(fd);
	}
	kill(other, SIGKILL);
	waitpid(other, NULL, 0);
}

/* ---- Whose it is --------------------------------------------------------- */

/* A process with descriptors of ours, which signs on command. */
struct puppet {
	pid_t pid;
	int tell[2], answer[2];
	int process_fd, table_fd;
	struct hca_shm_process *process;
	struct hca_shm_table *table;
};

static void play(const struct puppet *p)
{
	char word;
	int fd;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		if (read(p->tell[0], &word, 1) != 1)
			_exit(0);
		fd = p->table_fd;
		if (word == 's') {
			flock(fd, LOCK_UN);
			flock(fd, LOCK_EX | LOCK_NB);
		}
		if (write(p->answer[1], &word, 1) != 1)
			_exit(1);
	}
}

static void tell(struct puppet *p, char word)
{
	assert_int_equal(write(p->tell[1], &word, 1), 1);
	assert_int_equal(read(p->answer[0], &word, 1), 1);
}

static void start(struct puppet *p)
{
	unsigned guards;
	void *at;

	memset(p, 0, sizeof(*p));
	p->process_fd = hca_segment_create("puppet", HCA_PROCESS_BYTES);
	p->process = hca_segment_map(p->process_fd, 0, HCA_PROCESS_BYTES);
	p->table_fd = hca_segment_create_own("puppet", sizeof(*p->table), &at, &guards);
	assert_true(p->process && p->table_fd >= 0);
	p->table = at;
	assert_int_equal(pipe(p->tell) | pipe(p->answer), 0);
	p->pid = fork();
	assert_true(p->pid >= 0);
	if (p->pid == 0)
		play(p);
}

static void end(struct puppet *p)
{
	kill(p->pid, SIGKILL);
	waitpid(p->pid, NULL, 0);
	atomic_store(&fabric->shm->slot[SLOT].phase, HCA_ABSENT);
	munmap(p->process, HCA_PROCESS_BYTES);
	munmap(p->table, sizeof(*p->table));
	close(p->process_fd);
	close(p->table_fd);
	close(p->tell[0]);
	close(p->tell[1]);
	close(p->answer[0]);
	close(p->answer[1]);
}

/* Everything as it should be. */
static void tell_truth(struct puppet *p)
{
	struct hca_shm_slot *s = &fabric->shm->slot[SLOT];
	const uint64_t start_time = hca_process_start_time(p->pid);

	p->process->magic = HCA_PROCESS_MAGIC;
	p->process->abi = HCA_ABI;
	p->process->nonce = fabric->link_state->nonce;
	p->process->generation = GENERATION;
	p->process->heap_bytes = HCA_HEAP_BYTES;
	p->table->magic = HCA_TABLE_MAGIC;
	p->table->abi = HCA_ABI;
	p->table->slot = SLOT;
	p->table->nonce = fabric->link_state->nonce;
	p->table->generation = GENERATION;
	p->table->pid = p->pid;
	p->table->start_time = start_time;
	s->pid = p->pid;
	s->start_time = start_time;
	s->pid_ns = fabric->shm->slot[fabric->slot].pid_ns;
	s->process_fd = p->process_fd;
	s->table_fd = p->table_fd;
	s->memory_fd = -1;
	atomic_store(&s->generation, GENERATION);
	atomic_store(&s->phase, HCA_PRESENT);
}

static bool is_believed(void)
{
	struct hca_peer *peer;
	int rc = hca_peer_get(fabric, SLOT, &peer);

	if (rc)
		assert_int_equal(rc, -ENOTCONN);
	else
		hca_peer_put(peer);
	return !rc;
}

static void test_header(void **state)
{
	struct puppet p;
	struct hca_shm_table *t;

	start(&p);
	t = p.table;
	tell(&p, 's');
	tell_truth(&p);
	assert_true(is_believed());
	t->magic++;
	assert_false(is_believed());
	tell_truth(&p);
	t->abi++;
	assert_false(is_believed());
	tell_truth(&p);
	t->slot++;
	assert_false(is_believed());
	tell_truth(&p);
	t->nonce++;
	assert_false(is_believed());
	tell_truth(&p);
	t->generation++;
	assert_false(is_believed());
	tell_truth(&p);
	t->pid++;
	assert_false(is_believed());
	tell_truth(&p);
	t->start_time++;
	assert_false(is_believed());
	tell_truth(&p);
	p.process->heap_bytes = 0;
	assert_false(is_believed());
	p.process->heap_bytes = HCA_PAGE + 1;
	assert_false(is_believed());
	p.process->heap_bytes = HCA_HEAP_BYTES + HCA_PAGE;
	assert_false(is_believed());
	p.process->heap_bytes = HCA_HEAP_CHECKED_BYTES;
	assert_true(is_believed());
	tell_truth(&p);
	assert_true(is_believed());
	end(&p);
}

/* A liar claims to be another process, which happens to hold a descriptor of the liar's table. */
static void test_somebody_elses(void **state)
{
	enum hca_copy_method copy;
	struct puppet p;

	if (!has(HCA_SIGNED))
		skip();
	start(&p);
	tell_truth(&p);
	assert_false(is_believed());	/* we have signed it */
	tell(&p, 's');
	assert_true(is_believed());
	flock(p.table_fd, LOCK_UN);
	assert_false(is_believed());	/* no process has */
	copy = fabric->link_state->copy;
	fabric->link_state->copy = HCA_COPY_BOUNCE;	/* the owner does not matter there */
	assert_true(is_believed());
	fabric->link_state->copy = copy;
	tell(&p, 's');
	assert_true(is_believed());
	/* The liar claims to be this process. */
	fabric->shm->slot[SLOT].pid = p.table->pid = getpid();
	fabric->shm->slot[SLOT].start_time = p.table->start_time =
		hca_process_start_time(getpid());
	assert_false(is_believed());
	fabric->shm->slot[SLOT].table_fd = fabric->table_fd;
	fabric->shm->slot[SLOT].process_fd = fabric->self_fd;
	assert_false(is_believed());
	end(&p);
}

/* A table that others may write to; one of another size; what is none. */
static void test_not_a_table(void **state)
{
	struct puppet p;
	struct hca_shm_table *good;

	if (!has(HCA_SEALED))
		skip();
	start(&p);
	good = p.table;
	tell(&p, 's');
	tell_truth(&p);
	assert_true(is_believed());
	fabric->shm->slot[SLOT].table_fd = p.process_fd;
	assert_false(is_believed());
	fabric->shm->slot[SLOT].table_fd = p.tell[0];
	assert_false(is_believed());
	fabric->shm->slot[SLOT].table_fd = -1;
	assert_false(is_believed());
	end(&p);
	/* Right, signed, but not sealed against writing. */
	start(&p);
	munmap(p.table, sizeof(*p.table));
	kill(p.pid, SIGKILL);
	waitpid(p.pid, NULL, 0);
	close(p.table_fd);
	p.table_fd = hca_segment_create("open to all", sizeof(*good));
	p.table = hca_segment_map(p.table_fd, 0, sizeof(*good));
	assert_non_null(p.table);
	p.pid = fork();
	if (p.pid == 0)
		play(&p);
	tell(&p, 's');
	tell_truth(&p);
	assert_false(is_believed());
	end(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sealed),
		cmocka_unit_test(test_no_more_seals),
		cmocka_unit_test(test_quick_hands),
		cmocka_unit_test(test_header),
		cmocka_unit_test(test_somebody_elses),
		cmocka_unit_test(test_not_a_table),
	};

	return cmocka_run_group_tests(tests, join, leave);
}
