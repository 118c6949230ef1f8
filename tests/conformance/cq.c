/* cq.c - completion queues: extended ones, timestamps, resizing while in use. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "softhca/softhca.h"
#include "ud.h"

static struct ibv_cq_ex *cq_ex_new(struct side *s, uint64_t fields,
				   struct ibv_comp_channel *channel)
{
	struct ibv_cq_init_attr_ex init = { .cqe = 256, .wc_flags = fields, .channel = channel };
	struct ibv_cq_ex *cq = ibv_create_cq_ex(s->ctx, &init);

	if (!cq && (errno == EOPNOTSUPP || errno == ENOSYS))
		skip("no extended completion queue with fields 0x%llx",
		     (unsigned long long)fields);
	if (!cq)
		fail("ibv_create_cq_ex: %s", strerror(errno));
	return cq;
}

static struct end end_ex_new(struct side *s, struct ibv_cq_ex *cq)
{
	struct end_config c = end_defaults;
	struct end e;

	c.cq = ibv_cq_ex_to_cq(cq);
	e = end_new(s, &c);
	end_connect(s, &e);
	return e;
}

/* Wait for one, which stays open until ibv_end_poll. */
static void start(struct ibv_cq_ex *cq)
{
	struct ibv_poll_cq_attr attr = { 0 };
	uint64_t end = patience_end();
	int rc;

	do {
		rc = ibv_start_poll(cq, &attr);
		if (rc && rc != ENOENT)
			fail("ibv_start_poll: %d", rc);
	} while (rc && goes_on(end));
	require_equal(rc, 0);
}

static void send_imm(struct end *e, struct ibv_sge *sge, uint64_t wr_id, uint32_t imm)
{
	post(e, (struct ibv_send_wr){ .wr_id = wr_id, .sg_list = sge, .num_sge = 1,
		.opcode = IBV_WR_SEND_WITH_IMM, .send_flags = IBV_SEND_SIGNALED,
		.imm_data = imm });
}

/* Every field says what ibv_poll_cq would. */
static void test_ex_fields(struct side *s)
{
	struct ibv_cq_ex *cq = cq_ex_new(s, IBV_WC_STANDARD_FLAGS, NULL);
	struct buffer b = buffer_new(s, 4096, ACCESS_ALL);
	struct ibv_sge sge = sge_of(&b, 0, 100);
	struct ibv_poll_cq_attr attr = { 0 };
	struct end e = end_ex_new(s, cq);
	struct ibv_wc wc;

	require_equal(ibv_start_poll(cq, &attr), ENOENT);
	if (s->me == 1)
		post_receive(&e, 77, &sge, 1);
	barrier(s);
	if (s->me == 0)
		send_imm(&e, &sge, 66, 0x12345678);
	start(cq);
	require_equal(cq->status, IBV_WC_SUCCESS);
	require_equal(cq->wr_id, s->me ? 77 : 66);
	require_equal(ibv_wc_read_opcode(cq), s->me ? IBV_WC_RECV : IBV_WC_SEND);
	require_equal(ibv_wc_read_qp_num(cq), e.qp->qp_num);
	if (s->me == 1) {
		require_equal(ibv_wc_read_byte_len(cq), 100);
		require_equal(ibv_wc_read_imm_data(cq), 0x12345678);
		require(ibv_wc_read_wc_flags(cq) & IBV_WC_WITH_IMM);
	}
	require_equal(ibv_next_poll(cq), ENOENT);
	ibv_end_poll(cq);
	/* The plain verb serves the same queue. */
	require_equal(ibv_poll_cq(e.cq, 1, &wc), 0);
	if (s->me == 1)
		post_receive(&e, 78, &sge, 1);
	barrier(s);
	if (s->me == 0)
		send_imm(&e, &sge, 67, 1);
	require_equal(wait_ok(e.cq).wr_id, s->me ? 78 : 67);
	/* An error is an entry as any other. */
	if (s->me == 1) {
		post_receive(&e, 79, &sge, 1);
		require_equal(end_to(&e, IBV_QPS_ERR), 0);
		start(cq);
		require_equal(cq->status, IBV_WC_WR_FLUSH_ERR);
		require_equal(cq->wr_id, 79);
		require(!softhca_is_device(s->ctx->device) || !ibv_wc_read_vendor_err(cq));
		ibv_end_poll(cq);
	}
	barrier(s);
	end_free(&e);
	require_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	buffer_free(s, &b);
}

