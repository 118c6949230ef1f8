/*
 * copies.c - messages between two processes, copied in each way that processors have, without a library:
 *	write		by the sender, in one call of the kernel (process_vm_writev)
 *	read		by the receiver (process_vm_readv)
 *	halves		half by either end
 *	turns		whole messages, by sender and receiver in turns
 *	mapped		by the sender's memcpy, into memory that both processes map
 *	mapped-halves	half by either end's memcpy, from memory and into memory that both map
 *	ring-NK		twice, through a ring of slices of N KiB in shared memory: by the sender in, by the
 *			receiver out; ring-whole: slices as large as the message
 * This is what librail chooses from where no adapter copies (rndv.h and slices.h in src/rail/message), and the
 * plain reference of `make bench` for it.  Results depend on what the two processors have in common: 16 KiB take 2.2 us
 * through librail's ring between hardware threads of one core and 8.0 between cores apart, by the kernel
 * 4.0 and 4.8.
 *
 *	copies				lines "copies BYTES two|shared RATIO": rates of halves and of ring-32K
 *					to write's, messages one at a time
 *	copies LOW HIGH RING SLICE...	lines "plain KIND WAY BYTES VALUE", sizes doubled from LOW to HIGH bytes; a ring
 *					of RING KiB, slices in KiB, 0: whole messages.  KIND: bw16, bw64 (windows
 *					of 16 and 64 messages, as rg_bw), bibw64 (both directions), MB/s;
 *					latency (half of a round trip), us
 *
 * On processors 0 and 1.  Ways take turns inside a size; a value is the median of ROUNDS.  Receivers verify
 * the last message of each round.
 */
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/clock.h"

enum {
	LARGEST = 4 << 20, PER_CALL = 256 << 10,
	RING_MOST = 8 << 20,
	MOVED = 24 << 20,		/* bytes in a round; a window at least */
	ROUNDS = 5, WAYS_MOST = 16,
};

enum mover { BY_KERNEL, BY_MAPPING, BY_RING };
enum split { SENDER, RECEIVER, HALVES, TURNS };
enum load { ONE_WAY, BOTH_WAYS, PING_PONG };

struct way {
	char name[24];
	enum mover mover;
	enum split split;
	size_t slice;			/* of a ring, 0: the message */
};

static struct way way[WAYS_MOST] = {
	{ "write", BY_KERNEL, SENDER, 0 }, { "read", BY_KERNEL, RECEIVER, 0 },
	{ "halves", BY_KERNEL, HALVES, 0 }, { "turns", BY_KERNEL, TURNS, 0 },
	{ "mapped", BY_MAPPING, SENDER, 0 }, { "mapped-halves", BY_MAPPING, HALVES, 0 },
};
enum { WRITE, READ, TWO, FIRST_RING = 6 };
static int ways = FIRST_RING;
static size_t ring_bytes = 256 << 10;

/* Messages from one process to the other; each word has one writer. */
struct stream {
	_Alignas(64) _Atomic uint64_t offered;	/* messages that the sender has announced */
	_Alignas(64) _Atomic uint64_t moved;	/* messages whose part the sender has moved */
	_Alignas(64) _Atomic uint64_t filled;	/* slices of the ring */
	_Alignas(64) _Atomic uint64_t emptied;
};

static struct shared {
	_Alignas(64) _Atomic uint64_t turn[2];	/* turn that each process has reached */
	struct stream stream[2];		/* by sender */
	pid_t pid[2];
	char *plain[2][2];			/* of each process: what it sends, where it receives */
	_Alignas(4096) char mapped[2][2][LARGEST];
	char ring[2][RING_MOST];
} *shared;

static int me;
static uint64_t turn;

/* A stream as this process sees it. */
static struct flow {
	uint64_t message, until;	/* the next one; all from there on are others' */
	uint64_t slice;			/* the next one */
	size_t at;			/* bytes of the message through the ring */
} flow[2];

static void await(const _Atomic uint64_t *word, uint64_t least)
{
	while (atomic_load(word) < least)
		;
}

static void meet(void)
{
	atomic_store(&shared->turn[me], ++turn);
	await(&shared->turn[!me], turn);
}

static void die(const char *text)
{
	perror(text);
	exit(4);
}

/* ---- Parts of messages, moved by either end ------------------------------------------------------ */

static void part_of(enum split split, uint64_t message, int sender, size_t bytes, size_t *from, size_t *to)
{
	bool mine = sender == me;

	*from = 0;
	*to = bytes;
	if (split == HALVES && mine)
		*to = bytes / 2;
	else if (split == HALVES)
		*from = bytes / 2;
	else if (split == TURNS ? mine != !(message & 1) : mine != (split == SENDER))
		*to = 0;
}

