/* test_frame.c - frames and headers of datagrams: their bytes, and what is refused. */
#include <errno.h>
#include <infiniband/verbs.h>
#include <string.h>

#include "cmocka_all.h"
#include "softhca/link/wire/frame.h"
#include "softhca/object/qp.h"

enum { LAST = HCA_FRAME_LAST, KINDS = HCA_FRAME_DATAGRAM };

/* One valid frame of each kind, in order. */
static const struct hca_frame valid[] = {
	{ HCA_FRAME_SEND, LAST | HCA_FRAME_INV | HCA_FRAME_SOLICITED, 0, 8, 8, 1, 2, 0, 0, 77 },
	{ HCA_FRAME_WRITE, HCA_FRAME_IMM, 0, 4096, 1 << 20, 3, 4, 5, 6, 7 },
	{ HCA_FRAME_READ, LAST, 0, 0, HCA_MESSAGE_MAX, 8, 9, 10, UINT64_MAX, 0 },
	{ HCA_FRAME_CMP_SWAP, LAST, 0, 16, 16, UINT32_MAX, 0, 11, 12, 0 },
	{ HCA_FRAME_FETCH_ADD, LAST, 0, 16, 16, 13, 14, 15, 16, 0 },
	{ HCA_FRAME_CONT, LAST, 0, 100, 5000, 17, 18, 0, 0, 0 },
	{ HCA_FRAME_RESPONSE, 0, 0, HCA_FRAME_PAYLOAD_MAX, HCA_MESSAGE_MAX, 19, 20, 0, 0, 0 },
	{ HCA_FRAME_ACK, 0, 0, 0, 0, 0, 21, 0, 0, 0 },
	{ HCA_FRAME_NAK, 0, IBV_WC_REM_ACCESS_ERR, 0, 0, 22, 23, 0, 0, 0 },
	{ HCA_FRAME_RNR, 0, 31, 0, 0, 24, 25, 0, 0, 0 },
	{ HCA_FRAME_DATAGRAM, LAST | HCA_FRAME_IMM | HCA_FRAME_GRH, 0, 48 + 4096, 4096, 0, 0, 0, 0, 1 },
};

static void assert_same(const struct hca_frame *a, const struct hca_frame *b)
{
	assert_int_equal(a->kind, b->kind);
	assert_int_equal(a->flags, b->flags);
	assert_int_equal(a->aux, b->aux);
	assert_int_equal(a->bytes, b->bytes);
	assert_int_equal(a->total, b->total);
	assert_int_equal(a->sequence, b->sequence);
	assert_int_equal(a->ack, b->ack);
	assert_int_equal(a->rkey, b->rkey);
	assert_true(a->addr == b->addr);
	assert_int_equal(a->imm, b->imm);
}

static bool is_read(const struct hca_frame *f)
{
	unsigned char bytes[HCA_FRAME_BYTES];
	struct hca_frame seen = { .kind = 99 };
	int rc;

	hca_frame_write(bytes, f);
	rc = hca_frame_read(bytes, &seen);
	if (rc) {
		assert_int_equal(rc, -EPROTO);
		assert_int_equal(seen.kind, 99);
		return false;
	}
	assert_same(f, &seen);
	return true;
}

static void test_each_kind(void **state)
{
	assert_int_equal(sizeof(valid) / sizeof(*valid), KINDS);
	for (unsigned i = 0; i < KINDS; i++) {
		assert_int_equal(valid[i].kind, i + 1);
		assert_true(is_read(&valid[i]));
	}
}

/* The bytes are those of all machines. */
static void test_bytes(void **state)
{
	static const unsigned char expected[HCA_FRAME_BYTES] = {
		2, 9, 0, 0, 0x04, 0x03, 0x02, 0x00, 0x04, 0x03, 0x02, 0x00, 0x10, 0x20, 0x30, 0x40,
		0x50, 0x60, 0x70, 0x80, 1, 2, 3, 4, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11,
		0xd, 0xc, 0xb, 0xa, 0, 0, 0, 0
	};
	const struct hca_frame f = {
		.kind = HCA_FRAME_WRITE, .flags = HCA_FRAME_IMM | LAST, .bytes = 0x20304,
		.total = 0x20304, .sequence = 0x40302010, .ack = 0x80706050, .rkey = 0x04030201,
		.addr = 0x1122334455667788, .imm = 0x0a0b0c0d
	};
	unsigned char bytes[HCA_FRAME_BYTES];

	hca_frame_write(bytes, &f);
	assert_memory_equal(bytes, expected, sizeof(bytes));
}