/* Fields of a datagram. */
static void test_ex_datagram(struct side *s)
{
	struct ibv_cq_ex *cq = cq_ex_new(s, IBV_WC_STANDARD_FLAGS, NULL);
	struct buffer b = buffer_new(s, 4096, ACCESS_ALL);
	struct ibv_sge in = sge_of(&b, 0, GRH + 100), out = sge_of(&b, 2048, 100);
	struct end e = ud_make(s, ibv_cq_ex_to_cq(cq), NULL);
	struct peer_address to;
	struct ibv_ah *ah;
	uint32_t slid;

	ud_init(s, &e, QKEY);
	ud_ready(&e);
	to = ud_swap(s, &e);
	ah = ah_to(s, &to);
	if (s->me == 1)
		post_receive(&e, 77, &in, 1);
	barrier(s);
	if (s->me == 0) {
		ud_send(&e, ah, to.qpn, &out, 66);
	} else {
		start(cq);
		require_equal(cq->status, IBV_WC_SUCCESS);
		require_equal(cq->wr_id, 77);
		require_equal(ibv_wc_read_src_qp(cq), to.qpn);
		require_equal(ibv_wc_read_byte_len(cq), GRH + 100);
		slid = ibv_wc_read_slid(cq);
		require(s->gid_index >= 0 || slid == to.lid);
		require_equal(ibv_wc_read_dlid_path_bits(cq), 0);
		if (softhca_is_device(s->ctx->device) && s->gid_index >= 0)
			require_equal(ibv_wc_read_sl(cq), header_sl(s));
		ibv_end_poll(cq);
	}
	barrier(s);
	require_equal(ibv_destroy_ah(ah), 0);
	end_free(&e);
	require_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	buffer_free(s, &b);
}

/* Between start and end the program may post, to queue pairs of this very queue. */
static void test_ex_post_while_polling(struct side *s)
{
	enum { MESSAGES = 2000, WINDOW = 16 };
	struct ibv_cq_ex *cq = cq_ex_new(s, IBV_WC_STANDARD_FLAGS, NULL);
	struct buffer b = buffer_new(s, 4096, ACCESS_ALL);
	struct ibv_sge sge = sge_of(&b, 0, 16);
	struct end e = end_ex_new(s, cq);
	uint32_t posted = 0, seen = 0;

	for (; posted < WINDOW && s->me == 1; posted++)
		post_receive(&e, posted, &sge, 1);
	barrier(s);
	for (; posted < WINDOW; posted++)
		send_imm(&e, &sge, posted, posted);
	while (seen < MESSAGES) {
		start(cq);
		do {
			require_equal(cq->status, IBV_WC_SUCCESS);
			require_equal(cq->wr_id, seen);
			if (s->me == 1)
				require_equal(ibv_wc_read_imm_data(cq), seen);
			seen++;
			if (posted == MESSAGES)
				continue;
			if (s->me == 1)
				post_receive(&e, posted, &sge, 1);
			else
				send_imm(&e, &sge, posted, posted);
			posted++;
		} while (ibv_next_poll(cq) == 0);
		ibv_end_poll(cq);
	}
	barrier(s);
	end_free(&e);
	require_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	buffer_free(s, &b);
}

static void test_ex_channel(struct side *s)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(s->ctx);
	struct ibv_cq_ex *cq = cq_ex_new(s, IBV_WC_STANDARD_FLAGS, channel);
	struct buffer b = buffer_new(s, 4096, ACCESS_ALL);
	struct ibv_sge sge = sge_of(&b, 0, 16);
	struct end e = end_ex_new(s, cq);

	if (s->me == 1) {
		post_receive(&e, 5, &sge, 1);
		require_equal(ibv_req_notify_cq(e.cq, 0), 0);
	}
	barrier(s);
	if (s->me == 0) {
		send_imm(&e, &sge, 4, 4);
		wait_ok(e.cq);
	} else {
		struct ibv_cq *which;
		void *context;

		require_equal(ibv_get_cq_event(channel, &which, &context), 0);
		require(which == e.cq);
		ibv_ack_cq_events(which, 1);
		start(cq);
		require_equal(cq->wr_id, 5);
		ibv_end_poll(cq);
	}
	barrier(s);
	end_free(&e);
	require_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	require_equal(ibv_destroy_comp_channel(channel), 0);
	buffer_free(s, &b);
}

static void test_ex_refused(struct side *s)
{
	struct ibv_cq_init_attr_ex init = { .cqe = 16, .wc_flags = 1ull << 40 };

	require(!ibv_create_cq_ex(s->ctx, &init));
	require(errno == EOPNOTSUPP || errno == EINVAL);
	init = (struct ibv_cq_init_attr_ex){ .cqe = 16, .comp_mask = 1u << 30 };
	require(!ibv_create_cq_ex(s->ctx, &init));
	init = (struct ibv_cq_init_attr_ex){ .cqe = 0 };
	require(!ibv_create_cq_ex(s->ctx, &init));
	init = (struct ibv_cq_init_attr_ex){ .cqe = 16,
		.comp_vector = (uint32_t)s->ctx->num_comp_vectors };
	require(!ibv_create_cq_ex(s->ctx, &init));
}

