/*
 * lifecycle.c - messages to and from memory that is moved onto the segment, while the
 * program uses and remaps it: every byte is checked against a plain copy.
 *
 * A registration survives every call that leaves its addresses mapped.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../page.h"
#include "kit.h"

enum { SLOTS = 6, ROUNDS = 150, MOST = 96 };

static unsigned char *fresh(void *where, size_t bytes)
{
	void *at = mmap(where, bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | (where ? MAP_FIXED_NOREPLACE : 0), -1, 0);

	require(at != MAP_FAILED && (!where || at == where));
	return at;
}

/* ---- Slots: memory, and what it must hold -------------------------------- */

struct slot {
	unsigned char *at, *copy;	/* the copy is registered nowhere */
	size_t pages;
	bool torn;			/* several mappings, as the program made them */
	struct ibv_mr *mr;
};

static void slot_new(struct slot *s)
{
	*s = (struct slot){ .pages = 1 + draw(MOST) };
	s->at = fresh(NULL, s->pages * PAGE);
	s->copy = calloc(MOST + 1, PAGE);
	require(s->copy != NULL);
}

static void slot_dereg(struct slot *s)
{
	if (s->mr)
		require_equal(ibv_dereg_mr(s->mr), 0);
	s->mr = NULL;
}

static void slot_free(struct slot *s)
{
	slot_dereg(s);
	require_equal(munmap(s->at, s->pages * PAGE), 0);
	free(s->copy);
}

static void slot_check(const struct slot *s, const char *what)
{
	size_t i;

	if (memcmp(s->at, s->copy, s->pages * PAGE) == 0)
		return;
	for (i = 0; s->at[i] == s->copy[i]; i++)
		;
	fail("%s: byte %zu of %zu pages is %u, not %u", what, i, s->pages, s->at[i], s->copy[i]);
}

/* A random piece of the slot, in pages. */
static size_t piece(const struct slot *s, size_t *pages)
{
	size_t first = draw(s->pages);

	*pages = 1 + draw(s->pages - first);
	return first;
}

static void do_write(struct slot *s)
{
	size_t pages, first = piece(s, &pages), i;

	for (i = first * PAGE; i < (first + pages) * PAGE; i += 1 + draw(64))
		s->at[i] = s->copy[i] = (unsigned char)draw(256);
}

static void do_discard(struct slot *s)
{
	size_t pages, first = piece(s, &pages);

	require_equal(madvise(s->at + first * PAGE, pages * PAGE, MADV_DONTNEED), 0);
	memset(s->copy + first * PAGE, 0, pages * PAGE);
}

static void do_free(struct slot *s)
{
	size_t pages, first = piece(s, &pages);

	require_equal(madvise(s->at + first * PAGE, pages * PAGE, MADV_FREE), 0);
	memset(s->copy + first * PAGE, 5, pages * PAGE);
	memset(s->at + first * PAGE, 5, pages * PAGE);
}

static void do_remove(struct slot *s)
{
	size_t pages, first = piece(s, &pages);

	require(madvise(s->at + first * PAGE, pages * PAGE, MADV_REMOVE) != 0);
}

