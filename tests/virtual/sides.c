/* sides.c - both sides of a case as members of one process (conformance.h). */
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../conformance/conformance.h"
#include "virtual.h"

struct seat {
	void (*run)(int me, int sock, const void *arg);
	const void *arg;
	int me, sock;
};

static void sit(void *arg)
{
	const struct seat *seat = arg;

	seat->run(seat->me, seat->sock, seat->arg);
}

bool two_sides(void (*run)(int me, int sock, const void *arg), const void *arg)
{
	static const char *const names[] = { "side 0", "side 1" };
	struct seat seat[2];
	int pair[2], me;

	require_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	time_is_exact = true;
	virtual_begin(&(struct virtual_config){ 0 });
	for (me = 0; me < 2; me++) {
		seat[me] = (struct seat){ run, arg, me, pair[me] };
		virtual_task(names[me], (unsigned)me, sit, &seat[me]);
	}
	virtual_run();
	close(pair[0]);
	close(pair[1]);
	return true;
}

void side_dies(struct side *s, int who)
{
	(void)s;
	fail("side %d cannot die without the other one", who);
}

void side_over(void)
{
	virtual_leave();
}