/* ---- Time ---------------------------------------------------------------- */

static uint64_t device_time(struct side *s)
{
	struct ibv_values_ex v = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };

	require_equal(ibv_query_rt_values_ex(s->ctx, &v), 0);
	require(v.comp_mask & IBV_VALUES_MASK_RAW_CLOCK);
	return (uint64_t)v.raw_clock.tv_sec * 1000000000u + (uint64_t)v.raw_clock.tv_nsec;
}

/* A time between the post and the poll, which does not go back; so for the wall's clock. */
static void test_timestamps(struct side *s)
{
	enum { MESSAGES = 500 };
	struct ibv_cq_ex *cq = cq_ex_new(s, IBV_WC_STANDARD_FLAGS |
					 IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
					 IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK, NULL);
	struct buffer b = buffer_new(s, 4096, ACCESS_ALL);
	struct ibv_sge sge = sge_of(&b, 0, 16);
	struct ibv_device_attr_ex attr;
	struct end e = end_ex_new(s, cq);
	uint64_t last = 0, before, after, stamp, wall;
	struct timespec now;
	int i;

	require_equal(ibv_query_device_ex(s->ctx, NULL, &attr), 0);
	require(attr.completion_timestamp_mask != 0 && attr.hca_core_clock != 0);
	for (i = 0; i < MESSAGES; i++) {
		if (s->me == 1)
			post_receive(&e, (uint64_t)i, &sge, 1);
		before = device_time(s);
		barrier(s);
		if (s->me == 0)
			send_imm(&e, &sge, (uint64_t)i, 0);
		start(cq);
		after = device_time(s);
		stamp = ibv_wc_read_completion_ts(cq);
		wall = ibv_wc_read_completion_wallclock_ns(cq);
		ibv_end_poll(cq);
		clock_gettime(CLOCK_REALTIME, &now);
		if (stamp < before || stamp > after || stamp < last)
			fail("message %d: %llu is not within %llu and %llu, after %llu", i,
			     (unsigned long long)stamp, (unsigned long long)before,
			     (unsigned long long)after, (unsigned long long)last);
		last = stamp;
		after = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
		require(wall <= after && after - wall < 600000000000u);
	}
	barrier(s);
	end_free(&e);
	require_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	buffer_free(s, &b);
}

/* ---- Another size -------------------------------------------------------- */

static void resize(struct ibv_cq *cq, int cqe)
{
	int rc = ibv_resize_cq(cq, cqe);

	if (rc == EOPNOTSUPP || rc == ENOSYS)
		skip("the device cannot resize a completion queue");
	if (rc)
		fail("ibv_resize_cq to %d: %s", cqe, strerror(rc));
	require(cq->cqe >= cqe);
}

/* What it holds, it keeps, in order; smaller than that it does not become. */
static void test_resize_held(struct side *s)
{
	enum { MESSAGES = 100 };
	struct end_config c = end_defaults;
	struct buffer b = buffer_new(s, 4096, ACCESS_ALL);
	struct ibv_sge sge = sge_of(&b, 0, 16);
	struct end e;
	int i;

	c.cqe = MESSAGES;
	c.recv_wr = c.send_wr = MESSAGES;
	e = end_new(s, &c);
	end_connect(s, &e);
	for (i = 0; i < MESSAGES && s->me == 1; i++)
		post_receive(&e, (uint64_t)i, &sge, 1);
	barrier(s);
	for (i = 0; i < MESSAGES / 2 && s->me == 0; i++)
		send_imm(&e, &sge, (uint64_t)i, 0);
	if (s->me == 0)
		for (i = 0; i < MESSAGES / 2; i++)
			require_equal(wait_ok(e.cq).wr_id, i);
	barrier(s);
	if (s->me == 1) {
		pause_ns(20000000);
		resize(e.cq, 3 * MESSAGES);
		require_equal(ibv_resize_cq(e.cq, 4), EINVAL);
		require_equal(ibv_resize_cq(e.cq, 0), EINVAL);
		require_equal(ibv_resize_cq(e.cq, s->dev.max_cqe + 1), EINVAL);
	}
	barrier(s);
	for (; i < MESSAGES && s->me == 0; i++) {
		send_imm(&e, &sge, (uint64_t)i, 0);
		require_equal(wait_ok(e.cq).wr_id, i);
	}
	barrier(s);
	for (i = 0; i < MESSAGES && s->me == 1; i++)
		require_equal(wait_ok(e.cq).wr_id, i);
	if (s->me == 1)
		resize(e.cq, 4);
	barrier(s);
	end_free(&e);
	buffer_free(s, &b);
}

