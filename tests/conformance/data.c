/* data.c - every operation moves the right bytes and nothing else. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "conformance.h"

/* Sizes that have edges: none, one, odd, around a packet, large. */
static size_t edge_sizes(const struct side *s, size_t sizes[16])
{
	size_t mtu = (size_t)128 << s->port.active_mtu;
	const size_t all[] = { 0, 1, 2, 3, 4, 7, 8, 9, 63, 64, 65, mtu - 1, mtu, mtu + 1,
			       3 * mtu + 5, 1 << 20 };

	memcpy(sizes, all, sizeof(all));
	return sizeof(all) / sizeof(*all);
}

enum { LARGEST = 1 << 20 };

static struct end end_of_type(struct side *s, enum ibv_qp_type type)
{
	struct end_config c = end_defaults;

	c.type = type;
	return end_new(s, &c);
}

static void send_sizes(struct side *s, enum ibv_qp_type type, enum ibv_wr_opcode op)
{
	struct buffer b = buffer_new(s, LARGEST + 64, ACCESS_ALL);
	struct end e = end_of_type(s, type);
	size_t sizes[16], count = edge_sizes(s, sizes), i;

	end_connect(s, &e);
	for (i = 0; i < count; i++) {
		struct ibv_sge sge = sge_of(&b, 0, sizes[i]);
		struct ibv_wc wc;

		if (s->me == 1) {
			memset(b.at, 0xee, b.bytes);
			sge = sge_of(&b, 0, sizes[i] + 32);	/* more room than needed */
			post_receive(&e, 100 + i, &sge, 1);
			barrier(s);
			wc = wait_ok(e.cq);
			require_equal(wc.wr_id, 100 + i);
			require_equal(wc.opcode, IBV_WC_RECV);
			require_equal(wc.byte_len, sizes[i]);
			require_equal(wc.qp_num, e.qp->qp_num);
			if (op == IBV_WR_SEND_WITH_IMM) {
				require(wc.wc_flags & IBV_WC_WITH_IMM);
				require_equal(wc.imm_data, 0x12340000 + i);
			} else {
				require(!(wc.wc_flags & IBV_WC_WITH_IMM));
			}
			check(b.at, i, sizes[i], "received");
			check_untouched(b.at + sizes[i], 0xee, 64, "behind the message");
		} else {
			fill(b.at, i, sizes[i]);
			barrier(s);
			post(&e, (struct ibv_send_wr){ .wr_id = i, .sg_list = &sge, .num_sge = 1,
				.opcode = op, .send_flags = IBV_SEND_SIGNALED,
				.imm_data = (uint32_t)(0x12340000 + i) });
			wc = wait_ok(e.cq);
			require_equal(wc.wr_id, i);
			require_equal(wc.opcode, IBV_WC_SEND);
			check(b.at, i, sizes[i], "sent");
		}
		barrier(s);
	}
	end_free(&e);
	buffer_free(s, &b);
}

static void test_send(struct side *s)
{
	send_sizes(s, IBV_QPT_RC, IBV_WR_SEND);
}

static void test_uc_send(struct side *s)
{
	send_sizes(s, IBV_QPT_UC, IBV_WR_SEND);
}

static void test_send_imm(struct side *s)
{
	send_sizes(s, IBV_QPT_RC, IBV_WR_SEND_WITH_IMM);
}

static void test_uc_send_imm(struct side *s)
{
	send_sizes(s, IBV_QPT_UC, IBV_WR_SEND_WITH_IMM);
}

