/*
 * vbench.h - messages between queue pairs, for programs that measure below MPI.
 *
 * A program names vbench_carrier in its bench_def and takes the option rows below that it needs.
 * MPI starts the job and exchanges addresses; --rails, --soft, --nodes and the settings of ports
 * are the transport's, so that MPI programs of the suite measure the same fabric.  The queue pairs
 * belong to this room, --qps of them on each rail; librail sends nothing meanwhile.  A master has
 * as many for each slave (BENCH_STAR, by RC), and a part of its buffers.
 *
 * Messages go in *groups* of vbench_group() messages: a window, half of a queue, or one message.
 * Message i of a group has its place at i * b->step in both buffers, goes over queue pair
 * n % --qps, where n counts the messages, and, over `stripe` above --threshold, in even pieces over
 * all rails.  Over `bind` all posts of a side, replies too, take one rail, and the posts of the
 * other side the next.  The last message of a group on each queue pair is the only one that
 * completes with an event at its sender; so a group is complete when these are.
 *
 *	send		a receive takes it; by UC and UD an immediate tells which message it is
 *	write		the receiver polls for the last byte (memory); or the last message of a
 *			group on each queue pair has an immediate (cq, event).  By UC each has, or
 *			nothing would tell which were lost
 *	read, fadd, cswap	only the initiator takes part
 *
 * Pieces of a striped write are announced as --completion says: with the group as above (window);
 * each by its immediate; or each by a control message after it on the same queue pair, a send of 8
 * bytes.  With immediates or control messages a message has arrived when the announcements of all
 * rails have.
 *
 * With --buffer-count message n has its place at n % --buffer-count times its size instead: the
 * buffers are used first in, first out.  With --reuse-percent so many percent of the messages,
 * evenly between the others, have the first place.
 *
 * All buffers are registered before the first message.  With --registration cache or each the side
 * that posts asks librail's registration cache for each message instead.  The cache keeps its
 * registrations (cache) or none (each); registrations are held until the message's group is
 * complete.
 *
 * UC and UD lose messages.  A message that has not arrived at the end of its group is counted as
 * lost.  A group ends when a message of a later group arrives, or after half a second without any.
 * Such a wait is in the samples.  Rates are the sender's: --queue paces it by its own completions.
 *
 * An error of a queue pair ends the job, after one line.
 */
#ifndef VBENCH_H
#define VBENCH_H

#include "bench/bench.h"

enum vbench_op { VBENCH_SEND, VBENCH_WRITE, VBENCH_READ, VBENCH_FADD, VBENCH_CSWAP };
enum vbench_transport { VBENCH_RC, VBENCH_UC, VBENCH_UD };
enum vbench_arrival { VBENCH_AUTO, VBENCH_MEMORY, VBENCH_CQ, VBENCH_EVENT };
enum vbench_completion { VBENCH_BY_WINDOW, VBENCH_BY_IMMEDIATE, VBENCH_BY_CONTROL };
enum vbench_direction { VBENCH_OUT, VBENCH_IN };	/* value: the side that sends */
enum vbench_registration { VBENCH_AHEAD, VBENCH_CACHE, VBENCH_EACH };
enum vbench_sweep { VBENCH_SIZES, VBENCH_QUEUES, VBENCH_QPS, VBENCH_BUFFERS, VBENCH_REUSE };

/* The sides that send, or read; each program defines the value. */
enum vbench_shape {
	VBENCH_ONE_WAY,			/* side 0; in a star the side of --direction */
	VBENCH_BOTH_WAYS,		/* both sides, at once */
	VBENCH_PING_PONG,		/* both, in turn; one-sided operations: as one way */
	VBENCH_ONE_EACH,		/* both sides, at once, a message at a time */
};
extern const enum vbench_shape vbench_shape;

enum { VBENCH_QPS_MAX = 64, VBENCH_QUEUE_MAX = 65536, VBENCH_BUFFERS_MAX = 16384 };

/* Values of the rows; where a program has no such row, the default stays. */
struct vbench_values {
	int op, transport, arrival, completion, direction, registration, sweep;
	bool bidir;
	uint64_t inline_bytes;		/* OPT_SPECIAL: the device's limit, to 256 */
	uint64_t qps, threshold;
	uint64_t queue;			/* OPT_SPECIAL: none, windows */
	uint64_t buffer_count;		/* buffers that messages take in turn */
	uint64_t reuse_percent;		/* percent of messages in the first buffer */
};
extern struct vbench_values vbench;

extern const struct opt_choice vbench_ops[], vbench_ops_moving[], vbench_ops_sending[],
	vbench_transports[], vbench_arrivals[], vbench_completions[], vbench_directions[],
	vbench_registrations[],
	vbench_sweeps[], vbench_sweeps_of_reuse[];

#define VBENCH_AT(member) .offset = offsetof(struct vbench_values, member)
#define VBENCH_ROW_OP(list, first) \
	{ .name = "op", .type = OPT_CHOICE, VBENCH_AT(op), .arg = "OP", .standard = first, \
	  .choices = list, .help = "operation that moves a message" }
#define VBENCH_ROW_TRANSPORT \
	{ .name = "transport", .type = OPT_CHOICE, VBENCH_AT(transport), .arg = "SERVICE", \
	  .standard = "RC", .choices = vbench_transports, \
	  .help = "transport service of the queue pairs" }
#define VBENCH_ROW_ARRIVAL \
	{ .name = "arrival", .type = OPT_CHOICE, VBENCH_AT(arrival), .arg = "HOW", \
	  .standard = "auto", .choices = vbench_arrivals, \
	  .help = "how the program finds an arrived message or a complete operation" }