struct resizer {
	struct ibv_cq *cq;
	_Atomic bool stop, failed;
	_Atomic int times;
};

static void *resize_often(void *arg)
{
	static const int sizes[] = { 1000, 64, 300, 100 };
	struct resizer *r = arg;

	for (; !r->stop; r->times++) {
		if (ibv_resize_cq(r->cq, sizes[r->times % 4])) {
			r->failed = true;
			return "a resize failed";
		}
		pause_ns(50000);	/* one processor may have to do for all */
	}
	return NULL;
}

/* While messages come in, from a thread of its own, asleep or not. */
static void test_resize_in_use(struct side *s)
{
	enum { MESSAGES = 5000, WINDOW = 32 };
	struct ibv_comp_channel *channel = ibv_create_comp_channel(s->ctx);
	struct end_config c = end_defaults;
	struct buffer b = buffer_new(s, 4096, ACCESS_ALL);
	struct ibv_sge sge = sge_of(&b, 0, 16);
	struct resizer r = { .times = 0 };
	uint32_t posted = 0, seen = 0;
	pthread_t thread;
	void *failed;
	struct end e;

	c.cq = r.cq = ibv_create_cq(s->ctx, 64, NULL, channel, 0);
	require(c.cq != NULL);
	e = end_new(s, &c);
	end_connect(s, &e);
	if (s->me == 1)
		resize(e.cq, 64);
	for (; posted < WINDOW && s->me == 1; posted++)
		post_receive(&e, posted, &sge, 1);
	barrier(s);
	if (s->me == 1)
		require_equal(pthread_create(&thread, NULL, resize_often, &r), 0);
	for (; posted < WINDOW; posted++)
		send_imm(&e, &sge, posted, posted);
	while (seen < MESSAGES) {
		struct ibv_wc wc;

		if (ibv_poll_cq(e.cq, 1, &wc) == 0) {
			struct ibv_cq *which;
			void *context;

			require_equal(ibv_req_notify_cq(e.cq, 0), 0);
			if (ibv_poll_cq(e.cq, 1, &wc) == 0) {
				require_equal(ibv_get_cq_event(channel, &which, &context), 0);
				ibv_ack_cq_events(which, 1);
				continue;
			}
		}
		require_equal(wc.status, IBV_WC_SUCCESS);
		require_equal(wc.wr_id, seen);
		if (s->me == 1)
			require_equal(wc.imm_data, seen);
		seen++;
		if (posted == MESSAGES)
			continue;
		/* However fast the messages are: eight resizes come between them. */
		while (s->me == 1 && !r.failed && r.times < (int)(seen * 8 / MESSAGES))
			pause_ns(50000);
		if (s->me == 1)
			post_receive(&e, posted, &sge, 1);
		else
			send_imm(&e, &sge, posted, posted);
		posted++;
	}
	if (s->me == 1) {
		r.stop = true;
		pthread_join(thread, &failed);
		if (failed)
			fail("%s", (char *)failed);
		require(r.times > 4);
	}
	barrier(s);
	end_free(&e);
	require_equal(ibv_destroy_cq(e.cq), 0);
	require_equal(ibv_destroy_comp_channel(channel), 0);
	buffer_free(s, &b);
}

/* Objects of a device that was opened twice are not mixed. */
static void test_foreign(struct side *s)
{
	struct ibv_context *other = ibv_open_device(s->ctx->device);
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC,
					 .cap = { .max_send_wr = 1, .max_recv_wr = 1,
						  .max_send_sge = 1, .max_recv_sge = 1 } };
	struct ibv_comp_channel *channel;

	require(other != NULL);
	init.send_cq = ibv_create_cq(other, 16, NULL, NULL, 0);
	channel = ibv_create_comp_channel(other);
	require(init.send_cq && channel);
	init.recv_cq = init.send_cq;
	require(ibv_create_qp(s->pd, &init) == NULL);
	require(ibv_create_cq(s->ctx, 16, NULL, channel, 0) == NULL);
	require_equal(ibv_destroy_cq(init.send_cq), 0);
	require_equal(ibv_destroy_comp_channel(channel), 0);
	require_equal(ibv_close_device(other), 0);
	barrier(s);
}

const struct test cq_tests[] = {
	{ "cq-ex/fields", test_ex_fields },
	{   "cq-ex/datagram", test_ex_datagram },
	{ "cq-ex/post-while-polling", test_ex_post_while_polling },
	{ "cq-ex/channel", test_ex_channel },
	{ "cq-ex/refused", test_ex_refused },
	{ "cq-ex/timestamps", test_timestamps },
	{ "cq-foreign", test_foreign },
	{ "resize/held", test_resize_held },
	{ "resize/in-use", test_resize_in_use },
	{ NULL, NULL },
};
