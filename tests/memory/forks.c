/*
 * forks.c - kinds of memory.h: a child of fork has a copy of the memory, does something to it and
 * ends, while its parent goes on sending and receiving.
 *
 * The child looks twice: at once, and when the parent has changed the memory since.
 */
#include <errno.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "memory.h"

enum {			/* how a child ends: exit codes that mean something */
	CHILD_WELL = 0,
	CHILD_SAW_OTHER = 41,	/* other contents than at the fork */
	CHILD_SAW_LATER = 42,	/* a later change by the parent */
	CHILD_LOST = 43,	/* data that the child wrote */
};

static const char *begin(struct life *l)
{
	void *p = mmap(NULL, l->limit, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return life_failed("mmap");
	l->home = NULL;
	l->fd = -1;
	life_is_zero(l, p, l->limit);
	return NULL;
}

/* A byte; not the end of the file, which children that are forked later hold open. */
static void until_told(int fd)
{
	char byte;

	while (recv(fd, &byte, 1, 0) < 0 && errno == EINTR)
		;
}

static int child_reads(struct life *l, int told)
{
	if (memcmp(l->mem, l->shadow, l->bytes))
		return CHILD_SAW_OTHER;
	until_told(told);
	return memcmp(l->mem, l->shadow, l->bytes) ? CHILD_SAW_LATER : CHILD_WELL;
}

/* Write every second page: the others must be unchanged. */
static int child_writes(struct life *l, int told)
{
	if (memcmp(l->mem, l->shadow, l->bytes))
		return CHILD_SAW_OTHER;
	for (size_t i = 0; i < l->bytes; i += 2 * PAGE)
		memset(l->mem + i, 0xcc, PAGE);
	until_told(told);
	for (size_t i = 0; i < l->bytes; i += PAGE) {
		bool mine = i / PAGE % 2 == 0;

		if (mine && (l->mem[i] != 0xcc || l->mem[i + PAGE - 1] != 0xcc))
			return CHILD_LOST;
		if (!mine && memcmp(l->mem + i, l->shadow + i, PAGE))
			return CHILD_SAW_LATER;
	}
	return CHILD_WELL;
}

static int child_unmaps(struct life *l, int told)
{
	void *p;

	if (memcmp(l->mem, l->shadow, l->bytes))
		return CHILD_SAW_OTHER;
	munmap(l->mem, l->bytes);
	p = mmap(l->mem, l->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	memset(p, 0xcc, l->bytes);
	until_told(told);
	return CHILD_WELL;
}

/*
 * Free its own heap, and its copy of the buffer by other calls.  A child of a process with several
 * threads may not call malloc (POSIX, fork), and where heap pages are pinned it cannot:
 * src/memwatch/README.md, "Forks".
 */
static int child_frees(struct life *l, int told)
{
	void *block = life_threaded ? NULL : malloc(l->bytes);

	if (block)
		memset(block, 0xcc, l->bytes);
	madvise(l->mem, l->bytes, MADV_DONTNEED);
	memset(l->mem, 0xcc, l->bytes);
	until_told(told);
	free(block);
	return CHILD_WELL;
}

/* The child before this one ends now: it was there during a message. */
static const char *collect(struct life *l)
{
	pid_t child = (pid_t)(intptr_t)l->own;
	static _Thread_local char text[80];
	int status;

	if (l->fd < 0)
		return NULL;
	send(l->fd, "", 1, MSG_NOSIGNAL);
	close(l->fd);
	l->fd = -1;
	if (waitpid(child, &status, 0) != child)
		return life_failed("waitpid");
	if (WIFSIGNALED(status)) {
		snprintf(text, sizeof(text), "the child died by signal %d", WTERMSIG(status));
		return text;
	}
	switch (WEXITSTATUS(status)) {
	case CHILD_WELL: return NULL;
	case CHILD_SAW_OTHER: return "the child saw something else than what was there at the fork";
	case CHILD_SAW_LATER: return "the child saw what the parent got after the fork";
	case CHILD_LOST: return "the child lost what it had written";
	}
	snprintf(text, sizeof(text), "the child ended with %d", WEXITSTATUS(status));
	return text;
}

static const char *change(struct life *l, int (*what)(struct life *, int), void (*end)(int))
{
	const char *failed = collect(l);
	int told[2];
	pid_t child;

	if (failed)
		return failed;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, told))
		return life_failed("socketpair");
	fflush(NULL);
	child = fork();
	if (!child) {
		close(told[1]);
		end(what(l, told[0]));
	}
	close(told[0]);
	l->fd = told[1];
	l->own = (void *)(intptr_t)child;
	if (child < 0)
		return life_failed("fork");
	return NULL;
}

static const char *change_reads(struct life *l, size_t need)
{
	(void)need;
	return change(l, child_reads, _exit);
}

static const char *change_writes(struct life *l, size_t need)
{
	(void)need;
	return change(l, child_writes, _exit);
}

static const char *change_unmaps(struct life *l, size_t need)
{
	(void)need;
	return change(l, child_unmaps, _exit);
}

static const char *change_frees(struct life *l, size_t need)
{
	(void)need;
	return change(l, child_frees, _exit);
}

/* The child runs all exit handlers of libraries. */
static const char *change_exits(struct life *l, size_t need)
{
	(void)need;
	return change(l, child_writes, exit);
}

/* Another program: vfork's child has no memory of its own until it is there. */
static const char *change_spawn(struct life *l, size_t need)
{
	char *const arguments[] = {"true", NULL}, *const environment[] = {NULL};
	int status = 0;
	pid_t child;

	(void)l, (void)need;
	if (posix_spawnp(&child, "true", NULL, NULL, arguments, environment) ||
	    waitpid(child, &status, 0) != child || status)
		return "the program true has failed";
	return NULL;
}

static void end(struct life *l)
{
	const char *failed = collect(l);

	if (failed)
		fprintf(stderr, "%s: %s\n", l->kind->name, failed);
	munmap(l->mem, l->bytes);
}

const struct kind fork_kinds[] = {
	{"fork-reads", begin, change_reads, end, NULL, 0},
	{"fork-writes", begin, change_writes, end, NULL, 0},
	{"fork-unmaps", begin, change_unmaps, end, NULL, 0},
	{"fork-frees", begin, change_frees, end, NULL, 0},
	{"fork-exits", begin, change_exits, end, NULL, 0},
	{"spawn", begin, change_spawn, end, NULL, 0},
	{NULL, NULL, NULL, NULL, NULL, 0},
};
