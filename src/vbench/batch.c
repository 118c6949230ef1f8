/* batch.c - before and after a batch of runs: receives posted ahead, lost messages, the ledger. */
#include "vbench/batch.h"
#include "vbench/ends.h"
#include "vbench/held.h"
#include "vbench/messages.h"
#include "vbench/options.h"
#include "vbench/register.h"

#include <string.h>

#include "util/clock.h"
#include "util/text.h"

enum { BATCH_TAG = 12, NAP_NS = 1000000 };

/* The message between the sides at the beginning and end of a batch. */
struct note {
	uint64_t word;			/* atomics: the value of the first 8 bytes of sbuf */
	uint64_t groups;		/* groups posted for each peer */
	uint8_t last;			/* last byte of rbuf, which the side polls */
	uint8_t left;			/* nonzero: receives are left over */
};

/* Exchange notes with all peers; returns the sum of their groups. */
static struct note exchange(const struct bench *b, struct note mine)
{
	struct note all = { 0 };

	for (int p = 0; p < b->peers; p++) {
		struct note theirs;

		MPI_Sendrecv(&mine, sizeof(mine), MPI_BYTE, b->peer + p, BATCH_TAG, &theirs,
			     sizeof(theirs), MPI_BYTE, b->peer + p, BATCH_TAG, MPI_COMM_WORLD,
			     MPI_STATUS_IGNORE);
		theirs.groups += all.groups;
		theirs.left |= all.left;
		all = theirs;
	}
	return all;
}

/*
 * Wait at the passive end of one-sided operations, in naps.  A wait in the MPI library polls, and a
 * read of 65 ns on the other hardware thread of the core then takes more than twice as long.
 */
static void passive_wait(const struct bench *b)
{
	int here = 0;

	while (MPI_Iprobe(b->peer, BATCH_TAG, MPI_COMM_WORLD, &here, MPI_STATUS_IGNORE) ==
	       MPI_SUCCESS && !here)
		rg_sleep_ns(NAP_NS);
}

static uint64_t word_of(const struct bench *b)
{
	uint64_t word = 0;

	if (vb_is_atomic())
		memcpy(&word, b->sbuf, sizeof(word));
	return word;
}

/* ---- The beginning -------------------------------------------------------------------- */

/* The rails for messages that a side of the pair posts.  `bind` is librail's, of P1. */
static struct vb_span rails_of(const struct bench *b, int side)
{
	const unsigned traits = vb_way_traits(b->way);
	struct vb_span all = { 0, vb.rails };
	int one = 0;

	if (traits & RAILMPI_CUTS && (uint64_t)b->count > vbench.threshold)
		return all;
	if (traits == RAILMPI_USES_ALL)
		one = (b->pair + side) % vb.rails;
	else if (b->way >= RAILMPI_SINGLE_RAIL)
		one = b->way - RAILMPI_SINGLE_RAIL;
	return (struct vb_span){ one, one + 1 };
}

/* Set the piece of a message that each of the rails takes. */
static void pieces_set(const struct bench *b, const struct vb_span *rails)
{
	const size_t count = (size_t)b->count, width = (size_t)(rails->last - rails->first);
	const size_t piece = (count + width - 1) / width;

	for (int i = rails->first; i < rails->last; i++) {
		size_t at = (size_t)(i - rails->first) * piece;

		vb.rail[i].at = at < count ? at : count;
		vb.rail[i].bytes = count - vb.rail[i].at < piece ? count - vb.rail[i].at : piece;
		vb.rail[i].arrived = 0;
	}
}

static enum vb_notice notice(void)
{
	if (vbench.op == VBENCH_SEND || (vbench.op == VBENCH_WRITE && vb_may_lose()))
		return NOTICE_EACH;
	if (vb.width > 1 && vbench.completion != VBENCH_BY_WINDOW)
		return vbench.completion == VBENCH_BY_CONTROL ? NOTICE_CONTROL : NOTICE_EACH;
	if (vbench_is_one_sided() || vb_arrival() == VBENCH_MEMORY ||
	    vb_streams())
		return NOTICE_NONE;
	return NOTICE_LAST;
}

/* Set control messages; the completion of a control message covers the piece before it. */
static void control_set(struct vb_rail *r)
{
	const bool used = vb.notice == NOTICE_CONTROL;
	const bool is_inline = vb.inline_bytes >= CONTROL_BYTES;

	if (used)
		r->word = (struct ibv_sge){ (uintptr_t)r->aside->addr + ASIDE_OUT, CONTROL_BYTES,
					    r->aside->lkey };
	for (int last = 0; last < 2; last++) {
		r->control[last] = (struct ibv_send_wr){
			.sg_list = &r->word, .num_sge = 1, .opcode = IBV_WR_SEND,
			.send_flags = (last ? IBV_SEND_SIGNALED : 0) |
				      (is_inline ? IBV_SEND_INLINE : 0),
		};
		r->after[last] = used ? &r->control[last] : NULL;
	}
}

