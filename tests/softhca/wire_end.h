/*
 * wire_end.h - queue pairs of this process on a wire (net=lo), whose peers are the test: it proves the
 * secret at another address of 127.0.0.0/8, and then speaks in frames.
 *
 * The clock is the one of meet_end.h (--wrap=rg_now_ns).  All waits have a limit of 60 s of the
 * machine's.
 */
#ifndef WIRE_END_H
#define WIRE_END_H

#include <stdlib.h>
#include <string.h>

#include "cmocka_all.h"
#include "meet_end.h"
#include "softhca/link/wire/wire.h"
#include "softhca/object/device.h"
#include "softhca/object/fabric.h"

enum {
	WIRE_MEMORY = 1 << 20,		/* registered bytes, with all rights */
	WIRE_READS = 4,			/* max_rd_atomic and max_dest_rd_atomic */
	WIRE_RNR_TIMER = 12,
	WIRE_ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		      IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND,
};

/* This process's fabric, and the process of the peers. */
struct wire_host {
	char name[32];
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	unsigned char *memory;
	struct ibv_mr *mr;
	unsigned peer_host;		/* in meet_end.h; 0: 2 */
	struct meet_end peer;
	uint32_t numbers;		/* peers', drawn so far */
};
extern struct wire_host wire;
/* Bytes for messages: no two places that differ by less than 251 are alike. */
extern unsigned char wire_pattern[WIRE_MEMORY];

/* A queue pair, and its peer's end of the stream. */
struct wire_qp {
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	uint32_t peer_qpn;
	int fd;				/* -1: none */
	uint32_t sequence;		/* the peer's next request has it */
	uint32_t ack;			/* in the peer's frames */
	uint32_t acked;			/* by the last frame of the queue pair */
};

struct wire_config {
	enum ibv_qp_type type;		/* 0: RC */
	struct ibv_srq *srq;
	unsigned access;		/* 0: WIRE_ACCESS */
	int cqe;			/* 0: 64 */
	uint8_t rnr_retry;		/* 0: 7, for ever */
	bool alone;			/* the peer does not answer the call */
	bool expects;			/* the queue pair does not call: WIRE_LOWER is its peer's address */
	bool init;			/* stays in INIT */
	bool rtr;			/* stays in RTR */
	uint32_t psn;			/* of both directions */
};

/* cmocka's setup and teardown of a group: a fabric on lo (or the environment's WIRE_SPEC). */
int wire_host_open(void **state);
int wire_host_close(void **state);

/* In RTS, connected to a peer that has sent its first frame (alone, expects: not). */
struct wire_qp wire_qp_open(struct wire_config c);
void wire_qp_connect(struct wire_qp *q, struct wire_config c);	/* from INIT on */
void wire_qp_sends(struct wire_qp *q, struct wire_config c);	/* from RTR to RTS */
void wire_qp_close(struct wire_qp *q);
struct hca_wire_qp *wire_of(const struct wire_qp *q);

/* One pass of the engine, and of the peer's meetings. */
void wire_pass(void);
/* So many passes that all that is there has been served. */
void wire_settle(void);

/* ---- The peer ------------------------------ */

/* The addresses of peers: of those that accept, of those that call (expects). */
union ibv_gid wire_gid(bool lower);
struct ibv_ah *wire_ah(void);			/* to a peer that accepts */
/* A connection without a network, as if this hello had been proven: the peer's end. */
int wire_inject(const struct hca_hello *h);
struct hca_hello wire_hello(enum hca_meet_kind kind, bool lower, uint32_t from, uint32_t qpn);
/* The end of the stream that the queue pair has opened to the peer with this number. */
int wire_peer_accept(uint32_t peer_qpn);
/* Call from the peer's process, and prove it: the socket, or -1. */
int wire_peer_call(enum hca_meet_kind kind, uint32_t from, uint32_t qpn);
struct hca_wire *wire_state(void);

/* All of these bytes, with passes while the socket is full. */
void wire_put_bytes(int fd, const void *bytes, size_t count);
/* A frame with its payload. */
void wire_put(struct wire_qp *q, const struct hca_frame *f, const void *payload);
/* The peer's next request, as one frame; all zero but for its kind, lengths and numbers. */
struct hca_frame wire_request(struct wire_qp *q, enum hca_frame_kind kind, uint32_t bytes);
void wire_put_plain(struct wire_qp *q, enum hca_frame_kind kind, unsigned flags, uint16_t aux,
		    uint32_t sequence);
/* The next frame; false: the stream has ended.  payload: room for `most` bytes. */
bool wire_get(struct wire_qp *q, struct hca_frame *f, void *payload, size_t most);
/* The next frame that is not a mere acknowledgement: it has this kind. */
struct hca_frame wire_expect(struct wire_qp *q, enum hca_frame_kind kind, void *payload, size_t most);
/* Read until all before this sequence is acknowledged. */
void wire_expect_ack(struct wire_qp *q, uint32_t sequence);
/* The stream ends, whatever comes before. */
void wire_expect_end(struct wire_qp *q);
bool wire_has_ended(int fd);			/* has it, now? */

/* ---- The queue pair ------------------------------ */

void wire_post_recv(struct wire_qp *q, uint64_t id, size_t at, uint32_t bytes);
void wire_post_srq(struct ibv_srq *srq, uint64_t id, size_t at, uint32_t bytes);
/* A signaled request from memory[at]; remote: any. */
void wire_post(struct wire_qp *q, enum ibv_wr_opcode op, uint64_t id, size_t at, uint32_t bytes);
/* The next completion: of this request, with this status. */
struct ibv_wc wire_completion(struct wire_qp *q, uint64_t id, enum ibv_wc_status status);
void wire_expect_none(struct wire_qp *q);
void wire_expect_event(enum ibv_event_type type);
void wire_expect_no_event(void);
void wire_expect_state(struct wire_qp *q, enum ibv_qp_state state);
/* The peer has sent what no peer sends: one line (`lines` is the text on stderr), error state. */
void wire_expect_breach(struct wire_qp *q, const char *lines);

#endif
