/*
 * scribble.c - a third process writes random bytes into all memory that two others share.
 *
 * The two are connected and exchange RDMA writes and reads, and sends, all of it
 * copied by the kernel or by their copy services: nothing is mapped, so each address
 * comes from a table of registrations.  The third overwrites every segment of theirs
 * that it can map, or exchanges their identities, and restores most of it, so that
 * there is traffic.  It cannot write to the tables by any means.  Data and
 * connections may be corrupted; neither process crashes or hangs, and no byte outside
 * of registered memory changes.
 *
 * Usage: scribble [ROUNDS [SEED]]
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kit.h"
#include "softhca/base/segment.h"
#include "softhca/link/memory/state.h"
#include "softhca/object/device.h"
#include "softhca/softhca.h"

enum {
	BYTES = 200000,		/* more than a copy service moves at once */
	CANARY = 1 << 20,
	CALM_MS = 50, ROUND_MS = 700,
	SLOWEST_MS = 60000,	/* a turn, on a busy machine; several waits of a second within */
};

/* ---- The third ----------------------------------------------------------- */

struct target {
	int fd;
	unsigned char *at;
	uint64_t bytes;
};

static int open_theirs(pid_t pid, int fd)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
	return open(path, O_RDWR);
}

static void add_target(struct target *t, int fd, uint64_t bytes)
{
	t->fd = fd;
	t->bytes = bytes;
	t->at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	require(t->at != MAP_FAILED);
}

/* Try every method to write into another's table. */
static void try_table(pid_t pid, int their_fd)
{
	const size_t bytes = sizeof(struct hca_shm_table);
	int fd = open_theirs(pid, their_fd);
	unsigned char garbage[HCA_LINE];
	void *at;

	require(fd >= 0);
	memset(garbage, 0xa5, sizeof(garbage));
	require(mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED &&
		errno == EPERM);
	at = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
	require(at != MAP_FAILED);
	require(mprotect(at, bytes, PROT_READ | PROT_WRITE) != 0);
	munmap(at, bytes);
	require(write(fd, garbage, sizeof(garbage)) < 0 && errno == EPERM);
	require(pwrite(fd, garbage, sizeof(garbage), HCA_PAGE) < 0 && errno == EPERM);
	require(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, HCA_PAGE) != 0);
	require(ftruncate(fd, 0) != 0);
	close(fd);
}

/* A page that is in use; NULL: none was found. */
static unsigned char *a_page(const struct target *t)
{
	off_t data, end;

	data = lseek(t->fd, (off_t)draw(draw(2) ? 1 << 20 : t->bytes), SEEK_DATA);
	if (data < 0)
		data = lseek(t->fd, 0, SEEK_DATA);
	if (data < 0)
		return NULL;
	end = lseek(t->fd, data, SEEK_HOLE);
	data += (off_t)draw((uint64_t)(end - data));
	return t->at + data / HCA_PAGE * HCA_PAGE;
}

static void scribble(unsigned char *page)
{
	unsigned times = 1 + (unsigned)draw(draw(4) ? 8 : 512);
	size_t from = (size_t)draw(HCA_PAGE), span = HCA_PAGE - from;

	/* Mostly near each other. */
	if (draw(4) && span > HCA_LINE)
		span = HCA_LINE;
	while (times--) {
		volatile unsigned char *byte = page + from + draw(span);

		*byte = (unsigned char)(draw(3) ? draw(256) : 0);
	}
}

/* Overwrite a page of theirs; mostly for a while. */
static void write_garbage(const struct target *t)
{
	static unsigned char was[HCA_PAGE];
	unsigned char *page = a_page(t);
	int i;

	if (!page)
		return;
	memcpy(was, page, sizeof(was));
	for (i = 1 + (int)draw(4); i; i--)
		scribble(page);
	if (draw(2))
		usleep((unsigned)draw(500));
	if (draw(16))
		memcpy(page, was, sizeof(was));
}

/* Exchange the names of two members, perhaps one's own, for a while. */
static void mix_up(struct hca_fabric *f, const struct hca_shm_slot *truth)
{
	const uint64_t one = draw(3), other = draw(3);
	const struct hca_shm_slot is = truth[one];
	struct hca_shm_slot *b = &f->shm->slot[other];

	if (draw(2)) {
		b->pid = is.pid;
		b->start_time = is.start_time;
	}
	if (draw(2))
		b->process_fd = is.process_fd;
	if (draw(2))
		b->table_fd = is.table_fd;
	atomic_fetch_add(&b->generation, (uint32_t)draw(2));
	usleep((unsigned)draw(2000));
	*b = truth[other];
}

