/*
 * test_descriptors.c - members hand their descriptors over: to whom, which ones, and what a member
 * takes from one that lies or is silent.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "softhca/base/segment.h"
#include "softhca/link/memory/ask.h"
#include "util/clock.h"
#include "cmocka_all.h"
#include "softhca/link/memory/copy.h"
#include "softhca/link/memory/descriptors.h"
#include "softhca/link/memory/mr_table.h"
#include "softhca/link/memory/peer.h"
#include "softhca/link/memory/service.h"
#include "softhca/link/memory/state.h"
#include "softhca/object/device.h"
#include "softhca/object/fabric.h"
#include "softhca/pages/memory.h"
#include "softhca/softhca.h"

enum { SLOT = 700, GENERATION = 3, NOBODY = 65534 };

static struct softhca_config config = { .node = 0 };
static struct hca_fabric *fabric;
static struct ibv_device **list;
static unsigned idle;			/* connections when nobody asks */

/* This process's; a child of fork, which has no shared memory, has these. */
static struct hca_address address;
static struct hca_identity identity;
static uint64_t right_nonce;

static struct ibv_device **open_fabric(void)
{
	static char name[40];

	if (!config.fabric) {
		snprintf(name, sizeof(name), "descriptors.%d", (int)getpid());
		config.fabric = name;
	}
	return softhca_get_device_list(&config, NULL);
}

static bool any(int fd)
{
	(void)fd;
	return true;
}

static bool is_connection(int fd)
{
	int listens;
	socklen_t bytes = sizeof(listens);

	return !getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &bytes) && !listens;
}

static unsigned descriptors(bool (*counts)(int fd))
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	unsigned count = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir)))
		count += *entry->d_name != '.' && counts(atoi(entry->d_name));
	closedir(dir);
	return count;
}

static int join(void **state)
{
	list = open_fabric();
	if (!list)
		return -1;
	fabric = ((struct hca_device *)(void *)list[0])->fabric;
	right_nonce = fabric->link_state->nonce;
	identity = fabric->link_state->me;
	idle = descriptors(is_connection);
	return hca_address_of_slot(&identity, fabric->shm, fabric->slot, &address) ? 0 : -1;
}

static int leave(void **state)
{
	ibv_free_device_list(list);
	return 0;
}

static const struct hca_identity *me(void)
{
	return &fabric->link_state->me;
}

static int ask(uint64_t nonce, enum hca_question question, uint32_t index, int fd[HCA_ANSWER_MAX])
{
	return hca_ask(&identity, &address, nonce, question, index, fd);
}

static void drop(int fd[HCA_ANSWER_MAX], int count)
{
	while (count > 0)
		close(fd[--count]);
}

static bool same_file(int a, int b)
{
	struct stat x, y;

	assert_int_equal(fstat(a, &x) | fstat(b, &y), 0);
	return x.st_ino == y.st_ino && x.st_dev == y.st_dev;
}

/* A thread that answers closes its end of a connection later than the asker. */
static bool descriptors_become(unsigned count, bool (*counts)(int fd))
{
	const uint64_t begun = rg_now_ns();

	while (descriptors(counts) != count)
		if (rg_now_ns() - begun > 60000000000u)
			return false;
	return true;
}

/* ---- What it hands over ------------------------------------------------------ */

static void test_segments(void **state)
{
	const uint64_t nonce = fabric->link_state->nonce;
	int fd[HCA_ANSWER_MAX], count;

	count = ask(nonce, HCA_ASK_FABRIC, 0, fd);
	assert_int_equal(count, 1);
	assert_true(same_file(fd[0], fabric->link_state->shm_fd));
	drop(fd, count);
	count = ask(nonce, HCA_ASK_SEGMENTS, 0, fd);
	assert_true(count >= 3);
	assert_true(same_file(fd[0], fabric->self_fd));
	assert_true(same_file(fd[1], fabric->table_fd));
	assert_true(same_file(fd[2], hca_memory_fd()));
	assert_int_equal(fcntl(fd[1], F_GETFL) & O_ACCMODE, O_RDONLY);
	drop(fd, count);
	assert_int_equal(ask(nonce, (enum hca_question)99, 0, fd), -EPERM);
}

