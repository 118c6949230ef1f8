/* states.c - objects: states, attributes, limits, threads. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "conformance.h"

/* ---- States -------------------------------------------------------------- */

static int to_self(struct side *s, struct end *e, enum ibv_qp_state state)
{
	struct peer_address self = end_address(s, e);

	switch (state) {
	case IBV_QPS_INIT:
		return end_to_init(s, e);
	case IBV_QPS_RTR:
		return end_to_rtr(s, e, &self);
	case IBV_QPS_RTS:
		return end_to_rts(e);
	default:
		return end_to(e, state);
	}
}

/*
 * Every pair of states: allowed exactly where the specification has an arrow.  From RESET
 * to ERR it has one, which Linux refuses for all adapters: either will do.
 */
static void test_transitions(struct side *s)
{
	static const bool allowed[7][7] = {
		[IBV_QPS_RESET][IBV_QPS_INIT] = true,
		[IBV_QPS_INIT][IBV_QPS_INIT] = true,
		[IBV_QPS_INIT][IBV_QPS_RTR] = true,
		[IBV_QPS_RTR][IBV_QPS_RTS] = true,
	};
	static const enum ibv_qp_state way[] = { IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS };
	static const enum ibv_qp_state all[] = { IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR,
						 IBV_QPS_RTS, IBV_QPS_ERR };
	unsigned from, to, i;

	for (from = 0; from < 4; from++)
		for (to = 0; to < 5; to++) {
			bool expected = all[to] == IBV_QPS_RESET || all[to] == IBV_QPS_ERR ||
					allowed[from][all[to]];
			struct end e = end_new(s, NULL);
			int rc;

			for (i = 0; i < from; i++)
				require_equal(to_self(s, &e, way[i]), 0);
			rc = to_self(s, &e, all[to]);
			if (from == 0 && all[to] == IBV_QPS_ERR)
				expected = rc == 0;
			if ((rc == 0) != expected)
				fail("from state %u to %u: %d", from, all[to], rc);
			require_equal(end_state(&e), expected ? (unsigned)all[to] : from);
			end_free(&e);
		}
}

/* An attribute missing, one too many, one out of range. */
static void test_attributes(struct side *s)
{
	struct end e = end_new(s, NULL);
	struct peer_address self = end_address(s, &e);
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	const int init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;

	require(ibv_modify_qp(e.qp, &a, init & ~IBV_QP_PORT) != 0);
	require(ibv_modify_qp(e.qp, &a, init | IBV_QP_TIMEOUT) != 0);
	a.port_num = (uint8_t)(s->dev.phys_port_cnt + 1);
	require(ibv_modify_qp(e.qp, &a, init) != 0);
	a.port_num = 0;
	require(ibv_modify_qp(e.qp, &a, init) != 0);
	require_equal(end_state(&e), IBV_QPS_RESET);
	require_equal(end_to_init(s, &e), 0);
	s->port.active_mtu = (enum ibv_mtu)7;
	require(end_to_rtr(s, &e, &self) != 0);
	require_equal(end_state(&e), IBV_QPS_INIT);
	end_free(&e);
}

static void test_query_qp(struct side *s)
{
	struct end_config c = end_defaults;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;
	struct end e;

	c.timeout = 11;
	c.retry_cnt = 3;
	c.rnr_retry = 5;
	c.min_rnr_timer = 9;
	c.access = IBV_ACCESS_REMOTE_READ;
	e = end_new(s, &c);
	end_connect(s, &e);
	require_equal(ibv_query_qp(e.qp, &a, (IBV_QP_DEST_QPN << 1) - 1, &init), 0);
	require_equal(a.qp_state, IBV_QPS_RTS);
	require_equal(a.dest_qp_num, e.remote_qpn);
	require_equal(a.timeout, 11);
	require_equal(a.retry_cnt, 3);
	require_equal(a.rnr_retry, 5);
	require_equal(a.min_rnr_timer, 9);
	require_equal(a.path_mtu, s->port.active_mtu);
	require_equal(a.port_num, s->port_num);
	require_equal(a.qp_access_flags & ACCESS_ALL, IBV_ACCESS_REMOTE_READ);
	require_equal(a.cap.max_inline_data, e.cap.max_inline_data);
	require(init.cap.max_send_wr >= e.cap.max_send_wr);
	require_equal(init.qp_type, IBV_QPT_RC);
	require(init.send_cq == e.cq && init.recv_cq == e.cq);
	end_free(&e);
}