/* Unmapped, and mapped again: one call or two. */
static void do_replace(struct slot *s)
{
	size_t pages, first = piece(s, &pages);
	unsigned char *at = s->at + first * PAGE;

	if (draw(2)) {
		require_equal(munmap(at, pages * PAGE), 0);
		fresh(at, pages * PAGE);
	} else {
		require(mmap(at, pages * PAGE, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at);
	}
	memset(s->copy + first * PAGE, 0, pages * PAGE);
	s->torn = true;
}

/* mremap may refuse memory that the program itself has split. */
static void do_resize(struct slot *s)
{
	size_t pages = 1 + draw(MOST);
	unsigned char *at;

	slot_dereg(s);
	at = mremap(s->at, s->pages * PAGE, pages * PAGE, MREMAP_MAYMOVE);
	if (at == MAP_FAILED && s->torn)
		return;
	require(at != MAP_FAILED);
	s->torn &= pages > 1;
	if (pages > s->pages)
		memset(s->copy + s->pages * PAGE, 0, (pages - s->pages) * PAGE);
	s->at = at;
	s->pages = pages;
}

static void do_protect(struct slot *s)
{
	require_equal(mprotect(s->at, s->pages * PAGE, PROT_READ), 0);
	slot_check(s, "read-only");
	require_equal(mprotect(s->at, s->pages * PAGE, PROT_READ | PROT_WRITE), 0);
}

/* The child keeps the contents at the fork, in spite of later changes here, and changes its own. */
static void do_fork(struct slot *s)
{
	unsigned deed = (unsigned)draw(4);
	int status, go[2];
	char byte;
	pid_t pid;

	require_equal(pipe(go), 0);
	pid = fork();
	require(pid >= 0);
	if (pid == 0) {
		alarm(240);
		require_equal(read(go[0], &byte, 1), 1);
		slot_check(s, "in a child");
		if (deed == 1)
			memset(s->at, 1, s->pages * PAGE);
		else if (deed == 2)
			do_resize(&(struct slot){ .at = s->at, .copy = s->copy, .pages = s->pages,
						  .torn = s->torn });
		else if (deed == 3)
			require_equal(munmap(s->at, s->pages * PAGE), 0);
		_exit(0);
	}
	do_write(s);
	require_equal(write(go[1], "", 1), 1);
	require_equal(waitpid(pid, &status, 0), pid);
	require_equal(status, 0);
	close(go[0]);
	close(go[1]);
}

static void (*const deeds[])(struct slot *s) = {
	do_write, do_discard, do_free, do_remove, do_replace, do_resize, do_protect, do_fork,
};

/* ---- Random lives -------------------------------------------------------- */

struct place {
	uint64_t addr, bytes;
	uint32_t rkey, pad;
};

/* Bytes [skip, skip + n) of a slot, registered again if needed. */
static struct place place_of(struct side *s, struct slot *slot, size_t skip, size_t n)
{
	if (!slot->mr)
		slot->mr = ibv_reg_mr(s->pd, slot->at, slot->pages * PAGE, ACCESS_ALL);
	require(slot->mr != NULL);
	return (struct place){ (uintptr_t)slot->at + skip, n, slot->mr->rkey, 0 };
}

static void transfer(struct side *s, struct end *e, struct slot *slot, unsigned round)
{
	const bool sends = (round & 1) == (unsigned)s->me;
	size_t skip = draw(slot->pages * PAGE), n = slot->pages * PAGE - skip, i;
	struct place mine = place_of(s, slot, skip, n), theirs;
	struct ibv_send_wr wr = { .wr_id = round, .send_flags = IBV_SEND_SIGNALED, .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE };
	struct ibv_sge sge;

	swap(s, &mine, &theirs, sizeof(mine));
	if (theirs.bytes < n)
		n = theirs.bytes;
	if (sends) {
		for (i = 0; i < n; i++)
			slot->at[skip + i] = slot->copy[skip + i] = pattern(round, i);
		sge = (struct ibv_sge){ mine.addr, (uint32_t)n, slot->mr->lkey };
		wr.sg_list = &sge;
		wr.wr.rdma.remote_addr = theirs.addr;
		wr.wr.rdma.rkey = theirs.rkey;
		post(e, wr);
		expect(e->cq, round, IBV_WC_SUCCESS);
	} else {
		for (i = 0; i < n; i++)
			slot->copy[skip + i] = pattern(round, i);
	}
	barrier(s);
	slot_check(slot, sends ? "sent" : "received");
}

static void lives(struct side *s, struct end *e)
{
	struct slot slot[SLOTS];
	unsigned round, i;

	draw_from(77 + (unsigned)s->me);
	for (i = 0; i < SLOTS; i++)
		slot_new(&slot[i]);
	for (round = 0; round < ROUNDS; round++) {
		transfer(s, e, &slot[draw(SLOTS)], round);
		for (i = 0; i < 3; i++) {
			struct slot *one = &slot[draw(SLOTS)];

			deeds[draw(sizeof(deeds) / sizeof(*deeds))](one);
			slot_check(one, "after a change");
		}
	}
	for (i = 0; i < SLOTS; i++) {
		slot_check(&slot[i], "at the end");
		slot_free(&slot[i]);
	}
}

/* ---- While messages arrive ----------------------------------------------- */

#define PART (32 * PAGE)

enum { PARTS = 8, TURNS = 20 };

static unsigned char *received;
static _Atomic bool done;

/* A snapshot does not change. */
static void *fork_on(void *arg)
{
	while (!atomic_load(&done)) {
		int status;
		pid_t pid = fork();

		if (pid == 0) {
			unsigned char *copy = mmap(NULL, PARTS * PART, PROT_READ | PROT_WRITE,
						   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

			alarm(240);
			if (copy == MAP_FAILED)
				_exit(2);
			memcpy(copy, received, PARTS * PART);
			usleep(2000);
			_exit(memcmp(copy, received, PARTS * PART) != 0);
		}
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
			return arg;
	}
	return NULL;
}

/* Change pages of the same registration after the parts that receive. */
static void *change_neighbours(void *arg)
{
	unsigned char *at = received + PARTS * PART;
	unsigned turn;

	for (turn = 0; !atomic_load(&done); turn++) {
		memset(at, 1, 4 * PAGE);
		if (turn % 3 == 0) {
			if (madvise(at, 4 * PAGE, MADV_DONTNEED) || at[PAGE])
				return arg;
		} else if (turn % 3 == 1) {
			munmap(at, 4 * PAGE);
			fresh(at, 4 * PAGE);
		} else {
			unsigned char *to = mremap(at, 4 * PAGE, 4 * PAGE,
						   MREMAP_MAYMOVE | MREMAP_FIXED,
						   at + 8 * PAGE);

			if (to != at + 8 * PAGE || to[PAGE] != 1)
				return arg;
			fresh(at, 4 * PAGE);
		}
		usleep(200);
	}
	return NULL;
}

static void send_parts(struct side *s, struct end *e, struct buffer *b, unsigned turn)
{
	struct ibv_sge sge;
	unsigned i;

	for (i = 0; i < PARTS; i++) {
		fill(b->at + i * PART, turn * PARTS + i, PART);
		sge = sge_of(b, i * PART, PART);
		struct ibv_send_wr wr = write_wr(b, &sge, i);

		wr.wr.rdma.remote_addr += i * PART;
		post(e, wr);
	}
	for (i = 0; i < PARTS; i++)
		expect(e->cq, i, IBV_WC_SUCCESS);
}

static void under_way(struct side *s, struct end *e, void *(*run)(void *arg))
{
	const size_t bytes = PARTS * PART + 12 * PAGE;
	struct buffer b = { .at = fresh(NULL, bytes), .bytes = bytes };
	pthread_t thread;
	unsigned turn, i;
	void *failed;

	/* An address to move to, outside of the registration. */
	b.mr = ibv_reg_mr(s->pd, b.at, bytes - 8 * PAGE, ACCESS_ALL);
	require(b.mr != NULL);
	buffer_swap(s, &b);
	received = b.at;
	atomic_store(&done, false);
	if (s->me)
		require_equal(pthread_create(&thread, NULL, run, s), 0);
	for (turn = 0; turn < TURNS; turn++) {
		if (!s->me)
			send_parts(s, e, &b, turn);
		barrier(s);
		for (i = 0; s->me && i < PARTS; i++)
			check(b.at + i * PART, turn * PARTS + i, PART, "while memory changes");
		barrier(s);
	}
	atomic_store(&done, true);
	if (s->me) {
		pthread_join(thread, &failed);
		require(!failed);
	}
	require_equal(ibv_dereg_mr(b.mr), 0);
	munmap(b.at, bytes);
}

/* ---- Cases --------------------------------------------------------------- */

static void run(int me, int sock, const void *arg)
{
	struct side s = side_open(0, me, sock);
	struct end e = end_new(&s, NULL);

	alarm(240);
	end_connect(&s, &e);
	lives(&s, &e);
	under_way(&s, &e, change_neighbours);
	under_way(&s, &e, fork_on);
	barrier(&s);
	end_free(&e);
	side_close(&s);
}

static bool run_with(const char *remap, const char *copy, const char *spec)
{
	char name[96];

	snprintf(name, sizeof(name), "remap %s, copy %s%s%s", remap, copy, *spec ? ", " : "", spec);
	setenv("SOFTHCA_REMAP", remap, 1);
	setenv("SOFTHCA_COPY", copy, 1);
	setenv("SOFTHCA_SPEC", spec, 1);
	return run_case(name, run, NULL);
}

int main(void)
{
	int failed = 0;

	fabric_new("lifecycle");
	failed |= run_with("auto", "auto", "");
	failed |= run_with("always", "auto", "");
	failed |= run_with("auto", "bounce", "");
	failed |= run_with("auto", "auto", "rate=1GB/s,latency=2us");
	failed |= run_with("never", "auto", "");
	failed |= run_with("never", "bounce", "");
	return failed;
}
