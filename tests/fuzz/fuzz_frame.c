/*
 * fuzz_frame.c - arbitrary bytes as frames, and as headers of datagrams: one that is accepted has
 * lengths within all limits, and is what its writer would write.
 */
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>

#include "../random.h"
#include "fuzz.h"
#include "softhca/link/wire/frame.h"
#include "softhca/object/qp.h"

enum { FRAMES = 256 };			/* of an input that fuzz_mutate makes */

const unsigned fuzz_rounds = 2000;

static const struct hca_frame valid[] = {
	{ HCA_FRAME_SEND, HCA_FRAME_LAST | HCA_FRAME_INV, 0, 8, 8, 1, 2, 0, 0, 77 },
	{ HCA_FRAME_SEND, HCA_FRAME_SOLICITED, 0, 100, 200, 1, 2, 0, 0, 0 },
	{ HCA_FRAME_WRITE, HCA_FRAME_IMM, 0, 65536, 1 << 20, 3, 4, 5, 6, 7 },
	{ HCA_FRAME_READ, HCA_FRAME_LAST, 0, 0, HCA_MESSAGE_MAX, 8, 9, 10, UINT64_MAX, 0 },
	{ HCA_FRAME_CMP_SWAP, HCA_FRAME_LAST, 0, 16, 16, UINT32_MAX, 0, 11, 12, 0 },
	{ HCA_FRAME_FETCH_ADD, HCA_FRAME_LAST, 0, 16, 16, 13, 14, 15, 16, 0 },
	{ HCA_FRAME_CONT, HCA_FRAME_LAST, 0, 100, 5000, 17, 18, 0, 0, 0 },
	{ HCA_FRAME_RESPONSE, 0, 0, HCA_FRAME_PAYLOAD_MAX, HCA_MESSAGE_MAX, 19, 20, 0, 0, 0 },
	{ HCA_FRAME_ACK, 0, 0, 0, 0, 0, 21, 0, 0, 0 },
	{ HCA_FRAME_NAK, 0, IBV_WC_REM_ACCESS_ERR, 0, 0, 22, 23, 0, 0, 0 },
	{ HCA_FRAME_RNR, 0, 31, 0, 0, 24, 25, 0, 0, 0 },
	{ HCA_FRAME_DATAGRAM, HCA_FRAME_LAST | HCA_FRAME_GRH, 0, 48 + 4096, 4096, 0, 0, 0, 0, 1 },
};
enum { VALID = sizeof(valid) / sizeof(*valid) };

size_t fuzz_seed(unsigned index, unsigned char *to, size_t most)
{
	if (index > 0 || most < VALID * HCA_FRAME_BYTES)
		return 0;
	for (unsigned i = 0; i < VALID; i++)
		hca_frame_write(to + i * HCA_FRAME_BYTES, &valid[i]);
	return VALID * HCA_FRAME_BYTES;
}

/* Numbers near which checks are. */
static uint32_t number(uint64_t *random)
{
	static const uint32_t near[] = {
		0, 8, 16, 48, 4096, 48 + 4096, HCA_FRAME_PAYLOAD_MAX, HCA_MESSAGE_MAX, UINT32_MAX
	};
	const uint64_t way = random_below(random, 12);

	if (way < sizeof(near) / sizeof(*near))
		return near[way] + (uint32_t)random_below(random, 3) - 1;
	return (uint32_t)(random_next(random) >> random_below(random, 64));
}

static void frame_change(struct hca_frame *f, uint64_t *random)
{
	switch (random_below(random, 6)) {
	case 0:
		f->bytes = number(random);
		break;
	case 1:
		f->total = number(random);
		break;
	case 2:
		f->bytes = f->total = number(random);
		break;
	case 3:
		f->flags ^= (uint8_t)(1 << random_below(random, 8));
		break;
	case 4:
		f->aux = (uint16_t)random_below(random, 40);
		break;
	default:
		f->kind = (uint8_t)random_below(random, 16);
	}
}

size_t fuzz_mutate(unsigned char *data, size_t size, size_t most, uint64_t *random)
{
	for (size = 0; size < FRAMES * HCA_FRAME_BYTES && size + HCA_FRAME_BYTES <= most;
	     size += HCA_FRAME_BYTES) {
		struct hca_frame f = valid[random_below(random, VALID)];

		for (uint64_t changes = random_below(random, 4); changes; changes--)
			frame_change(&f, random);
		hca_frame_write(data + size, &f);
		if (!random_below(random, 4))
			data[size + random_below(random, HCA_FRAME_BYTES)] ^=
				(unsigned char)(1 << random_below(random, 8));
	}
	return size;
}

static void check(bool holds)
{
	if (!holds)
		abort();
}

static void frame_check(const struct hca_frame *f)
{
	check(f->kind >= HCA_FRAME_SEND && f->kind <= HCA_FRAME_DATAGRAM);
	check(f->bytes <= HCA_FRAME_PAYLOAD_MAX && f->total <= HCA_MESSAGE_MAX);
	check(f->kind == HCA_FRAME_DATAGRAM ? f->bytes - HCA_DATAGRAM_BYTES == f->total &&
	      f->total <= HCA_DATAGRAM_MAX : f->bytes <= f->total);
	check(f->kind != HCA_FRAME_CONT || f->bytes > 0);
	check(f->kind != HCA_FRAME_RESPONSE || f->bytes > 0 || f->total == 0);
	check(f->kind != HCA_FRAME_NAK || (f->aux >= IBV_WC_REM_INV_REQ_ERR && f->aux <= IBV_WC_REM_OP_ERR));
	check(f->bytes == 0 || f->bytes != f->total || (f->flags & HCA_FRAME_LAST));
}

static void datagram_check(const unsigned char *in)
{
	unsigned char out[HCA_DATAGRAM_BYTES];
	struct hca_datagram d;

	if (hca_datagram_read(in, &d))
		return;
	check(d.source_qpn < 1 << 24 && d.target_qpn < 1 << 24 && d.flow_label < 1 << 20 && d.sl < 16);
	hca_datagram_write(out, &d);
	check(memcmp(in, out, sizeof(out)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned char out[HCA_FRAME_BYTES];
	struct hca_frame f;

	for (size_t at = 0; at + HCA_FRAME_BYTES <= size; at += HCA_FRAME_BYTES) {
		if (at + HCA_DATAGRAM_BYTES <= size)
			datagram_check(data + at);
		if (hca_frame_read(data + at, &f))
			continue;
		frame_check(&f);
		hca_frame_write(out, &f);
		check(memcmp(data + at, out, sizeof(out)) == 0);
	}
	return 0;
}
