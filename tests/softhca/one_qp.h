/*
 * one_qp.h - a queue pair over the fake link, on the virtual clock without tasks: nothing happens
 * between two calls.
 */
#ifndef ONE_QP_H
#define ONE_QP_H

#include "cmocka_all.h"
#include "fake_link.h"
#include "softhca/object/device.h"
#include "softhca/softhca.h"

#define MS 1000000ull
#define S 1000000000ull

enum {
	DEPTH = 16,
	INLINE = 512,
	RNR_CODE = 14, RNR_NS = 1280000,	/* IBTA's table: 1.28 ms */
};

struct one {
	struct ibv_device **list;
	struct ibv_context *c;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	struct ibv_ah *ah;
	struct ibv_qp_attr attr;	/* of its connection */
	unsigned char data[4096];
};

static inline struct hca_qp *hca(const struct one *o)
{
	return hca_qp_of(o->qp);
}

/* Transitions, by o->attr: what ibv_modify_qp returns. */
int to_init(struct one *o);
int to_rtr(struct one *o);
int to_rts(struct one *o);

/* From RESET to RTS. */
void connect_again(struct one *o);

/* A queue pair, in RESET. */
void make_qp(struct one *o, enum ibv_qp_type type);

/* A device of a fabric without a wire. */
void open_fabric(struct one *o);

/* Its domain, completion queue and registration. */
void make_objects(struct one *o);

/* All of them, and the fake link as the wire of every queue pair. */
void one_make(struct one *o, enum ibv_qp_type type);

/* The same, and the queue pair is connected. */
void one_begin(struct one *o, enum ibv_qp_type type);
void one_end(struct one *o);

/* A request of 8 bytes: what ibv_post_send returns; that it is posted; several SENDs. */
int try_post(struct one *o, enum ibv_wr_opcode op, uint64_t id, unsigned flags);
void post(struct one *o, enum ibv_wr_opcode op, uint64_t id, unsigned flags);
void post_sends(struct one *o, uint64_t from, uint64_t to);

/* Let the engine and the link have a turn. */
void turn(struct one *o);

/* The same, and the link says this. */
void tell(struct one *o, enum fake_what what, int value);

/* The next completion; those of a range of requests; there is none. */
void expect(struct one *o, uint64_t id, int status);
void expect_range(struct one *o, uint64_t from, uint64_t to, int status);
void expect_none(struct one *o);

/* The state; an asynchronous event (the descriptor does not block). */
void expect_state(struct one *o, enum ibv_qp_state state);
bool event_is_there(struct one *o, struct ibv_async_event *e);
void expect_event(struct one *o, enum ibv_event_type type);

/* The requests from handed[at] on are these; returns the number of all. */
unsigned handed_are(unsigned at, uint64_t from, uint64_t to);

#endif
