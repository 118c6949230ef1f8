/*
 * mapping.c - receive buffers under --map-buffers, with costs by which each class is mapped: which are mapped, which
 * are not, and what becomes of them when the program does something to their memory.
 *
 *	mapping [CASE...]	run with two ranks over `railgauge exec --map-buffers`
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "../page.h"
#include "mapping_kit.h"

enum { BYTES = 1 << 20 };

/* ---- What is mapped, and when -------------------------------------------- */

/* Pages are mapped from the second use on: whole pages of the message, and no others. */
static const char *second_use(void)
{
	unsigned char *buf = malloc(BYTES + 3 * PAGE), *at = buf + 3000;

	message(at, BYTES);
	check(is_not(buf, BYTES + 3 * PAGE));
	message(at, BYTES);
	check(is_mapped(at, BYTES));
	check(rank == 0 || mapped(buf - PAGE, BYTES + 4 * PAGE) == BYTES / PAGE - 1);
	messages(at, BYTES, 3);
	messages(at, BYTES / 2 + 5, 3);
	messages(at, BYTES + 4321, 3);
	check(is_mapped(at, BYTES + 4321));
	free(buf);
	return NULL;
}

/* A short message into what a long one had: the rest may be the program's now. */
static const char *shorter(void)
{
	unsigned char *buf = pages(4 * BYTES);

	message(buf, 4 * BYTES);
	messages(buf, BYTES, 3);
	check(is_mapped(buf, BYTES) && is_not(buf + BYTES, 3 * BYTES));
	messages(buf, 4 * BYTES, 3);
	check(is_mapped(buf, 4 * BYTES));
	munmap(buf, 4 * BYTES);
	return NULL;
}

/* Long and short messages in turn: pages do not move with each of them. */
static const char *lengths_in_turn(void)
{
	enum { TURNS = 20, MOST = 4 };
	unsigned char *buf = pages(4 * BYTES);
	int maps = 0;

	for (int n = 0; n < TURNS; n++) {
		message(buf, 4 * BYTES);
		message(buf, BYTES);
		maps += rank && mapped(buf, BYTES);
	}
	check(maps <= MOST);
	messages(buf, 4 * BYTES, 3 * TURNS);
	check(is_mapped(buf, 4 * BYTES));
	munmap(buf, 4 * BYTES);
	return NULL;
}

/* Parts of one array, received in any order: each is mapped, between them nothing. */
static const char *parts(void)
{
	unsigned char *buf = pages(4 * BYTES);

	for (int n = 0; n < 3; n++)
		for (int i = 0; i < 4; i++)
			message(buf + (size_t)i * BYTES + 100, BYTES - 200);
	for (int i = 0; i < 4; i++)
		check(is_mapped(buf + (size_t)i * BYTES + 100, BYTES - 200));
	check(rank == 0 || mapped(buf, 4 * BYTES) == 4 * (BYTES / PAGE - 2));
	munmap(buf, 4 * BYTES);
	return NULL;
}

