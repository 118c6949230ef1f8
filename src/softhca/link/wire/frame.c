/* frame.c - see frame.h. */
#include "softhca/link/wire/frame.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>

#include "softhca/link/wire/bytes.h"
#include "softhca/object/qp.h"

enum {
	KIND = 0, FLAGS = 1, AUX = 2, BYTES = 4, TOTAL = 8, SEQUENCE = 12, ACKNOWLEDGED = 16, RKEY = 20,
	ADDR = 24, IMM = 32, RESERVED = 36
};
enum { QPN_MAX = (1 << 24) - 1, FLOW_LABEL_MAX = (1 << 20) - 1, SL_MAX = 15, RNR_TIMER_MAX = 31 };

void hca_frame_write(unsigned char out[HCA_FRAME_BYTES], const struct hca_frame *f)
{
	out[KIND] = f->kind;
	out[FLAGS] = f->flags;
	hca_put16(out + AUX, f->aux);
	hca_put32(out + BYTES, f->bytes);
	hca_put32(out + TOTAL, f->total);
	hca_put32(out + SEQUENCE, f->sequence);
	hca_put32(out + ACKNOWLEDGED, f->ack);
	hca_put32(out + RKEY, f->rkey);
	hca_put64(out + ADDR, f->addr);
	hca_put32(out + IMM, f->imm);
	hca_put32(out + RESERVED, 0);
}

static unsigned flags_of_kind(uint8_t kind)
{
	switch (kind) {
	case HCA_FRAME_SEND:
		return HCA_FRAME_IMM | HCA_FRAME_INV | HCA_FRAME_SOLICITED | HCA_FRAME_AWAITED |
		       HCA_FRAME_LAST;
	case HCA_FRAME_WRITE:
		return HCA_FRAME_IMM | HCA_FRAME_SOLICITED | HCA_FRAME_AWAITED | HCA_FRAME_LAST;
	case HCA_FRAME_DATAGRAM:
		return HCA_FRAME_IMM | HCA_FRAME_SOLICITED | HCA_FRAME_GRH | HCA_FRAME_LAST;
	case HCA_FRAME_READ:
	case HCA_FRAME_CMP_SWAP:
	case HCA_FRAME_FETCH_ADD:
	case HCA_FRAME_CONT:
	case HCA_FRAME_RESPONSE:
	case HCA_FRAME_ACK:
		return HCA_FRAME_LAST;
	default:
		return 0;
	}
}

static bool flags_are_valid(const struct hca_frame *f)
{
	const unsigned both = HCA_FRAME_IMM | HCA_FRAME_INV;

	return !(f->flags & ~flags_of_kind(f->kind)) && (f->flags & both) != both;
}

static bool aux_is_valid(const struct hca_frame *f)
{
	switch (f->kind) {
	case HCA_FRAME_NAK:
		return f->aux == IBV_WC_REM_INV_REQ_ERR || f->aux == IBV_WC_REM_ACCESS_ERR ||
		       f->aux == IBV_WC_REM_OP_ERR;
	case HCA_FRAME_RNR:
		return f->aux <= RNR_TIMER_MAX;
	default:
		return f->aux == 0;
	}
}

/* A piece of a message: `first` may be empty. */
static bool piece_is_valid(const struct hca_frame *f, bool last, bool first)
{
	if (f->bytes > f->total || (f->bytes == f->total && !last))
		return false;
	return first ? !last || f->bytes == f->total : f->bytes > 0;
}

static bool lengths_are_valid(const struct hca_frame *f)
{
	const bool last = f->flags & HCA_FRAME_LAST;

	if (f->bytes > HCA_FRAME_PAYLOAD_MAX || f->total > HCA_MESSAGE_MAX)
		return false;
	switch (f->kind) {
	case HCA_FRAME_SEND:
	case HCA_FRAME_WRITE:
		return piece_is_valid(f, last, true);
	case HCA_FRAME_CONT:
		return piece_is_valid(f, last, false);
	case HCA_FRAME_RESPONSE:
		return piece_is_valid(f, last, f->total == 0);
	case HCA_FRAME_READ:
		return last && f->bytes == 0;
	case HCA_FRAME_CMP_SWAP:
	case HCA_FRAME_FETCH_ADD:
		return last && f->bytes == HCA_OPERANDS_BYTES && f->total == HCA_OPERANDS_BYTES;
	case HCA_FRAME_ACK:
	case HCA_FRAME_NAK:
	case HCA_FRAME_RNR:
		return f->bytes == 0 && f->total == 0;
	case HCA_FRAME_DATAGRAM:
		return last && f->total <= HCA_DATAGRAM_MAX &&
		       f->bytes == f->total + HCA_DATAGRAM_BYTES;
	default:
		return false;
	}
}

int hca_frame_read(const unsigned char in[HCA_FRAME_BYTES], struct hca_frame *f)
{
	const struct hca_frame seen = {
		.kind = in[KIND],
		.flags = in[FLAGS],
		.aux = hca_get16(in + AUX),
		.bytes = hca_get32(in + BYTES),
		.total = hca_get32(in + TOTAL),
		.sequence = hca_get32(in + SEQUENCE),
		.ack = hca_get32(in + ACKNOWLEDGED),
		.rkey = hca_get32(in + RKEY),
		.addr = hca_get64(in + ADDR),
		.imm = hca_get32(in + IMM),
	};

	if (hca_get32(in + RESERVED) || !flags_are_valid(&seen) || !aux_is_valid(&seen) ||
	    !lengths_are_valid(&seen))
		return -EPROTO;
	*f = seen;
	return 0;
}

void hca_operands_write(unsigned char out[HCA_OPERANDS_BYTES], const struct hca_operands *o)
{
	hca_put64(out, o->compare_add);
	hca_put64(out + 8, o->swap);
}

void hca_operands_read(const unsigned char in[HCA_OPERANDS_BYTES], struct hca_operands *o)
{
	o->compare_add = hca_get64(in);
	o->swap = hca_get64(in + 8);
}

/*
 * Offset 0: source number, hop limit in the highest byte; 4: target number, service level; 8: qkey;
 * 12: flow label, traffic class above its 20 bits; 16 and 32: GIDs.
 */
void hca_datagram_write(unsigned char out[HCA_DATAGRAM_BYTES], const struct hca_datagram *d)
{
	hca_put32(out, d->source_qpn | (uint32_t)d->hop_limit << 24);
	hca_put32(out + 4, d->target_qpn | (uint32_t)d->sl << 24);
	hca_put32(out + 8, d->qkey);
	hca_put32(out + 12, d->flow_label | (uint32_t)d->traffic_class << 20);
	memcpy(out + 16, d->source, sizeof(d->source));
	memcpy(out + 32, d->target, sizeof(d->target));
}

int hca_datagram_read(const unsigned char in[HCA_DATAGRAM_BYTES], struct hca_datagram *d)
{
	if (in[7] > SL_MAX || hca_get32(in + 12) >> 28)
		return -EPROTO;
	d->source_qpn = hca_get32(in) & QPN_MAX;
	d->hop_limit = in[3];
	d->target_qpn = hca_get32(in + 4) & QPN_MAX;
	d->sl = in[7];
	d->qkey = hca_get32(in + 8);
	d->flow_label = hca_get32(in + 12) & FLOW_LABEL_MAX;
	d->traffic_class = (uint8_t)(hca_get32(in + 12) >> 20);
	memcpy(d->source, in + 16, sizeof(d->source));
	memcpy(d->target, in + 32, sizeof(d->target));
	return 0;
}