static void test_kinds_refused(void **state)
{
	struct hca_frame f = valid[HCA_FRAME_ACK - 1];

	for (unsigned kind = 0; kind < 256; kind++) {
		f.kind = (uint8_t)kind;
		assert_int_equal(is_read(&f), kind == HCA_FRAME_ACK || kind == HCA_FRAME_RNR);
	}
}

/* Of all combinations of flags exactly these. */
static void test_flags(void **state)
{
	static const unsigned may[KINDS] = { 47, 45, 8, 8, 8, 8, 8, 0, 0, 0, 29 };
	const unsigned both = HCA_FRAME_IMM | HCA_FRAME_INV;

	for (unsigned i = 0; i < KINDS; i++)
		for (unsigned flags = 0; flags < 256; flags++) {
			struct hca_frame f = valid[i];
			const bool same_last = !((f.flags ^ flags) & LAST);

			f.flags = (uint8_t)flags;
			if (f.kind == HCA_FRAME_CONT)	/* a last frame, or one between */
				assert_int_equal(is_read(&f), !(flags & ~LAST));
			else if (f.kind == HCA_FRAME_RESPONSE || f.kind == HCA_FRAME_ACK)
				assert_int_equal(is_read(&f), !(flags & ~LAST));
			else
				assert_int_equal(is_read(&f), same_last && !(flags & ~may[i]) &&
						 (flags & both) != both);
		}
}

static void test_status_and_timer(void **state)
{
	struct hca_frame nak = valid[HCA_FRAME_NAK - 1], rnr = valid[HCA_FRAME_RNR - 1];
	struct hca_frame ack = valid[HCA_FRAME_ACK - 1];

	for (unsigned aux = 0; aux < 1 << 16; aux++) {
		nak.aux = rnr.aux = ack.aux = (uint16_t)aux;
		assert_int_equal(is_read(&nak), aux == IBV_WC_REM_INV_REQ_ERR ||
				 aux == IBV_WC_REM_ACCESS_ERR || aux == IBV_WC_REM_OP_ERR);
		assert_int_equal(is_read(&rnr), aux < 32);
		assert_int_equal(is_read(&ack), aux == 0);
	}
}

static bool is_read_with(unsigned kind, unsigned flags, uint32_t bytes, uint32_t total)
{
	const struct hca_frame f = {
		.kind = (uint8_t)kind, .flags = (uint8_t)flags, .bytes = bytes, .total = total
	};

	return is_read(&f);
}

