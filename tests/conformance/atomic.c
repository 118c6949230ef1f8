/* atomic.c - compare and swap, fetch and add. */
#include <errno.h>

#include "conformance.h"

enum { BYTES = 4096, START = 0x1111222233334444 };
#define ACCESS_ATOMIC (ACCESS_ALL | IBV_ACCESS_REMOTE_ATOMIC)

static uint64_t load(const struct buffer *b, size_t offset)
{
	uint64_t value;

	memcpy(&value, b->at + offset, sizeof(value));
	return value;
}

static void store(struct buffer *b, size_t offset, uint64_t value)
{
	memcpy(b->at + offset, &value, sizeof(value));
}

static struct ibv_send_wr add_wr(const struct buffer *b, struct ibv_sge *sge, uint64_t add)
{
	return (struct ibv_send_wr){ .wr_id = 1, .sg_list = sge, .num_sge = 1,
		.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .send_flags = IBV_SEND_SIGNALED,
		.wr.atomic = { .remote_addr = b->addr, .rkey = b->rkey, .compare_add = add } };
}

static struct ibv_send_wr swap_wr(const struct buffer *b, struct ibv_sge *sge, uint64_t compare,
				  uint64_t with)
{
	struct ibv_send_wr wr = add_wr(b, sge, compare);

	wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
	wr.wr.atomic.swap = with;
	return wr;
}

static struct end atomic_new(struct side *s, const struct end_config *config)
{
	struct end_config c = config ? *config : end_defaults;

	if (s->dev.atomic_cap == IBV_ATOMIC_NONE)
		skip("atomic operations");
	if (!config)
		c.access = ACCESS_ATOMIC;
	return end_new(s, &c);
}

/* The peer's word changes as it should, the one before comes back, and nothing else moves. */
static void test_fetch_add(struct side *s)
{
	static const uint64_t adds[] = { 1, 0, 0xffffffff, (uint64_t)-5, 1ull << 63, 1ull << 63 };
	struct end e = atomic_new(s, NULL);
	struct buffer b = buffer_new(s, BYTES, ACCESS_ATOMIC);
	uint64_t value = START;
	unsigned i;

	end_connect(s, &e);
	buffer_swap(s, &b);
	if (s->me == 1)
		store(&b, 0, START);
	barrier(s);
	for (i = 0; i < sizeof(adds) / sizeof(*adds); i++) {
		struct ibv_sge sge = sge_of(&b, 64, 8);

		if (s->me == 0) {
			struct ibv_wc wc;

			post(&e, add_wr(&b, &sge, adds[i]));
			wc = wait_ok(e.cq);
			require_equal(wc.opcode, IBV_WC_FETCH_ADD);
			require_equal(wc.byte_len, 8);
			require_equal(load(&b, 64), value);
		}
		value += adds[i];
		barrier(s);
		if (s->me == 1)
			require_equal(load(&b, 0), value);
		barrier(s);
	}
	if (s->me == 0)
		check_untouched(b.at, 0xee, 64, "before the result");
	check_untouched(b.at + 72, 0xee, 100, "behind");
	end_free(&e);
	buffer_free(s, &b);
}

static void test_cmp_swap(struct side *s)
{
	static const struct { uint64_t compare, with, after; } steps[] = {
		{ START, 5, 5 }, { START, 6, 5 }, { 5, 5, 5 }, { 5, UINT64_MAX, UINT64_MAX },
		{ UINT32_MAX, 1, UINT64_MAX }, { UINT64_MAX, 0, 0 },
	};
	struct end e = atomic_new(s, NULL);
	struct buffer b = buffer_new(s, BYTES, ACCESS_ATOMIC);
	uint64_t value = START;
	unsigned i;

	end_connect(s, &e);
	buffer_swap(s, &b);
	if (s->me == 1)
		store(&b, 0, START);
	barrier(s);
	for (i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		struct ibv_sge sge = sge_of(&b, 64, 8);

		if (s->me == 0) {
			struct ibv_wc wc;

			post(&e, swap_wr(&b, &sge, steps[i].compare, steps[i].with));
			wc = wait_ok(e.cq);
			require_equal(wc.opcode, IBV_WC_COMP_SWAP);
			require_equal(load(&b, 64), value);
		}
		value = steps[i].after;
		barrier(s);
		if (s->me == 1)
			require_equal(load(&b, 0), value);
		barrier(s);
	}
	end_free(&e);
	buffer_free(s, &b);
}

/* The result goes where the list says, in pieces too. */
static void test_pieces(struct side *s)
{
	struct end_config c = end_defaults;
	struct buffer b = buffer_new(s, BYTES, ACCESS_ATOMIC);
	struct end e;

	c.send_sge = 3;
	c.access = ACCESS_ATOMIC;
	e = atomic_new(s, &c);
	end_connect(s, &e);
	buffer_swap(s, &b);
	if (s->me == 1)
		store(&b, 0, START);
	barrier(s);
	if (s->me == 0) {
		struct ibv_sge sge[3] = { sge_of(&b, 1, 3), sge_of(&b, 101, 0), sge_of(&b, 200, 5) };
		struct ibv_send_wr wr = add_wr(&b, sge, 7);
		uint64_t expected = START;

		wr.num_sge = 3;
		post(&e, wr);
		wait_ok(e.cq);
		require(memcmp(b.at + 1, &expected, 3) == 0);
		require(memcmp(b.at + 200, (char *)&expected + 3, 5) == 0);
		check_untouched(b.at + 4, 0xee, 190, "between the pieces");
	}
	barrier(s);
	end_free(&e);
	buffer_free(s, &b);
}