static void by_kernel(int sender, size_t from, size_t to)
{
	char *sent = shared->plain[sender][0], *received = shared->plain[!sender][1];

	for (size_t n; from < to; from += n) {
		n = to - from < PER_CALL ? to - from : PER_CALL;
		struct iovec a = { sent + from, n }, b = { received + from, n };
		ssize_t done = sender == me ? process_vm_writev(shared->pid[!me], &a, 1, &b, 1, 0) :
					      process_vm_readv(shared->pid[!me], &b, 1, &a, 1, 0);

		if (done != (ssize_t)n)
			die("copies: the kernel does not copy");
	}
}

/* Copy a part, if one has come. */
static void move_part(const struct way *w, int sender, size_t bytes)
{
	struct stream *s = &shared->stream[sender];
	struct flow *f = &flow[sender];
	size_t from, to;

	if (sender != me && atomic_load(&s->offered) <= f->message)
		return;
	part_of(w->split, f->message, sender, bytes, &from, &to);
	if (w->mover == BY_KERNEL)
		by_kernel(sender, from, to);
	else if (from < to)
		memcpy(shared->mapped[!sender][1] + from, shared->mapped[sender][0] + from, to - from);
	f->message++;
	if (sender == me)
		atomic_store(&s->moved, f->message);
}

/* ---- The ring ------------------------------------------------------------------------------------ */

/* Copy a slice in where there is room, or out where one has come. */
static void move_slice(const struct way *w, int sender, size_t bytes)
{
	struct stream *s = &shared->stream[sender];
	struct flow *f = &flow[sender];
	size_t slice = w->slice ? w->slice : bytes, slots = ring_bytes / slice;
	size_t n = bytes - f->at < slice ? bytes - f->at : slice;
	char *slot = shared->ring[sender] + f->slice % slots * slice;

	if (sender == me) {
		if (f->slice - atomic_load(&s->emptied) >= slots)
			return;
		memcpy(slot, shared->plain[me][0] + f->at, n);
		atomic_store(&s->filled, ++f->slice);
	} else {
		if (atomic_load(&s->filled) <= f->slice)
			return;
		memcpy(shared->plain[me][1] + f->at, slot, n);
		atomic_store(&s->emptied, ++f->slice);
	}
	f->at += n;
	if (f->at == bytes) {
		f->at = 0;
		f->message++;
	}
}

/* ---- Windows ------------------------------------------------------------------------------------- */

static void step(const struct way *w, int sender, size_t bytes)
{
	if (flow[sender].message == flow[sender].until)
		return;
	if (w->mover == BY_RING)
		move_slice(w, sender, bytes);
	else
		move_part(w, sender, bytes);
}

static bool is_done(const struct way *w, int sender)
{
	const struct flow *f = &flow[sender];

	return f->message == f->until && (sender == me || w->mover == BY_RING ||
					  atomic_load(&shared->stream[sender].moved) >= f->until);
}

static void offer(int sender, int messages)
{
	flow[sender].until += (uint64_t)messages;
	if (sender == me)
		atomic_store(&shared->stream[sender].offered, flow[sender].until);
}

static void one_way(const struct way *w, int sender, size_t bytes, int messages)
{
	offer(sender, messages);
	while (!is_done(w, sender))
		step(w, sender, bytes);
}

static void both_ways(const struct way *w, size_t bytes, int messages)
{
	offer(0, messages);
	offer(1, messages);
	while (!is_done(w, 0) || !is_done(w, 1)) {
		step(w, me, bytes);
		step(w, !me, bytes);
	}
}

static void window(const struct way *w, enum load load, size_t bytes, int messages)
{
	if (load == BOTH_WAYS)
		both_ways(w, bytes, messages);
	else
		one_way(w, 0, bytes, messages);
	if (load == PING_PONG)
		one_way(w, 1, bytes, messages);
	else
		meet();
}

/* ---- Measures ------------------------------------------------------------------------------------ */

static char *buffer(const struct way *w, int received)
{
	return w->mover == BY_MAPPING ? shared->mapped[me][received] : shared->plain[me][received];
}

static void verify(const char *received, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		if (received[i] != received[0] || !received[0]) {
			fprintf(stderr, "copies: byte %zu of %zu is wrong\n", i, bytes);
			exit(4);
		}
}

/* Nanoseconds of a window.  The first one finds the bytes in other caches, and does not count. */
static double round_of(const struct way *w, enum load load, size_t bytes, int messages)
{
	uint64_t windows = MOVED / (bytes * (size_t)messages) + 1, start;

	memset(buffer(w, 0), (int)(turn & 127) | 1, bytes);
	memset(buffer(w, 1), 0, bytes);
	meet();
	window(w, load, bytes, messages);
	start = rg_now_ns();
	for (uint64_t i = 0; i < windows; i++)
		window(w, load, bytes, messages);
	start = rg_now_ns() - start;
	if (me || load != ONE_WAY)
		verify(buffer(w, 1), bytes);
	meet();
	flow[0].slice = flow[1].slice = 0;
	for (int d = 0; d < 2; d++)
		shared->stream[d].filled = shared->stream[d].emptied = 0;
	meet();
	return (double)start / (double)windows;
}

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static bool applies(const struct way *w, size_t bytes)
{
	size_t slice = w->slice ? w->slice : bytes;

	return w->mover != BY_RING || 2 * slice <= ring_bytes;
}

