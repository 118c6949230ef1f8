/* options.c - values of a program's options, and which of them go together. */
#include "vbench/options.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "util/err.h"
#include "util/text.h"
#include "util/units.h"

struct vbench_values vbench = {
	.inline_bytes = OPT_SPECIAL, .qps = 1, .threshold = 8192, .queue = OPT_SPECIAL,
	.buffer_count = 1,
};

#define SEND { "send", VBENCH_SEND, "into a receive" }
#define WRITE { "write", VBENCH_WRITE, "RDMA write; RC, UC" }
#define READ { "read", VBENCH_READ, "RDMA read; RC" }

const struct opt_choice vbench_ops[] = {
	SEND, WRITE, READ,
	{ "fadd", VBENCH_FADD, "fetch and add of 8 bytes; RC" },
	{ "cswap", VBENCH_CSWAP, "compare and swap of 8 bytes; RC" },
	{ NULL },
};
const struct opt_choice vbench_ops_moving[] = { SEND, WRITE, READ, { NULL } };
const struct opt_choice vbench_ops_sending[] = { SEND, WRITE, { NULL } };

const struct opt_choice vbench_transports[] = {
	{ "RC", VBENCH_RC, "reliable connection" },
	{ "UC", VBENCH_UC, "unreliable connection" },
	{ "UD", VBENCH_UD, "unreliable datagram, up to the MTU" },
	{ NULL },
};

const struct opt_choice vbench_arrivals[] = {
	{ "auto", VBENCH_AUTO, "memory for write, else cq" },
	{ "memory", VBENCH_MEMORY, "polling the last byte of the buffer; write by RC" },
	{ "cq", VBENCH_CQ, "polling the completion queue; a write has an immediate" },
	{ "event", VBENCH_EVENT, "sleeping until the completion queue has an event" },
	{ NULL },
};

const struct opt_choice vbench_completions[] = {
	{ "window", VBENCH_BY_WINDOW,
	  "an immediate of the last piece of a window on each queue pair" },
	{ "immediate", VBENCH_BY_IMMEDIATE, "an immediate of each piece" },
	{ "imm", VBENCH_BY_IMMEDIATE, NULL, "" },
	{ "control", VBENCH_BY_CONTROL, "a send of 8 bytes after each piece, on its queue pair" },
	{ NULL },
};

const struct opt_choice vbench_directions[] = {
	{ "out", VBENCH_OUT, "the master sends to its slaves" },
	{ "in", VBENCH_IN, "the slaves send to the master" },
	{ NULL },
};

const struct opt_choice vbench_registrations[] = {
	{ "ahead", VBENCH_AHEAD, "all buffers, before the first message" },
	{ "cache", VBENCH_CACHE,
	  "at the first message from a buffer, through the transport's cache" },
	{ "each", VBENCH_EACH, "for each message, and until its end" },
	{ "kept", VBENCH_CACHE, NULL, "" },
	{ NULL },
};

const struct opt_choice vbench_sweeps[] = {
	{ "size", VBENCH_SIZES, "the message size" },
	{ "queue", VBENCH_QUEUES, "the length of the queue, from 1 to --queue, or 128" },
	{ "qps", VBENCH_QPS, "queue pairs on each rail, from 1 to --qps" },
	{ NULL },
};
const struct opt_choice vbench_sweeps_of_reuse[] = {
	{ "size", VBENCH_SIZES, "the message size" },
	{ "buffers", VBENCH_BUFFERS, "--buffer-count, from 1 to its value" },
	{ "reuse", VBENCH_REUSE, "--reuse-percent, from 0 to 100" },
	{ "share", VBENCH_REUSE, NULL, "" },
	{ NULL },
};

static const char *name_of(const struct opt_choice *choices, int value)
{
	while (choices->value != value)
		choices++;
	return choices->name;
}

/* ---- What follows from them ------------------------------------------------------- */

bool vbench_is_one_sided(void)
{
	return vbench.op >= VBENCH_READ;
}

bool vb_is_single(void)
{
	return vbench_shape == VBENCH_PING_PONG || vbench_shape == VBENCH_ONE_EACH;
}

bool vb_side_is_active(int side)
{
	return side == vbench.direction || vbench.bidir || vbench_shape == VBENCH_BOTH_WAYS ||
	       vbench_shape == VBENCH_ONE_EACH ||
	       (vbench_shape == VBENCH_PING_PONG && !vbench_is_one_sided());
}

bool vbench_is_active(const struct bench *b)
{
	return vb_side_is_active(b->side);
}

bool vb_is_target(const struct bench *b)
{
	return !vbench_is_one_sided() && vb_side_is_active(!b->side);
}

static bool has_queue(void)
{
	return vbench.queue != OPT_SPECIAL;
}

bool vb_streams(void)
{
	return has_queue() && !vb_is_single();
}

bool vb_has_replies(void)
{
	return vbench_shape == VBENCH_ONE_WAY && !vbench_is_one_sided() && !has_queue();
}