static void attack(const int *slot, int go, unsigned seed)
{
	struct side mine = side_open(0, 2, -1);
	struct hca_fabric *f = hca_context_of(mine.ctx)->fabric;
	const struct hca_shm_slot *s[2];
	struct hca_shm_slot truth[3];
	struct target t[3];
	int i;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	require(slot[0] < 3 && slot[1] < 3 && f->slot < 3);
	memcpy(truth, f->shm->slot, sizeof(truth));
	draw_from(seed * 2654435761u + 77);
	add_target(&t[0], f->link_state->shm_fd, sizeof(*f->shm));
	for (i = 0; i < 2; i++) {
		s[i] = &f->shm->slot[slot[i]];
		add_target(&t[1 + i], open_theirs(s[i]->pid, s[i]->process_fd), HCA_PROCESS_BYTES);
		if (f->link_state->table_guards & HCA_SEALED)
			try_table(s[i]->pid, s[i]->table_fd);
	}
	require(write(go, "g", 1) == 1);
	usleep(CALM_MS * 1000);
	for (;;)
		if (draw(16))
			write_garbage(&t[draw(3)]);
		else
			mix_up(f, truth);
}

/* ---- The two ------------------------------------------------------------- */

struct innocent {
	struct side *s;
	struct end e;
	struct peer_address to;
	struct buffer b;
	unsigned char *canary[2];	/* before and after the buffer; not registered */
	uint64_t slowest_ns;
	unsigned long good, bad;
};

static void make_buffer(struct innocent *v)
{
	unsigned char *at = aligned_alloc(HCA_PAGE, 2 * CANARY + BYTES / HCA_PAGE * HCA_PAGE +
					  HCA_PAGE);

	require(at != NULL);
	memset(at, 0x5a, 2 * CANARY + BYTES);
	v->canary[0] = at;
	v->canary[1] = at + CANARY + BYTES;
	v->b = (struct buffer){ .at = at + CANARY, .bytes = BYTES };
	v->b.mr = ibv_reg_mr(v->s->pd, v->b.at, BYTES, ACCESS_ALL);
	require(v->b.mr != NULL);
	buffer_swap(v->s, &v->b);
}

static void look_at(struct innocent *v, const struct ibv_wc *wc)
{
	require(wc->status >= IBV_WC_SUCCESS && wc->status <= IBV_WC_GENERAL_ERR);
	require(wc->wr_id == 1 || wc->wr_id == 2);
	if (wc->status == IBV_WC_SUCCESS && wc->wr_id == 2 && wc->opcode == IBV_WC_RECV)
		require(wc->byte_len <= BYTES);
	*(wc->status ? &v->bad : &v->good) += 1;
}

static void use(struct innocent *v)
{
	static const enum ibv_wr_opcode ops[] = { IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
						  IBV_WR_RDMA_WRITE_WITH_IMM };
	size_t bytes = (size_t)(draw(4) ? draw(5000) : draw(BYTES)), at = draw(BYTES - bytes);
	struct ibv_sge sge = sge_of(&v->b, at, bytes), all = sge_of(&v->b, 0, BYTES);
	struct ibv_send_wr wr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1, .opcode = ops[draw(4)],
				  .send_flags = IBV_SEND_SIGNALED,
				  .wr.rdma = { v->b.addr + at, v->b.rkey } }, *bad;
	struct ibv_recv_wr rwr = { .wr_id = 2, .sg_list = &all, .num_sge = 1 }, *rbad;
	struct ibv_wc wc[8];
	int i, n;

	ibv_post_recv(v->e.qp, &rwr, &rbad);
	ibv_post_send(v->e.qp, &wr, &bad);
	n = ibv_poll_cq(v->e.cq, 8, wc);
	require(n >= 0);
	for (i = 0; i < n; i++)
		look_at(v, &wc[i]);
}

/* Repair queue pairs like a program; it may be told of faults that it does not have. */
static void repair(struct innocent *v, uint64_t until_ns)
{
	struct ibv_async_event event;

	while (ibv_get_async_event(v->s->ctx, &event) == 0)
		ibv_ack_async_event(&event);
	if (end_state(&v->e) != IBV_QPS_ERR)
		return;
	do {
		require_equal(end_to(&v->e, IBV_QPS_RESET), 0);
		require_equal(end_to_init(v->s, &v->e), 0);
	} while ((end_to_rtr(v->s, &v->e, &v->to) || end_to_rts(&v->e)) && now_ns() < until_ns);
}

static void churn(struct innocent *v)
{
	struct ibv_mr *mr = ibv_reg_mr(v->s->pd, v->b.at, BYTES, ACCESS_ALL);

	require(mr != NULL);
	require_equal(ibv_dereg_mr(mr), 0);
}

