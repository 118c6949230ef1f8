/*
 * deferred.c - the deferred end of an RDMA write over a timed fabric.
 *	A write to memory that only the owner's copy service can write, while the owner does not
 *	answer for longer than one wait: there is no completion before the last byte is written.
 *	A completion is not handed out while another thread may be writing such an end.
 *	While the owner moves the memory, for longer than the acknowledgement takes: no completion
 *	either, nor one of a later failure.
 *	A write to memory that has been moved since the message was copied: not by the old mapping.
 *	A write to memory whose owner is about to move it, as before a fork, and waits for the access
 *	section of the write: neither waits for the other.
 *	An unreliable write to memory that goes meanwhile: it is lost, its receive is for the next one.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "../softhca/timed.h"
#include "softhca/engine/engine.h"
#include "softhca/link/memory/deferred.h"
#include "softhca/link/memory/peer.h"
#include "softhca/link/memory/state.h"
#include "softhca/object/device.h"
#include "softhca/object/fabric.h"
#include "softhca/object/mr.h"
#include "softhca/pages/remap.h"

enum { BYTES = 10000, SILENT_MS = 250 };

/* Memory of malloc: no other member maps it. */
static struct buffer unmapped_buffer(struct side *s)
{
	static struct options options;

	options = *s->options;
	options.arena = false;
	s->options = &options;
	return buffer_new(s, BYTES, ACCESS_ALL);
}