static void test_lengths(void **state)
{
	assert_true(is_read_with(HCA_FRAME_SEND, LAST, 0, 0));
	assert_true(is_read_with(HCA_FRAME_SEND, 0, 0, 1));
	assert_false(is_read_with(HCA_FRAME_SEND, 0, 1, 1));
	assert_false(is_read_with(HCA_FRAME_SEND, LAST, 1, 2));
	assert_false(is_read_with(HCA_FRAME_SEND, LAST, 2, 1));
	assert_true(is_read_with(HCA_FRAME_WRITE, LAST, HCA_FRAME_PAYLOAD_MAX, HCA_FRAME_PAYLOAD_MAX));
	assert_false(is_read_with(HCA_FRAME_WRITE, 0, HCA_FRAME_PAYLOAD_MAX + 1, HCA_MESSAGE_MAX));
	assert_false(is_read_with(HCA_FRAME_WRITE, 0, 1, HCA_MESSAGE_MAX + 1u));
	assert_false(is_read_with(HCA_FRAME_CONT, 0, 0, 8));
	assert_true(is_read_with(HCA_FRAME_CONT, 0, 7, 8));
	assert_true(is_read_with(HCA_FRAME_CONT, LAST, 8, 8));
	assert_false(is_read_with(HCA_FRAME_CONT, 0, 8, 8));
	assert_false(is_read_with(HCA_FRAME_CONT, LAST, 9, 8));
	assert_false(is_read_with(HCA_FRAME_READ, LAST, 1, 8));
	assert_false(is_read_with(HCA_FRAME_READ, LAST, 0, UINT32_MAX));
	assert_false(is_read_with(HCA_FRAME_CMP_SWAP, LAST, 8, 8));
	assert_false(is_read_with(HCA_FRAME_FETCH_ADD, LAST, 16, 24));
	assert_true(is_read_with(HCA_FRAME_RESPONSE, LAST, 0, 0));
	assert_false(is_read_with(HCA_FRAME_RESPONSE, 0, 0, 0));
	assert_false(is_read_with(HCA_FRAME_RESPONSE, 0, 0, 8));
	assert_true(is_read_with(HCA_FRAME_RESPONSE, LAST, 4, 8));
	assert_false(is_read_with(HCA_FRAME_RESPONSE, LAST, 8, 4));
	for (unsigned kind = HCA_FRAME_ACK; kind <= HCA_FRAME_RNR; kind++) {
		assert_false(is_read_with(kind, 0, 1, 0));
		assert_false(is_read_with(kind, 0, 0, 1));
	}
	assert_true(is_read_with(HCA_FRAME_DATAGRAM, LAST, 48, 0));
	assert_false(is_read_with(HCA_FRAME_DATAGRAM, LAST, 47, UINT32_MAX));
	assert_false(is_read_with(HCA_FRAME_DATAGRAM, LAST, 47, 0));
	assert_false(is_read_with(HCA_FRAME_DATAGRAM, LAST, 48 + 4097, 4097));
}

static void test_reserved(void **state)
{
	unsigned char bytes[HCA_FRAME_BYTES];
	struct hca_frame f;

	for (unsigned i = 36; i < HCA_FRAME_BYTES; i++) {
		hca_frame_write(bytes, &valid[0]);
		bytes[i] = 1;
		assert_int_equal(hca_frame_read(bytes, &f), -EPROTO);
	}
}

static void test_operands(void **state)
{
	static const unsigned char expected[HCA_OPERANDS_BYTES] = {
		8, 7, 6, 5, 4, 3, 2, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff
	};
	const struct hca_operands o = { 0x0102030405060708, UINT64_MAX };
	struct hca_operands seen;
	unsigned char bytes[HCA_OPERANDS_BYTES];

	hca_operands_write(bytes, &o);
	assert_memory_equal(bytes, expected, sizeof(bytes));
	hca_operands_read(bytes, &seen);
	assert_true(seen.compare_add == o.compare_add && seen.swap == o.swap);
}

static void test_datagram(void **state)
{
	const struct hca_datagram d = {
		.source_qpn = 0xfffffe, .target_qpn = 0x010203, .qkey = 0x80010000, .flow_label = 0xfffff,
		.traffic_class = 0xa5, .hop_limit = 64, .sl = 15, .source = "the source's 16",
		.target = "the target's 16"
	};
	struct hca_datagram seen;
	unsigned char bytes[HCA_DATAGRAM_BYTES];

	hca_datagram_write(bytes, &d);
	assert_int_equal(hca_datagram_read(bytes, &seen), 0);
	assert_int_equal(seen.source_qpn, d.source_qpn);
	assert_int_equal(seen.target_qpn, d.target_qpn);
	assert_int_equal(seen.qkey, d.qkey);
	assert_int_equal(seen.flow_label, d.flow_label);
	assert_int_equal(seen.traffic_class, d.traffic_class);
	assert_int_equal(seen.hop_limit, d.hop_limit);
	assert_int_equal(seen.sl, d.sl);
	assert_memory_equal(seen.source, d.source, 16);
	assert_memory_equal(seen.target, d.target, 16);
	bytes[7] = 16;			/* a service level has 4 bits */
	assert_int_equal(hca_datagram_read(bytes, &seen), -EPROTO);
	hca_datagram_write(bytes, &d);
	bytes[15] |= 0x10;		/* above the traffic class */
	assert_int_equal(hca_datagram_read(bytes, &seen), -EPROTO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_kind),
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_kinds_refused),
		cmocka_unit_test(test_flags),
		cmocka_unit_test(test_status_and_timer),
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_reserved),
		cmocka_unit_test(test_operands),
		cmocka_unit_test(test_datagram),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
