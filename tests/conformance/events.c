/* events.c - asynchronous events. */
#include <errno.h>
#include <pthread.h>
#include <unistd.h>

#include "conformance.h"

static void test_async_none(struct side *s)
{
	struct ibv_async_event event;

	require(!readable(s->ctx->async_fd, 0));
	set_nonblocking(s->ctx->async_fd);
	require_equal(ibv_get_async_event(s->ctx, &event), -1);
	require_equal(errno, EAGAIN);
}

/*
 * A peer does what it may not: the responder's queue pair learns it by an event
 * (IBTA 1.5, 11.6.3.2), even while its program sleeps.
 */
static void async_access(struct side *s, bool block)
{
	struct end e = end_new(s, NULL);
	struct buffer b = buffer_new(s, 4096, IBV_ACCESS_LOCAL_WRITE);

	end_connect(s, &e);
	buffer_swap(s, &b);
	if (s->me == 0) {
		struct ibv_sge sge = sge_of(&b, 0, 64);

		post(&e, (struct ibv_send_wr){ .wr_id = 3, .sg_list = &sge, .num_sge = 1,
			.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED,
			.wr.rdma = { b.addr, b.rkey } });
		require_equal(wait_wc(e.cq).status, IBV_WC_REM_ACCESS_ERR);
		barrier(s);
	} else {
		struct ibv_async_event event;

		if (block)
			alarm(patience_s + 5);	/* should it never come */
		else
			wait_async(s, IBV_EVENT_QP_ACCESS_ERR);
		require_equal(ibv_get_async_event(s->ctx, &event), 0);
		require_equal(event.event_type, IBV_EVENT_QP_ACCESS_ERR);
		require(event.element.qp == e.qp);
		require_equal(end_state(&e), IBV_QPS_ERR);
		set_nonblocking(s->ctx->async_fd);
		require_equal(ibv_get_async_event(s->ctx, &(struct ibv_async_event){ 0 }), -1);
		require_equal(errno, EAGAIN);
		require(!readable(s->ctx->async_fd, 0));
		ibv_ack_async_event(&event);
		barrier(s);
	}
	end_free(&e);
	buffer_free(s, &b);
}

static void test_async_access(struct side *s)
{
	async_access(s, false);
}

static void test_async_blocking(struct side *s)
{
	async_access(s, true);
}

/* Events until one of this type comes; the others are acknowledged, too. */
static struct ibv_async_event await(struct side *s, enum ibv_event_type type)
{
	struct ibv_async_event event;

	do {
		wait_async(s, type);
		require_equal(ibv_get_async_event(s->ctx, &event), 0);
		ibv_ack_async_event(&event);
	} while (event.event_type != type);
	return event;
}

/*
 * Nobody polls a queue until it is too full: its owner is told, be it asleep,
 * whoever it was that filled it.  Devices that stop the queue pairs, tell that.
 */
static void async_overflow(struct side *s, bool by_peer)
{
	struct buffer b = buffer_new(s, 4096, ACCESS_ALL);
	struct ibv_sge sge = sge_of(&b, 0, 8);
	struct end_config c = end_defaults;
	const bool victim = s->me == by_peer;
	struct ibv_async_event event;
	struct end e;
	int i, count;

	c.cqe = victim ? 4 : 256;
	c.send_wr = c.recv_wr = 256;
	e = end_new(s, &c);
	end_connect(s, &e);
	swap(s, &e.cq->cqe, &count, sizeof(count));
	if (victim)
		count = e.cq->cqe;
	count++;
	require(count < 256);
	for (i = 0; i < count && s->me == 1; i++)
		post_receive(&e, (uint64_t)i, &sge, 1);
	barrier(s);
	if (s->me == 0) {
		struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
					  .send_flags = by_peer ? 0 : IBV_SEND_SIGNALED }, *bad;

		for (i = 0; i < count; i++)
			ibv_post_send(e.qp, &wr, &bad);
	}
	if (victim) {
		event = await(s, IBV_EVENT_CQ_ERR);
		require(event.element.cq == e.cq);
		pause_ns(10000000);
		if (end_state(&e) == IBV_QPS_ERR)
			require(await(s, IBV_EVENT_QP_FATAL).element.qp == e.qp);
	}
	barrier(s);
	end_free(&e);
	buffer_free(s, &b);
}

static void test_async_overflow(struct side *s)
{
	async_overflow(s, false);
}

static void test_async_overflow_by_peer(struct side *s)
{
	async_overflow(s, true);
}

static void *acknowledge_event_late(void *arg)
{
	pause_ns(50000000);
	ibv_ack_async_event(arg);
	return NULL;
}

/* What was handed out must be acknowledged before the object goes; what was not, goes with it. */
static void test_async_acknowledge(struct side *s)
{
	struct buffer b = buffer_new(s, 4096, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_sge sge = sge_of(&b, 0, 8);
	struct end e[2] = { end_new(s, NULL), end_new(s, NULL) };
	int i;

	buffer_swap(s, &b);
	for (i = 0; i < 2; i++) {
		end_connect(s, &e[i]);
		if (s->me == 0) {
			post(&e[i], (struct ibv_send_wr){ .sg_list = &sge, .num_sge = 1,
				.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED,
				.wr.rdma = { b.addr, b.rkey } });
			require_equal(wait_wc(e[i].cq).status, IBV_WC_REM_ACCESS_ERR);
		}
		barrier(s);
	}
	if (s->me == 1) {
		struct ibv_async_event event;
		uint64_t begin = now_ns();
		pthread_t thread;

		wait_async(s, IBV_EVENT_QP_ACCESS_ERR);
		require_equal(ibv_get_async_event(s->ctx, &event), 0);
		require(event.element.qp == e[0].qp);
		require_equal(pthread_create(&thread, NULL, acknowledge_event_late, &event), 0);
		end_free(&e[0]);
		require(now_ns() - begin >= 40000000);
		pthread_join(thread, NULL);
		wait_async(s, IBV_EVENT_QP_ACCESS_ERR);
		end_free(&e[1]);
		require(!readable(s->ctx->async_fd, 0));
	} else {
		end_free(&e[0]);
		end_free(&e[1]);
	}
	barrier(s);
	buffer_free(s, &b);
}

const struct test event_tests[] = {
	{ "async/none", test_async_none },
	{ "async/access-error", test_async_access },
	{ "async/blocking", test_async_blocking },
	{ "async/overflow", test_async_overflow },
	{ "async/overflow-by-peer", test_async_overflow_by_peer },
	{ "async/acknowledge", test_async_acknowledge },
	{ NULL, NULL },
};