/* As many at a time as was agreed, and behind them what waits for a fence. */
static void test_many(struct side *s)
{
	enum { COUNT = 40 };
	struct end e = atomic_new(s, NULL);
	struct buffer b = buffer_new(s, BYTES, ACCESS_ATOMIC);
	struct ibv_sge sge[COUNT];
	uint64_t i;

	end_connect(s, &e);
	buffer_swap(s, &b);
	if (s->me == 1)
		store(&b, 0, 0);
	barrier(s);
	if (s->me == 0) {
		for (i = 0; i < COUNT; i++) {
			struct ibv_send_wr wr;

			sge[i] = sge_of(&b, 8 * i, 8);
			wr = add_wr(&b, &sge[i], 1);
			wr.send_flags = 0;
			post(&e, wr);
		}
		/* Sends the last result to the peer: it must be there. */
		sge[0] = sge_of(&b, 8 * (COUNT - 1), 8);
		{
			struct ibv_send_wr wr = write_wr(&b, &sge[0], 2);

			wr.send_flags |= IBV_SEND_FENCE;
			wr.wr.rdma.remote_addr += 64;
			post(&e, wr);
		}
		require_equal(wait_ok(e.cq).wr_id, 2);
		for (i = 0; i < COUNT; i++)
			require_equal(load(&b, 8 * i), i);
	}
	barrier(s);
	if (s->me == 1) {
		require_equal(load(&b, 0), COUNT);
		require_equal(load(&b, 64), COUNT - 1);
	}
	barrier(s);
	end_free(&e);
	buffer_free(s, &b);
}

/*
 * Both sides add to one word, side 1 to its own through a queue pair that is
 * connected with itself: nothing gets lost and no value is seen twice.
 */
static void contention(struct side *s, bool window)
{
	enum { COUNT = 2000 };
	struct end e = atomic_new(s, NULL), self = atomic_new(s, NULL);
	struct peer_address mine = end_address(s, &self);
	struct buffer b = buffer_new(s, BYTES, ACCESS_ATOMIC | IBV_ACCESS_MW_BIND);
	struct buffer seen = buffer_new(s, 2 * COUNT, ACCESS_ALL), *word = &b;
	struct ibv_sge sge = sge_of(&b, 64, 8);
	struct ibv_mw *mw = NULL;
	uint64_t i;

	if (window && !(s->dev.device_cap_flags & IBV_DEVICE_MEM_WINDOW))
		skip("memory windows");
	end_connect(s, &e);
	buffer_swap(s, &b);
	buffer_swap(s, &seen);
	require_equal(end_to_init(s, &self), 0);
	require_equal(end_to_rtr(s, &self, &mine), 0);
	require_equal(end_to_rts(&self), 0);
	if (s->me == 1) {
		store(&b, 0, 0);
		b.addr = (uintptr_t)b.at;
		b.rkey = b.mr->rkey;
	}
	if (window && s->me == 1) {
		struct ibv_mw_bind bind = { .send_flags = IBV_SEND_SIGNALED,
			.bind_info = { .mr = b.mr, .addr = (uintptr_t)b.at, .length = 64,
				       .mw_access_flags = IBV_ACCESS_REMOTE_ATOMIC } };

		mw = ibv_alloc_mw(s->pd, IBV_MW_TYPE_1);
		require(mw != NULL);
		require_equal(ibv_bind_mw(self.qp, mw, &bind), 0);
		wait_ok(self.cq);
		b.rkey = mw->rkey;
	}
	memset(seen.at, 0, seen.bytes);
	barrier(s);
	for (i = 0; i < COUNT; i++) {
		struct end *through = s->me == 1 ? &self : &e;
		uint64_t old;

		if (i % 2) {
			post(through, add_wr(word, &sge, 1));
			wait_ok(through->cq);
			old = load(&b, 64);
		} else {
			uint64_t guess = 0;

			for (;;) {
				post(through, swap_wr(word, &sge, guess, guess + 1));
				wait_ok(through->cq);
				old = load(&b, 64);
				if (old == guess)
					break;
				guess = old;
			}
		}
		require(old < 2 * COUNT);
		require_equal(seen.at[old], 0);
		seen.at[old] = 1;
	}
	barrier(s);
	if (s->me == 1)
		require_equal(load(&b, 0), 2 * COUNT);
	if (s->me == 0) {
		struct ibv_sge all = sge_of(&seen, 0, seen.bytes);
		struct buffer theirs = buffer_new(s, 2 * COUNT, ACCESS_ALL);
		struct ibv_send_wr wr;

		all = sge_of(&theirs, 0, theirs.bytes);
		wr = write_wr(&seen, &all, 3);
		wr.opcode = IBV_WR_RDMA_READ;
		post(&e, wr);
		wait_ok(e.cq);
		for (i = 0; i < 2 * COUNT; i++)
			require_equal(seen.at[i] + theirs.at[i], 1);
		buffer_free(s, &theirs);
	}
	barrier(s);
	if (mw)
		require_equal(ibv_dealloc_mw(mw), 0);
	end_free(&self);
	end_free(&e);
	buffer_free(s, &seen);
	buffer_free(s, &b);
}

