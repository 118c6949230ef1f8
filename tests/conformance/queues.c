/* queues.c - many requests: which complete and in which order, in both directions, on one CQ. */
#include <stdlib.h>

#include "conformance.h"

/* Unsignaled requests make no completion, keep their order and free their slots. */
static void test_unsignaled(struct side *s)
{
	enum { ROUNDS = 50, BATCH = 16 };
	struct buffer b = buffer_new(s, BATCH * 64, ACCESS_ALL);
	struct end e = end_new(s, NULL);
	int round, i;

	end_connect(s, &e);
	buffer_swap(s, &b);
	for (round = 0; round < ROUNDS; round++) {
		if (s->me == 0) {
			fill(b.at, (uint64_t)round, b.bytes);
			for (i = 0; i < BATCH; i++) {
				struct ibv_sge sge = sge_of(&b, (size_t)i * 64, 64);

				post(&e, (struct ibv_send_wr){ .wr_id = (uint64_t)i,
					.sg_list = &sge, .num_sge = 1,
					.opcode = IBV_WR_RDMA_WRITE,
					.send_flags = i == BATCH - 1 ? IBV_SEND_SIGNALED : 0,
					.wr.rdma = { b.addr + (uint64_t)i * 64, b.rkey } });
			}
			require_equal(wait_ok(e.cq).wr_id, BATCH - 1);
			expect_nothing(e.cq, 0);
		}
		barrier(s);
		if (s->me == 1)
			check(b.at, (uint64_t)round, b.bytes, "batch");
		barrier(s);
	}
	end_free(&e);
	buffer_free(s, &b);
}

/* A list of requests in one call. */
static void test_post_list(struct side *s)
{
	enum { COUNT = 20 };
	struct buffer b = buffer_new(s, COUNT * 128, ACCESS_ALL);
	struct end e = end_new(s, NULL);
	int i;

	end_connect(s, &e);
	if (s->me == 1) {
		struct ibv_recv_wr wr[COUNT], *bad;
		struct ibv_sge sge[COUNT];

		for (i = 0; i < COUNT; i++) {
			sge[i] = sge_of(&b, (size_t)i * 128, 128);
			wr[i] = (struct ibv_recv_wr){ .wr_id = (uint64_t)i, .sg_list = &sge[i],
						      .num_sge = 1,
						      .next = i < COUNT - 1 ? &wr[i + 1] : NULL };
		}
		require_equal(ibv_post_recv(e.qp, wr, &bad), 0);
		barrier(s);
		for (i = 0; i < COUNT; i++) {
			struct ibv_wc wc = wait_ok(e.cq);

			require_equal(wc.wr_id, i);
			check(b.at + i * 128, (uint64_t)i, wc.byte_len, "from the list");
		}
	} else {
		struct ibv_send_wr wr[COUNT], *bad;
		struct ibv_sge sge[COUNT];

		for (i = 0; i < COUNT; i++) {
			fill(b.at + i * 128, (uint64_t)i, 128);
			sge[i] = sge_of(&b, (size_t)i * 128, (size_t)(128 - i));
			wr[i] = (struct ibv_send_wr){ .wr_id = (uint64_t)i, .sg_list = &sge[i],
						      .num_sge = 1, .opcode = IBV_WR_SEND,
						      .send_flags = IBV_SEND_SIGNALED,
						      .next = i < COUNT - 1 ? &wr[i + 1] : NULL };
		}
		barrier(s);
		require_equal(ibv_post_send(e.qp, wr, &bad), 0);
		for (i = 0; i < COUNT; i++)
			require_equal(wait_ok(e.cq).wr_id, i);
	}
	barrier(s);
	end_free(&e);
	buffer_free(s, &b);
}

/* Messages of one queue pair, of mixed kinds, take effect in the order posted. */
static void test_order(struct side *s)
{
	enum { ROUNDS = 200 };
	struct buffer b = buffer_new(s, 65536, ACCESS_ALL);
	struct end e = end_new(s, NULL);
	int i;

	end_connect(s, &e);
	buffer_swap(s, &b);
	for (i = 0; i < ROUNDS; i++) {
		size_t bytes = (size_t)(i * 37 % 30000 + 1);

		if (s->me == 0) {
			struct ibv_sge sge = sge_of(&b, 0, bytes), none = sge_of(&b, 0, 1);

			fill(b.at, (uint64_t)i, bytes);
			barrier(s);
			post(&e, (struct ibv_send_wr){ .wr_id = 1, .sg_list = &sge, .num_sge = 1,
				.opcode = IBV_WR_RDMA_WRITE,
				.wr.rdma = { b.addr, b.rkey } });
			post(&e, (struct ibv_send_wr){ .wr_id = 2, .sg_list = &none, .num_sge = 1,
				.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED });
			require_equal(wait_ok(e.cq).wr_id, 2);
		} else {
			struct ibv_sge sge = sge_of(&b, 65000, 16);

			post_receive(&e, 3, &sge, 1);
			barrier(s);
			wait_ok(e.cq);
			/* The send tells that the write before it is there. */
			check(b.at, (uint64_t)i, bytes, "written before the send");
		}
		barrier(s);
	}
	end_free(&e);
	buffer_free(s, &b);
}

