/*
 * messages.c - groups of messages: posted, complete, arrived.
 *
 * An immediate has 14 bits of its group's number and 16 bits of the message's place in the group.
 * A reply has the top bit and the group's number.  Few groups are under way, so 14 bits identify
 * one.
 */
#include "vbench/messages.h"
#include "vbench/die.h"
#include "vbench/options.h"
#include "vbench/register.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "util/clock.h"
#include "util/err.h"

enum {
	POLLS = 16,			/* completions taken at once */
	SPINS = 2000,			/* empty polls before the core is yielded */
	GROUP_BITS = 14, PLACE_BITS = 16, GROUP_MASK = (1 << GROUP_BITS) - 1,
	PLACE_MASK = (1 << PLACE_BITS) - 1,
};
#define REPLY UINT32_C(0x80000000)
#define REPLY_WR UINT64_MAX		/* wr_id of a reply */

/* The first message of a group may be as late as a sender that waits for a lost reply. */
#define FIRST_WAIT_NS (REPLY_WAIT_NS + LOSS_WAIT_NS)

/* ---- Waiting ---------------------------------------------------------------------------- */

struct wait {
	unsigned empty;			/* empty polls */
	uint64_t since_ns;		/* 0: the clock was not read yet */
};

void vb_arm(struct vrb_cq *cq)
{
	int rc = ibv_req_notify_cq(cq->cq, 0);

	if (rc)
		vb_die("no event of a completion queue", strerror(abs(rc)));
}

/*
 * With --arrival event each poll follows an event, which was armed before the poll.  A completion
 * between arming and polling leaves a stale event.  false: no event within limit_ns (0: no limit).
 */
static bool event_wait(struct vrb_cq *cq, uint64_t limit_ns)
{
	int rc = vrb_cq_wait(cq, limit_ns ? limit_ns : UINT64_MAX / 2);

	if (rc == -ETIMEDOUT)
		return false;
	if (rc)
		vb_die("no event of a completion queue", strerror(abs(rc)));
	vb_arm(cq);
	return true;
}

/* Wait after an empty poll.  false: limit_ns have passed since the last message (0: no limit). */
static bool wait_more(struct wait *w, uint64_t limit_ns)
{
	if (++w->empty < SPINS) {
		rg_relax(UINT64_MAX);
		return true;
	}
	rg_yield();
	if (!limit_ns)
		return true;
	if (!w->since_ns)
		w->since_ns = rg_now_ns();
	return rg_now_ns() - w->since_ns < limit_ns;
}

static void wait_again(struct wait *w)
{
	w->empty = 0;
	w->since_ns = 0;
}

/* A receive is flushed since a send has failed, whose completion has the reason. */
static void fails(enum ibv_wc_status status)
{
	struct ibv_wc wc;

	for (int r = 0; r < vb.rails; r++)
		while (status == IBV_WC_WR_FLUSH_ERR && ibv_poll_cq(vb.rail[r].send.cq, 1, &wc) > 0)
			status = wc.status == IBV_WC_SUCCESS ? status : wc.status;
	vb_die("a queue pair has failed", vrb_wc_text(status));
}

/* Poll up to `most` completions; a failed one ends the job. */
static int look(struct vrb_cq *cq, struct ibv_wc wc[POLLS], int most)
{
	int got = ibv_poll_cq(cq->cq, most, wc);

	if (got < 0)
		vb_die("a completion queue", strerror(-got));
	for (int i = 0; i < got; i++)
		if (wc[i].status != IBV_WC_SUCCESS)
			fails(wc[i].status);
	return got;
}

/* ---- Posting ------------------------------------------------------------------------------ */

static uint32_t immediate(uint64_t group, int i)
{
	return (uint32_t)(group & GROUP_MASK) << PLACE_BITS | (uint32_t)i;
}

static enum ibv_wr_opcode opcode(bool last)
{
	static const enum ibv_wr_opcode plain[] = {
		[VBENCH_SEND] = IBV_WR_SEND, [VBENCH_WRITE] = IBV_WR_RDMA_WRITE,
		[VBENCH_READ] = IBV_WR_RDMA_READ, [VBENCH_FADD] = IBV_WR_ATOMIC_FETCH_AND_ADD,
		[VBENCH_CSWAP] = IBV_WR_ATOMIC_CMP_AND_SWP,
	};

