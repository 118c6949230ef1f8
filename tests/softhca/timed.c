/* timed.c - measuring the timing model through the verbs. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "timed.h"

enum { DEPTH = 256, ENDS_MAX = 16, ROUNDS = 50 };

/* ---- Tools --------------------------------------------------------------- */

struct end timed_end(struct side *s, int port, enum ibv_qp_type type)
{
	struct end_config c = end_defaults;
	struct end e;

	c.type = type;
	c.send_wr = DEPTH;
	c.cqe = 2 * DEPTH;
	c.access |= IBV_ACCESS_REMOTE_ATOMIC;
	s->port_num = port;
	require_equal(ibv_query_port(s->ctx, (uint8_t)port, &s->port), 0);
	e = end_new(s, &c);
	end_connect(s, &e);
	return e;
}

struct ibv_send_wr timed_wr(struct buffer *b, struct ibv_sge *sge, enum ibv_wr_opcode op)
{
	return (struct ibv_send_wr){ .wr_id = 1, .sg_list = sge, .num_sge = 1, .opcode = op,
				     .send_flags = IBV_SEND_SIGNALED,
				     .wr.rdma = { b->addr, b->rkey } };
}

void settle(void)
{
	uint64_t end = now_ns() + MS;
	unsigned turns = 0;

	while (now_ns() < end)
		turn(&turns, end);
}

/* ---- Rates --------------------------------------------------------------- */

static int reap(struct ibv_cq *cq, int *done)
{
	struct ibv_wc wc[16];
	int n = ibv_poll_cq(cq, 16, wc), i;

	require(n >= 0);
	for (i = 0; i < n; i++)
		require_equal(wc[i].status, IBV_WC_SUCCESS);
	*done += n;
	if (n)
		virtual_found();
	return n;
}

/* Keep all queue pairs full until the end: ns. */
static uint64_t stream(struct side *s, struct end *e, int ends, struct buffer *b,
		       const struct flow *f)
{
	struct ibv_sge sge = sge_of(b, 0, f->bytes);
	int posted[ENDS_MAX] = { 0 }, done[ENDS_MAX] = { 0 }, over = 0, k, found;
	unsigned turns = 0;
	uint64_t start;

	barrier(s);
	start = now_ns();
	while (over < ends) {
		for (k = 0, over = 0, found = 0; k < ends; k++) {
			for (; posted[k] < f->messages && posted[k] - done[k] < DEPTH; posted[k]++)
				post(&e[k], timed_wr(b, &sge, f->opcode));
			found += reap(e[k].cq, &done[k]);
			over += done[k] == f->messages;
		}
		if (!found)
			turn(&turns, UINT64_MAX);
	}
	return now_ns() - start;
}

double flow_rate(struct side *s, const struct flow *f)
{
	const int ports = f->ports ? f->ports : 1, ends = ports * (f->per_port ? f->per_port : 1);
	struct buffer b = buffer_new(s, f->bytes, ACCESS_ALL);
	struct end e[ENDS_MAX];
	double rate = 0;
	int i;

	for (i = 0; i < ends; i++)
		e[i] = timed_end(s, 1 + i % ports, f->type);
	buffer_swap(s, &b);
	if (s->me == 0 || f->both)
		rate = (double)f->bytes * f->messages * ends * 1000 /
		       (double)stream(s, e, ends, &b, f);
	else
		barrier(s);
	barrier(s);
	for (i = 0; i < ends; i++)
		end_free(&e[i]);
	buffer_free(s, &b);
	return rate;
}

/* ---- Latencies ----------------------------------------------------------- */

static double half(uint64_t best)
{
	return (double)best / 2 / US;
}

double send_latency(struct side *s)
{
	struct buffer b = buffer_new(s, 64, ACCESS_ALL);
	struct end e = timed_end(s, 1, IBV_QPT_RC);
	struct ibv_sge sge = sge_of(&b, 0, 8);
	uint64_t start, best = UINT64_MAX;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		struct ibv_send_wr wr = timed_wr(&b, &sge, IBV_WR_SEND);

		wr.send_flags = i % 32 == 31 ? IBV_SEND_SIGNALED : 0;
		post_receive(&e, 1, &sge, 1);
		barrier(s);
		if (s->me == 0)
			settle();
		start = now_ns();
		if (s->me == 0)
			post(&e, wr);
		while (wait_ok(e.cq).opcode != IBV_WC_RECV)
			;
		if (now_ns() - start < best)
			best = now_ns() - start;
		if (s->me == 1)
			post(&e, wr);
		/* All of it is over before the next round begins. */
		barrier(s);
	}
	end_free(&e);
	buffer_free(s, &b);
	return s->me == 0 ? half(best) : 0;
}