/* Posting is refused before the queue can take it (C10-29, C10-32...). */
static void test_post_too_early(struct side *s)
{
	struct buffer b = buffer_new(s, 4096, ACCESS_ALL);
	struct ibv_sge sge = sge_of(&b, 0, 8);
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND }, *bad;
	struct ibv_recv_wr rwr = { .sg_list = &sge, .num_sge = 1 }, *rbad;
	struct end e = end_new(s, NULL);

	require(ibv_post_send(e.qp, &wr, &bad) != 0);
	require(bad == &wr);
	require(ibv_post_recv(e.qp, &rwr, &rbad) != 0);
	require(rbad == &rwr);
	require_equal(to_self(s, &e, IBV_QPS_INIT), 0);
	require(ibv_post_send(e.qp, &wr, &bad) != 0);
	require_equal(ibv_post_recv(e.qp, &rwr, &rbad), 0);
	require_equal(to_self(s, &e, IBV_QPS_RTR), 0);
	require(ibv_post_send(e.qp, &wr, &bad) != 0);
	end_free(&e);
	buffer_free(s, &b);
}

/* A queue pair is reset and connected anew, several times; nothing of before remains. */
static void test_reconnect(struct side *s)
{
	struct buffer b = buffer_new(s, 4096, ACCESS_ALL);
	struct end e = end_new(s, NULL);
	int round, i;

	for (round = 0; round < 5; round++) {
		struct ibv_sge sge = sge_of(&b, 0, 100);

		end_connect(s, &e);
		if (s->me == 1) {
			/* Three receives, of which two are used. */
			for (i = 0; i < 3; i++)
				post_receive(&e, (uint64_t)(10 * round + i), &sge, 1);
			barrier(s);
			for (i = 0; i < 2; i++)
				require_equal(wait_ok(e.cq).wr_id, 10 * round + i);
			check(b.at, (uint64_t)round, 100, "after reconnecting");
		} else {
			fill(b.at, (uint64_t)round, 100);
			barrier(s);
			for (i = 0; i < 2; i++)
				post(&e, (struct ibv_send_wr){ .wr_id = 1, .sg_list = &sge,
					.num_sge = 1, .opcode = IBV_WR_SEND,
					.send_flags = IBV_SEND_SIGNALED });
			for (i = 0; i < 2; i++)
				wait_ok(e.cq);
		}
		barrier(s);
		/* On the way through the error state the third one is flushed, else it is gone. */
		if (round % 2) {
			require_equal(end_to(&e, IBV_QPS_ERR), 0);
			if (s->me == 1)
				require_equal(wait_wc(e.cq).wr_id, 10 * round + 2);
		}
		require_equal(end_to(&e, IBV_QPS_RESET), 0);
		expect_nothing(e.cq, 1);
		barrier(s);
	}
	end_free(&e);
	buffer_free(s, &b);
}

/* Send queue drained: what is posted waits until the queue pair is back. */
static void test_sqd(struct side *s)
{
	struct buffer b = buffer_new(s, 4096, ACCESS_ALL);
	struct ibv_sge sge = sge_of(&b, 0, 64);
	struct end e = end_new(s, NULL);

	end_connect(s, &e);
	buffer_swap(s, &b);
	if (s->me == 0) {
		fill(b.at, 2, 64);
		require_equal(end_to(&e, IBV_QPS_SQD), 0);
		post(&e, (struct ibv_send_wr){ .wr_id = 1, .sg_list = &sge, .num_sge = 1,
			.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED,
			.wr.rdma = { b.addr, b.rkey } });
		expect_nothing(e.cq, 20);
	}
	barrier(s);
	if (s->me == 1)
		check_untouched(b.at, 0xee, 64, "while drained");
	barrier(s);
	if (s->me == 0) {
		require_equal(end_to(&e, IBV_QPS_RTS), 0);
		wait_ok(e.cq);
	}
	barrier(s);
	if (s->me == 1)
		check(b.at, 2, 64, "after");
	end_free(&e);
	buffer_free(s, &b);
}

/* ---- Limits -------------------------------------------------------------- */