	if (vbench.op == VBENCH_SEND && vb_may_lose())
		return IBV_WR_SEND_WITH_IMM;
	if (vbench.op == VBENCH_WRITE &&
	    (vb.notice == NOTICE_EACH || (vb.notice == NOTICE_LAST && last)))
		return IBV_WR_RDMA_WRITE_WITH_IMM;
	return plain[vbench.op];
}

static void way_name(struct ibv_send_wr *wr, const struct vb_lane *lane)
{
	if (vbench.transport != VBENCH_UD)
		return;
	wr->wr.ud.ah = lane->qp.ah;
	wr->wr.ud.remote_qpn = lane->qp.peer_qpn;
	wr->wr.ud.remote_qkey = VRB_QKEY;
}

void vb_requests_set(const struct vb_rail *r, struct vb_lane *lane)
{
	lane->from = (uintptr_t)(vb.one_sided ? lane->rbuf : lane->sbuf) + r->at;
	lane->to = (vb.one_sided ? lane->their_sbuf : lane->their_rbuf) + r->at;
	lane->piece = (struct ibv_sge){
		.length = (uint32_t)r->bytes,
		.lkey = vb.registers ? 0 : vb.one_sided ? r->rmr->lkey : r->smr->lkey,
	};
	for (int last = 0; last < 2; last++) {
		struct ibv_send_wr *wr = &lane->wr[last];

		*wr = (struct ibv_send_wr){
			.next = r->after[last], .sg_list = &lane->piece,
			.num_sge = r->bytes ? 1 : 0, .opcode = opcode(last),
			.send_flags = last ? vb.last_flags : 0,
		};
		if (!vb.one_sided && r->bytes <= vb.inline_bytes)
			wr->send_flags |= IBV_SEND_INLINE;
		if (vb_is_atomic())
			wr->wr.atomic.rkey = lane->their_skey;
		else if (vb.names_memory)
			wr->wr.rdma.rkey = vb.one_sided ? lane->their_skey : lane->their_rkey;
		way_name(wr, lane);
	}
}

/* Post the lane's piece of message i of the group, at `place` in the buffers. */
static inline void piece_post(const struct bench *b, struct vb_lane *lane, int i, int place,
			      bool last)
{
	const size_t at = (size_t)place * b->step;
	struct ibv_send_wr *bad, *wr = &lane->wr[last];
	int rc;

	lane->piece.addr = lane->from + at;
	wr->wr_id = vb.posted;
	wr->imm_data = htonl(immediate(vb.posted, i));
	/* remote_addr has the same offset in wr.rdma and wr.atomic. */
	if (vb.names_memory)
		wr->wr.rdma.remote_addr = lane->to + at;
	if (vb_is_atomic()) {
		wr->wr.atomic.compare_add = vbench.op == VBENCH_FADD ? 1 : vb.word;
		wr->wr.atomic.swap = vb.word + 1;
		vb.word++;
	}
	rc = ibv_post_send(lane->qp.qp, wr, &bad);
	if (rc)
		vb_die("a message cannot be posted", strerror(abs(rc)));
}

/* The queue pair of the first message of the next group: they take turns. */
static inline int first_lane(void)
{
	return vb.qps == 1 ? 0 : (int)(vb.posted * (uint64_t)vb.group % (uint64_t)vb.qps);
}

/* Post a group for each of several peers, message by message in turn. */
static void post_to_all(const struct bench *b)
{
	int lane = first_lane();

	for (int i = 0; i < vb.group; i++) {
		bool last = i >= vb.group - vb.lanes;

		for (int p = 0; p < vb.peers; p++)
			for (int r = vb.out.first; r < vb.out.last; r++)
				piece_post(b, vb_lane(&vb.rail[r], p, lane), i, i, last);
		lane = lane + 1 < vb.qps ? lane + 1 : 0;
	}
	vb.posted++;
}

