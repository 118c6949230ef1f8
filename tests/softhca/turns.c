/*
 * turns.c - fairness: queue pairs of a process that share a port, and senders on
 * unreliable transports whose receiver lags.
 *
 * Nothing here depends on the speed of the machine.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "timed.h"

struct turns {
	const char *name, *spec;
	double (*run)(struct side *s, const void *arg);
	int kind;			/* an operation, or a type of queue pair */
};

/* ---- Sharing ------------------------------------------------------------- */

enum { SHARERS = 4, MESSAGES = 40, PIECE = 65536 };

/* When the first queue pair is done with its messages, the others nearly are. */
static double sharing(struct side *s, const void *arg)
{
	enum ibv_wr_opcode op = (enum ibv_wr_opcode)((const struct turns *)arg)->kind;
	struct buffer b = buffer_new(s, PIECE, ACCESS_ALL);
	struct ibv_sge sge = sge_of(&b, 0, PIECE);
	int done[SHARERS] = { 0 }, i, k, found, least = MESSAGES;
	struct end e[SHARERS];
	unsigned turns = 0;
	bool over = false;
	struct ibv_wc wc;

	for (k = 0; k < SHARERS; k++)
		e[k] = timed_end(s, 1, IBV_QPT_RC);
	buffer_swap(s, &b);
	for (k = 0; s->me == 0 && k < SHARERS; k++)
		for (i = 0; i < MESSAGES; i++)
			post(&e[k], timed_wr(&b, &sge, op));
	while (s->me == 0 && !over) {
		for (k = 0, found = 0; k < SHARERS; k++) {
			int n = ibv_poll_cq(e[k].cq, 1, &wc);

			require(n >= 0);
			if (n)
				require_equal(wc.status, IBV_WC_SUCCESS);
			done[k] += n;
			found += n;
			over |= done[k] == MESSAGES;
		}
		if (found)
			virtual_found();
		else
			turn(&turns, UINT64_MAX);
	}
	for (k = 0; s->me == 0 && k < SHARERS; k++) {
		if (done[k] < least)
			least = done[k];
		for (; done[k] < MESSAGES; done[k]++)
			wait_ok(e[k].cq);
	}
	if (least < MESSAGES * 3 / 4)
		fail("one queue pair has all of its %d messages, another one %d", MESSAGES, least);
	barrier(s);
	for (k = 0; k < SHARERS; k++)
		end_free(&e[k]);
	buffer_free(s, &b);
	return 0;
}

/* ---- Looking seldom ------------------------------------------------------ */

enum { STREAM = 600, LOOKS = 150, LITTLE = 64 };

/* Keep sending over the bus that both directions share. */
static void stream(struct end *e, struct buffer *b, struct ibv_sge *sge)
{
	int i;

	for (i = 0; i < STREAM; i++) {
		if (i >= 4)
			wait_ok(e->cq);
		post(e, timed_wr(b, sge, IBV_WR_RDMA_WRITE));
	}
	for (i = 0; i < 4; i++)
		wait_ok(e->cq);
}

/* Send one message at a time, and poll seldom; returns the count of messages. */
static int look_seldom(struct end *e, struct buffer *b, struct ibv_sge *sge)
{
	struct ibv_wc wc;
	int i, n, done = 0;
	bool out = false;

	for (i = 0; i < LOOKS; i++) {
		pause_ns(MS);
		if (!out)
			post(e, timed_wr(b, sge, IBV_WR_RDMA_WRITE));
		n = ibv_poll_cq(e->cq, 1, &wc);
		require(n >= 0);
		out = n == 0;
		done += n;
	}
	if (out)
		wait_ok(e->cq);
	return done;
}

/* A process that polls less often than another does not wait until that is done. */
static double seldom(struct side *s, const void *arg)
{
	struct buffer b = buffer_new(s, PIECE, ACCESS_ALL);
	struct ibv_sge sge = sge_of(&b, 0, s->me ? LITTLE : PIECE);
	struct end e = timed_end(s, 1, IBV_QPT_RC);
	int done = LOOKS;

	(void)arg;
	buffer_swap(s, &b);
	barrier(s);
	if (s->me == 0)
		stream(&e, &b, &sge);
	else
		done = look_seldom(&e, &b, &sge);
	if (done < LOOKS / 4)
		fail("of %d looks, %d found a small message sent", LOOKS, done);
	barrier(s);
	end_free(&e);
	buffer_free(s, &b);
	return 0;
}

/* ---- Lagging ------------------------------------------------------------- */

enum { GRH = 40, QKEY = 0x1234, ROOM = 32, SENT = 500, BYTES = 200, STRIDE = 256 };

