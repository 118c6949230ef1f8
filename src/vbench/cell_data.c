/* cell_data.c - the writes of a cell: 8 bytes one by one, then windows. */
#include "vbench/cells.h"

#include <stdlib.h>

#include "stats/stats.h"
#include "util/clock.h"

enum { POLLS = 16, SPINS = 500, LATENCIES = 20, WORD = 8 };
/* No completion for so long: the cell is dead, though its queue pair may still try. */
#define DEAD_NS UINT64_C(1200000000)

/* Stopped, or beyond its limit? */
static bool is_over(struct cell *c)
{
	uint64_t now = rg_now_ns();

	if (c->of->limit_ns && now - c->begun_ns > c->of->limit_ns)
		c->failed = true;
	if (c->of->stopped && c->of->stopped(c->of->user))
		c->failed = true;
	return c->failed;
}

static bool is_dead(struct cell *c)
{
	if (rg_now_ns() - c->seen_ns > DEAD_NS)
		c->failed = true;
	return is_over(c);
}

/* Wait for so many completions.  Returns the number of messages that are complete. */
static int complete(struct cell *c, int wanted)
{
	struct ibv_wc wc[POLLS];
	unsigned empty = 0;
	int done = 0;

	while (done < wanted && !c->failed) {
		int got = ibv_poll_cq(c->cq.cq, POLLS, wc);

		for (int i = 0; i < got && !c->failed; i++) {
			c->failed = wc[i].status != IBV_WC_SUCCESS;
			done += !c->failed;
		}
		if (got > 0) {
			c->seen_ns = rg_now_ns();
			empty = 0;
		} else if (got < 0 || (++empty % SPINS == 0 && is_dead(c))) {
			c->failed = true;
		} else if (empty % SPINS == 0) {
			rg_yield();
		} else {
			rg_relax(UINT64_MAX);
		}
	}
	return done;
}

static int post(struct cell *c, uint32_t bytes)
{
	struct ibv_sge piece = { (uintptr_t)c->sbuf, bytes, c->lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &piece, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = c->their_rbuf, .rkey = c->their_rkey },
	};

	return ibv_post_send(c->qp.qp, &wr, &bad);
}

/* A window of messages, all of which complete or fail.  Returns its time. */
static uint64_t window(struct cell *c)
{
	uint64_t begun = rg_now_ns();

	c->seen_ns = begun;
	for (int i = 0; i < c->of->window && !c->failed; i++)
		c->failed = post(c, (uint32_t)c->bytes) != 0;
	c->out->moved_bytes += c->bytes * (uint64_t)complete(c, c->of->window);
	return rg_now_ns() - begun;
}

static void latency(struct cell *c)
{
	uint64_t ns[LATENCIES];
	uint32_t bytes = c->bytes < WORD ? (uint32_t)c->bytes : WORD;

	for (int i = 0; i < LATENCIES && !c->failed; i++) {
		uint64_t begun = c->seen_ns = rg_now_ns();

		c->failed = post(c, bytes) != 0;
		complete(c, 1);
		ns[i] = rg_now_ns() - begun;
	}
	if (c->failed)
		return;
	stats_sort(ns, LATENCIES);
	c->out->latency_ns = (uint64_t)stats_median(ns, LATENCIES);
}

void cell_send(struct cell *c)
{
	uint64_t begun = rg_now_ns(), timed;

	latency(c);
	for (uint64_t i = 0; i < c->of->warmup && !c->failed; i++)
		window(c);
	timed = rg_now_ns();
	while (c->out->samples < c->of->samples && !c->failed &&
	       (!c->of->time_ns || !c->out->samples || rg_now_ns() - timed < c->of->time_ns)) {
		uint64_t ns = window(c);

		if (!c->failed)
			c->of->ns[c->out->samples++] = ns;
	}
	c->out->whole = !c->failed;
	c->out->took_ns = rg_now_ns() - begun;
}