#define VBENCH_ROW_COMPLETION \
	{ .name = "completion", .type = OPT_CHOICE, VBENCH_AT(completion), .arg = "HOW", \
	  .standard = "window", .choices = vbench_completions, \
	  .help = "how a striped write announces its arrival" }
#define VBENCH_ROW_DIRECTION \
	{ .name = "direction", .type = OPT_CHOICE, VBENCH_AT(direction), .arg = "WAY", \
	  .standard = "out", .choices = vbench_directions, .help = "who sends" }
#define VBENCH_ROW_REGISTRATION \
	{ .name = "registration", .alias = "register", .type = OPT_CHOICE, \
	  VBENCH_AT(registration), .arg = "WHEN", .standard = "ahead", \
	  .choices = vbench_registrations, \
	  .help = "when the posting side registers its buffers; the other side does so ahead" }
#define VBENCH_ROW_BIDIR \
	{ .name = "bidir", .type = OPT_FLAG, VBENCH_AT(bidir), .help = "both sides at once" }
#define VBENCH_ROW_INLINE \
	{ .name = "inline", .type = OPT_SIZE, VBENCH_AT(inline_bytes), .arg = "BYTES", \
	  .standard = "auto", .special = "auto", .min = 0, .max = 65536, \
	  .help = "messages of a send or write up to this size are inline; auto: up to 256 or " \
		  "what the device grants" }
#define VBENCH_ROW_QPS \
	{ .name = "qps", .type = OPT_COUNT, VBENCH_AT(qps), .arg = "N", .standard = "1", .min = 1, \
	  .max = VBENCH_QPS_MAX, \
	  .help = "queue pairs on each rail, which take messages in turn" }
#define VBENCH_ROW_THRESHOLD \
	{ .name = "threshold", .type = OPT_SIZE, VBENCH_AT(threshold), .arg = "BYTES", \
	  .standard = "8K", .min = 1, .max = (uint64_t)1 << 40, \
	  .help = "messages above this size are striped; others take the first rail" }
#define VBENCH_ROW_QUEUE(length) \
	{ .name = "queue", .type = OPT_COUNT, VBENCH_AT(queue), .arg = "Q", .standard = length, \
	  .special = "none", .min = 1, .max = VBENCH_QUEUE_MAX, \
	  .help = "keep Q/2 to Q messages outstanding, in place of windows with a reply" }
#define VBENCH_ROW_BUFFER_COUNT(buffers) \
	{ .name = "buffer-count", .alias = "spread", .type = OPT_COUNT, VBENCH_AT(buffer_count), \
	  .arg = "N", .standard = buffers, .min = 1, .max = VBENCH_BUFFERS_MAX, \
	  .help = "buffers that messages use in turn" }
#define VBENCH_ROW_REUSE \
	{ .name = "reuse-percent", .alias = "share", .type = OPT_COUNT, \
	  VBENCH_AT(reuse_percent), .arg = "PERCENT", .standard = "0", .max = 100, \
	  .help = "percentage of messages that use the first buffer again, evenly between others" }
#define VBENCH_ROW_SWEEP(list, first) \
	{ .name = "sweep", .type = OPT_CHOICE, VBENCH_AT(sweep), .arg = "NAME", \
	  .standard = first, .choices = list, \
	  .help = "the value that changes from row to row" }

/* Members of a bench_def that all programs have; VBENCH_DEF: of programs whose layout is pairs. */
#define VBENCH_DEF VBENCH_DEF_OF(BENCH_PAIRS)
#define VBENCH_DEF_OF(of_layout) \
	.layout = of_layout, .min_ranks = 2, .carrier = &vbench_carrier, \
	.sblocks = vbench_sblocks, .rblocks = vbench_rblocks, .expect = vbench_expect, \
	.options = options, .values = &vbench

extern const struct bench_carrier vbench_carrier;
extern const struct bench_cells vbench_cells;	/* for bench_acceptance */
const struct bench_axis *vbench_axis(void);	/* for bench_def.axis: the axis of --sweep */

/* Is the operation one in which only the initiator takes part? */
bool vbench_is_one_sided(void);
/* Does this rank post groups? */
bool vbench_is_active(const struct bench *b);
/* Messages in a group, to one peer: b->window, or half of --queue. */
int vbench_group(const struct bench *b);
bool vbench_apart(void);			/* for bench_def.apart: with --buffer-count */
/* For bench_def: a group in the buffer that messages come from, or go to, on this side. */
int vbench_sblocks(const struct bench *b);
int vbench_rblocks(const struct bench *b);
struct bench_origin vbench_expect(const struct bench *b, int block);

/* ---- In a run ---- */

/* Post the next group; a master posts one for each slave, message by message in turn. */
void vbench_post(struct bench *b);
/* Wait until at most `left` of the groups posted are incomplete. */
void vbench_complete(struct bench *b, unsigned left);
/* Wait until the next group of the peer, or of all peers, has arrived, or its rest is lost. */
void vbench_arrive(struct bench *b);
/* Send each sender an empty message after a group that has arrived; one way only. */
void vbench_reply(void);
void vbench_await_reply(struct bench *b);
/*
 * A run: a message and its answer; or a window, with a reply if it goes one way; or half of a
 * queue, which completes, or arrives, while the sender posts as many messages.
 */
void vbench_run(struct bench *b);
/* The part of a window's run after vbench_post, at side 0. */
void vbench_finish(struct bench *b);

/* ---- Computation in windows, for bench_def and its axis (compute.c) ---- */

bool vbench_compute_value(int i, double *out);
void vbench_compute_set(double value);
void vbench_compute_run(struct bench *b);

/* ---- Work of the processor (host.c), for bench_def: prepare, run and took ---- */

void vbench_host_prepare(struct bench *b);
void vbench_host_run(struct bench *b);
uint64_t vbench_host_took(void);

#endif