static void write_sizes(struct side *s, enum ibv_qp_type type, enum ibv_wr_opcode op)
{
	const bool imm = op == IBV_WR_RDMA_WRITE_WITH_IMM;
	struct buffer b = buffer_new(s, LARGEST + 64, ACCESS_ALL);
	struct end e = end_of_type(s, type);
	size_t sizes[16], count = edge_sizes(s, sizes), i;

	end_connect(s, &e);
	buffer_swap(s, &b);
	for (i = 0; i < count; i++) {
		struct ibv_sge sge = sge_of(&b, 0, sizes[i]);
		struct ibv_wc wc;

		if (s->me == 1) {
			memset(b.at, 0xee, b.bytes);
			if (imm)
				post_receive(&e, 100 + i, NULL, 0);
			barrier(s);
			if (imm) {
				wc = wait_ok(e.cq);
				require_equal(wc.wr_id, 100 + i);
				require_equal(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
				require_equal(wc.byte_len, sizes[i]);
				require(wc.wc_flags & IBV_WC_WITH_IMM);
				require_equal(wc.imm_data, 0x77000000 + i);
			} else {
				barrier(s);
			}
			check_untouched(b.at, 0xee, 16, "before the message");
			check(b.at + 16, i, sizes[i], "written");
			check_untouched(b.at + 16 + sizes[i], 0xee, 32, "behind the message");
		} else {
			fill(b.at, i, sizes[i]);
			barrier(s);
			post(&e, (struct ibv_send_wr){ .wr_id = i, .sg_list = &sge, .num_sge = 1,
				.opcode = op, .send_flags = IBV_SEND_SIGNALED,
				.imm_data = (uint32_t)(0x77000000 + i),
				.wr.rdma = { .remote_addr = b.addr + 16, .rkey = b.rkey } });
			wc = wait_ok(e.cq);
			require_equal(wc.wr_id, i);
			require_equal(wc.opcode, IBV_WC_RDMA_WRITE);
			if (!imm)
				barrier(s);
		}
		barrier(s);
	}
	end_free(&e);
	buffer_free(s, &b);
}

static void test_write(struct side *s)
{
	write_sizes(s, IBV_QPT_RC, IBV_WR_RDMA_WRITE);
}

static void test_write_imm(struct side *s)
{
	write_sizes(s, IBV_QPT_RC, IBV_WR_RDMA_WRITE_WITH_IMM);
}

static void test_uc_write_imm(struct side *s)
{
	write_sizes(s, IBV_QPT_UC, IBV_WR_RDMA_WRITE_WITH_IMM);
}

static void test_read(struct side *s)
{
	struct buffer b = buffer_new(s, LARGEST + 64, ACCESS_ALL);
	struct end e = end_new(s, NULL);
	size_t sizes[16], count = edge_sizes(s, sizes), i;

	end_connect(s, &e);
	buffer_swap(s, &b);
	for (i = 0; i < count; i++) {
		struct ibv_sge sge = sge_of(&b, 16, sizes[i]);

		if (s->me == 1) {
			fill(b.at, i, sizes[i]);
			barrier(s);
		} else {
			struct ibv_wc wc;

			memset(b.at, 0xee, b.bytes);
			barrier(s);
			post(&e, (struct ibv_send_wr){ .wr_id = i, .sg_list = &sge, .num_sge = 1,
				.opcode = IBV_WR_RDMA_READ, .send_flags = IBV_SEND_SIGNALED,
				.wr.rdma = { .remote_addr = b.addr, .rkey = b.rkey } });
			wc = wait_ok(e.cq);
			require_equal(wc.wr_id, i);
			require_equal(wc.opcode, IBV_WC_RDMA_READ);
			require_equal(wc.byte_len, sizes[i]);
			check_untouched(b.at, 0xee, 16, "before the message");
			check(b.at + 16, i, sizes[i], "read");
			check_untouched(b.at + 16 + sizes[i], 0xee, 32, "behind the message");
		}
		barrier(s);
	}
	end_free(&e);
	buffer_free(s, &b);
}

/* Each operation from and into lists of pieces of unequal lengths, some empty. */
static void test_sge_lists(struct side *s)
{
	static const size_t out[] = { 1, 0, 4093, 64, 7 }, in[] = { 3, 4000, 0, 500 };
	const struct end_config c = { .send_sge = 5, .recv_sge = 4, .rnr_retry = 7, .retry_cnt = 6,
				      .timeout = 14, .min_rnr_timer = 1, .access = ACCESS_ALL };
	struct buffer b = buffer_new(s, 32768, ACCESS_ALL);
	struct buffer whole = buffer_new(s, 8192, ACCESS_ALL);
	size_t total = 0, used, at, i;
	struct ibv_sge pieces[5];
	struct end e = end_new(s, &c);

	for (i = 0; i < 5; i++)
		total += out[i];
	end_connect(s, &e);
	buffer_swap(s, &whole);
	if (s->me == 0) {
		fill(whole.at, 5, total);
		for (i = 0, at = 100, used = 0; i < 5; i++) {
			memcpy(b.at + at, whole.at + used, out[i]);
			pieces[i] = sge_of(&b, at, out[i]);
			at += out[i] + 333;
			used += out[i];
		}
		barrier(s);
		post(&e, (struct ibv_send_wr){ .wr_id = 1, .sg_list = pieces, .num_sge = 5,
			.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED });
		wait_ok(e.cq);
		post(&e, (struct ibv_send_wr){ .wr_id = 2, .sg_list = pieces, .num_sge = 5,
			.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED,
			.wr.rdma = { .remote_addr = whole.addr, .rkey = whole.rkey } });
		wait_ok(e.cq);
		barrier(s);
		barrier(s);
		/* Read what the other side put there, into the pieces. */
		memset(b.at, 0xee, b.bytes);
		post(&e, (struct ibv_send_wr){ .wr_id = 3, .sg_list = pieces, .num_sge = 5,
			.opcode = IBV_WR_RDMA_READ, .send_flags = IBV_SEND_SIGNALED,
			.wr.rdma = { .remote_addr = whole.addr, .rkey = whole.rkey } });
		wait_ok(e.cq);
		for (i = 0, at = 100, used = 0; i < 5; i++) {
			size_t k;

			for (k = 0; k < out[i]; k++)
				require_equal(b.at[at + k], pattern(9, used + k));
			check_untouched(b.at + at + out[i], 0xee, 100, "between the pieces");
			at += out[i] + 333;
			used += out[i];
		}
	} else {
		for (i = 0, at = 50; i < 4; i++) {
			pieces[i] = sge_of(&b, at, in[i]);
			at += in[i] + 77;
		}
		post_receive(&e, 11, pieces, 4);
		barrier(s);
		require_equal(wait_ok(e.cq).byte_len, total);
		for (i = 0, at = 50, used = 0; i < 4; i++) {
			size_t k;

			for (k = 0; k < in[i] && used + k < total; k++)
				require_equal(b.at[at + k], pattern(5, used + k));
			used += in[i];
			at += in[i] + 77;
		}
		barrier(s);
		check(whole.at, 5, total, "written from pieces");
		fill(whole.at, 9, total);
		barrier(s);
	}
	barrier(s);
	end_free(&e);
	buffer_free(s, &whole);
	buffer_free(s, &b);
}

/* Inline data may be overwritten as soon as the post returns, wherever it waits. */
static void test_inline(struct side *s)
{
	struct end_config c = end_defaults;
	struct buffer b;
	struct end e;
	uint32_t i;

	c.inline_bytes = 32;
	c.send_sge = 2;
	e = end_new(s, &c);
	require(e.cap.max_inline_data >= 32);
	b = buffer_new(s, (size_t)e.cap.max_inline_data * 64, ACCESS_ALL);
	end_connect(s, &e);
	if (s->me == 0) {
		unsigned char *data = malloc(e.cap.max_inline_data + 1);
		struct ibv_sge sge[2];

		/* The receiver has posted nothing yet: all of these must wait. */
		for (i = 0; i < 32; i++) {
			uint32_t bytes = i == 31 ? e.cap.max_inline_data :
						   1 + i * 2 % e.cap.max_inline_data;

			fill(data, i, bytes);
			sge[0] = (struct ibv_sge){ .addr = (uintptr_t)data, .length = 1 };
			sge[1] = (struct ibv_sge){ .addr = (uintptr_t)data + 1,
						   .length = bytes - 1 };
			post(&e, (struct ibv_send_wr){ .wr_id = i, .sg_list = sge, .num_sge = 2,
				.opcode = IBV_WR_SEND,
				.send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED });
			memset(data, 0x5a, bytes);
		}
		barrier(s);
		for (i = 0; i < 32; i++)
			require_equal(wait_ok(e.cq).wr_id, i);
		free(data);
	} else {
		barrier(s);
		for (i = 0; i < 32; i++) {
			struct ibv_sge sge = sge_of(&b, (size_t)i * e.cap.max_inline_data,
						    e.cap.max_inline_data);

			post_receive(&e, i, &sge, 1);
		}
		for (i = 0; i < 32; i++) {
			struct ibv_wc wc = wait_ok(e.cq);

			require_equal(wc.wr_id, i);
			check(b.at + (size_t)i * e.cap.max_inline_data, i, wc.byte_len, "inline");
		}
	}
	barrier(s);
	end_free(&e);
	buffer_free(s, &b);
}

/*
 * The memory for inline data fills to its last byte and goes on at its first, while something
 * always waits: with room for the longest in d + 1 slots, d + 2 of this length fill it exactly.
 */
static void test_inline_wraps(struct side *s)
{
	struct end_config c = end_defaults;
	uint32_t i, slots, count, bytes;
	struct ibv_sge sge;
	struct buffer b;
	struct end e;

	c.inline_bytes = 32;
	c.min_rnr_timer = 1;
	e = end_new(s, &c);
	slots = end_granted(&e).max_send_wr;
	bytes = (uint32_t)((uint64_t)e.cap.max_inline_data * (slots + 1) / (slots + 2));
	count = slots + 4;
	b = buffer_new(s, bytes, ACCESS_ALL);
	end_connect(s, &e);
	sge = sge_of(&b, 0, bytes);
	for (i = 0; i < count + 2; i++) {
		if (s->me == 0 && i < count) {
			struct ibv_send_wr wr = send_wr(&sge, i);

			fill(b.at, i, bytes);
			wr.send_flags |= IBV_SEND_INLINE;
			post(&e, wr);
			memset(b.at, 0x5a, bytes);
		}
		if (i < 2)
			continue;
		/* Two wait; one of them may go. */
		barrier(s);
		if (s->me == 1)
			post_receive(&e, i - 2, &sge, 1);
		require_equal(wait_ok(e.cq).wr_id, i - 2);
		if (s->me == 1)
			check(b.at, i - 2, bytes, "inline");
	}
	barrier(s);
	end_free(&e);
	buffer_free(s, &b);
}

/*
 * The last byte of a write of n bytes.  The software HCA stores it as a part of an atomic word where
 * that is aligned; C11, and so a thread sanitizer, orders no accesses to parts.
 */
static unsigned char last_byte(const unsigned char *last, size_t n)
{
#ifdef __SANITIZE_THREAD__
	if (n >= 8 && (uintptr_t)(last + 1) % 8 == 0)
		return (unsigned char)(atomic_load_explicit((const _Atomic uint64_t *)(const void *)(last - 7),
							    memory_order_acquire) >> 56);
	if (n == 4 && (uintptr_t)(last + 1) % 4 == 0)
		return (unsigned char)(atomic_load_explicit((const _Atomic uint32_t *)(const void *)(last - 3),
							    memory_order_acquire) >> 24);
#endif
	return atomic_load_explicit((const _Atomic unsigned char *)last, memory_order_acquire);
}

/* The receiver polls memory: when the last byte is there, all are. */
static void test_poll_memory(struct side *s)
{
	enum { ROUNDS = 2000 };
	struct buffer b = buffer_new(s, 16384, ACCESS_ALL);
	struct end e = end_new(s, NULL);
	int i;

	if (!ibv_query_qp_data_in_order(e.qp, IBV_WR_RDMA_WRITE, 0))
		skip("the device does not promise that data arrives in order");
	end_connect(s, &e);
	buffer_swap(s, &b);
	for (i = 0; i < ROUNDS; i++) {
		size_t bytes = (size_t)(1 + i * 97 % 8192);
		unsigned char mark = (unsigned char)(i % 255 + 1);

		if (s->me == 0) {
			struct ibv_sge sge = sge_of(&b, 0, bytes + 1);

			fill(b.at, (uint64_t)i, bytes);
			b.at[bytes] = mark;
			barrier(s);
			post(&e, (struct ibv_send_wr){ .wr_id = 1, .sg_list = &sge, .num_sge = 1,
				.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED,
				.wr.rdma = { b.addr, b.rkey } });
			wait_ok(e.cq);
		} else {
			uint64_t end = patience_end();

			memset(b.at, 0, bytes + 1);
			barrier(s);
			while (last_byte(b.at + bytes, bytes + 1) != mark && goes_on(end))
				;
			require_equal(last_byte(b.at + bytes, bytes + 1), mark);
			check(b.at, (uint64_t)i, bytes, "before the last byte");
		}
		barrier(s);
	}
	end_free(&e);
	buffer_free(s, &b);
}

/* ---- A read comes after the writes before it ------------------------------ */

enum { CROSSINGS = 2000, LOG = 1 << 18, LOG_AT = 4096 };

/* At the target: write one word, read the other one and note it. */
static void cross_here(struct buffer *b)
{
	_Atomic uint64_t *theirs = (_Atomic uint64_t *)(void *)b->at;
	_Atomic uint64_t *own = (_Atomic uint64_t *)(void *)(b->at + 64);
	uint64_t *log = (uint64_t *)(void *)(b->at + LOG_AT), end = patience_end(), n;

	for (n = 1; n < LOG && atomic_load(theirs) < CROSSINGS; n++) {
		atomic_store(own, n);
		log[n] = atomic_load(theirs);
	}
	while (atomic_load(theirs) < CROSSINGS && goes_on(end))
		;
}

static void cross_there(struct end *e, struct buffer *b, uint64_t *seen)
{
	const uint64_t *got = (const uint64_t *)(const void *)(b->at + 64);

	for (uint64_t i = 1; i <= CROSSINGS; i++) {
		struct ibv_sge sge[2] = { sge_of(b, 0, 8), sge_of(b, 64, 8) };
		struct ibv_send_wr read = write_wr(b, &sge[1], i), write = write_wr(b, &sge[0], i), *bad;

		memcpy(b->at, &i, sizeof(i));
		read.opcode = IBV_WR_RDMA_READ;
		read.wr.rdma.remote_addr += 64;
		write.send_flags = 0;
		write.next = &read;
		require_equal(ibv_post_send(e->qp, &write, &bad), 0);
		wait_ok(e->cq);
		seen[i] = *got;
	}
}

/*
 * One side writes a word and reads the other one, by RDMA; the other side writes that and reads the
 * first.  One of them finds the other's word: a read that missed store v + 1 came after its write,
 * so the load after that store finds the write.
 */
static void test_read_after_write(struct side *s)
{
	static uint64_t seen[CROSSINGS + 1];
	struct buffer b = buffer_new(s, LOG_AT + LOG * sizeof(uint64_t), ACCESS_ALL);
	const uint64_t *log = (const uint64_t *)(const void *)(b.at + LOG_AT);
	struct ibv_sge all = sge_of(&b, LOG_AT, LOG * sizeof(uint64_t));
	struct end e = end_new(s, NULL);
	struct ibv_send_wr read;

	memset(b.at, 0, b.bytes);
	end_connect(s, &e);
	/* A timed fabric withholds the end of a write, and promises no order (DIFFERENCES.md). */
	if (!ibv_query_qp_data_in_order(e.qp, IBV_WR_RDMA_WRITE, 0))
		skip("data do not land in order");
	buffer_swap(s, &b);
	if (s->me == 0)
		cross_here(&b);
	else
		cross_there(&e, &b, seen);
	barrier(s);
	if (s->me == 1) {
		read = write_wr(&b, &all, 1);
		read.opcode = IBV_WR_RDMA_READ;
		read.wr.rdma.remote_addr += LOG_AT;
		post(&e, read);
		wait_ok(e.cq);
		for (uint64_t i = 1; i <= CROSSINGS; i++)
			if (seen[i] + 1 < LOG && log[seen[i] + 1])
				require(log[seen[i] + 1] >= i);
	}
	barrier(s);
	end_free(&e);
	buffer_free(s, &b);
}

/* A queue pair connected with itself. */
static void test_loopback(struct side *s)
{
	struct buffer b = buffer_new(s, 8192, ACCESS_ALL);
	struct end e = end_new(s, NULL);
	struct peer_address self = end_address(s, &e);
	struct ibv_sge in = sge_of(&b, 4096, 4096), out = sge_of(&b, 0, 4000);
	int i, kinds = 0;

	require_equal(end_to_init(s, &e), 0);
	require_equal(end_to_rtr(s, &e, &self), 0);
	require_equal(end_to_rts(&e), 0);
	fill(b.at, 3, 4000);
	post_receive(&e, 1, &in, 1);
	post(&e, (struct ibv_send_wr){ .wr_id = 2, .sg_list = &out, .num_sge = 1,
		.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED });
	for (i = 0; i < 2; i++)
		kinds |= wait_ok(e.cq).opcode == IBV_WC_RECV ? 1 : 2;
	require_equal(kinds, 3);
	check(b.at + 4096, 3, 4000, "from myself");
	end_free(&e);
	buffer_free(s, &b);
}

/* Registrations at another base than their address, in the same place of a page. */
static void test_iova(struct side *s)
{
	struct buffer b = buffer_new(s, 8192, ACCESS_ALL);
	struct end e = end_new(s, NULL);
	struct { uint64_t base; uint32_t rkey, pad; } mine = {
		.base = 0x10000 + (uintptr_t)b.at % 4096 }, theirs;
	struct ibv_mr *mr = ibv_reg_mr_iova(s->pd, b.at, b.bytes, mine.base, ACCESS_ALL);

	if (!mr && (errno == EOPNOTSUPP || errno == ENOSYS))
		skip("ibv_reg_mr_iova is not supported");
	require(mr != NULL);
	mine.rkey = mr->rkey;
	end_connect(s, &e);
	swap(s, &mine, &theirs, sizeof(mine));
	if (s->me == 0) {
		struct ibv_sge sge = { .addr = mine.base + 100, .length = 1000, .lkey = mr->lkey };

		fill(b.at + 100, 8, 1000);
		post(&e, (struct ibv_send_wr){ .wr_id = 1, .sg_list = &sge, .num_sge = 1,
			.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED,
			.wr.rdma = { theirs.base + 3000, theirs.rkey } });
		wait_ok(e.cq);
	}
	barrier(s);
	if (s->me == 1)
		check(b.at + 3000, 8, 1000, "at its iova");
	barrier(s);
	end_free(&e);
	require_equal(ibv_dereg_mr(mr), 0);
	buffer_free(s, &b);
}

const struct test data_tests[] = {
	{ "send", test_send },
	{ "send_imm", test_send_imm },
	{ "write", test_write },
	{ "write_imm", test_write_imm },
	{ "read", test_read },
	{ "uc_send", test_uc_send },
	{ "uc_send_imm", test_uc_send_imm },
	{ "uc_write_imm", test_uc_write_imm },
	{ "sge_lists", test_sge_lists },
	{ "inline", test_inline },
	{ "inline_wraps", test_inline_wraps },
	{ "poll_memory", test_poll_memory },
	{ "read_after_write", test_read_after_write },
	{ "loopback", test_loopback },
	{ "iova", test_iova },
	{ NULL, NULL },
};