/*
 * --registration: set the keys of the group's message i, at `place`, for its pieces on all rails.
 */
static void keys_set(const struct bench *b, int lane, int i, int place)
{
	const uintptr_t from = (uintptr_t)(vb.one_sided ? b->rbuf : b->sbuf);
	struct ibv_mr *const *mr = vb_register(i, from + (size_t)place * b->step, (size_t)b->count);

	for (int r = vb.out.first; mr && r < vb.out.last; r++)
		vb.rail[r].lane[lane].piece.lkey = mr[r]->lkey;
}

void vbench_post(struct bench *b)
{
	const uint64_t first = vb.posted * (uint64_t)vb.group;
	int lane = first_lane();

	if (vb.notice == NOTICE_CONTROL)
		for (int r = vb.out.first; r < vb.out.last; r++)
			vb.rail[r].control[1].wr_id = vb.posted;
	if (vb.peers > 1) {
		post_to_all(b);
		return;
	}
	/* The last byte changes, so that the receiver sees the message. */
	if (vb.in_memory && !b->validating)
		b->sbuf[b->count - 1] = ++vb.stamp;
	for (int i = 0; i < vb.group; i++) {
		bool last = i >= vb.group - vb.lanes;
		int place = vb.apart ? vb_place(b, first + (uint64_t)i) : i;

		if (vb.registers)
			keys_set(b, lane, i, place);
		for (int r = vb.out.first; r < vb.out.last; r++)
			piece_post(b, &vb.rail[r].lane[lane], i, place, last);
		lane = lane + 1 < vb.qps ? lane + 1 : 0;
	}
	vb.posted++;
}

/* Completions of what was posted; a failed one ends the job. */
static int posted_take(void)
{
	const int most = vb.events < POLLS ? vb.events : POLLS;
	struct ibv_wc wc[POLLS];
	int got = 0;

	for (int r = vb.out.first; r < vb.out.last; r++) {
		int n = look(&vb.rail[r].send, wc, most);

		for (int i = 0; i < n; i++)
			vb.done[wc[i].wr_id % GROUPS_OUT]++;
		got += n;
	}
	return got;
}

void vbench_complete(struct bench *b, unsigned left)
{
	const bool sleeps = vb.one_sided && vb.sleeps;
	struct wait w = { 0 };

	while (vb.posted - vb.completed > left) {
		int *done = &vb.done[vb.completed % GROUPS_OUT];

		if (*done == vb.events) {
			*done = 0;
			if (vb.registers)
				vb_unregister_group(vb.completed);
			vb.completed++;
			continue;
		}
		if (sleeps)
			event_wait(&vb.rail[vb.out.first].send, 0);
		if (posted_take())
			wait_again(&w);
		else if (!sleeps)
			wait_more(&w, 0);
	}
}

/* ---- Receives -------------------------------------------------------------------------------- */

void vb_receives_post(const struct bench *b, struct vb_rail *r, struct vb_lane *lane)
{
	const uint64_t index = (uint64_t)(lane - r->lane);
	struct ibv_sge sge[2] = { { 0 } };
	struct ibv_recv_wr *bad, wr = { .sg_list = sge };

	for (; lane->posted < lane->total && lane->posted - lane->taken < vb.recv_depth;
	     lane->posted++) {
		uint64_t n = lane->posted * (uint64_t)vb.qps + (uint64_t)lane->turn;
		int place = vb_place(b, n), rc;

		wr.num_sge = 0;
		if (vbench.transport == VBENCH_UD)
			sge[wr.num_sge++] = (struct ibv_sge){ (uintptr_t)r->aside->addr,
							      VRB_GRH_BYTES, r->aside->lkey };
		/* Receives of writes and replies take no data. */
		if (vbench.op == VBENCH_SEND && vb.target && r->bytes)
			sge[wr.num_sge++] = (struct ibv_sge){
				(uintptr_t)lane->rbuf + (size_t)place * b->step + r->at,
				(uint32_t)r->bytes, r->rmr->lkey,
			};
		else if (vb.notice == NOTICE_CONTROL && vb.target)
			sge[wr.num_sge++] = (struct ibv_sge){
				(uintptr_t)r->aside->addr + ASIDE_IN, CONTROL_BYTES, r->aside->lkey,
			};
		wr.wr_id = index << 32 | (uint32_t)place;
		rc = ibv_post_recv(lane->qp.qp, &wr, &bad);
		if (rc)
			vb_die("a receive cannot be posted", strerror(abs(rc)));
	}
}

