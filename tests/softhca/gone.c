/*
 * gone.c - registered memory that has changed: data arrives at its addresses, or the
 * message fails; the process that owns it, and its other connections, go on.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../page.h"
#include "kit.h"

enum { BYTES = 8 * PAGE_MOST };

/* ---- Memory, and what becomes of it -------------------------------------- */

static int file = -1;

static unsigned char *of_file(int flags)
{
	FILE *f = tmpfile();
	void *at;

	require(f != NULL);
	file = fileno(f);
	require_equal(ftruncate(file, BYTES), 0);
	at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, flags, file, 0);
	require(at != MAP_FAILED);
	return at;
}

static unsigned char *shared_file(void)
{
	return of_file(MAP_SHARED);
}

static unsigned char *private_file(void)
{
	return of_file(MAP_PRIVATE);
}

static unsigned char *anonymous(void)
{
	void *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	require(at != MAP_FAILED);
	return at;
}

static unsigned char *growing_down(void)
{
	void *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN, -1, 0);

	require(at != MAP_FAILED);
	return at;
}

static void stays(unsigned char *at)
{
}

static void goes(unsigned char *at)
{
	munmap(at, BYTES);
}

static void half_goes(unsigned char *at)
{
	munmap(at + BYTES / 2, BYTES / 2);
}

static void comes_again(unsigned char *at)
{
	munmap(at, BYTES);
	require(mmap(at, BYTES, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == at);
	memset(at, 7, BYTES);
}

static void is_truncated(unsigned char *at)
{
	require_equal(ftruncate(file, 0), 0);
}

static void is_read_only(unsigned char *at)
{
	mprotect(at, BYTES, PROT_READ);
}

static void is_closed(unsigned char *at)
{
	mprotect(at, BYTES, PROT_NONE);
}

static const struct life {
	const char *name;		/* for debuggers */
	unsigned char *(*make)(void);
	void (*change)(unsigned char *at);
	bool reads, writes;		/* access that peers still have */
} lives[] = {
	{ "anonymous", anonymous, stays, true, true },
	{ "unmapped", anonymous, goes, false, false },
	{ "unmapped by half", anonymous, half_goes, false, false },
	{ "mapped again", anonymous, comes_again, true, true },
	{ "read-only", anonymous, is_read_only, true, false },
	{ "closed", anonymous, is_closed, false, false },
	{ "of a file", shared_file, stays, true, true },
	{ "of a file that ends before", shared_file, is_truncated, false, false },
	{ "private of a file", private_file, stays, true, true },
	{ "private of a file that ends before", private_file, is_truncated, false, false },
	{ "growing down", growing_down, stays, true, true },
};

/* ---- Messages ------------------------------------------------------------ */

static bool all(const unsigned char *at, unsigned char value)
{
	size_t i;

	for (i = 0; i < BYTES && at[i] == value; i++)
		;
	return i == BYTES;
}

static struct buffer buffer_of(struct side *s, unsigned char *at, unsigned char value)
{
	struct buffer b = { .at = at, .bytes = BYTES };

	memset(at, value, BYTES);
	b.mr = ibv_reg_mr(s->pd, at, BYTES, ACCESS_ALL);
	require(b.mr != NULL);
	return b;
}

/* Side 1's memory is changed; side 0 writes to it, reads from it or sends to it. */
static void try(struct side *s, const struct life *l, enum ibv_wr_opcode op)
{
	struct buffer b = buffer_of(s, s->me ? l->make() : anonymous(), s->me ? 7 : 9);
	const bool works = op == IBV_WR_RDMA_READ ? l->reads : l->writes;
	struct end e = end_new(s, NULL);
	struct ibv_send_wr wr;
	struct ibv_sge sge;

	end_connect(s, &e);
	buffer_swap(s, &b);
	sge = sge_of(&b, 0, BYTES);
	if (s->me && op == IBV_WR_SEND)
		post_receive(&e, 1, &sge, 1);
	if (s->me)
		l->change(b.at);
	barrier(s);
	if (!s->me) {
		wr = write_wr(&b, &sge, 2);
		wr.opcode = op;
		post(&e, wr);
		expect(e.cq, 2, works ? IBV_WC_SUCCESS : IBV_WC_REM_OP_ERR);
		if (op == IBV_WR_RDMA_READ && works)
			require(all(b.at, 7));
	}
	barrier(s);
	if (s->me && op == IBV_WR_SEND)
		expect(e.cq, 1, works ? IBV_WC_SUCCESS : IBV_WC_LOC_PROT_ERR);
	if (s->me && op != IBV_WR_RDMA_READ && works)
		require(all(b.at, 9));
	barrier(s);
	end_free(&e);
	require_equal(ibv_dereg_mr(b.mr), 0);
}

/* A fault of the requester's own memory is the requester's, not the peer's. */
static void blame(struct side *s)
{
	struct buffer b = buffer_of(s, anonymous(), 9);
	struct end e = end_new(s, NULL);
	struct ibv_send_wr wr;
	struct ibv_sge sge;

	end_connect(s, &e);
	buffer_swap(s, &b);
	sge = sge_of(&b, 0, BYTES);
	barrier(s);
	if (!s->me) {
		is_read_only(b.at);
		wr = write_wr(&b, &sge, 2);
		wr.opcode = IBV_WR_RDMA_READ;
		post(&e, wr);
		expect(e.cq, 2, IBV_WC_LOC_PROT_ERR);
	}
	barrier(s);
	if (s->me)
		require_equal(end_state(&e), IBV_QPS_RTS);
	barrier(s);
	end_free(&e);
	require_equal(ibv_dereg_mr(b.mr), 0);
}

static void run(int me, int sock, const void *arg)
{
	static const enum ibv_wr_opcode ops[] = {
		IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_SEND,
	};
	struct side s = side_open(0, me, sock);
	unsigned i, k;

	alarm(240);
	for (i = 0; i < sizeof(lives) / sizeof(*lives); i++)
		for (k = 0; k < sizeof(ops) / sizeof(*ops); k++)
			try(&s, &lives[i], ops[k]);
	if (arg)
		blame(&s);
}

int main(void)
{
	int failed = 0;

	fabric_new("gone");
	setenv("SOFTHCA_REMAP", "never", 1);
	unsetenv("SOFTHCA_SPEC");
	setenv("SOFTHCA_COPY", "kernel", 1);
	failed |= run_case("copy kernel", run, "blame");
	setenv("SOFTHCA_COPY", "bounce", 1);
	failed |= run_case("copy bounce", run, NULL);
	return failed;
}