static void test_contention(struct side *s)
{
	contention(s, false);
}

/* The same through a window: it is the same memory. */
static void test_window(struct side *s)
{
	contention(s, true);
}

/* ---- Refused ------------------------------------------------------------- */

struct refusal {
	int mr_access;		/* 0: everything */
	unsigned qp_access;	/* 0: everything */
	int answers, asks;
	uint64_t offset;
	uint32_t key_change, missing;	/* bytes of the local buffer */
	enum ibv_wc_status status;
	bool at_once;		/* may be refused by ibv_post_send instead (EINVAL) */
};

static void refused(struct side *s, const struct refusal *r)
{
	struct end_config c = end_defaults;
	struct buffer target = buffer_new(s, BYTES, r->mr_access ? r->mr_access : ACCESS_ATOMIC);
	struct buffer b = buffer_new(s, BYTES, ACCESS_ALL);
	struct ibv_sge sge = sge_of(&b, 0, 8 - r->missing), room = sge_of(&b, 0, 64);
	struct end e;

	c.access = r->qp_access ? r->qp_access : ACCESS_ATOMIC;
	c.answers = r->answers;
	c.asks = r->asks;
	e = atomic_new(s, &c);
	end_connect(s, &e);
	buffer_swap(s, &target);
	if (s->me == 1)
		post_receive(&e, 5, &room, 1);
	barrier(s);
	if (s->me == 0) {
		struct ibv_send_wr wr = add_wr(&target, &sge, 1), *bad;
		int rc;

		wr.wr.atomic.remote_addr += r->offset;
		wr.wr.atomic.rkey += r->key_change;
		rc = ibv_post_send(e.qp, &wr, &bad);
		if (rc && r->at_once) {
			require_equal(rc, EINVAL);
		} else {
			require_equal(rc, 0);
			expect(e.cq, 1, r->status);
			wait_state(&e, IBV_QPS_ERR);
		}
		check_untouched(b.at, 0xee, b.bytes, "the requester's buffer");
	}
	barrier(s);
	if (s->me == 1 && !r->at_once) {
		if (r->status == IBV_WC_REM_ACCESS_ERR || r->status == IBV_WC_REM_INV_REQ_ERR)
			expect(e.cq, 5, IBV_WC_WR_FLUSH_ERR);
		else
			expect_nothing(e.cq, 10);
	}
	check_untouched(target.at, 0xee, BYTES, "the target");
	barrier(s);
	end_free(&e);
	buffer_free(s, &b);
	buffer_free(s, &target);
}

#define REFUSED(name, ...)						\
	static void test_##name(struct side *s)				\
	{								\
		refused(s, &(struct refusal){ __VA_ARGS__ });		\
	}

REFUSED(bad_key, .key_change = 0x01010101, .status = IBV_WC_REM_ACCESS_ERR)
REFUSED(beyond, .offset = BYTES, .status = IBV_WC_REM_ACCESS_ERR)
REFUSED(not_allowed_by_mr, .mr_access = ACCESS_ALL, .status = IBV_WC_REM_ACCESS_ERR)
REFUSED(not_allowed_by_qp, .qp_access = ACCESS_ALL, .status = IBV_WC_REM_INV_REQ_ERR)
REFUSED(misaligned, .offset = 4, .status = IBV_WC_REM_INV_REQ_ERR, .at_once = true)
REFUSED(none_answered, .answers = -1, .status = IBV_WC_REM_INV_REQ_ERR)
REFUSED(none_asked, .asks = -1, .status = IBV_WC_LOC_QP_OP_ERR)
REFUSED(too_short, .missing = 1, .status = IBV_WC_LOC_LEN_ERR, .at_once = true)

const struct test atomic_tests[] = {
	{ "atomic_fetch_add", test_fetch_add },
	{ "atomic_cmp_swap", test_cmp_swap },
	{ "atomic_pieces", test_pieces },
	{ "atomic_many", test_many },
	{ "atomic_contention", test_contention },
	{ "atomic_window", test_window },
	{ "atomic_bad_key", test_bad_key },
	{ "atomic_beyond", test_beyond },
	{ "atomic_not_allowed_by_mr", test_not_allowed_by_mr },
	{ "atomic_not_allowed_by_qp", test_not_allowed_by_qp },
	{ "atomic_misaligned", test_misaligned },
	{ "atomic_none_answered", test_none_answered },
	{ "atomic_none_asked", test_none_asked },
	{ "atomic_too_short", test_too_short },
	{ NULL, NULL },
};
