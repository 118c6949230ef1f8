/*
 * deferred.c - the deferred end of an RDMA write over a timed fabric.
 *	To memory that only the owner's copy service can write, while the owner does not answer for
 *	longer than one wait: there is no completion before the last byte is written.
 *	A completion is not handed out while another thread may be writing such an end.
 *	To memory whose owner is about to move it, as before a fork, and waits for the access
 *	section in which it is written: neither waits for the other.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "../softhca/timed.h"
#include "engine/engine.h"
#include "link/memory/deferred.h"
#include "link/memory/peer.h"
#include "link/memory/state.h"
#include "object/device.h"
#include "object/fabric.h"
#include "pages/remap.h"

enum { BYTES = 10000, SILENT_MS = 250 };

static double write_to_silent(struct side *s, const void *arg)
{
	struct options options = *s->options;
	struct buffer b;
	struct end e = timed_end(s, 1, IBV_QPT_RC);
	struct ibv_sge sge;
	pthread_mutex_t *porter = &hca_context_of(s->ctx)->fabric->link_state->copy_service.lock;

	(void)arg;
	options.arena = false;
	s->options = &options;
	b = buffer_new(s, BYTES, ACCESS_ALL);
	sge = sge_of(&b, 0, BYTES);
	buffer_swap(s, &b);
	for (uint64_t round = 0; round < 20; round++) {
		if (s->me == 0)
			fill(b.at, round, BYTES);
		barrier(s);
		if (s->me == 1) {
			/* Now and then in the middle of the message, 100 us long, or behind it. */
			pause_ns(round * 15 * US);
			pthread_mutex_lock(porter);
			pause_ns(SILENT_MS * (uint64_t)MS);
			pthread_mutex_unlock(porter);
		} else {
			post(&e, timed_wr(&b, &sge, IBV_WR_RDMA_WRITE));
			wait_ok(e.cq);
			/* Of the other side, in this very process. */
			check((unsigned char *)(uintptr_t)b.addr, round, BYTES, "completed");
		}
		barrier(s);
	}
	end_free(&e);
	buffer_free(s, &b);
	return 0;
}

static struct hca_mr *owners;		/* registration of side 1, in this very process */

static void set_away(bool away)
{
	sigset_t before;

	hca_remap_lock(&before);
	owners->moved.away = away;
	hca_mr_moved(&owners->moved);
	hca_remap_unlock(&before);
}

/* Does a poll wait for a thread that gives a queue pair its turn?  It does by taking turns itself. */
static void poll_beside_turn(struct ibv_cq *cq)
{
	struct hca_engine *e = hca_engine_of(hca_cq_of(cq)->fabric);
	uint32_t runs = atomic_load(&e->runs);
	struct ibv_wc wc;

	require_equal(ibv_poll_cq(cq, 1, &wc), 0);
	require_equal(atomic_load(&e->runs), runs);
	atomic_store(&e->turning, true);
	require_equal(ibv_poll_cq(cq, 1, &wc), 0);
	require_equal(atomic_load(&e->runs), runs + 1);
	require(!atomic_load(&e->turning));
}

static double write_while_moving(struct side *s, const void *arg)
{
	struct options options = *s->options;
	struct buffer b;
	struct end e = timed_end(s, 1, IBV_QPT_RC);
	struct hca_qp *qp = hca_qp_of(e.qp);
	struct ibv_sge sge;

	(void)arg;
	options.arena = false;
	s->options = &options;
	b = buffer_new(s, BYTES, ACCESS_ALL);
	sge = sge_of(&b, 0, BYTES);
	if (s->me == 1)
		owners = hca_mr_of(b.mr);
	buffer_swap(s, &b);
	if (s->me == 0) {
		fill(b.at, 1, BYTES);
		post(&e, timed_wr(&b, &sge, IBV_WR_RDMA_WRITE));
		while (!qp->deferred->count)
			pause_ns(US);
		hca_lock(&qp->lock);
		hca_access_section_enter(qp->shm);
		require(!hca_deferred_waits(qp));
		set_away(true);
		hca_deferred_settle(qp);
		check((unsigned char *)(uintptr_t)b.addr, 1, BYTES, "settled");
		hca_access_section_leave(qp->shm);
		hca_unlock(&qp->lock);
		set_away(false);
		wait_ok(e.cq);
		poll_beside_turn(e.cq);
	}
	barrier(s);
	end_free(&e);
	buffer_free(s, &b);
	return 0;
}

int main(void)
{
	setenv("SOFTHCA_REMAP", "never", 1);
	setenv("SOFTHCA_COPY", "bounce", 1);
	timed_fabric("held");
	timed_run("held", "rate=100MB/s,latency=20us", write_to_silent, NULL);
	setenv("SOFTHCA_COPY", "kernel", 1);
	timed_fabric("moving");
	timed_run("moving", "rate=100MB/s,latency=200us", write_while_moving, NULL);
	return 0;
}
