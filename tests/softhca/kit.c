/* kit.c - see kit.h. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "kit.h"
#include "random.h"

/* ---- The fabric ---------------------------------------------------------- */

static char fabric_path[96];

const char *fabric_new(const char *prefix)
{
	static unsigned number;
	char name[48];

	signal(SIGPIPE, SIG_IGN);
	snprintf(name, sizeof(name), "%s.%d.%u", prefix, (int)getpid(), number++);
	snprintf(fabric_path, sizeof(fabric_path), "/dev/shm/softhca.%u.%s", (unsigned)geteuid(), name);
	setenv("SOFTHCA_EXPOSE", "1", 1);
	setenv("SOFTHCA_FABRIC", name, 1);
	return fabric_path;
}

bool fabric_is_left(void)
{
	if (access(fabric_path, F_OK))
		return false;
	printf("%s is still there\n", fabric_path);
	unlink(fabric_path);
	return true;
}

/* ---- Sides --------------------------------------------------------------- */

struct options side_options = { .port = 1, .gid_index = -2 };

struct side side_on(struct ibv_device *device, int me, int sock)
{
	struct side s = { .me = me, .sock = sock, .options = &side_options, .port_num = 1,
			  .gid_index = -1 };

	s.ctx = ibv_open_device(device);
	require(s.ctx != NULL);
	require_equal(ibv_query_device(s.ctx, &s.dev), 0);
	require_equal(ibv_query_port(s.ctx, 1, &s.port), 0);
	if (!s.port.lid) {		/* an interface: its address */
		s.gid_index = 0;
		require_equal(ibv_query_gid(s.ctx, 1, 0, &s.gid), 0);
	}
	s.pd = ibv_alloc_pd(s.ctx);
	require(s.pd != NULL);
	return s;
}

struct side side_open(int node, int me, int sock)
{
	struct ibv_device **list;
	struct side s;
	char number[16];

	snprintf(number, sizeof(number), "%d", node);
	setenv("SOFTHCA_NODE", number, 1);
	list = ibv_get_device_list(NULL);
	require(list != NULL && list[0] != NULL);
	s = side_on(list[0], me, sock);
	ibv_free_device_list(list);
	return s;
}

void side_close(struct side *s)
{
	require_equal(ibv_dealloc_pd(s->pd), 0);
	require_equal(ibv_close_device(s->ctx), 0);
}

bool run_case(const char *name, void (*run)(int me, int sock, const void *arg), const void *arg)
{
	bool good = two_sides(run, arg);

	printf("%s %s\n", good ? "ok  " : "FAIL", name);
	fflush(stdout);
	return !good;
}

/* ---- Random numbers ------------------------------------------------------ */

static uint64_t random_state;

void draw_from(uint64_t seed)
{
	random_state = seed;
}

uint64_t draw(uint64_t limit)
{
	return random_below(&random_state, limit);
}