/* Peers can write to the published wake-ups: descriptors of their numbers are not handed over. */
static void test_wakeups(void **state)
{
	struct ibv_context *c = ibv_open_device(list[0]);
	const uint64_t nonce = fabric->link_state->nonce;
	int fd[HCA_ANSWER_MAX], count;
	struct stat st;
	uint32_t i = 0;

	assert_non_null(c);
	while (!fabric->wakeup_fd[i])
		i++;
	atomic_store(&fabric->self->wakeup[i].fd, fabric->table_fd);
	count = ask(nonce, HCA_ASK_WAKEUP, i, fd);
	assert_int_equal(count, 1);
	assert_int_equal(fstat(fd[0], &st), 0);
	assert_true(S_ISFIFO(st.st_mode));
	assert_int_equal(st.st_ino, atomic_load(&fabric->self->wakeup[i].ino));
	drop(fd, count);
	assert_int_equal(ask(nonce, HCA_ASK_WAKEUP, HCA_WAKEUPS_MAX - 1, fd), -EPERM);
	assert_int_equal(ask(nonce, HCA_ASK_WAKEUP, UINT32_MAX, fd), -EPERM);
	ibv_close_device(c);
	assert_int_equal(ask(nonce, HCA_ASK_WAKEUP, i, fd), -EPERM);
}

/* ---- To whom ------------------------------------------------------------------- */

static int as_nobody(int (*run)(void))
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(setuid(NOBODY) ? 99 : run());
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int without_the_nonce(void)
{
	int fd[HCA_ANSWER_MAX];

	return ask(1, HCA_ASK_FABRIC, 0, fd) == -EPERM ? 0 : 1;
}

/* A member that has changed its user. */
static int with_the_nonce(void)
{
	int fd[HCA_ANSWER_MAX];

	return ask(right_nonce, HCA_ASK_SEGMENTS, 0, fd) >= 3 ? 0 : 1;
}

/* A member of another user is not asked. */
static int by_a_stranger(void)
{
	struct hca_identity stranger;
	int fd[HCA_ANSWER_MAX];

	hca_identity_get(&stranger);
	return hca_ask(&stranger, &address, right_nonce, HCA_ASK_FABRIC, 0, fd) == -EACCES ? 0 : 1;
}

static void test_who_asks(void **state)
{
	int fd[HCA_ANSWER_MAX];

	assert_int_equal(ask(1, HCA_ASK_SEGMENTS, 0, fd), -EPERM);
	assert_int_equal(ask(1, HCA_ASK_COPIES, 0, fd), -EPERM);
	assert_int_equal(ask(0, HCA_ASK_WAKEUP, 0, fd), -EPERM);
	/* The same user may join. */
	assert_int_equal(ask(1, HCA_ASK_FABRIC, 0, fd), 1);
	drop(fd, 1);
	if (geteuid()) {
		printf("not root: another user is not tried\n");
		return;
	}
	assert_int_equal(as_nobody(without_the_nonce), 0);
	assert_int_equal(as_nobody(with_the_nonce), 0);
	assert_int_equal(as_nobody(by_a_stranger), 0);
}

/* ---- A member that lies -------------------------------------------------------- */

enum lie {
	TRUTH, NO_MEMORY, SILENCE, REFUSAL, GARBAGE, NOTHING, TOO_FEW, A_PIPE, UNSEALED, OTHER_SIZE,
	OURS, OTHERS_TABLE, LIES
};

static struct {
	enum lie lie;
	int process_fd, table_fd, memory_fd, pipe[2], unsealed;
	struct hca_shm_process *process;
	struct hca_shm_table *table;
	struct hca_service service;
} liar;

static void say(int s, const int *fd, size_t count, const struct hca_answer *answer, size_t bytes)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(8 * sizeof(int))];
	} control = { .room = { 0 } };
	struct iovec io = { (void *)(uintptr_t)answer, bytes };
	struct msghdr m = { .msg_iov = &io, .msg_iovlen = 1 };

	if (count) {
		m.msg_control = &control;
		m.msg_controllen = CMSG_SPACE(count * sizeof(int));
		control.align = (struct cmsghdr){ .cmsg_len = CMSG_LEN(count * sizeof(int)),
						  .cmsg_level = SOL_SOCKET,
						  .cmsg_type = SCM_RIGHTS };
		memcpy(CMSG_DATA(&control.align), fd, count * sizeof(int));
	}
	sendmsg(s, &m, MSG_NOSIGNAL);
}