/* Both sides send and receive at once, more than any queue holds. */
static void test_bidirectional(struct side *s)
{
	enum { COUNT = 2000, WINDOW = 32, BYTES = 3000 };
	struct buffer out = buffer_new(s, WINDOW * BYTES, ACCESS_ALL);
	struct buffer in = buffer_new(s, WINDOW * BYTES, ACCESS_ALL);
	struct end e = end_new(s, NULL);
	int sent = 0, acked = 0, received = 0, i;

	end_connect(s, &e);
	for (i = 0; i < WINDOW; i++) {
		struct ibv_sge sge = sge_of(&in, (size_t)i * BYTES, BYTES);

		post_receive(&e, 1000 + (uint64_t)i, &sge, 1);
	}
	barrier(s);
	while (acked < COUNT || received < COUNT) {
		struct ibv_wc wc;

		/* Within the receiver's credits: what it has received, it has posted again. */
		if (sent < COUNT && sent < received + WINDOW && sent < acked + WINDOW) {
			size_t slot = (size_t)(sent % WINDOW), bytes = (size_t)(sent % BYTES + 1);
			struct ibv_sge sge = sge_of(&out, slot * BYTES, bytes);

			fill(out.at + slot * BYTES, (uint64_t)sent, bytes);
			post(&e, (struct ibv_send_wr){ .wr_id = (uint64_t)sent % WINDOW,
				.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
				.send_flags = IBV_SEND_SIGNALED });
			sent++;
		}
		if (!ibv_poll_cq(e.cq, 1, &wc))
			continue;
		require_equal(wc.status, IBV_WC_SUCCESS);
		if (wc.opcode & IBV_WC_RECV) {
			size_t slot = (size_t)(received % WINDOW);
			struct ibv_sge sge = sge_of(&in, slot * BYTES, BYTES);

			require_equal(wc.wr_id, 1000 + slot);
			require_equal(wc.byte_len, received % BYTES + 1);
			check(in.at + slot * BYTES, (uint64_t)received, wc.byte_len, "received");
			received++;
			post_receive(&e, wc.wr_id, &sge, 1);
		} else {
			require_equal(wc.wr_id, acked % WINDOW);
			acked++;
		}
	}
	barrier(s);
	end_free(&e);
	buffer_free(s, &in);
	buffer_free(s, &out);
}

/* Several queue pairs share one completion queue; each keeps its own order. */
static void test_shared_cq(struct side *s)
{
	enum { QPS = 4, EACH = 30 };
	struct buffer b = buffer_new(s, QPS * EACH * 16, ACCESS_ALL);
	struct end_config c = end_defaults;
	struct end e[QPS];
	int next[QPS] = { 0 }, i, q;

	c.cq = ibv_create_cq(s->ctx, 2 * QPS * EACH, NULL, NULL, 0);
	require(c.cq != NULL);
	for (q = 0; q < QPS; q++) {
		e[q] = end_new(s, &c);
		end_connect(s, &e[q]);
	}
	for (i = 0; s->me == 1 && i < QPS * EACH; i++) {
		struct ibv_sge sge = sge_of(&b, (size_t)i * 16, 16);

		post_receive(&e[i % QPS], (uint64_t)i, &sge, 1);
	}
	barrier(s);
	for (i = 0; s->me == 0 && i < QPS * EACH; i++) {
		struct ibv_sge sge = sge_of(&b, (size_t)i * 16, 16);

		fill(b.at + i * 16, (uint64_t)i, 16);
		post(&e[i % QPS], (struct ibv_send_wr){ .wr_id = (uint64_t)i, .sg_list = &sge,
			.num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED });
	}
	for (i = 0; i < QPS * EACH; i++) {
		struct ibv_wc wc = wait_ok(c.cq);

		for (q = 0; q < QPS && e[q].qp->qp_num != wc.qp_num; q++)
			;
		require(q < QPS);
		require_equal(wc.wr_id, next[q] * QPS + q);
		next[q]++;
		if (s->me == 1)
			check(b.at + wc.wr_id * 16, wc.wr_id, 16, "through its queue pair");
	}
	barrier(s);
	for (q = 0; q < QPS; q++)
		end_free(&e[q]);
	require_equal(ibv_destroy_cq(c.cq), 0);
	buffer_free(s, &b);
}

const struct test queue_tests[] = {
	{ "unsignaled", test_unsignaled },
	{ "post_list", test_post_list },
	{ "order", test_order },
	{ "bidirectional", test_bidirectional },
	{ "shared_cq", test_shared_cq },
	{ NULL, NULL },
};