/* The gaps of a type are not the message's. */
static const char *gaps(void)
{
	enum { COUNT = 16 };
	const int block = 8 * PAGE, stride = 16 * PAGE;
	unsigned char *buf = pages(stride * COUNT);
	MPI_Datatype type;

	MPI_Type_vector(COUNT, block, stride, MPI_BYTE, &type);
	MPI_Type_commit(&type);
	for (int n = 0; n < 3; n++) {
		fill(buf, stride * COUNT, (unsigned)n);
		if (rank == 0)
			MPI_Send(buf, 1, type, 1, 0, MPI_COMM_WORLD);
		else
			MPI_Recv(buf, 1, type, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		check(is_filled(buf, stride * COUNT - stride + block, (unsigned)n));
		check(is_not(buf, stride * COUNT));
	}
	MPI_Type_free(&type);
	munmap(buf, stride * COUNT);
	return NULL;
}

/* Receives of one buffer that overlap in time, as benchmarks have them: mapped between two rounds. */
static const char *window(void)
{
	enum { WINDOW = 16 };
	unsigned char *buf = malloc(BYTES);
	MPI_Request request[WINDOW];

	for (int n = 0; n < 4; n++) {
		fill(buf, BYTES, 77);
		for (int i = 0; i < WINDOW; i++)
			if (rank == 0)
				MPI_Isend(buf, BYTES, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request[i]);
			else
				MPI_Irecv(buf, BYTES, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &request[i]);
		MPI_Waitall(WINDOW, request, MPI_STATUSES_IGNORE);
		check(is_filled(buf, BYTES, 77));
	}
	check(is_mapped(buf, BYTES));
	free(buf);
	return NULL;
}

/* A buffer that is sent from stays where it is. */
static const char *sends(void)
{
	unsigned char *buf = pages(BYTES), *to = pages(BYTES);

	for (int n = 0; n < 4; n++) {
		fill(buf, BYTES, (unsigned)n);
		if (rank == 1) {
			MPI_Send(buf, BYTES, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
		} else {
			MPI_Recv(to, BYTES, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			check(is_filled(to, BYTES, (unsigned)n));
		}
	}
	check(is_not(buf, BYTES));
	munmap(buf, BYTES);
	munmap(to, BYTES);
	return NULL;
}

/* ---- Stacks -------------------------------------------------------------- */

static __attribute__((noinline)) void on_stack(void)
{
	unsigned char buf[BYTES / 4];

	messages(buf, sizeof(buf), 4);
	check(is_not(buf, sizeof(buf)));
}

static void *in_thread(void *arg)
{
	(void)arg;
	on_stack();
	return NULL;
}

static const char *thread_stack(void)
{
	pthread_t thread;

	on_stack();
	pthread_create(&thread, NULL, in_thread, NULL);
	pthread_join(thread, NULL);
	return NULL;
}

/* The frame of one thread, the call of another. */
static unsigned char *lent;
static pthread_barrier_t barrier;

static void *lender(void *arg)
{
	unsigned char buf[BYTES / 4];

	(void)arg;
	lent = buf;
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	return NULL;
}

static const char *other_stack(void)
{
	pthread_t thread;

	pthread_barrier_init(&barrier, NULL, 2);
	pthread_create(&thread, NULL, lender, NULL);
	pthread_barrier_wait(&barrier);
	messages(lent, BYTES / 4, 4);
	check(is_not(lent, BYTES / 4));
	pthread_barrier_wait(&barrier);
	pthread_join(thread, NULL);
	pthread_barrier_destroy(&barrier);
	return NULL;
}

static ucontext_t home, fiber;

static void in_fiber(void)
{
	on_stack();
	swapcontext(&fiber, &home);
}

static void run_fiber(void *stack)
{
	getcontext(&fiber);
	fiber.uc_stack.ss_sp = stack;
	fiber.uc_stack.ss_size = BYTES;
	makecontext(&fiber, in_fiber, 0);
	swapcontext(&home, &fiber);
}

static const char *fiber_stack(void)
{
	void *stack = pages(BYTES);

	run_fiber(stack);
	munmap(stack, BYTES);
	/* The size excludes heap memory that was mapped before. */
	stack = malloc((size_t)64 << 20);
	run_fiber(stack);
	free(stack);
	return NULL;
}

/* ---- Memory that others hold ---------------------------------------------- */

static const char *windows(void)
{
	unsigned char *buf = pages(BYTES), *base;
	MPI_Win win, other;

	messages(buf, BYTES, 2);
	check(is_mapped(buf, BYTES));
	MPI_Win_create(buf, BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	check(is_not(buf, BYTES) && (rank == 0 || is_filled(buf, BYTES, turn)));
	messages(buf, BYTES, 4);
	check(is_not(buf, BYTES));
	MPI_Win_free(&win);
	messages(buf, BYTES, 20);
	check(is_mapped(buf, BYTES));
	MPI_Win_allocate(BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
	messages(base, BYTES, 4);
	check(is_not(base, BYTES));
	MPI_Win_free(&win);
	/* Two at one address: the end of one is not that of the other. */
	MPI_Win_create(buf, PAGE, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	MPI_Win_create(buf, BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &other);
	MPI_Win_free(&win);
	messages(buf, BYTES, 40);
	check(is_not(buf, BYTES));
	MPI_Win_free(&other);
	MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	MPI_Win_attach(win, buf, BYTES);
	messages(buf, BYTES, 4);
	check(is_not(buf, BYTES));
	MPI_Win_detach(win, buf);
	MPI_Win_free(&win);
	munmap(buf, BYTES);
	return NULL;
}

static const char *locked(void)
{
	unsigned char *buf = pages(BYTES);
	const char *skip = NULL;

	if (mlock(buf, PAGE))
		skip = "memory cannot be locked";
	messages(buf, BYTES, 4);
	check(skip || is_not(buf, BYTES));
	munlock(buf, PAGE);
	munmap(buf, BYTES);
	return skip;
}

static const char *bound(void)
{
	enum { BIND = 2 };			/* MPOL_BIND */
	unsigned long nodes = 1;
	unsigned char *buf = pages(BYTES);
	const char *skip = NULL;

	if (syscall(SYS_mbind, buf + 4 * PAGE, PAGE, BIND, &nodes, 8 * sizeof(nodes), 0))
		skip = "memory cannot be bound";
	messages(buf, BYTES, 4);
	check(skip || is_not(buf, BYTES));
	munmap(buf, BYTES);
	return skip;
}

static const char *userfault(void)
{
	enum { USER_MODE_ONLY = 1 };
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | USER_MODE_ONLY);
	unsigned char *buf = pages(BYTES);

	messages(buf, BYTES, 4);
	check(fd < 0 || is_not(buf, BYTES));
	munmap(buf, BYTES);
	if (fd >= 0)
		close(fd);
	return fd < 0 ? "no userfaultfd" : NULL;
}

/* Once a device is open nothing moves: it may have been told of what is mapped, too. */
static const char *device(void)
{
	unsigned char *buf = pages(2 * BYTES), *other = pages(BYTES);
	int fd;

	messages(buf, BYTES, 2);
	check(is_mapped(buf, BYTES));
	fd = open("/dev/kvm", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		fd = open("/dev/vfio/vfio", O_RDWR | O_CLOEXEC);
	if (fd >= 0) {
		usleep(20000);
		messages(other, BYTES, 4);
		check(is_mapped(buf, BYTES) && is_not(other, BYTES));
		messages(buf, BYTES, 2);
		messages(buf, 2 * BYTES, 3);
		check(rank == 0 || mapped(buf, 2 * BYTES) == BYTES / PAGE);
		close(fd);
	}
	munmap(buf, 2 * BYTES);
	munmap(other, BYTES);
	return fd < 0 ? "neither KVM nor VFIO can be opened" : NULL;
}

/* ---- What the program does with mapped memory ------------------------------ */

static const char *grown(void)
{
	unsigned char *buf = malloc(BYTES), *moved = pages(BYTES);
	/* Other cases may have had this address: it is mapped late then. */
	unsigned seed = messages(buf, BYTES, 40);

	check(is_mapped(buf, BYTES));
	buf = realloc(buf, 3 * BYTES);
	check(rank == 0 || is_filled(buf, BYTES, seed));
	messages(buf, 3 * BYTES, 4);
	free(buf);
	seed = messages(moved, BYTES, 2);
	check(is_mapped(moved, BYTES));
	moved = mremap(moved, BYTES, 2 * BYTES, MREMAP_MAYMOVE);
	check(moved != MAP_FAILED && (rank == 0 || is_filled(moved, BYTES, seed)));
	check(moved[BYTES] == 0 && moved[2 * BYTES - 1] == 0);
	messages(moved, 2 * BYTES, 4);
	munmap(moved, 2 * BYTES);
	return NULL;
}

static const char *emptied(void)
{
	unsigned char *buf = pages(BYTES);

	messages(buf, BYTES, 2);
	check(is_mapped(buf, BYTES));
	madvise(buf + PAGE, BYTES / 2, MADV_DONTNEED);
	for (size_t i = PAGE; i < PAGE + BYTES / 2; i++)
		if (buf[i])
			check(!"zeros");
	check(rank == 0 || (buf[0] == value(turn, 0) &&
			    buf[BYTES - 1] == value(turn, BYTES - 1)));
	messages(buf, BYTES, 6);
	munmap(buf, BYTES);
	return NULL;
}

static const char *remapped(void)
{
	unsigned char *buf = pages(BYTES), *again;

	for (int n = 0; n < 20; n++) {
		messages(buf, BYTES, 1 + n % 3);
		munmap(buf, BYTES);
		again = mmap(buf, BYTES, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		check(again == buf && !buf[0] && !buf[BYTES - 1]);
	}
	munmap(buf, BYTES);
	return NULL;
}

/* A child has the memory of that moment, and what it writes is its own. */
static const char *forked(void)
{
	unsigned char *buf = pages(BYTES);
	int status = -1;

	for (int n = 0; n < 3; n++) {
		int pipes[2];
		pid_t child;
		char c = 0;

		messages(buf, BYTES, 4);
		check(n || is_mapped(buf, BYTES));
		memset(buf, 1, BYTES);
		check(!pipe(pipes));
		child = fork();
		if (!child) {
			bool right = read(pipes[0], &c, 1) == 1;

			for (size_t i = 0; i < BYTES; i++)
				right &= buf[i] == 1;
			memset(buf, 3, BYTES);
			_exit(!right);
		}
		memset(buf, 2, BYTES);
		messages(buf, BYTES, 4);
		check(write(pipes[1], &c, 1) == 1);
		check(waitpid(child, &status, 0) == child && status == 0);
		check(rank == 0 || is_filled(buf, BYTES, turn));
		close(pipes[0]);
		close(pipes[1]);
	}
	munmap(buf, BYTES);
	return NULL;
}

/* ---- Bounds --------------------------------------------------------------- */

static const char *bounds(void)
{
	enum { BUFFERS = 700, SIZE = 64 << 10 };
	unsigned char *buf[BUFFERS];
	size_t sum = 0;

	for (int i = 0; i < BUFFERS; i++)
		buf[i] = pages(SIZE + PAGE);
	for (int n = 0; n < 2; n++)
		for (int i = 0; i < BUFFERS; i++)
			message(buf[i], SIZE);
	for (int i = 0; i < BUFFERS; i++)
		messages(buf[i], SIZE, 2);
	for (int i = 0; i < BUFFERS; i++)
		sum += mapped(buf[i], SIZE) > 0;
	check(rank == 0 || (sum > 0 && sum <= 512));
	for (int i = 0; i < BUFFERS; i++)
		munmap(buf[i], SIZE + PAGE);
	return NULL;
}

/* In kB, of a line of /proc/self/status. */
static long status_of(const char *name)
{
	FILE *f = fopen("/proc/self/status", "re");
	char line[128];
	long value = -1;

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, name, strlen(name)))
			value = strtol(line + strlen(name) + 1, NULL, 10);
	if (f)
		fclose(f);
	return value;
}

/* A buffer is moved in slices: it is never there twice. */
static const char *slices(void)
{
	const size_t bytes = (size_t)64 << 20;
	unsigned char *buf = pages(bytes);
	long before;
	int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
	bool reset;

	message(buf, bytes);
	before = status_of("VmRSS");
	reset = fd >= 0 && write(fd, "5", 1) == 1;	/* the peak begins anew */
	message(buf, bytes);
	check(is_mapped(buf, bytes));
	check(rank == 0 || !reset || status_of("VmHWM") < before + (16 << 10));
	munmap(buf, bytes);
	if (fd >= 0)
		close(fd);
	return reset ? NULL : "the peak of memory cannot be read";
}

/* ---- Cases ---------------------------------------------------------------- */

static const struct mapping_case cases[] = {
	{ "second_use", second_use }, { "shorter", shorter }, { "lengths_in_turn", lengths_in_turn },
	{ "parts", parts }, { "gaps", gaps }, { "window", window },
	{ "sends", sends }, { "thread_stack", thread_stack }, { "other_stack", other_stack },
	{ "fiber_stack", fiber_stack }, { "windows", windows }, { "locked", locked },
	{ "bound", bound }, { "userfault", userfault }, { "device", device },
	{ "grown", grown }, { "emptied", emptied }, { "remapped", remapped },
	{ "forked", forked }, { "bounds", bounds }, { "slices", slices },
};

int main(int argc, char **argv)
{
	return mapping_run(cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
}