/* Sends that nobody receives fill the queue; all of them arrive in the end. */
static void test_send_queue_full(struct side *s)
{
	struct end_config c = end_defaults;
	struct buffer b = buffer_new(s, 4096, ACCESS_ALL);
	struct ibv_sge sge = sge_of(&b, 0, 8);
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED }, *bad;
	uint32_t mine, theirs, i;
	struct end e;

	c.send_wr = 8;
	e = end_new(s, &c);
	require(e.cap.max_send_wr >= 8);
	mine = end_granted(&e).max_send_wr;
	end_connect(s, &e);
	swap(s, &mine, &theirs, sizeof(mine));
	if (s->me == 0) {
		for (wr.wr_id = 0; wr.wr_id < mine; wr.wr_id++)
			require_equal(ibv_post_send(e.qp, &wr, &bad), 0);
		require_equal(ibv_post_send(e.qp, &wr, &bad), ENOMEM);
		require(bad == &wr);
		barrier(s);
		for (i = 0; i < mine; i++)
			require_equal(wait_ok(e.cq).wr_id, i);
		require_equal(ibv_post_send(e.qp, &wr, &bad), 0);
		require_equal(wait_ok(e.cq).wr_id, mine);
	} else {
		barrier(s);
		for (i = 0; i < theirs + 1; i++) {
			post_receive(&e, i, &sge, 1);
			require_equal(wait_ok(e.cq).wr_id, i);
		}
	}
	barrier(s);
	end_free(&e);
	buffer_free(s, &b);
}

/* A slot is free again when a later signaled completion has been polled, not before. */
static void test_send_slots(struct side *s)
{
	struct end_config c = end_defaults;
	struct buffer b = buffer_new(s, 4096, ACCESS_ALL);
	struct ibv_sge sge = sge_of(&b, 0, 8);
	struct ibv_send_wr wr, *bad;
	struct end e;
	uint32_t count, i, posted;

	c.send_wr = 8;
	e = end_new(s, &c);
	end_connect(s, &e);
	buffer_swap(s, &b);
	wr = (struct ibv_send_wr){ .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
				   .wr.rdma = { b.addr, b.rkey } };
	if (s->me == 0) {
		count = end_granted(&e).max_send_wr;
		for (i = 0; i < count; i++) {
			wr.send_flags = i == 3 ? IBV_SEND_SIGNALED : 0;
			require_equal(ibv_post_send(e.qp, &wr, &bad), 0);
		}
		require_equal(ibv_post_send(e.qp, &wr, &bad), ENOMEM);
		require(bad == &wr);
		wait_ok(e.cq);
		wr.send_flags = 0;
		for (posted = 0; ibv_post_send(e.qp, &wr, &bad) == 0; posted++)
			require(posted < 5);
		require_equal(posted, 4);
	}
	barrier(s);
	end_free(&e);
	buffer_free(s, &b);
}

static void test_receive_queue_full(struct side *s)
{
	struct end_config c = end_defaults;
	struct ibv_recv_wr wr = { .wr_id = 1 }, *bad;
	struct end e;
	uint32_t i;

	c.recv_wr = 8;
	e = end_new(s, &c);
	require_equal(end_to_init(s, &e), 0);
	require(e.cap.max_recv_wr >= 8);
	for (i = 0; i < end_granted(&e).max_recv_wr; i++)
		require_equal(ibv_post_recv(e.qp, &wr, &bad), 0);
	require_equal(ibv_post_recv(e.qp, &wr, &bad), ENOMEM);
	require(bad == &wr);
	end_free(&e);
}

/* What cannot be a work request is refused at once, and names the culprit. */
static void test_bad_requests(struct side *s)
{
	struct end_config c = end_defaults;
	struct buffer b = buffer_new(s, 1 << 20, ACCESS_ALL);
	struct ibv_sge sge[64];
	struct ibv_send_wr wr[2], *bad;
	struct end e;
	int i;

	c.inline_bytes = 32;
	e = end_new(s, &c);
	end_connect(s, &e);
	buffer_swap(s, &b);
	for (i = 0; i < 64; i++)
		sge[i] = sge_of(&b, 0, 8);
	wr[0] = (struct ibv_send_wr){ .wr_id = 1, .sg_list = sge, .num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED, .next = &wr[1],
		.wr.rdma = { b.addr, b.rkey } };
	wr[1] = wr[0];
	wr[1].next = NULL;
	wr[1].num_sge = (int)e.cap.max_send_sge + 1;
	require(e.cap.max_send_sge < 64);
	if (s->me == 0) {
		require(ibv_post_send(e.qp, wr, &bad) != 0);
		require(bad == &wr[1]);
		require_equal(wait_ok(e.cq).wr_id, 1);	/* the first was good */
		wr[1].num_sge = 1;
		wr[1].send_flags = IBV_SEND_INLINE;
		sge[0].length = e.cap.max_inline_data + 1;
		require(ibv_post_send(e.qp, &wr[1], &bad) != 0);
		expect_nothing(e.cq, 1);
	}
	barrier(s);
	end_free(&e);
	buffer_free(s, &b);
}