/* The number of messages 0 to count - 1 that go over this lane. */
static uint64_t lane_messages(uint64_t count, int lane)
{
	return (count + (uint64_t)(vb.qps - 1 - lane)) / (uint64_t)vb.qps;
}

/* Receives that the lane needs; a reply comes by the first lane of the first rail. */
static uint64_t receives(const struct bench *b, int rail, int lane)
{
	uint64_t messages = vb.groups * (uint64_t)vb.group;

	if (rail < vb.in.first || rail >= vb.in.last)
		return 0;
	if (!vb_is_target(b))
		return vb_has_replies() && rail == vb.in.first && lane == 0 ? vb.groups : 0;
	if (vb.notice == NOTICE_NONE)
		return 0;
	/* With fewer messages than queue pairs each message is the last on its queue pair. */
	if (vb.notice == NOTICE_LAST && vb.group >= vb.qps)
		return vb.groups;
	return lane_messages(messages, lane);
}

/*
 * Set the lane's part of the buffers.  A master has a part for each slave: the lane takes the
 * peer's.  A slave uses its whole buffers, and its part of the master's.
 */
static void parts_set(const struct bench *b, struct vb_lane *lane, int peer)
{
	const size_t part = (size_t)vb.group * b->step, mine = (size_t)peer * part;
	const bool slave = bench_def.layout == BENCH_STAR && b->side;
	const size_t theirs = slave ? (size_t)(b->rank - 1) * part : 0;

	lane->sbuf = b->sbuf + mine;
	lane->rbuf = b->rbuf + mine;
	lane->their_sbuf = lane->peer_sbuf + theirs;
	lane->their_rbuf = lane->peer_rbuf + theirs;
}

static void lanes_set(const struct bench *b)
{
	for (int i = 0; i < vb.rails; i++)
		for (int p = 0; p < vb.peers; p++)
			for (int l = 0; l < vb.qps; l++) {
				struct vb_lane *lane = vb_lane(&vb.rail[i], p, l);

				parts_set(b, lane, p);
				lane->posted = lane->taken = 0;
				lane->total = receives(b, i, l);
				if (i >= vb.out.first && i < vb.out.last)
					vb_requests_set(&vb.rail[i], lane);
				vb_receives_post(b, &vb.rail[i], lane);
			}
}

static void options_set(const struct bench *b)
{
	vb.active = vbench_is_active(b);
	vb.target = vb_is_target(b);
	vb.replies_wanted = vb_has_replies();
	vb.apart = vbench_apart();
	vb.registers = vb_registers(b);
	vb.one_sided = vbench_is_one_sided();
	vb.in_memory = vb_arrival() == VBENCH_MEMORY;
	vb.sleeps = vb_arrival() == VBENCH_EVENT;
	vb.names_memory = vb.one_sided || vbench.op == VBENCH_WRITE;
	vb_run_set();
}

void vb_begin(struct bench *b, uint64_t runs)
{
	struct note theirs;

	options_set(b);
	vb.out = rails_of(b, b->side);
	vb.in = rails_of(b, !b->side);
	vb.width = vb.out.last - vb.out.first;
	pieces_set(b, &vb.out);
	pieces_set(b, &vb.in);
	vb.peers = b->peers;
	vb.qps = (int)vbench.qps;
	vb.group = vbench_group(b);
	vb.lanes = vb.group < vb.qps ? vb.group : vb.qps;
	vb.events = vb.lanes * vb.width * vb.peers;
	vb.pieces = (uint64_t)(vb.group * vb.width) * (uint64_t)vb.peers;
	vb.notice = notice();
	vb.last_flags = vb.notice == NOTICE_CONTROL ? 0 : IBV_SEND_SIGNALED;
	for (int i = vb.out.first; i < vb.out.last; i++)
		control_set(&vb.rail[i]);
	/* A queue is full also when its last run begins. */
	vb.groups = runs + (vb_streams() && vbench.queue > 1);
	vb.posted = vb.completed = vb.arrived = vb.messages = vb.replies = vb.replies_out = 0;
	vb.reply = 0;
	memset(vb.done, 0, sizeof(vb.done));
	memset(vb.noticed, 0, sizeof(vb.noticed));
	for (int i = 0; i < vb.places; i++)
		vb.place[i] = -1;
	lanes_set(b);
	if (vb_arrival() == VBENCH_EVENT)
		vb_arm(vbench_is_one_sided() ? &vb.rail[vb.out.first].send :
			&vb.rail[vb.in.first].recv);
	if (vb_arrival() == VBENCH_MEMORY)
		vb.before = b->rbuf[b->count - 1];
	vb.own_word = word_of(b);
	theirs = exchange(b, (struct note){ .word = vb.own_word, .last = vb.before });
	vb.word = theirs.word;
	vb.stamp = theirs.last;
}