/* The distance of the immediate's group from the group that is arriving; negative: late. */
static int ahead(uint32_t imm)
{
	int group = (int)(imm >> PLACE_BITS & GROUP_MASK);
	int distance = group - (int)(vb.arrived & GROUP_MASK);

	if (distance > GROUP_MASK / 2)
		distance -= GROUP_MASK + 1;
	else if (distance < -GROUP_MASK / 2)
		distance += GROUP_MASK + 1;
	return distance;
}

static void message_take(struct vb_rail *r, const struct ibv_wc *wc)
{
	const uint32_t imm = wc->wc_flags & IBV_WC_WITH_IMM ? ntohl(wc->imm_data) : 0;
	const int place = (int)(imm & PLACE_MASK);

	if (imm & REPLY) {
		vb.replies++;
		vb.reply = imm & ~REPLY;
		return;
	}
	vb.messages++;
	r->arrived++;
	if (vb.notice != NOTICE_LAST && !vb_may_lose())
		return;
	if (ahead(imm) >= 0 && ahead(imm) < GROUPS_OUT)
		vb.noticed[(vb.arrived + (uint64_t)ahead(imm)) % GROUPS_OUT]++;
	/* The data of a send are at the receive's place, the data of a write at their own. */
	if (vb_may_lose() && place < vb.group)
		vb.place[vbench.op == VBENCH_SEND ? (int)(uint32_t)wc->wr_id : place] = place;
}

int vb_take(const struct bench *b)
{
	struct ibv_wc wc[POLLS];
	int taken = 0;

	for (int i = vb.in.first; i < vb.in.last; i++) {
		struct vb_rail *r = &vb.rail[i];
		int got = look(&r->recv, wc, POLLS);

		for (int k = 0; k < got; k++) {
			struct vb_lane *lane = &r->lane[wc[k].wr_id >> 32];

			message_take(r, &wc[k]);
			lane->taken++;
			vb_receives_post(b, r, lane);
		}
		taken += got;
	}
	return taken;
}

/* ---- Arrivals -------------------------------------------------------------------------------- */

/*
 * Validated data differ from the data before.  Other data end in a number that each message
 * increases by one: with both sides at once the next message may have arrived, too.
 */
static bool is_in_memory(const struct bench *b)
{
	const _Atomic unsigned char *last =
		(const _Atomic unsigned char *)(b->rbuf + b->count - 1);
	unsigned char now = atomic_load_explicit(last, memory_order_acquire);
	unsigned char news = (unsigned char)(now - vb.before - (unsigned char)vb.arrived);

	return b->validating ? now != vb.before : news > 0 && news < 128;
}

/* Memory does not tell that nothing comes: a message of this side that has failed does. */
static void memory_arrive(const struct bench *b)
{
	struct wait w = { 0 };

	while (!is_in_memory(b)) {
		wait_more(&w, 0);
		if (w.empty >= SPINS && vb.posted > vb.completed)
			posted_take();
	}
}

/* Is the group that is arriving whole, or certain to stay incomplete? */
static bool is_over(void)
{
	if (vb.notice == NOTICE_LAST)
		return vb.noticed[vb.arrived % GROUPS_OUT] == vb.events;
	if (!vb_may_lose())
		return vb.messages >= (vb.arrived + 1) * vb.pieces;
	if (vb.noticed[vb.arrived % GROUPS_OUT] == vb.group)
		return true;
	for (int i = 1; i < GROUPS_OUT; i++)
		if (vb.noticed[(vb.arrived + (uint64_t)i) % GROUPS_OUT])
			return true;
	return false;
}