static void test_device_limits(struct side *s)
{
	struct ibv_cq *cq = ibv_create_cq(s->ctx, 16, NULL, NULL, 0);
	struct ibv_qp_init_attr init = { .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1,
			 .max_recv_sge = 1 } }, over = init;
	struct ibv_qp *qp;

	require(cq != NULL && cq->cqe >= 16);
	over.cap.max_send_wr = (uint32_t)s->dev.max_qp_wr + 1;
	require(ibv_create_qp(s->pd, &over) == NULL);
	over = init;
	over.cap.max_send_sge = (uint32_t)s->dev.max_sge + 1;
	require(ibv_create_qp(s->pd, &over) == NULL);
	require(ibv_create_cq(s->ctx, s->dev.max_cqe + 1, NULL, NULL, 0) == NULL);
	require(ibv_create_cq(s->ctx, 0, NULL, NULL, 0) == NULL);
	init.cap.max_send_wr = init.cap.max_recv_wr = 1;
	qp = ibv_create_qp(s->pd, &init);
	require(qp != NULL);
	/* Nothing is destroyed under what uses it. */
	require_equal(ibv_destroy_cq(cq), EBUSY);
	require_equal(ibv_dealloc_pd(s->pd), EBUSY);
	require_equal(ibv_destroy_qp(qp), 0);
	require_equal(ibv_destroy_cq(cq), 0);
}

static void test_registrations(struct side *s)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *hole = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			  0);
	struct ibv_mr *mr, *twice;

	require(hole != MAP_FAILED);
	/* Remote write needs local write. */
	require(ibv_reg_mr(s->pd, hole, page, IBV_ACCESS_REMOTE_WRITE) == NULL);
	mr = ibv_reg_mr(s->pd, hole, 2 * page, ACCESS_ALL);
	require(mr != NULL && mr->length == 2 * page && mr->addr == hole);
	/* The same memory again: another registration. */
	twice = ibv_reg_mr(s->pd, hole + 100, page, ACCESS_ALL);
	require(twice != NULL && twice->lkey != mr->lkey);
	memset(hole, 1, 3 * page);
	require_equal(ibv_dereg_mr(twice), 0);
	require_equal(ibv_dereg_mr(mr), 0);
	/* Memory that is not there, or not all of it. */
	require_equal(munmap(hole + page, page), 0);
	errno = 0;
	require(ibv_reg_mr(s->pd, hole, 3 * page, ACCESS_ALL) == NULL);
	require_equal(errno, EFAULT);
	require_equal(munmap(hole, page), 0);
	require_equal(munmap(hole + 2 * page, page), 0);
}

static void test_queries(struct side *s)
{
	struct ibv_port_attr port;
	union ibv_gid gid;
	__be16 pkey;

	require(s->dev.phys_port_cnt >= 1 && s->dev.max_qp > 0 && s->dev.max_qp_wr > 0);
	require(ibv_query_port(s->ctx, 0, &port) != 0);
	require(ibv_query_port(s->ctx, (uint8_t)(s->dev.phys_port_cnt + 1), &port) != 0);
	require(ibv_query_gid(s->ctx, (uint8_t)s->port_num, -1, &gid) != 0);
	require(ibv_query_gid(s->ctx, (uint8_t)s->port_num, s->port.gid_tbl_len, &gid) != 0);
	require_equal(ibv_query_pkey(s->ctx, (uint8_t)s->port_num, 0, &pkey), 0);
	require(pkey != 0);
	require(ibv_query_pkey(s->ctx, (uint8_t)s->port_num, s->port.pkey_tbl_len, &pkey) != 0);
	require(ibv_get_device_guid(s->ctx->device) != 0);
	require_equal(ibv_get_device_guid(s->ctx->device), s->dev.node_guid);
}

/* Objects by the hundred; numbers are not used twice in a row. */
static void test_many_objects(struct side *s)
{
	enum { COUNT = 100, ROUNDS = 5 };
	struct end e[COUNT];
	uint32_t last = 0;
	int round, i;

	for (round = 0; round < ROUNDS; round++) {
		for (i = 0; i < COUNT; i++) {
			e[i] = end_new(s, NULL);
			require(e[i].qp->qp_num > 1 && e[i].qp->qp_num < 0xffffff);
			require(e[i].qp->qp_num != last);
			last = e[i].qp->qp_num;
		}
		for (i = 0; i < COUNT; i++)
			end_free(&e[i]);
	}
}

/* ---- Threads ------------------------------------------------------------- */

enum { THREADS = 4, PER_THREAD = 3000 };

struct worker {
	struct end *e;
	struct buffer *b;
	int index;
	pthread_t thread;
};