/* The medians of all ways, nanoseconds of a window. */
static void measure(double ns[WAYS_MOST], enum load load, size_t bytes, int messages)
{
	double round[WAYS_MOST][ROUNDS];

	for (int k = 0; k < ROUNDS; k++)
		for (int i = 0; i < ways; i++)
			if (applies(&way[i], bytes))
				round[i][k] = round_of(&way[i], load, bytes, messages);
	for (int i = 0; i < ways; i++) {
		ns[i] = 0;
		if (!applies(&way[i], bytes))
			continue;
		qsort(round[i], ROUNDS, sizeof(round[i][0]), by_value);
		ns[i] = round[i][ROUNDS / 2];
	}
}

static void print_kind(const char *kind, enum load load, size_t bytes, int messages)
{
	double ns[WAYS_MOST], moved = (double)bytes * messages * (load == BOTH_WAYS ? 2 : 1);

	measure(ns, load, bytes, messages);
	for (int i = 0; i < ways && me == 0; i++)
		if (ns[i] > 0)
			printf("plain %s %s %zu %.3f\n", kind, way[i].name, bytes,
			       load == PING_PONG ? ns[i] / 2e3 : moved / ns[i] * 1e3);
}

static void print_plain(size_t low, size_t high)
{
	for (size_t bytes = low; bytes <= high; bytes *= 2) {
		print_kind("bw16", ONE_WAY, bytes, 16);
		print_kind("bw64", ONE_WAY, bytes, 64);
		print_kind("bibw64", BOTH_WAYS, bytes, 64);
		print_kind("latency", PING_PONG, bytes, 1);
		fflush(stdout);
	}
}

static void print_ratios(void)
{
	double ns[WAYS_MOST];

	for (size_t bytes = 16 << 10; bytes <= LARGEST; bytes *= 4) {
		measure(ns, ONE_WAY, bytes, 1);
		if (me == 0)
			printf("copies %zu two %.4f\ncopies %zu shared %.4f\n", bytes, ns[WRITE] / ns[TWO],
			       bytes, ns[WRITE] / ns[FIRST_RING]);
	}
}

/* ---- Start --------------------------------------------------------------------------------------- */

static void ring_add(size_t slice)
{
	struct way *w = &way[ways++];

	*w = (struct way){ .mover = BY_RING, .slice = slice };
	if (slice)
		snprintf(w->name, sizeof(w->name), "ring-%zuK", slice >> 10);
	else
		snprintf(w->name, sizeof(w->name), "ring-whole");
}

static size_t number(const char *text, size_t least, size_t most)
{
	char *end;
	size_t n = strtoul(text, &end, 10);

	if (*end || n < least || n > most) {
		fprintf(stderr, "copies: %s (accepted: %zu to %zu)\n", text, least, most);
		exit(3);
	}
	return n;
}

/* The parent does not wait for a child that has failed. */
static void child_ended(int signal)
{
	int status;

	if (waitpid(-1, &status, WNOHANG) > 0 && status)
		_exit(4);
}

static void settle(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(me, &set);
	sched_setaffinity(0, sizeof(set), &set);
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	shared->pid[me] = getpid();
	for (int i = 0; i < 2; i++) {
		shared->plain[me][i] = malloc(LARGEST);
		if (!shared->plain[me][i])
			die("copies");
		memset(shared->plain[me][i], 1, LARGEST);
		memset(shared->mapped[me][i], 1, LARGEST);
	}
	meet();
}

int main(int argc, char **argv)
{
	pid_t child;

	if (argc > 1 && (argc < 5 || argc > 4 + WAYS_MOST - FIRST_RING)) {
		fprintf(stderr, "usage: copies [LOW HIGH RING_KIB SLICE_KIB...]\n");
		return 3;
	}
	if (argc > 1)
		ring_bytes = number(argv[3], 4, RING_MOST >> 10) << 10;
	for (int i = 4; i < argc; i++)
		ring_add(number(argv[i], 0, ring_bytes >> 10) << 10);
	if (argc == 1)
		ring_add(32 << 10);
	signal(SIGCHLD, child_ended);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	child = shared == MAP_FAILED ? -1 : fork();
	if (child < 0)
		die("copies");
	me = child == 0;
	if (me)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	settle();
	if (argc == 1)
		print_ratios();
	else
		print_plain(number(argv[1], 64, LARGEST), number(argv[2], 64, LARGEST));
	if (me)
		return 0;
	fflush(stdout);
	while (waitpid(child, NULL, 0) > 0)
		;
	return 0;
}