static double write_to_silent(struct side *s, const void *arg)
{
	struct buffer b = unmapped_buffer(s);
	struct end e = timed_end(s, 1, IBV_QPT_RC);
	struct ibv_sge sge = sge_of(&b, 0, BYTES);
	pthread_mutex_t *porter = &hca_context_of(s->ctx)->fabric->link_state->copy_service.lock;

	(void)arg;
	buffer_swap(s, &b);
	for (uint64_t round = 0; round < 20; round++) {
		if (s->me == 0)
			fill(b.at, round, BYTES);
		barrier(s);
		if (s->me == 1) {
			/* Sometimes in the middle of the message, 100 us long, or after it. */
			pause_ns(round * 15 * US);
			pthread_mutex_lock(porter);
			pause_ns(SILENT_MS * (uint64_t)MS);
			pthread_mutex_unlock(porter);
		} else {
			post(&e, timed_wr(&b, &sge, IBV_WR_RDMA_WRITE));
			wait_ok(e.cq);
			/* The other side's memory, in this very process. */
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
	owners->moved.moving = away;
	hca_mr_moved(&owners->moved);
	hca_remap_unlock(&before);
}

/* Wait until the data have left; polls are so frequent that the end is not due by then. */
static void wait_deferred(struct hca_qp *qp)
{
	while (!qp->deferred->count) {
		pause_ns(20 * US);
		hca_engine_run(qp->fabric);
	}
}

/* A poll must wait for a thread that gives a queue pair its turn, by taking turns itself. */
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
	struct buffer b = unmapped_buffer(s);
	struct end e = timed_end(s, 1, IBV_QPT_RC);
	struct hca_qp *qp = hca_qp_of(e.qp);
	struct ibv_sge sge = sge_of(&b, 0, BYTES);

	(void)arg;
	if (s->me == 1)
		owners = hca_mr_of(b.mr);
	buffer_swap(s, &b);
	if (s->me == 0) {
		fill(b.at, 1, BYTES);
		post(&e, timed_wr(&b, &sge, IBV_WR_RDMA_WRITE));
		wait_deferred(qp);
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

/* The write is under way, its end is deferred: the owner takes the memory away for 1 ms. */
static double write_to_moving(struct side *s, const void *arg)
{
	struct buffer b = unmapped_buffer(s);
	struct end e = timed_end(s, 1, IBV_QPT_RC);
	struct hca_qp *qp = hca_qp_of(e.qp);
	struct hca_cq *cq = hca_cq_of(e.cq);
	struct ibv_sge sge = sge_of(&b, 0, BYTES);
	unsigned char *theirs;
	struct ibv_wc wc;

	(void)arg;
	if (s->me == 1)
		owners = hca_mr_of(b.mr);
	buffer_swap(s, &b);
	theirs = (unsigned char *)(uintptr_t)b.addr;
	for (uint64_t round = 1; s->me == 0 && round < 3; round++) {
		fill(b.at, round, BYTES);
		post(&e, timed_wr(&b, &sge, IBV_WR_RDMA_WRITE));
		wait_deferred(qp);
		set_away(true);
		/* A queue pair that fails meanwhile has sent the write. */
		if (round == 2) {
			struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

			require_equal(ibv_modify_qp(e.qp, &attr, IBV_QP_STATE), 0);
		}
		for (uint64_t until = rg_now_ns() + MS; rg_now_ns() < until; pause_ns(100 * US)) {
			require_equal(ibv_poll_cq(e.cq, 1, &wc), 0);
			require(theirs[BYTES - 1] != pattern(round, BYTES - 1));
			/* A program that waits for an event learns of it later. */
			hca_lock(&cq->lock);
			require(hca_cq_next_ns(cq, false, 0) > rg_now_ns());
			hca_unlock(&cq->lock);
		}
		set_away(false);
		wait_ok(e.cq);
		check(theirs, round, BYTES, "completed");
	}
	barrier(s);
	end_free(&e);
	buffer_free(s, &b);
	return 0;
}

/* Step by step, as the engine does; the registration is not mapped any more before the last one. */
static double write_behind_moving(struct side *s, const void *arg)
{
	struct end e = timed_end(s, 1, IBV_QPT_RC);
	struct buffer b = buffer_new(s, BYTES, ACCESS_ALL);
	struct hca_qp *qp = hca_qp_of(e.qp);
	struct ibv_sge sge = sge_of(&b, 0, BYTES);
	struct ibv_send_wr wr = timed_wr(&b, &sge, IBV_WR_RDMA_WRITE);
	uint32_t deferred;

	(void)arg;
	if (s->me == 1) {
		owners = hca_mr_of(b.mr);
		owners->published = true;	/* arena registrations skip this: they never move */
	}
	buffer_swap(s, &b);
	wr.wr.rdma.rkey = b.rkey;
	sge.length = HCA_LINE;
	if (s->me == 0) {
		const struct hca_link_operations *link = qp->fabric->link;
		struct hca_deferred_list *l = qp->deferred;

		fill(b.at, 1, BYTES);
		hca_lock(&qp->lock);
		for (unsigned i = 0; i <= HCA_DEFERRED_MAX; i++) {
			sge.addr = (uintptr_t)b.at + i * HCA_LINE;
			wr.wr.rdma.remote_addr = b.addr + i * HCA_LINE;
			require_equal(link->transfer_begin(qp, &wr, HCA_LINE), 0);
			require_equal(link->transfer_copy(qp, &wr, HCA_LINE, &deferred), 0);
			require(deferred > 0);
			/* The last finds the list full: room is made while no end has to wait. */
			if (i == HCA_DEFERRED_MAX) {
				require_equal(l->count, HCA_DEFERRED_MAX - 1);
				owners->moved.start = owners->moved.end = 0;
				set_away(true);
			}
			link->transfer_defer(qp, &wr, deferred, 0);
		}
		require_equal(l->count, HCA_DEFERRED_MAX);
		require(l->entry[l->first].local != NULL);
		require(!l->entry[(l->first + l->count - 1) % HCA_DEFERRED_MAX].local);
		set_away(false);
		hca_deferred_release(qp, rg_now_ns());
		require_equal(l->count, 0);
		check((unsigned char *)(uintptr_t)b.addr, 1, (HCA_DEFERRED_MAX + 1) * HCA_LINE,
		      "released");
		hca_unlock(&qp->lock);
	}
	barrier(s);
	end_free(&e);
	buffer_free(s, &b);
	return 0;
}

/*
 * The memory of an unreliable message goes while the message is under way: the message is lost, all is
 * well at the sender, and the receive that it had is for the next one.
 */
static double write_to_gone(struct side *s, const void *arg)
{
	struct buffer gone = buffer_new(s, BYTES, ACCESS_ALL), b = buffer_new(s, BYTES, ACCESS_ALL);
	struct end e = timed_end(s, 1, IBV_QPT_UC);
	struct ibv_sge sge = sge_of(&b, 0, BYTES);

	(void)arg;
	buffer_swap(s, &gone);
	buffer_swap(s, &b);
	if (s->me == 1) {
		struct ibv_wc wc;

		post_receive(&e, 8, NULL, 0);
		barrier(s);
		pause_ns(50 * US);		/* half of the first message */
		require_equal(ibv_dereg_mr(gone.mr), 0);
		gone.mr = NULL;
		wc = wait_ok(e.cq);
		require_equal(wc.wr_id, 8);
		require_equal(wc.imm_data, 2);
		check(b.at, 1, BYTES, "of the second message");
		check_untouched(gone.at + BYTES - 100, 0xee, 100, "of the first message");
		expect_nothing(e.cq, 1);
	} else {
		struct ibv_send_wr wr = timed_wr(&gone, &sge, IBV_WR_RDMA_WRITE_WITH_IMM);

		fill(b.at, 1, BYTES);
		barrier(s);
		wr.imm_data = 1;
		post(&e, wr);
		wait_ok(e.cq);
		wr = timed_wr(&b, &sge, IBV_WR_RDMA_WRITE_WITH_IMM);
		wr.imm_data = 2;
		post(&e, wr);
		wait_ok(e.cq);
	}
	barrier(s);
	end_free(&e);
	buffer_free(s, &gone);
	buffer_free(s, &b);
	return 0;
}

int main(void)
{
	setenv("SOFTHCA_REMAP", "never", 1);
	setenv("SOFTHCA_COPY", "bounce", 1);
	fabric_new("held");
	timed_run("held", "rate=100MB/s,latency=20us", write_to_silent, NULL);
	setenv("SOFTHCA_COPY", "kernel", 1);
	fabric_new("moving");
	timed_run("moving", "rate=100MB/s,latency=200us", write_while_moving, NULL);
	fabric_new("away");
	timed_run("away", "rate=100MB/s,latency=200us", write_to_moving, NULL);
	fabric_new("behind");
	timed_run("behind", "rate=100MB/s,latency=200us", write_behind_moving, NULL);
	fabric_new("gone");
	timed_run("gone", "rate=100MB/s,latency=20us", write_to_gone, NULL);
	return 0;
}