static void *hammer(void *arg)
{
	struct worker *w = arg;
	int i;

	for (i = 0; i < PER_THREAD; i++) {
		size_t at = (size_t)w->index * 1024 + (size_t)(i % 8) * 128;
		struct ibv_sge sge = sge_of(w->b, at, 128);

		fill(w->b->at + at, (uint64_t)(w->index * PER_THREAD + i), 128);
		post(w->e, (struct ibv_send_wr){ .wr_id = (uint64_t)i, .sg_list = &sge,
			.num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
			.send_flags = IBV_SEND_SIGNALED,
			.wr.rdma = { w->b->addr + at, w->b->rkey } });
		require_equal(wait_ok(w->e->cq).wr_id, i);
	}
	return NULL;
}

/* Each thread with a queue pair of its own. */
static void test_threads(struct side *s)
{
	struct buffer b = buffer_new(s, THREADS * 1024, ACCESS_ALL);
	struct worker w[THREADS];
	struct end e[THREADS];
	int i, k;

	for (i = 0; i < THREADS; i++) {
		e[i] = end_new(s, NULL);
		end_connect(s, &e[i]);
	}
	buffer_swap(s, &b);
	for (i = 0; s->me == 0 && i < THREADS; i++) {
		w[i] = (struct worker){ &e[i], &b, i, 0 };
		require_equal(pthread_create(&w[i].thread, NULL, hammer, &w[i]), 0);
	}
	for (i = 0; s->me == 0 && i < THREADS; i++)
		require_equal(pthread_join(w[i].thread, NULL), 0);
	barrier(s);
	for (i = 0; s->me == 1 && i < THREADS; i++)
		for (k = 0; k < 8; k++) {
			int last = PER_THREAD - 8 + k;	/* PER_THREAD is a multiple of 8 */

			check(b.at + i * 1024 + k * 128, (uint64_t)(i * PER_THREAD + last), 128,
			      "last round");
		}
	barrier(s);
	for (i = 0; i < THREADS; i++)
		end_free(&e[i]);
	buffer_free(s, &b);
}

/* All threads on one queue pair and one completion queue. */
struct crowd {
	struct end *e;
	struct buffer *b;
	pthread_t thread;
	uint64_t polled;
};

static void *join_crowd(void *arg)
{
	struct crowd *c = arg;
	struct ibv_sge sge = sge_of(c->b, 0, 64);
	int posted = 0;

	while (posted < PER_THREAD || c->polled < PER_THREAD) {
		struct ibv_send_wr wr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1,
			.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED,
			.wr.rdma = { c->b->addr, c->b->rkey } }, *bad;
		struct ibv_wc wc[4];
		int n, i;

		if (posted < PER_THREAD && ibv_post_send(c->e->qp, &wr, &bad) == 0)
			posted++;
		if (c->polled == PER_THREAD)
			continue;	/* the rest is for the others */
		n = ibv_poll_cq(c->e->cq, c->polled + 4 <= PER_THREAD ? 4 : 1, wc);
		for (i = 0; i < n; i++)
			require_equal(wc[i].status, IBV_WC_SUCCESS);
		c->polled += (uint64_t)n;
	}
	return NULL;
}

static void test_shared_by_threads(struct side *s)
{
	struct buffer b = buffer_new(s, 4096, ACCESS_ALL);
	struct end e = end_new(s, NULL);
	struct crowd c[THREADS];
	uint64_t polled = 0;
	int i;

	end_connect(s, &e);
	buffer_swap(s, &b);
	for (i = 0; s->me == 0 && i < THREADS; i++) {
		c[i] = (struct crowd){ .e = &e, .b = &b };
		require_equal(pthread_create(&c[i].thread, NULL, join_crowd, &c[i]), 0);
	}
	for (i = 0; s->me == 0 && i < THREADS; i++) {
		require_equal(pthread_join(c[i].thread, NULL), 0);
		polled += c[i].polled;
	}
	if (s->me == 0)
		require_equal(polled, THREADS * PER_THREAD);
	barrier(s);
	end_free(&e);
	buffer_free(s, &b);
}

const struct test state_tests[] = {
	{ "transitions", test_transitions },
	{ "attributes", test_attributes },
	{ "query_qp", test_query_qp },
	{ "post_too_early", test_post_too_early },
	{ "reconnect", test_reconnect },
	{ "sqd", test_sqd },
	{ "send_queue_full", test_send_queue_full },
	{ "send_slots", test_send_slots },
	{ "receive_queue_full", test_receive_queue_full },
	{ "bad_requests", test_bad_requests },
	{ "device_limits", test_device_limits },
	{ "registrations", test_registrations },
	{ "queries", test_queries },
	{ "many_objects", test_many_objects },
	{ "threads", test_threads },
	{ "shared_by_threads", test_shared_by_threads },
	{ NULL, NULL },
};