/* ---- The end ------------------------------------------------------------------------------- */

/*
 * Take messages that are still under way: all, or where messages can be lost, the messages that
 * come in time.
 */
static void stragglers(struct bench *b, uint64_t messages)
{
	uint64_t since_ns = rg_now_ns();

	while (vb.messages < messages) {
		if (vb_take(b))
			since_ns = rg_now_ns();
		else if (vb_may_lose() && rg_now_ns() - since_ns > LOSS_WAIT_NS)
			break;
		else
			rg_yield();
	}
}

/* Count pieces of messages that went out, or came in, over each of the rails. */
static void count(bool out, const struct vb_span *rails, uint64_t messages, bool arrived_only)
{
	for (int i = rails->first; i < rails->last; i++) {
		struct rail_ledger *l = &vb.rail[i].ledger;
		uint64_t n = arrived_only ? vb.rail[i].arrived : messages;
		bool whole = vb.width == 1;

		*(out ? (whole ? &l->tx_messages : &l->tx_chunks) :
			(whole ? &l->rx_messages : &l->rx_chunks)) += n;
		*(out ? &l->tx_bytes : &l->rx_bytes) += n * vb.rail[i].bytes;
	}
}

static bool receives_left(void)
{
	for (int i = vb.in.first; i < vb.in.last; i++)
		for (int p = 0; p < vb.peers; p++)
			for (int l = 0; l < vb.qps; l++) {
				const struct vb_lane *lane = vb_lane(&vb.rail[i], p, l);

				if (lane->posted != lane->taken)
					return true;
			}
	return false;
}

/* Has every add of the peer added one, and every swap found the value of the swap before? */
static bool atomics_are_right(const struct bench *b, uint64_t groups)
{
	return !vb_is_atomic() || word_of(b) == vb.own_word + groups * (uint64_t)vb.group;
}

bool vb_end(struct bench *b, struct bench_arrivals *out)
{
	const uint64_t each = (uint64_t)vb.group, pieces = (uint64_t)vb.width;
	struct note theirs;
	bool right;

	if (vbench_is_active(b))
		vbench_complete(b, 0);
	vb_replies_complete(0);
	if (vb.one_sided && !vb.active)
		passive_wait(b);
	theirs = exchange(b, (struct note){ .groups = vb.posted });
	if (vb.notice >= NOTICE_EACH)
		stragglers(b, theirs.groups * each * pieces);
	if (vb_is_target(b)) {
		out->expected = theirs.groups * each;
		out->lost = vb_may_lose() && vb.messages < out->expected ?
			out->expected - vb.messages : 0;
	}
	/* Data of a read take the rail of its request. */
	count(!vbench_is_one_sided(), &vb.out, vb.posted * each * (uint64_t)vb.peers, false);
	count(vbench_is_one_sided(), &vb.in, theirs.groups * each, vb_may_lose());
	right = atomics_are_right(b, theirs.groups);
	/*
	 * After this exchange neither side sees messages of the other; receives that are left are
	 * dropped.  Messages to several peers go by RC and leave none.
	 */
	if (receives_left() | exchange(b, (struct note){ .left = receives_left() }).left)
		vb_reset();
	return right;
}

static void describe(char *text, size_t size)
{
	vb_describe(text, size);
	if (bench_def.run == vbench_compute_run && vb.rails &&
	    vb.rail[0].port->kind == VRB_SOFTHCA)
		rg_text_add(text, size, "; processors that compute do the adapter's work, too");
}

/* ---- Steps that ranks agree on ------------------------------------------------------------ */

static int open_held(const struct bench *b, int rails)
{
	vb_hold();
	return vb_held(vb_open(b, rails));
}

static int memory_held(const struct bench *b, size_t sbuf_bytes, size_t rbuf_bytes)
{
	vb_hold();
	return vb_held(vb_memory(b, sbuf_bytes, rbuf_bytes));
}

static int connect_held(const struct bench *b)
{
	vb_hold();
	return vb_held(vb_connect(b));
}

const struct bench_carrier vbench_carrier = {
	.options = (const char *const []){ "rails", "soft", "nodes", "gid-index", "mtu", "sl",
					   "tclass", "pkey", NULL },
	.ways = (const struct opt_choice []){
		{ "single", 0, "one rail: the first, or rail N" },
		{ "bind", 0, "whole messages; side 0 of pair N sends over rail N, modulo rails, side 1 "
		  "over the next" },
		{ "stripe", 0, "even pieces over all rails above --threshold, else the first" },
		{ NULL },
	},
	.check = vb_check,
	.check_way = vb_check_way,
	.open = open_held,
	.agree = vb_agree,
	.sizes = vb_sizes,
	.memory = memory_held,
	.connect = connect_held,
	.begin = vb_begin,
	.end = vb_end,
	.close = vb_close,
	.ledger = vb_ledger,
	.describe = describe,
};