void vbench_arrive(struct bench *b)
{
	struct wait w = { 0 };
	int *noticed = &vb.noticed[vb.arrived % GROUPS_OUT];

	if (vb.in_memory) {
		memory_arrive(b);
		vb.arrived++;
		return;
	}
	while (!is_over()) {
		uint64_t limit_ns = !vb_may_lose() ? 0 : *noticed ? LOSS_WAIT_NS : FIRST_WAIT_NS;

		if (vb.sleeps && !event_wait(&vb.rail[vb.in.first].recv, limit_ns))
			break;
		if (vb_take(b))
			wait_again(&w);
		else if (!vb.sleeps && !wait_more(&w, limit_ns))
			break;
	}
	*noticed = 0;
	vb.arrived++;
}

/* ---- Replies ------------------------------------------------------------------------- */

void vb_replies_complete(uint64_t left)
{
	struct ibv_wc wc[POLLS];
	struct wait w = { 0 };

	do {
		int got = look(&vb.rail[vb.out.first].send, wc, POLLS);

		vb.replies_out -= (uint64_t)got;
		if (!got && vb.replies_out > left)
			wait_more(&w, 0);
	} while (vb.replies_out > left);
}

static void reply_post(struct vb_lane *lane)
{
	struct ibv_send_wr *bad, wr = {
		.wr_id = REPLY_WR, .opcode = IBV_WR_SEND_WITH_IMM,
		.imm_data = htonl(REPLY | (uint32_t)(vb.arrived & GROUP_MASK)),
		.send_flags = IBV_SEND_SIGNALED,
	};
	int rc;

	vb_replies_complete(vb.send_depth - 1);
	way_name(&wr, lane);
	rc = ibv_post_send(lane->qp.qp, &wr, &bad);
	if (rc)
		vb_die("a reply cannot be posted", strerror(abs(rc)));
	vb.replies_out++;
}

void vbench_reply(void)
{
	for (int p = 0; p < vb.peers; p++)
		reply_post(vb_lane(&vb.rail[vb.out.first], p, 0));
}

/* Wait for the reply to the last group posted; without one, until the limit. */
void vbench_await_reply(struct bench *b)
{
	const uint64_t replies = vb.posted * (uint64_t)vb.peers;
	struct wait w = { 0 };

	while (vb_may_lose() ? vb.reply != (vb.posted & GROUP_MASK) : vb.replies < replies) {
		if (vb_take(b))
			wait_again(&w);
		else if (!wait_more(&w, vb_may_lose() ? REPLY_WAIT_NS : 0))
			break;
	}
}

/* ---- Runs ----------------------------------------------------------------------------- */

static void queue_run(struct bench *b)
{
	if (vb.active) {
		/*
		 * The first run of a batch fills the queue, half of which is at least one message.
		 */
		if (!vb.posted && vbench.queue > 1)
			vbench_post(b);
		vbench_post(b);
		vbench_complete(b, vbench.queue > 1 ? 1 : 0);
	}
	if (vb.target && vb.notice != NOTICE_NONE)
		vbench_arrive(b);
}

void vbench_finish(struct bench *b)
{
	vbench_complete(b, 0);
	if (vb.replies_wanted && vb.active)
		vbench_await_reply(b);
}

static void window_run(struct bench *b)
{
	if (vb.active)
		vbench_post(b);
	if (vb.target)
		vbench_arrive(b);
	if (vb.replies_wanted && vb.target)
		vbench_reply();
	vbench_finish(b);
}

static void ping_pong(struct bench *b)
{
	if (b->side == 1)
		vbench_arrive(b);
	vbench_post(b);
	/* The message before is complete then, since its answer has arrived. */
	vbench_complete(b, 1);
	if (b->side == 0)
		vbench_arrive(b);
}

void vb_run_set(void)
{
	bool in_turn = vbench_shape == VBENCH_PING_PONG && !vbench.bidir && !vb.one_sided;

	vb.run = in_turn ? ping_pong : vb_streams() ? queue_run : window_run;
}

void vbench_run(struct bench *b)
{
	vb.run(b);
}