static void lie(int s)
{
	int fd[8] = { liar.process_fd, liar.table_fd, liar.memory_fd, liar.pipe[0], liar.pipe[0],
		      liar.pipe[0] };
	struct hca_answer answer = { .magic = HCA_ANSWER_MAGIC };
	size_t count = 3, bytes = sizeof(answer);

	switch (liar.lie) {
	case NO_MEMORY:
		fd[2] = liar.pipe[0];
		break;
	case REFUSAL:
		answer.result = -EIO;
		break;
	case GARBAGE:
		bytes = 5;
		break;
	case NOTHING:
		count = 0;
		break;
	case TOO_FEW:
		count = 2;
		break;
	case A_PIPE:
		fd[0] = liar.pipe[0];
		break;
	case UNSEALED:
		fd[1] = liar.unsealed;
		break;
	case OTHER_SIZE:
		fd[0] = liar.table_fd;
		break;
	case OURS:
		fd[0] = fabric->self_fd;
		break;
	case OTHERS_TABLE:
		fd[1] = fabric->table_fd;
		break;
	default:
		break;
	}
	say(s, fd, count, &answer, bytes);
}

static void *liar_main(void *unused)
{
	int s;

	while ((s = accept4(liar.service.fd, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		struct hca_request r;

		if (recv(s, &r, sizeof(r), 0) == sizeof(r) && liar.lie != SILENCE)
			lie(s);
		if (liar.lie == SILENCE)
			sleep(3);
		close(s);
	}
	return NULL;
}

static void liar_segments(void)
{
	unsigned guards;
	void *at;

	liar.process_fd = hca_segment_create("liar", HCA_PROCESS_BYTES);
	liar.process = hca_segment_map(liar.process_fd, 0, HCA_PROCESS_BYTES);
	liar.memory_fd = hca_segment_create("liar", HCA_MEMORY_BYTES);
	liar.table_fd = hca_segment_create_own("liar", sizeof(*liar.table), &at, &guards);
	liar.table = at;
	liar.unsealed = hca_segment_create("liar", sizeof(*liar.table));
	assert_int_equal(pipe(liar.pipe), 0);
	assert_true(liar.process && liar.table_fd >= 0 && liar.memory_fd >= 0 && liar.unsealed >= 0);
	liar.process->magic = HCA_PROCESS_MAGIC;
	liar.process->abi = HCA_ABI;
	liar.process->nonce = fabric->link_state->nonce;
	liar.process->generation = GENERATION;
	liar.process->heap_bytes = HCA_PAGE;
	liar.table->magic = HCA_TABLE_MAGIC;
	liar.table->abi = HCA_ABI;
	liar.table->slot = SLOT;
	liar.table->nonce = fabric->link_state->nonce;
	liar.table->generation = GENERATION;
	liar.table->pid = 1;
	liar.table->start_time = 5;
	at = hca_segment_map(liar.unsealed, 0, HCA_PAGE);
	assert_non_null(at);
	memcpy(at, liar.table, HCA_PAGE);
	munmap(at, HCA_PAGE);
}

/* The liar has a slot of another pid namespace. */
static void liar_slot(void)
{
	struct hca_shm_slot *s = &fabric->shm->slot[SLOT];

	s->pid = 1;
	s->start_time = 5;
	s->pid_ns = 0;
	s->net_ns = me()->net_ns;
	s->address = HCA_BY_NUMBER;
	s->memory_bits = 48;
	s->process_fd = s->table_fd = s->memory_fd = 0;
	atomic_store(&s->generation, GENERATION);
	atomic_store(&s->phase, HCA_PRESENT);
}

static bool is_believed(bool *has_memory)
{
	struct hca_peer *peer;
	int rc = hca_peer_get(fabric, SLOT, &peer);

	*has_memory = false;
	if (rc) {
		assert_int_equal(rc, -ENOTCONN);
		return false;
	}
	assert_true(peer->is_far && hca_copy_bounces(peer));
	*has_memory = hca_peer_map(peer, 1ull << 40, HCA_PAGE) != NULL;
	hca_peer_put(peer);
	return true;
}

static void test_lies(void **state)
{
	struct hca_address a;
	pthread_t thread;
	bool has_memory;
	unsigned open;

	liar_segments();
	liar_slot();
	hca_address_by_number(fabric->shm->id, SLOT, &a);
	assert_false(hca_address_lives(&a));
	assert_int_equal(hca_slot_fate(fabric, SLOT), HCA_FATE_DEAD);
	assert_false(is_believed(&has_memory));
	assert_int_equal(hca_service_listen(&liar.service, HCA_BY_NUMBER, &a), 0);
	assert_int_equal(fcntl(liar.service.fd, F_SETFL, 0), 0);	/* accept waits */
	assert_int_equal(hca_service_listen(&liar.service, HCA_BY_NUMBER, &a), -EADDRINUSE);
	assert_true(descriptors_become(idle, is_connection));
	open = descriptors(any);
	assert_int_equal(pthread_create(&thread, NULL, liar_main, NULL), 0);
	assert_int_equal(hca_slot_fate(fabric, SLOT), HCA_FATE_ALIVE);
	for (liar.lie = TRUTH; liar.lie < LIES; liar.lie++) {
		if (liar.lie == SILENCE || hca_segments_are_files())
			continue;
		if (liar.lie == UNSEALED && !(fabric->link_state->table_guards & HCA_SEALED))
			continue;
		assert_int_equal(is_believed(&has_memory), liar.lie <= NO_MEMORY);
		assert_int_equal(has_memory, liar.lie == TRUTH);
	}
	assert_true(descriptors_become(open, any));
	/* The wait is a second once, and is not repeated at once. */
	liar.lie = SILENCE;
	{
		const uint64_t begun = rg_now_ns();
		int fd[HCA_ANSWER_MAX];

		assert_int_equal(hca_ask_slot(fabric->link_state, SLOT, &a, HCA_ASK_SEGMENTS, 0, fd),
				 -ETIMEDOUT);
		assert_true(rg_now_ns() - begun >= 1000000000u);
		assert_int_equal(hca_ask_slot(fabric->link_state, SLOT, &a, HCA_ASK_SEGMENTS, 0, fd),
				 -EAGAIN);
	}
	liar.lie = TRUTH;
	shutdown(liar.service.fd, SHUT_RDWR);
	pthread_join(thread, NULL);
	close(liar.service.fd);
	atomic_store(&fabric->shm->slot[SLOT].phase, HCA_ABSENT);
}

/* ---- A member's end -------------------------------------------------------------- */

/* Without a pidfd only the address shows the end. */
static void watch_end(bool by_address)
{
	struct hca_shm_slot *s;
	struct hca_peer *peer;
	int tell[2], slot;
	pid_t pid;

	assert_int_equal(pipe(tell), 0);
	pid = fork();
	if (pid == 0) {
		struct ibv_device **own;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		own = open_fabric();
		slot = own ? (int)((struct hca_device *)(void *)own[0])->fabric->slot : -1;
		if (write(tell[1], &slot, sizeof(slot)) != sizeof(slot))
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(tell[0], &slot, sizeof(slot)), sizeof(slot));
	assert_true(slot >= 0);
	s = &fabric->shm->slot[slot];
	s->pid_ns = 0;			/* like in another pid namespace */
	assert_int_equal(hca_peer_get(fabric, (uint32_t)slot, &peer), 0);
	assert_true(peer->is_far);
	if (by_address && peer->watch >= 0) {
		close(peer->watch);
		peer->watch = -1;
	}
	assert_int_equal(hca_peer_fate(peer), HCA_FATE_ALIVE);
	assert_int_equal(hca_slot_fate(fabric, (uint32_t)slot), HCA_FATE_ALIVE);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(hca_peer_fate(peer), HCA_FATE_DEAD);
	assert_int_equal(hca_slot_fate(fabric, (uint32_t)slot), HCA_FATE_DEAD);
	hca_peer_put(peer);
	close(tell[0]);
	close(tell[1]);
}

static void test_end(void **state)
{
	watch_end(false);
	watch_end(true);
}

/* A fabric that is closed to further processes hands itself over to none; members still ask. */
static void test_closed(void **state)
{
	const uint64_t nonce = fabric->link_state->nonce;
	int fd[HCA_ANSWER_MAX], count;

	assert_int_equal(softhca_fabric_close(&config), 0);
	assert_int_equal(ask(nonce, HCA_ASK_FABRIC, 0, fd), -EPERM);
	count = ask(nonce, HCA_ASK_SEGMENTS, 0, fd);
	assert_true(count >= 3);
	drop(fd, count);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_segments),
		cmocka_unit_test(test_wakeups),
		cmocka_unit_test(test_who_asks),
		cmocka_unit_test(test_lies),
		cmocka_unit_test(test_end),
		cmocka_unit_test(test_closed),
	};

	return cmocka_run_group_tests(tests, join, leave);
}