static void suffer(struct innocent *v)
{
	const uint64_t until_ns = now_ns() + (CALM_MS + ROUND_MS) * 1000000ull;
	unsigned turns = 0;
	uint64_t began;

	while ((began = now_ns()) < until_ns) {
		use(v);
		repair(v, until_ns);
		if (++turns % 256 == 0)
			churn(v);
		if (now_ns() - began > SLOWEST_MS * 1000000ull)
			fail("a turn took %.1f s", (double)(now_ns() - began) / 1e9);
	}
	check_untouched(v->canary[0], 0x5a, CANARY, "memory before the buffer");
	check_untouched(v->canary[1], 0x5a, CANARY, "memory behind the buffer");
}

static void run(int me, int sock, int tell, int go, unsigned seed)
{
	struct side s = side_open(0, me, sock);
	struct innocent v = { .s = &s };
	struct end_config c = end_defaults;
	struct peer_address mine;
	int slot;
	char byte;

	alarm(300);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	draw_from(seed * 2654435761u + (unsigned)me + 1);
	set_nonblocking(s.ctx->async_fd);
	make_buffer(&v);
	c.timeout = 1;
	c.rnr_retry = 1;
	c.access = ACCESS_ALL;
	v.e = end_new(&s, &c);
	mine = end_address(&s, &v.e);
	swap(&s, &mine, &v.to, sizeof(mine));
	require_equal(end_to_init(&s, &v.e), 0);
	require_equal(end_to_rtr(&s, &v.e, &v.to), 0);
	require_equal(end_to_rts(&v.e), 0);
	barrier(&s);
	slot = (int)hca_context_of(s.ctx)->fabric->slot;
	require(write(tell, &slot, sizeof(slot)) == sizeof(slot));
	require(read(go, &byte, 1) == 1);
	suffer(&v);
	if (!v.good)
		fail("nothing was delivered, not even before the attack");
	printf("  side %d: %lu completions, %lu errors\n", me, v.good, v.bad);
	end_free(&v.e);
	require_equal(ibv_dereg_mr(v.b.mr), 0);
	side_close(&s);
	exit(0);
}

/* ---- All three ----------------------------------------------------------- */

static void a_round(unsigned seed)
{
	int pair[2], tell[2][2], go[2][2], slot[2], begun[2], me, status;
	pid_t pid[2], third;
	char byte;

	require_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) | pipe(begun), 0);
	for (me = 0; me < 2; me++) {
		require_equal(pipe(tell[me]) | pipe(go[me]), 0);
		fflush(NULL);
		pid[me] = fork();
		require(pid[me] >= 0);
		if (pid[me] == 0) {
			close(pair[!me]);
			run(me, pair[me], tell[me][1], go[me][0], seed);
		}
		close(tell[me][1]);
		close(go[me][0]);
	}
	close(pair[0]);
	close(pair[1]);
	for (me = 0; me < 2; me++)
		require(read(tell[me][0], &slot[me], sizeof(slot[me])) == sizeof(slot[me]));
	fflush(NULL);
	third = fork();
	require(third >= 0);
	if (third == 0)
		attack(slot, begun[1], seed);
	close(begun[1]);
	if (read(begun[0], &byte, 1) != 1)
		fail("seed %u: the third could write to a table, or did not begin", seed);
	for (me = 0; me < 2; me++)
		require(write(go[me][1], "g", 1) == 1);
	for (me = 0; me < 2; me++) {
		require_equal(waitpid(pid[me], &status, 0), pid[me]);
		if (!WIFEXITED(status) || WEXITSTATUS(status))
			fail("seed %u: side %d ended with status 0x%x", seed, me, (unsigned)status);
		close(tell[me][0]);
		close(go[me][1]);
	}
	close(begun[0]);
	kill(third, SIGKILL);
	require_equal(waitpid(third, &status, 0), third);
}

/* Does the kernel copy between processes of a user who are not each other's children? */
static bool kernel_copies(void)
{
	FILE *f = fopen("/proc/sys/kernel/yama/ptrace_scope", "r");
	int scope = 0;

	if (f) {
		if (fscanf(f, "%d", &scope) != 1)
			scope = 1;
		fclose(f);
	}
	return scope < 2;	/* 1: only a process that permits it (SOFTHCA_COPY=kernel) */
}

int main(int argc, char **argv)
{
	const char *const copies[] = { kernel_copies() ? "kernel" : "bounce", "bounce", "auto" };
	unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 8, i;
	unsigned seed = drawn_seed(argc > 2 ? argv[2] : NULL);
	const char *path;

	setenv("SOFTHCA_REMAP", "never", 1);
	setenv("SOFTHCA_SPEC", "", 1);
	for (i = 0; i < rounds; i++) {
		printf("round %u of %u, seed %u\n", i + 1, rounds, seed + i);
		path = fabric_new("scribble");
		setenv("SOFTHCA_COPY", copies[(seed + i) % 3], 1);
		a_round(seed + i);
		unlink(path);		/* the third does not leave in good order */
	}
	return 0;
}
