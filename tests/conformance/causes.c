/*
 * causes.c - which asynchronous events errors cause (IBTA 1.5, 11.6.3): errors
 * that no completion reports.
 */

#include "conformance.h"
#include "softhca/softhca.h"

enum { BYTES = 4096 };

static bool take(struct side *s, struct end *e, enum ibv_event_type type, int timeout_ms)
{
	struct ibv_async_event event;

	if (!readable(s->ctx->async_fd, timeout_ms))
		return false;
	require_equal(ibv_get_async_event(s->ctx, &event), 0);
	if (event.event_type != type)
		fail("%s; expected %s", ibv_event_type_str(event.event_type),
		     ibv_event_type_str(type));
	require(event.element.qp == e->qp);
	ibv_ack_async_event(&event);
	return true;
}

static void expect_event(struct side *s, struct end *e, enum ibv_event_type type)
{
	wait_async(s, type);
	require(take(s, e, type, 0));
}

/* Somebody sends to a queue pair that is ready to receive only. */
static void comm_est(struct side *s, enum ibv_wr_opcode op)
{
	struct buffer b = buffer_new(s, BYTES, ACCESS_ALL);
	struct ibv_sge sge = sge_of(&b, 0, 64);
	struct end e = end_new(s, NULL);
	struct peer_address mine = end_address(s, &e), theirs;

	swap(s, &mine, &theirs, sizeof(mine));
	buffer_swap(s, &b);
	require_equal(end_to_init(s, &e), 0);
	post_receive(&e, 1, &sge, 1);
	require_equal(end_to_rtr(s, &e, &theirs), 0);
	barrier(s);
	if (s->me == 0) {
		struct ibv_send_wr wr = write_wr(&b, &sge, 2);

		require_equal(end_to_rts(&e), 0);
		expect_nothing(e.cq, 5);	/* polled for long: that sends nothing */
		wr.opcode = op;
		post(&e, wr);
		post(&e, wr);
		expect(e.cq, 2, IBV_WC_SUCCESS);
		barrier(s);
	} else {
		expect_event(s, &e, IBV_EVENT_COMM_EST);
		if (op == IBV_WR_SEND)
			expect(e.cq, 1, IBV_WC_SUCCESS);
		require_equal(end_state(&e), IBV_QPS_RTR);
		require_equal(end_to_rts(&e), 0);
		if (op == IBV_WR_SEND)
			post_receive(&e, 3, &sge, 1);
		require(!take(s, &e, IBV_EVENT_COMM_EST, 20));
		barrier(s);
	}
	barrier(s);
	end_free(&e);
	buffer_free(s, &b);
}

static void test_comm_est_send(struct side *s)
{
	comm_est(s, IBV_WR_SEND);
}

static void test_comm_est_write(struct side *s)
{
	comm_est(s, IBV_WR_RDMA_WRITE);
}

/* A request that the queue pair does not answer: it is told, the requester by its completion. */
static void test_invalid_request(struct side *s)
{
	struct end_config c = end_defaults;
	struct buffer b = buffer_new(s, BYTES, ACCESS_ALL);
	struct ibv_sge sge = sge_of(&b, 0, 64);
	struct end e;

	c.access = IBV_ACCESS_REMOTE_READ;
	e = end_new(s, &c);
	end_connect(s, &e);
	buffer_swap(s, &b);
	if (s->me == 0) {
		post(&e, write_wr(&b, &sge, 1));
		expect(e.cq, 1, IBV_WC_REM_INV_REQ_ERR);
		require(!take(s, &e, IBV_EVENT_QP_FATAL, 20));
	} else {
		expect_event(s, &e, IBV_EVENT_QP_REQ_ERR);
		require_equal(end_state(&e), IBV_QPS_ERR);
	}
	barrier(s);
	end_free(&e);
	buffer_free(s, &b);
}

/* What the receive's completion tells is no event as well. */
static void test_told_by_receive(struct side *s)
{
	struct buffer b = buffer_new(s, BYTES, ACCESS_ALL);
	struct ibv_sge sge = sge_of(&b, 0, 64), small = sge_of(&b, 0, 8);
	struct end e = end_new(s, NULL);

	end_connect(s, &e);
	if (s->me == 1)
		post_receive(&e, 1, &small, 1);
	barrier(s);
	if (s->me == 0) {
		post(&e, send_wr(&sge, 2));
		expect(e.cq, 2, IBV_WC_REM_INV_REQ_ERR);
	} else {
		expect(e.cq, 1, IBV_WC_LOC_LEN_ERR);
		wait_state(&e, IBV_QPS_ERR);
	}
	require(!take(s, &e, IBV_EVENT_QP_FATAL, 20));
	barrier(s);
	end_free(&e);
	buffer_free(s, &b);
}

/* Nor what the program did itself, nor what a send's completion tells. */
static void test_told_otherwise(struct side *s)
{
	struct buffer b = buffer_new(s, BYTES, ACCESS_ALL);
	struct ibv_sge sge = sge_of(&b, 0, 64);
	struct end e = end_new(s, NULL);

	end_connect(s, &e);
	if (s->me == 0) {
		sge.lkey += 0x00ff00ff;
		post(&e, send_wr(&sge, 1));
		expect(e.cq, 1, IBV_WC_LOC_PROT_ERR);
	} else {
		require_equal(end_to(&e, IBV_QPS_ERR), 0);
	}
	require(!take(s, &e, IBV_EVENT_QP_FATAL, 20));
	barrier(s);
	end_free(&e);
	buffer_free(s, &b);
}

/* A message, after which both ends know that there is a connection. */
static void hear_of_each_other(struct side *s, struct end *e)
{
	struct buffer b = buffer_new(s, BYTES, ACCESS_ALL);
	struct ibv_sge sge = sge_of(&b, 0, 64);

	if (s->me == 1)
		post_receive(e, 1, &sge, 1);
	barrier(s);
	if (s->me == 0)
		post(e, send_wr(&sge, 1));
	expect(e->cq, 1, IBV_WC_SUCCESS);
	barrier(s);
	buffer_free(s, &b);
}

/*
 * libsofthca's own: the process of the peer has died, and there is no request that
 * would tell.  (On a wire who only receives never learns it.)
 */
static void test_peer_dies(struct side *s)
{
	uint64_t end = patience_end();
	struct end e = end_new(s, NULL);
	struct ibv_wc wc;

	if (!softhca_is_device(s->ctx->device))
		skip("a device that asks whether its peers' processes live");
	end_connect(s, &e);
	if (s->options->wire)
		hear_of_each_other(s, &e);
	side_dies(s, 1);
	while (end_state(&e) != IBV_QPS_ERR && goes_on(end))
		require_equal(ibv_poll_cq(e.cq, 1, &wc), 0);
	require(take(s, &e, IBV_EVENT_QP_FATAL, 0));
	require(!take(s, &e, IBV_EVENT_QP_FATAL, 20));
	end_free(&e);
	side_is_alone(s);
}

const struct test cause_tests[] = {
	{ "async/comm_est_send", test_comm_est_send },
	{ "async/comm_est_write", test_comm_est_write },
	{ "async/invalid_request", test_invalid_request },
	{ "async/told_by_receive", test_told_by_receive },
	{ "async/told_otherwise", test_told_otherwise },
	{ "async/peer_dies", test_peer_dies },
	{ NULL, NULL },
};