static struct end datagram_end(struct side *s, struct end_config c)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY };
	struct end e;

	c.type = IBV_QPT_UD;
	e = end_new(s, &c);
	require_equal(ibv_modify_qp(e.qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				    IBV_QP_QKEY), 0);
	a.qp_state = IBV_QPS_RTR;
	require_equal(ibv_modify_qp(e.qp, &a, IBV_QP_STATE), 0);
	a.qp_state = IBV_QPS_RTS;
	require_equal(ibv_modify_qp(e.qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
	return e;
}

static struct ibv_ah *way_to(struct side *s, const struct peer_address *to)
{
	struct ibv_ah_attr a = { .dlid = to->lid, .port_num = 1, .is_global = 1,
				 .grh = { .dgid = to->gid, .hop_limit = 64,
					  .sgid_index = (uint8_t)s->gid_index } };
	struct ibv_ah *ah = ibv_create_ah(s->pd, &a);

	require(ah != NULL);
	return ah;
}

static void send_all(struct end *e, struct buffer *b, struct ibv_ah *ah,
		     const struct peer_address *to)
{
	int i;

	for (i = 0; i < SENT; i++) {
		struct ibv_sge sge = sge_of(b, (size_t)(i % ROOM) * STRIDE, BYTES);
		struct ibv_send_wr wr = send_wr(&sge, (uint64_t)i);

		if (i >= ROOM)
			require_equal(wait_ok(e->cq).wr_id, i - ROOM);
		fill(b->at + i % ROOM * STRIDE, (uint64_t)i, BYTES);
		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = to->qpn;
		wr.wr.ud.remote_qkey = QKEY;
		if (!ah)
			memset(&wr.wr, 0, sizeof(wr.wr));
		post(e, wr);
	}
	for (i = SENT - ROOM; i < SENT; i++)
		require_equal(wait_ok(e->cq).wr_id, i);
}

/* Off its core now and then, for longer than its receives last. */
static void receive_all(struct end *e, struct buffer *b, size_t header)
{
	struct ibv_sge sge;
	int i;

	for (i = 0; i < SENT; i++) {
		struct ibv_wc wc = wait_ok(e->cq);
		size_t at = (size_t)(i % ROOM) * STRIDE;

		require_equal(wc.wr_id, i);
		require_equal(wc.byte_len, header + BYTES);
		check(b->at + at + header, (uint64_t)i, BYTES, "in order, none is lost");
		if (i % 100 == 10)
			pause_ns(30 * MS);
		if (i + ROOM >= SENT)
			continue;
		sge = sge_of(b, at, header + BYTES);
		post_receive(e, (uint64_t)(i + ROOM), &sge, 1);
	}
}

static double lagging(struct side *s, const void *arg)
{
	const bool datagrams = ((const struct turns *)arg)->kind == IBV_QPT_UD;
	const size_t header = datagrams ? GRH : 0;
	struct buffer b = buffer_new(s, ROOM * STRIDE, ACCESS_ALL);
	struct end_config c = end_defaults;
	struct peer_address mine, to;
	struct ibv_ah *ah = NULL;
	struct ibv_sge sge;
	struct end e;
	int i;

	s->port_num = 1;
	s->gid_index = 0;
	require_equal(ibv_query_port(s->ctx, 1, &s->port), 0);
	require_equal(ibv_query_gid(s->ctx, 1, 0, &s->gid), 0);
	c.type = IBV_QPT_UC;
	c.recv_wr = ROOM;
	e = datagrams ? datagram_end(s, c) : end_new(s, &c);
	if (!datagrams)
		end_connect(s, &e);
	mine = end_address(s, &e);
	swap(s, &mine, &to, sizeof(mine));
	if (datagrams)
		ah = way_to(s, &to);
	for (i = 0; s->me == 1 && i < ROOM; i++) {
		sge = sge_of(&b, (size_t)i * STRIDE, header + BYTES);
		post_receive(&e, (uint64_t)i, &sge, 1);
	}
	barrier(s);
	if (s->me == 0)
		send_all(&e, &b, ah, &to);
	else
		receive_all(&e, &b, header);
	barrier(s);
	if (ah)
		require_equal(ibv_destroy_ah(ah), 0);
	end_free(&e);
	buffer_free(s, &b);
	return 0;
}

/* ---- Running ------------------------------------------------------------- */

#define TIMED "rate=400MB/s,latency=10us"

static const struct turns cases[] = {
	{ "writes share a port", TIMED, sharing, IBV_WR_RDMA_WRITE },
	{ "reads share a port", TIMED, sharing, IBV_WR_RDMA_READ },
	{ "one side looks seldom", "rate=400MB/s,latency=10us,bus=100MB/s/100MB/s:half", seldom, 0 },
	{ "UC, a receiver lags", "ideal", lagging, IBV_QPT_UC },
	{ "UD, a receiver lags", "ideal", lagging, IBV_QPT_UD },
	{ "UC, a receiver lags, timed", TIMED, lagging, IBV_QPT_UC },
	{ "UD, a receiver lags, timed", TIMED, lagging, IBV_QPT_UD },
};

int main(void)
{
	unsigned i;

	fabric_new("turns");
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		timed_run(cases[i].name, cases[i].spec, cases[i].run, &cases[i]);
		printf("ok   %s\n", cases[i].name);
	}
	require(!fabric_is_left());
	return 0;
}
