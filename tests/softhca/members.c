/*
 * members.c - both sides of a case (conformance.h) as members of one process, each a thread, for a
 * thread sanitizer: what members publish to each other it sees as it sees what threads publish.
 *
 * Each member has its own slot, table, process segment and engine (one_address.c).  The link editor
 * puts the functions below in place of the library's (--wrap).
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../conformance/conformance.h"
#include "softhca/api/fabric.h"
#include "softhca/link/memory/join.h"

int __real_hca_join(struct hca_fabric *f, enum hca_copy_method copy, uint32_t node);
void __real_exit(int code) __attribute__((noreturn));

int __wrap_hca_join(struct hca_fabric *f, enum hca_copy_method copy, uint32_t node);
void __wrap_exit(int code) __attribute__((noreturn));

/* ---- The sides ----------------------------------------------------------- */

static _Atomic unsigned joined;
static _Thread_local bool is_side;

int __wrap_hca_join(struct hca_fabric *f, enum hca_copy_method copy, uint32_t node)
{
	int rc = __real_hca_join(f, copy, node);

	atomic_fetch_add(&joined, 1);
	return rc;
}

/* A side that fails or skips ends the process, while the other one runs. */
void __wrap_exit(int code)
{
	if (is_side)
		_exit(code);
	__real_exit(code);
}

struct seat {
	void (*run)(int me, int sock, const void *arg);
	const void *arg;
	int me, sock;
};

static void *sit(void *arg)
{
	const struct seat *seat = arg;

	is_side = true;
	hca_fabric_member = (unsigned)seat->me;
	seat->run(seat->me, seat->sock, seat->arg);
	return NULL;
}

bool two_sides(void (*run)(int me, int sock, const void *arg), const void *arg)
{
	struct seat seat[2];
	pthread_t thread[2];
	int pair[2], me;

	require_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	for (me = 0; me < 2; me++) {
		seat[me] = (struct seat){ run, arg, me, pair[me] };
		require_equal(pthread_create(&thread[me], NULL, sit, &seat[me]), 0);
		/* Side 0 has read its environment, which side 1 changes. */
		while (!me && !atomic_load(&joined))
			usleep(1000);
	}
	for (me = 0; me < 2; me++)
		pthread_join(thread[me], NULL);
	close(pair[0]);
	close(pair[1]);
	return true;
}

void side_dies(struct side *s, int who)
{
	(void)who;
	if (s->me == 0)
		skip("a side dies: it takes the other one with it");
	pause();
}

void side_over(void)
{
	pthread_exit(NULL);
}

int case_start(const struct test *t, int log, pid_t pid[2])
{
	pid[0] = case_fork(log);
	if (pid[0])
		return pid[0] > 0;
	two_sides(case_side, t);
	exit(0);
}
