/* limits.c - minima and maxima of everything that a request can have. */
#include <errno.h>
#include <stdlib.h>
#include <sys/sysinfo.h>

#include "conformance.h"

enum { BYTES = 65536, SGES = 64 };

static const enum ibv_wr_opcode kinds[] = {
	IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
	IBV_WR_RDMA_READ,
};
enum { KINDS = sizeof(kinds) / sizeof(*kinds) };

static bool takes_receive(enum ibv_wr_opcode op)
{
	return op == IBV_WR_SEND || op == IBV_WR_SEND_WITH_IMM || op == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static bool is_send(enum ibv_wr_opcode op)
{
	return op == IBV_WR_SEND || op == IBV_WR_SEND_WITH_IMM;
}

/* Nothing at all, with no list and with an empty piece whose key is not looked at. */
static void test_zero_length(struct side *s)
{
	struct buffer b = buffer_new(s, BYTES, ACCESS_ALL);
	struct ibv_sge none = { .addr = 1, .length = 0, .lkey = 0x55 };
	struct end e = end_new(s, NULL);
	unsigned kind, way;

	end_connect(s, &e);
	buffer_swap(s, &b);
	for (kind = 0; kind < KINDS; kind++)
		for (way = 0; way < 2; way++) {
			const bool received = takes_receive(kinds[kind]);
			struct ibv_wc wc;

			if (s->me == 1 && received)
				post_receive(&e, kind, way ? &none : NULL, way ? 1 : 0);
			barrier(s);
			if (s->me == 0) {
				struct ibv_send_wr wr = write_wr(&b, &none, kind);

				wr.opcode = kinds[kind];
				wr.num_sge = (int)way;
				wr.imm_data = 0x1234;
				post(&e, wr);
				expect(e.cq, kind, IBV_WC_SUCCESS);
			} else if (received) {
				wc = wait_ok(e.cq);
				require_equal(wc.wr_id, kind);
				require_equal(wc.byte_len, 0);
			}
			barrier(s);
		}
	check_untouched(b.at, 0xee, BYTES, "by nothing");
	end_free(&e);
	buffer_free(s, &b);
}

/* The ends may be adapters of two kinds. */
static uint32_t least_of_both(struct side *s, uint32_t mine)
{
	uint32_t theirs;

	swap(s, &mine, &theirs, sizeof(mine));
	return mine < theirs ? mine : theirs;
}

/* As many pieces as both ends grant, interleaved with what must stay. */
static void test_max_sge(struct side *s)
{
	struct end_config c = end_defaults;
	struct buffer b = buffer_new(s, BYTES, ACCESS_ALL);
	struct buffer whole = buffer_new(s, BYTES, ACCESS_ALL);
	uint32_t most = (uint32_t)s->dev.max_sge < SGES ? (uint32_t)s->dev.max_sge : SGES, i, k;
	struct ibv_sge sge[SGES];
	unsigned kind;
	struct end e;

	most = least_of_both(s, most);
	c.send_sge = c.recv_sge = most;
	e = end_new(s, &c);
	end_connect(s, &e);
	buffer_swap(s, &whole);
	for (i = 0; i < most; i++)
		sge[i] = sge_of(&b, 1000 * i, 1 + i % 7);
	for (kind = 0; kind < KINDS; kind++) {
		const enum ibv_wr_opcode op = kinds[kind];
		size_t total = 0;

		for (i = 0; i < most; i++)
			total += sge[i].length;
		memset(b.at, 0xee, BYTES);
		memset(whole.at, 0xee, BYTES);
		if (s->me == 1 && op == IBV_WR_RDMA_READ)
			fill(whole.at, kind, total);
		if (s->me == 1 && takes_receive(op))
			post_receive(&e, kind, is_send(op) ? sge : NULL,
				     is_send(op) ? (int)most : 0);
		barrier(s);
		if (s->me == 0) {
			struct ibv_send_wr wr = write_wr(&whole, sge, kind);
			size_t at = 0;

			for (i = 0; op != IBV_WR_RDMA_READ && i < most; i++)
				for (k = 0; k < sge[i].length; k++)
					b.at[1000 * i + k] = pattern(kind, at++);
			wr.opcode = op;
			wr.num_sge = (int)most;
			post(&e, wr);
			expect(e.cq, kind, IBV_WC_SUCCESS);
		} else if (takes_receive(op)) {
			expect(e.cq, kind, IBV_WC_SUCCESS);
		}
		barrier(s);
		if (s->me == 1 && !is_send(op)) {
			check(whole.at, kind, total, "in one piece");
			check_untouched(whole.at + total, 0xee, 100, "behind");
		}
		/* Where pieces were filled, they and only they were. */
		if (is_send(op) || (s->me == 0 && op == IBV_WR_RDMA_READ)) {
			size_t at = 0;

			for (i = 0; i < most; i++) {
				for (k = 0; k < sge[i].length; k++)
					require_equal(b.at[1000 * i + k], pattern(kind, at++));
				check_untouched(b.at + 1000 * i + k, 0xee, 900, "between");
			}
		}
		barrier(s);
	}
	end_free(&e);
	buffer_free(s, &whole);
	buffer_free(s, &b);
}

/* Inline data needs no registration, and may change as soon as the post has returned. */
static void test_inline_kinds(struct side *s)
{
	struct end_config c = end_defaults;
	struct buffer b = buffer_new(s, BYTES, ACCESS_ALL);
	unsigned char small[32];
	unsigned kind;
	struct end e;

	c.inline_bytes = sizeof(small);
	c.send_sge = 2;
	e = end_new(s, &c);
	end_connect(s, &e);
	buffer_swap(s, &b);
	for (kind = 0; kind < KINDS - 1; kind++) {	/* reads have no data of ours */
		struct ibv_sge room = sge_of(&b, 0, 100), sge[2] = {
			{ .addr = (uintptr_t)small, .length = 10, .lkey = 0x1234 },
			{ .addr = (uintptr_t)small + 10, .length = 22, .lkey = 0 },
		};

		memset(b.at, 0xee, BYTES);
		if (s->me == 1 && takes_receive(kinds[kind]))
			post_receive(&e, kind, &room, 1);
		barrier(s);
		if (s->me == 0) {
			struct ibv_send_wr wr = write_wr(&b, sge, kind);

			fill(small, kind, sizeof(small));
			wr.opcode = kinds[kind];
			wr.num_sge = 2;
			wr.send_flags |= IBV_SEND_INLINE;
			post(&e, wr);
			memset(small, 0x5a, sizeof(small));
			expect(e.cq, kind, IBV_WC_SUCCESS);
		} else if (takes_receive(kinds[kind])) {
			expect(e.cq, kind, IBV_WC_SUCCESS);
		}
		barrier(s);
		if (s->me == 1) {
			check(b.at, kind, sizeof(small), "inline");
			check_untouched(b.at + sizeof(small), 0xee, 100, "behind");
		}
		barrier(s);
	}
	end_free(&e);
	buffer_free(s, &b);
}

/* What is sent behind a fence has what was read before it. */
static void test_fence(struct side *s)
{
	enum { ROUNDS = 20 };
	struct buffer b = buffer_new(s, BYTES, ACCESS_ALL);
	struct buffer far = buffer_new(s, BYTES, ACCESS_ALL);
	struct end e = end_new(s, NULL);
	uint64_t i;

	end_connect(s, &e);
	buffer_swap(s, &far);
	for (i = 0; i < ROUNDS; i++) {
		struct ibv_sge sge = sge_of(&b, 0, 20000);

		if (s->me == 1) {
			memset(b.at, 0xee, BYTES);
			fill(far.at, i, 20000);
			post_receive(&e, i, &sge, 1);
		}
		barrier(s);
		if (s->me == 0) {
			struct ibv_send_wr wr = write_wr(&far, &sge, i);

			wr.opcode = IBV_WR_RDMA_READ;
			wr.send_flags = 0;
			post(&e, wr);
			wr = send_wr(&sge, i);
			wr.send_flags |= IBV_SEND_FENCE;
			post(&e, wr);
			expect(e.cq, i, IBV_WC_SUCCESS);
		} else {
			expect(e.cq, i, IBV_WC_SUCCESS);
			check(b.at, i, 20000, "read and sent back");
		}
		barrier(s);
	}
	end_free(&e);
	buffer_free(s, &far);
	buffer_free(s, &b);
}

/* A message of so many bytes, from one buffer over and over, into memory that is large. */
static void long_write(struct side *s, uint64_t bytes, enum ibv_wc_status status)
{
	enum { PIECES = 16 };
	const uint64_t piece = (bytes + PIECES - 1) / PIECES;
	struct end_config c = end_defaults;
	struct ibv_sge sge[PIECES];
	struct buffer b = { .mr = NULL };
	uint64_t left = bytes, mine;
	struct sysinfo info;
	unsigned i;
	struct end e;

	if (s->dev.max_sge < PIECES)
		skip("lists of %d pieces", PIECES);
	if (sysinfo(&info) == 0 && (uint64_t)info.freeram * info.mem_unit < 3 * bytes)
		skip("%llu bytes of free memory", (unsigned long long)(3 * bytes));
	mine = status == IBV_WC_SUCCESS && s->me == 1 ? bytes : piece;
	b = buffer_new(s, mine, ACCESS_ALL);
	c.send_sge = PIECES;
	c.timeout = 20;			/* 4 s: a slow machine must not decide */
	e = end_new(s, &c);
	end_connect(s, &e);
	buffer_swap(s, &b);
	if (s->me == 0) {
		struct ibv_send_wr wr = write_wr(&b, sge, 1);

		fill(b.at, 7, piece);
		for (i = 0; i < PIECES; i++) {
			sge[i] = sge_of(&b, 0, left < piece ? left : piece);
			left -= sge[i].length;
		}
		wr.num_sge = PIECES;
		post(&e, wr);
		expect(e.cq, 1, status);
		if (status)
			wait_state(&e, IBV_QPS_ERR);
	}
	barrier(s);
	for (i = 0; s->me == 1 && i < PIECES && status == IBV_WC_SUCCESS; i++) {
		uint64_t at = i * piece, n = bytes - at < piece ? bytes - at : piece;

		/* Its begin and its end, so that it takes no minutes. */
		check(b.at + at, 7, n < 1000 ? n : 1000, "written");
		require_equal(b.at[at + n - 1], pattern(7, n - 1));
	}
	if (s->me == 1 && status)
		check_untouched(b.at, 0xee, piece, "the target");
	barrier(s);
	end_free(&e);
	buffer_free(s, &b);
}

/* The longest message that the port announces. */
static void test_longest(struct side *s)
{
	long_write(s, s->port.max_msg_sz, IBV_WC_SUCCESS);
}

static void test_too_long(struct side *s)
{
	long_write(s, (uint64_t)s->port.max_msg_sz + 1, IBV_WC_LOC_LEN_ERR);
}

const struct test limit_tests[] = {
	{ "zero_length", test_zero_length },
	{ "max_sge", test_max_sge },
	{ "inline_kinds", test_inline_kinds },
	{ "fence", test_fence },
	{ "longest", test_longest },
	{ "too_long", test_too_long },
	{ NULL, NULL },
};
