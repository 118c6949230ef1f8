/* dump.c - the queues of this process, by peer, on stderr. */
#include "mpi/watch/dump.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/comm/comm.h"
#include "mpi/comm/comm_table.h"
#include "mpi/comm/peers.h"
#include "mpi/job/progress.h"
#include "mpi/p2p/queue.h"
#include "mpi/p2p/unexpected.h"
#include "rail/rail.h"
#include "util/err.h"

/* The entries of the communicators' queues for one peer. */
struct held {
	unsigned posted, unexpected;
	size_t bytes;			/* in unexpected messages */
};

_Atomic bool dump_asked;

static int dump_number;
static struct sigaction before;
static void (*wake_progress_thread)(void);
/* A table by world rank, allocated ahead: the heap may be broken when the signal comes. */
static struct held *held;
static unsigned any_source;

static void on_signal(int number)
{
	int saved = errno;

	(void)number;
	atomic_store(&dump_asked, true);
	wake_progress_thread();
	errno = saved;
}

int dump_start(int signal_number, void (*wake)(void))
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};

	atomic_store(&dump_asked, false);
	if (!signal_number)
		return 0;
	held = calloc((size_t)layer.world_size, sizeof(*held));
	if (!held)
		return -ENOMEM;
	wake_progress_thread = wake;
	sigemptyset(&action.sa_mask);
	if (sigaction(signal_number, &action, &before))
		return -errno;
	dump_number = signal_number;
	return 0;
}

/* A handler that the program has installed meanwhile stays. */
void dump_stop(void)
{
	struct sigaction now;

	if (dump_number && !sigaction(dump_number, NULL, &now) && now.sa_handler == on_signal)
		sigaction(dump_number, &before, NULL);
	dump_number = 0;
	free(held);
	held = NULL;
}

static unsigned length_of(const struct queue_link *head)
{
	const struct queue_link *l;
	unsigned n = 0;

	queue_each(l, head)
		n++;
	return n;
}

/* The test of comm_some: false, so that it looks at all. */
static bool add_communicator(struct comm *c, uint64_t unused)
{
	struct rail_queues peer;
	struct queue_link *l;

	(void)unused;
	any_source += length_of(&c->posted_any);
	for (int i = 0; i < c->size; i++) {
		struct held *h;

		rail_queues(c->peer[i], &peer);
		h = &held[peer.index];
		h->posted += length_of(&c->source[i].posted);
		queue_each(l, &c->source[i].unexpected) {
			const struct unexpected *u = queue_entry(l, struct unexpected, by_source);

			h->unexpected += !u->lost;
			h->bytes += u->bytes;
		}
	}
	return false;
}

void dump_print(void)
{
	int rank = layer.world_rank, idle = 0;

	atomic_store(&dump_asked, false);
	any_source = 0;
	memset(held, 0, (size_t)layer.world_size * sizeof(*held));
	comm_some(add_communicator, 0);
	for (int i = 0; i < layer.world_size; i++) {
		const struct held *h = &held[i];
		struct rail_queues q;

		rail_queues(world_peer[i], &q);
		if (!h->posted && !h->unexpected && !q.in_flight && !q.waiting) {
			idle++;
			continue;
		}
		rg_note("rank %d: queues of peer %d: posted %u, unexpected %u (%zu bytes), in flight %u, "
			"waiting for credit %u%s", rank, i, h->posted, h->unexpected, h->bytes,
			q.in_flight, q.waiting, q.connected ? "" : " (not connected yet)");
	}
	rg_note("rank %d: queues of any source: posted %u; before their communicator: unexpected %u; "
		"peers with empty queues: %d", rank, any_source, length_of(&unexpected_early), idle);
}