/* Does a lone write show in memory, as far as the options say? */
static bool may_see_memory(void)
{
	return vb_is_single() && vbench.op == VBENCH_WRITE && vbench.transport == VBENCH_RC &&
	       !vbench_apart();
}

enum vbench_arrival vb_arrival(void)
{
	if (vbench.arrival != VBENCH_AUTO)
		return (enum vbench_arrival)vbench.arrival;
	return may_see_memory() && vb.ends_last ? VBENCH_MEMORY : VBENCH_CQ;
}

static int half(uint64_t queue)
{
	return queue < 2 ? 1 : (int)(queue / 2);
}

bool vbench_apart(void)
{
	return vbench.buffer_count > 1;
}

int vbench_group(const struct bench *b)
{
	if (vb_is_single())
		return 1;
	/* Validation uses each place once. */
	if (b->validating && vbench_apart())
		return (int)vbench.buffer_count;
	if (!has_queue())
		return b->window;
	/* Validation may have room for fewer. */
	return b->validating && b->window < half(vbench.queue) ? b->window : half(vbench.queue);
}

int vb_group_max(int window)
{
	int group = has_queue() ? half(vbench.queue) : window;

	if (vb_is_single())
		return 1;
	return vbench_apart() && (int)vbench.buffer_count > group ? (int)vbench.buffer_count :
		group;
}

/* Places of messages in a buffer. */
static int blocks(const struct bench *b)
{
	return vbench_apart() && !b->validating ? (int)vbench.buffer_count : vbench_group(b);
}

int vb_place(const struct bench *b, uint64_t n)
{
	uint64_t again = n * vbench.reuse_percent / 100;	/* reused messages before n */

	if (!vbench_apart())
		return (int)(n % (uint64_t)vb.group);
	if (!vbench.reuse_percent || b->validating)
		return (int)(n % vbench.buffer_count);
	if ((n + 1) * vbench.reuse_percent / 100 > again)
		return 0;
	return 1 + (int)((n - again) % (vbench.buffer_count - 1));
}

int vbench_sblocks(const struct bench *b)
{
	bool used = vb_side_is_active(vbench_is_one_sided() ? !b->side : b->side);

	return used ? blocks(b) * b->peers : 0;
}

int vbench_rblocks(const struct bench *b)
{
	bool used = vbench_is_one_sided() ? vbench_is_active(b) : vb_is_target(b);

	return used ? blocks(b) * b->peers : 0;
}

/* ---- --sweep ------------------------------------------------------------------------ */

enum { QUEUE_SWEPT = 128 };		/* swept when --queue is none */
static uint64_t swept_last;

static bool swept_value(int i, double *out)
{
	if (i > 31 || UINT64_C(1) << i > swept_last)
		return false;
	*out = (double)(UINT64_C(1) << i);
	return true;
}

static void queue_set(double value)
{
	vbench.queue = (uint64_t)value;
}

static void qps_set(double value)
{
	vbench.qps = (uint64_t)value;
}

static void buffers_set(double value)
{
	vbench.buffer_count = (uint64_t)value;
}

static bool reuse_value(int i, double *out)
{
	*out = 10 * i;
	return i <= 10;
}

static void reuse_set(double value)
{
	vbench.reuse_percent = (uint64_t)value;
}

/* The largest value stays set until the first row, so that queues are opened for it. */
const struct bench_axis *vbench_axis(void)
{
	static const struct bench_axis queue = {
		"queue", "messages", "Queue length (messages)", swept_value, queue_set,
	};
	static const struct bench_axis qps = {
		"qps", "queue pairs", "Queue pairs", swept_value, qps_set,
	};
	static const struct bench_axis buffers = {
		"buffers", "buffers", "Buffers used in turn", swept_value, buffers_set,
	};
	static const struct bench_axis reuse = {
		"reuse", "%", "Messages that use one buffer again (%)", reuse_value, reuse_set,
	};

	switch (vbench.sweep) {
	case VBENCH_QUEUES:
		vbench.queue = swept_last = has_queue() ? vbench.queue : QUEUE_SWEPT;
		return &queue;
	case VBENCH_QPS:
		swept_last = vbench.qps;
		return &qps;
	case VBENCH_BUFFERS:
		swept_last = vbench.buffer_count;
		return &buffers;
	case VBENCH_REUSE:
		return &reuse;
	default:
		return NULL;
	}
}

/* ---- What goes together ---------------------------------------------------------------- */

static int refused(const char *option, const char *value, const char *why, const char *accepted)
{
	rg_error("--%s %s: %s (accepted: %s)", option, value, why, accepted);
	return -EINVAL;
}

