/*
 * frame.h - frames of a stream between two queue pairs, or of datagrams between two processes.
 *
 * A frame is a header of HCA_FRAME_BYTES, then `bytes` of payload.  Numbers are little-endian.
 * These functions are pure: no system call, no state.
 *
 * | kind | flags | bytes | total |
 * |---|---|---|---|
 * | SEND | IMM or INV, SOLICITED, AWAITED, LAST | up to total | of the message |
 * | WRITE | IMM, SOLICITED, AWAITED, LAST | up to total | of the message |
 * | CONT | LAST | 1 to total | of the message |
 * | READ | LAST | 0 | asked |
 * | CMP_SWAP, FETCH_ADD | LAST | HCA_OPERANDS_BYTES | the same |
 * | RESPONSE | LAST | 1 to total; 0 of 0 | of the answer; 8 for an atomic operation |
 * | ACK | LAST: a farewell, the queue pair has stopped, or imm says why it leaves the stream | 0 | 0 |
 * | NAK, RNR | none | 0 | 0 |
 * | DATAGRAM | IMM, SOLICITED, GRH, LAST | HCA_DATAGRAM_BYTES + total | up to HCA_DATAGRAM_MAX |
 *
 * LAST marks the last frame of a message; a frame with bytes == total, a READ, an atomic operation
 * and a DATAGRAM have it.  The first frame has the flags and the immediate of its message.
 *
 * The first frame of the end that was called is an ACK; its imm is the PSN that this end expects.
 */
#ifndef HCA_FRAME_H
#define HCA_FRAME_H

#include <stdbool.h>
#include <stdint.h>

enum hca_frame_kind {
	HCA_FRAME_SEND = 1,
	HCA_FRAME_WRITE,
	HCA_FRAME_READ,
	HCA_FRAME_CMP_SWAP,		/* payload: struct hca_operands */
	HCA_FRAME_FETCH_ADD,
	HCA_FRAME_CONT,			/* of the SEND or WRITE before it */
	HCA_FRAME_RESPONSE,		/* to the READ or atomic operation of this sequence */
	HCA_FRAME_ACK,
	HCA_FRAME_NAK,
	HCA_FRAME_RNR,
	HCA_FRAME_DATAGRAM,		/* payload: struct hca_datagram, then the data */
};

enum {
	HCA_FRAME_IMM = 1,
	HCA_FRAME_INV = 2,
	HCA_FRAME_SOLICITED = 4,
	HCA_FRAME_LAST = 8,
	HCA_FRAME_GRH = 16,
	HCA_FRAME_AWAITED = 32,		/* a completion waits for the acknowledgement */
};

enum {
	HCA_FRAME_BYTES = 40,
	HCA_OPERANDS_BYTES = 16,
	HCA_DATAGRAM_BYTES = 48,
	HCA_FRAME_PAYLOAD_MAX = 1 << 20,	/* of one frame */
	HCA_DATAGRAM_MAX = 4096,		/* data of a datagram: the largest path MTU */
	HCA_FRAME_DISOWNED = 1,			/* imm of a farewell: the PSNs are of another life */
};

struct hca_frame {
	uint8_t kind, flags;
	uint16_t aux;			/* NAK: ibv_wc_status; RNR: timer code; else 0 */
	uint32_t bytes;			/* payload that follows */
	uint32_t total;
	uint32_t sequence;		/* of the message, per queue pair and direction */
	uint32_t ack;			/* all messages before it are done at the frame's sender */
	uint32_t rkey;
	uint64_t addr;
	uint32_t imm;			/* immediate, or rkey to invalidate */
};

/* Operands of an atomic operation; a FETCH_ADD has swap 0. */
struct hca_operands {
	uint64_t compare_add, swap;
};

/* Addresses of a datagram.  Queue pair numbers have 24 bits, the flow label has 20. */
struct hca_datagram {
	uint32_t source_qpn, target_qpn, qkey, flow_label;
	uint8_t traffic_class, hop_limit, sl;
	uint8_t source[16], target[16];		/* GIDs */
};

void hca_frame_write(unsigned char out[HCA_FRAME_BYTES], const struct hca_frame *f);
/*
 * 0, or -EPROTO: a kind, flags, a status or lengths that no peer sends.  A NAK has one of the
 * statuses that a responder causes: IBV_WC_REM_INV_REQ_ERR, REM_ACCESS_ERR, REM_OP_ERR.
 */
int hca_frame_read(const unsigned char in[HCA_FRAME_BYTES], struct hca_frame *f);
/* Is it the next frame of a message of `total` bytes, `done` of them in earlier frames? */
static inline bool hca_frame_follows(const struct hca_frame *f, uint32_t total, uint32_t done)
{
	const bool last = f->flags & HCA_FRAME_LAST;

	return f->total == total && f->bytes <= total - done && last == (f->bytes == total - done);
}

void hca_operands_write(unsigned char out[HCA_OPERANDS_BYTES], const struct hca_operands *o);
void hca_operands_read(const unsigned char in[HCA_OPERANDS_BYTES], struct hca_operands *o);

void hca_datagram_write(unsigned char out[HCA_DATAGRAM_BYTES], const struct hca_datagram *d);
/* 0, or -EPROTO: bits that are not defined. */
int hca_datagram_read(const unsigned char in[HCA_DATAGRAM_BYTES], struct hca_datagram *d);

#endif