/* Verbs run the engine, so a waiter calls one. */
static void wait_for(struct end *e, volatile unsigned char *at, unsigned char value, int *done)
{
	unsigned turns = 0;

	while (*at != value)
		if (!reap(e->cq, done))
			turn(&turns, UINT64_MAX);
	virtual_found();
}

double write_latency(struct side *s)
{
	struct buffer b = buffer_new(s, 128, ACCESS_ALL);
	struct end e = timed_end(s, 1, IBV_QPT_RC);
	struct ibv_sge sge = sge_of(&b, 64, 8);
	uint64_t start, best = UINT64_MAX;
	unsigned turns = 0;
	int i, done = 0;

	buffer_swap(s, &b);
	for (i = 1; i <= ROUNDS; i++) {
		struct ibv_send_wr wr = timed_wr(&b, &sge, IBV_WR_RDMA_WRITE);

		memset(b.at + 64, i, 8);
		barrier(s);
		if (s->me == 0)
			settle();
		start = now_ns();
		if (s->me == 0)
			post(&e, wr);
		wait_for(&e, b.at + 7, (unsigned char)i, &done);
		if (now_ns() - start < best)
			best = now_ns() - start;
		if (s->me == 1)
			post(&e, wr);
		/* A ping-pong: a side that stops polling leaves its write to the progress thread. */
		while (done < i)
			if (!reap(e.cq, &done))
				turn(&turns, UINT64_MAX);
		barrier(s);
	}
	end_free(&e);
	buffer_free(s, &b);
	return s->me == 0 ? half(best) : 0;
}

static double asking_latency(struct side *s, enum ibv_wr_opcode op)
{
	struct buffer b = buffer_new(s, 64, ACCESS_ALL | IBV_ACCESS_REMOTE_ATOMIC);
	struct end e = timed_end(s, 1, IBV_QPT_RC);
	struct ibv_sge sge = sge_of(&b, 0, 8);
	uint64_t start, best = UINT64_MAX;
	int i;

	buffer_swap(s, &b);
	for (i = 0; s->me == 0 && i < ROUNDS; i++) {
		struct ibv_send_wr wr = timed_wr(&b, &sge, op);

		if (op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
			wr.wr.atomic.remote_addr = b.addr;
			wr.wr.atomic.compare_add = 1;
			wr.wr.atomic.rkey = b.rkey;
		}
		start = now_ns();
		post(&e, wr);
		wait_ok(e.cq);
		if (now_ns() - start < best)
			best = now_ns() - start;
	}
	barrier(s);
	end_free(&e);
	buffer_free(s, &b);
	return s->me == 0 ? (double)best / US : 0;
}

double read_latency(struct side *s)
{
	return asking_latency(s, IBV_WR_RDMA_READ);
}

double atomic_latency(struct side *s)
{
	return asking_latency(s, IBV_WR_ATOMIC_FETCH_AND_ADD);
}

/* ---- Running ------------------------------------------------------------- */

struct timed_run {
	const char *spec;
	double (*measure)(struct side *s, const void *arg);
	const void *arg;
	int result;			/* each side sends a double */
};

static void run_side(int me, int sock, const void *arg)
{
	const struct timed_run *run = arg;
	struct side s;
	double value;

	alarm(600);
	setenv("SOFTHCA_SPEC", run->spec, 1);
	s = side_open(me, me, sock);
	value = run->measure(&s, run->arg);
	require_equal(write(run->result, &value, sizeof(value)), sizeof(value));
	barrier(&s);
	side_close(&s);
}

double timed_run(const char *name, const char *spec,
		 double (*measure)(struct side *s, const void *arg), const void *arg)
{
	struct timed_run run = { spec, measure, arg, -1 };
	double value, sum = 0;
	int result[2], me;

	side_options.arena = true;
	require_equal(pipe2(result, O_CLOEXEC), 0);
	run.result = result[1];
	if (!two_sides(run_side, &run))
		fail("%s: a side has failed", name);
	close(result[1]);
	for (me = 0; me < 2; me++) {
		require_equal(read(result[0], &value, sizeof(value)), sizeof(value));
		sum += value;
	}
	close(result[0]);
	return sum;
}