int vb_check(void)
{
	const char *op = name_of(vbench_ops, vbench.op);
	const char *arrival = name_of(vbench_arrivals, vbench.arrival);

	if (vbench.transport == VBENCH_UD && vbench.op != VBENCH_SEND)
		return refused("op", op, "not by --transport UD", "send");
	if (vbench.transport == VBENCH_UC && vbench_is_one_sided())
		return refused("op", op, "not by --transport UC", "send, write");
	if (vbench.completion != VBENCH_BY_WINDOW && vbench.op != VBENCH_WRITE)
		return refused("completion", name_of(vbench_completions, vbench.completion),
			       "only with --op write", "window");
	if (vbench.arrival == VBENCH_MEMORY && vbench.op != VBENCH_WRITE)
		return refused("arrival", arrival, "only a write is seen in memory",
			       "auto, cq, event");
	if (vbench.arrival == VBENCH_MEMORY && vbench_apart())
		return refused("arrival", arrival, "not with --buffer-count: a buffer still has "
			       "earlier data", "auto, cq, event");
	if ((vbench.reuse_percent || vbench.sweep == VBENCH_REUSE) && !vbench_apart())
		return refused("buffer-count", "1", "all messages use one buffer", "2 to 16384");
	if (vbench_apart() && vb_may_lose())
		return refused("transport", name_of(vbench_transports, vbench.transport),
			       "not with --buffer-count", "RC");
	if (vbench.arrival == VBENCH_MEMORY && vbench.transport == VBENCH_UC)
		return refused("arrival", arrival, "a write that is lost would be waited for",
			       "auto, cq, event");
	return 0;
}

static const struct opt_choice *way_choice(int way)
{
	const struct opt_choice *c = railmpi_ways();

	while (c->value != way)
		c++;
	return c;
}

unsigned vb_way_traits(int way)
{
	return way_choice(way)->traits;
}

/* Striping needs RC: a message that loses a piece is neither right nor missing. */
int vb_check_way(int way)
{
	const struct opt_choice *c = way_choice(way);

	if (c->traits == RAILMPI_USES_ALL && bench_def.layout == BENCH_STAR)
		return refused("over", c->name, "a master and its slaves are no pairs",
			       "single, single:N, stripe");
	if (c->traits & RAILMPI_CUTS && vb_may_lose())
		return refused("over", c->name, "only by --transport RC", "single, single:N, bind");
	return 0;
}

void vb_describe(char *text, size_t size)
{
	static const char *const arrivals[] = {
		[VBENCH_MEMORY] = "seen in memory", [VBENCH_CQ] = "seen in the completion queue",
		[VBENCH_EVENT] = "announced by an event",
	};

	/* A column for each arrival has it in its name. */
	const char *arrival = bench_def.variants ? "" : arrivals[vb_arrival()];

	snprintf(text, size, "%s by %s, %s%d queue pair%s on each rail in use",
		 name_of(vbench_ops, vbench.op), name_of(vbench_transports, vbench.transport),
		 vbench.sweep == VBENCH_QPS ? "1 to " : "", vb.open_qps,
		 vb.open_qps == 1 ? "" : "s");
	if (bench_def.layout == BENCH_STAR)
		rg_text_add(text, size, " for each slave, %s",
			    vbench.direction == VBENCH_OUT ? "the master sends" : "slaves send");
	if (vbench.completion != VBENCH_BY_WINDOW)
		rg_text_add(text, size, ", pieces of stripes announced by %s",
			    vbench.completion == VBENCH_BY_CONTROL ? "control messages" :
			    "immediates");
	if (vbench.sweep == VBENCH_BUFFERS)
		rg_text_add(text, size, ", from and to 1 to %" PRIu64 " buffers", swept_last);
	else if (vbench_apart())
		rg_text_add(text, size, ", from and to %" PRIu64 " buffers", vbench.buffer_count);
	if (vbench.registration != VBENCH_AHEAD)
		rg_text_add(text, size, ", registered %s",
			    vbench.registration == VBENCH_CACHE ? "through the cache" : "for each message");
	if (vb_is_single())
		rg_text_add(text, size, "%s%s%s, inline up to %u bytes", *arrival ? ", " : "",
			    arrival, may_see_memory() && vbench.arrival == VBENCH_AUTO &&
			    !vb.ends_last ? ", since " VB_NO_LAST_BYTE : "", vb.inline_bytes);
	else if (vbench.sweep == VBENCH_QUEUES)
		rg_text_add(text, size, ", half of the queue to all of it outstanding");
	else if (has_queue())
		rg_text_add(text, size, ", %d to %d messages outstanding", half(vbench.queue),
			    vbench.queue < 2 ? 1 : 2 * half(vbench.queue));
	else
		rg_text_add(text, size, ", window of %d messages%s", vb.window,
			    vb_has_replies() ? " and a reply" : "");
}

struct bench_origin vbench_expect(const struct bench *b, int block)
{
	int place = block, group = vbench_group(b);

	/* A master has a part of its buffers for each slave. */
	if (bench_def.layout == BENCH_STAR)
		return b->side ? (struct bench_origin){ b->peer, (b->rank - 1) * group + block } :
			(struct bench_origin){ b->peer + block / group, block % group };
	if (vb_may_lose() && block < vb.places)
		place = vb.place[block];
	return (struct bench_origin){ .rank = place < 0 ? BENCH_LOST : b->peer, .block = place };
}
