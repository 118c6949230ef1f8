/*
 * copies.c - a message between two processes without memory in common, copied in three ways:
 *	one	by one process, in one call of the kernel (process_vm_writev)
 *	two	half by either process (process_vm_writev and process_vm_readv), 256 KiB a call at most
 *	shared	twice, through a ring of slots in shared memory: by the sender in, by the receiver out
 * This is what librail chooses from, where no adapter copies (src/rail/message/rndv.h).  `shared` depends on
 * what the two processors have in common: 16 KiB take 2.2 us through librail's ring between hardware
 * threads of one core and 8.0 between cores apart, by the kernel 4.0 and 4.8 (rg_latency --over single
 * --soft ideal --buffers malloc -m 16K:16K, with --eager 64K and 8K; a virtual machine whose processors
 * are now this, now that).  On processors 0 and 1; lines "copies BYTES two|shared RATIO", of rates, to
 * one.
 */
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
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
	SLOT = 32 << 10, SLOTS = 8,
	MOVED = 256 << 20,		/* bytes in each measure */
};

static struct shared {
	_Alignas(64) _Atomic uint64_t turn[2];	/* turn that each process has reached */
	_Alignas(64) _Atomic uint64_t filled;	/* slots filled since the start */
	_Alignas(64) _Atomic uint64_t emptied;
	pid_t pid[2];
	char *buffer[2];
	_Alignas(4096) char slot[SLOTS][SLOT];
} *shared;

static int me;			/* 0: the sender */
static uint64_t turn;
static char *mine;

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

/* The kernel copies [from, to) between this process and the other. */
static void by_kernel(size_t from, size_t to)
{
	for (size_t n; from < to; from += n) {
		n = to - from < PER_CALL ? to - from : PER_CALL;
		struct iovec here = { mine + from, n }, there = { shared->buffer[!me] + from, n };
		ssize_t done = me ? process_vm_readv(shared->pid[0], &here, 1, &there, 1, 0) :
				    process_vm_writev(shared->pid[1], &here, 1, &there, 1, 0);

		if (done != (ssize_t)n) {
			perror("copies: the kernel does not copy");
			exit(4);
		}
	}
}

static void one(size_t bytes)
{
	if (me == 0)
		by_kernel(0, bytes);
	meet();
}

static void two(size_t bytes)
{
	by_kernel(me ? bytes / 2 : 0, me ? bytes : bytes / 2);
	meet();
}

static void through_shared(size_t bytes)
{
	static uint64_t number;		/* the next slot; each process counts */

	for (size_t at = 0; at < bytes; at += SLOT, number++) {
		size_t n = bytes - at < SLOT ? bytes - at : SLOT;

		if (me == 0) {
			await(&shared->emptied, number < SLOTS ? 0 : number - SLOTS + 1);
			memcpy(shared->slot[number % SLOTS], mine + at, n);
			atomic_store(&shared->filled, number + 1);
		} else {
			await(&shared->filled, number + 1);
			memcpy(mine + at, shared->slot[number % SLOTS], n);
			atomic_store(&shared->emptied, number + 1);
		}
	}
	meet();
}

/* Nanoseconds for a byte; the receiver's last message is verified. */
static double cost(void (*copy)(size_t bytes), size_t bytes)
{
	uint64_t messages = MOVED / bytes, start;

	memset(mine, me ? 0 : (int)turn | 1, bytes);
	meet();
	start = rg_now_ns();
	for (uint64_t i = 0; i < messages; i++)
		copy(bytes);
	start = rg_now_ns() - start;
	for (size_t i = 0; me && i < bytes; i++)
		if (mine[i] != mine[0] || !mine[0]) {
			fprintf(stderr, "copies: byte %zu of %zu is wrong\n", i, bytes);
			exit(4);
		}
	meet();
	return (double)start / (double)(messages * bytes);
}

static void measure(size_t bytes)
{
	double alone = cost(one, bytes), both = cost(two, bytes), twice = cost(through_shared, bytes);

	if (me == 0)
		printf("copies %zu two %.4f\ncopies %zu shared %.4f\n", bytes, alone / both, bytes,
		       alone / twice);
}

int main(void)
{
	pid_t child;
	cpu_set_t set;
	int status = 0;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED || (child = fork()) < 0) {
		perror("copies");
		return 4;
	}
	me = child == 0;
	if (me)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	CPU_ZERO(&set);
	CPU_SET(me, &set);
	sched_setaffinity(0, sizeof(set), &set);
	mine = malloc(LARGEST);
	if (!mine)
		return 4;
	shared->pid[me] = getpid();
	shared->buffer[me] = mine;
	meet();
	for (size_t bytes = 16 << 10; bytes <= LARGEST; bytes *= 4)
		measure(bytes);
	if (me)
		return 0;
	fflush(stdout);
	waitpid(child, &status, 0);
	return status ? 4 : 0;
}
