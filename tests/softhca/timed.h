/*
 * timed.h - measuring the timing model through the verbs, as two processes on
 * two virtual nodes.
 */
#ifndef TIMED_H
#define TIMED_H

#include "kit.h"

enum { US = 1000, MS = 1000000 };

/* A stream of equal messages, or several parallel ones. */
struct flow {
	int ports, per_port;		/* queue pairs: 1 each if 0 */
	size_t bytes;
	int messages;			/* per queue pair */
	enum ibv_wr_opcode opcode;	/* RDMA write, read, or SEND (UC: losses allowed) */
	enum ibv_qp_type type;		/* 0: RC */
	bool both;			/* directions at once */
};

/*
 * MB/s of side 0, of both sides if both send, from the first post to the last
 * completion.
 */
double flow_rate(struct side *s, const struct flow *f);

/* The best of some, in us.  For sends and writes half of the round trip. */
double send_latency(struct side *s);
double write_latency(struct side *s);		/* the receiver polls memory */
double read_latency(struct side *s);
double atomic_latency(struct side *s);

/* An end connected over a port, with room for 256 messages. */
struct end timed_end(struct side *s, int port, enum ibv_qp_type type);
struct ibv_send_wr timed_wr(struct buffer *b, struct ibv_sge *sge, enum ibv_wr_opcode op);
/* Wait until the other side has woken up and polls. */
void settle(void);

/*
 * Run `measure` in two processes under this spec: the sum of what both return
 * (0 from a side without a result).  Ends the program if a side fails.
 */
double timed_run(const char *name, const char *spec,
		 double (*measure)(struct side *s, const void *arg), const void *arg);

#endif
