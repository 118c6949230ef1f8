/* ends.c - adapters, queue pairs and registrations of this rank, and their connection. */
#include "vbench/ends.h"
#include "vbench/die.h"
#include "vbench/options.h"
#include "vbench/register.h"

#include <errno.h>
#include <inttypes.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "util/clock.h"
#include "util/err.h"

enum {
	HELLO_TAG = 11,
	INLINE_AUTO = 256,
	RECEIVES_MORE = 16,		/* receives beyond two groups */
	RECEIVES_LOSSY = 512,		/* a receiver that is late would lose messages */
	SENDS_MORE = 4,
	MARK = 77,			/* wr_id of the last request of a queue */
	CLOSE_NS = 1000000000,
};

static unsigned char *aside;		/* ASIDE_BYTES; NULL: not needed */

/* ---- Depths ------------------------------------------------------------------------- */

static int by_lane(int group)
{
	/* The whole group, if some rows have a single queue pair. */
	int lanes = vbench.sweep == VBENCH_QPS ? 1 : vb.open_qps;

	return (group + lanes - 1) / lanes;
}

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* Find the depths of queues; an error names the option that exceeds the device. */
static int depths_find(const struct vb_rail *r, int group)
{
	const struct ibv_device_attr *has = &r->adapter.attr;
	const bool queue = vbench.queue != OPT_SPECIAL;
	uint32_t each = vbench.completion == VBENCH_BY_CONTROL ? 2 : 1;	/* requests of a piece */
	uint32_t most = (uint32_t)has->max_qp_wr, want = 2 * each * (uint32_t)by_lane(group);
	uint32_t ahead = vb_may_lose() ? RECEIVES_LOSSY : RECEIVES_MORE;

	if (vb.open_lanes > has->max_qp) {
		rg_error("--qps %d: %s has %d queue pairs (accepted: 1 to %d)", vb.open_qps,
			 r->port->name, has->max_qp,
			 has->max_qp / (vb.open_lanes / vb.open_qps));
		return -EINVAL;
	}
	if (want + SENDS_MORE > most) {
		most = (most - SENDS_MORE) / each / (queue ? 1 : 2) * (uint32_t)vb.open_qps;
		rg_error("--%s %" PRIu64 ": %s grants a queue pair %d requests (accepted: 1 to %u)",
			 queue ? "queue" : "window", queue ? vbench.queue : (uint64_t)vb.window,
			 r->port->name, has->max_qp_wr, most);
		return -EINVAL;
	}
	vb.send_depth = want + SENDS_MORE;
	vb.recv_depth = least(least(want + ahead, most), (uint32_t)(has->max_cqe / vb.open_lanes));
	return 0;
}

/* ---- Queue pairs ---------------------------------------------------------------------- */

static int lane_open(struct vb_rail *r, struct vb_lane *lane)
{
	static const enum ibv_qp_type types[] = {
		[VBENCH_RC] = IBV_QPT_RC, [VBENCH_UC] = IBV_QPT_UC, [VBENCH_UD] = IBV_QPT_UD,
	};
	const struct vrb_service service = {
		.type = types[vbench.transport], .send_cq = r->send.cq, .recv_cq = r->recv.cq,
		.atomics = vb_is_atomic(), .patient = true,
	};
	const bool given = vbench.inline_bytes != OPT_SPECIAL;
	const struct vrb_qp_limits want = {
		.send_wr = vb.send_depth, .recv_wr = vb.recv_depth, .send_sge = 1,
		.recv_sge = vbench.transport == VBENCH_UD ? 2 : 1,
		.inline_bytes = given ? (uint32_t)vbench.inline_bytes : INLINE_AUTO,
	};
	int rc = vrb_qp_create_of(&r->adapter, r->port, &service, &want, &lane->qp);

	if (rc)
		return rc;
	if (given && lane->qp.granted.inline_bytes < want.inline_bytes) {
		rg_error("--inline %u: %s grants no more than %u (accepted: 0 to %u)",
			 want.inline_bytes, r->port->name, lane->qp.granted.inline_bytes,
			 lane->qp.granted.inline_bytes);
		return -EINVAL;
	}
	vb.inline_bytes = least(vb.inline_bytes, least(lane->qp.granted.inline_bytes,
						       want.inline_bytes));
	return 0;
}

static int rail_open(struct vb_rail *r, int rail, int group)
{
	const bool events = vb_arrival() == VBENCH_EVENT;
	int rc;

	r->port = railmpi_port(rail);
	rc = vrb_adapter_open(&r->adapter, r->port);
	if (rc)
		return rc;
	vb.ends_last &= r->adapter.ends_last;
	if (vb_is_atomic() && r->adapter.attr.atomic_cap == IBV_ATOMIC_NONE) {
		rg_error("--op: %s has no atomic operations (accepted: send, write, read)",
			 r->port->name);
		return -EINVAL;
	}
	rc = depths_find(r, group);
	if (!rc)
		rc = vrb_cq_create(&r->adapter, (int)vb.send_depth + GROUPS_OUT * vb.open_lanes,
				   events, &r->send);
	if (!rc)
		rc = vrb_cq_create(&r->adapter, (int)vb.recv_depth * vb.open_lanes, events,
				   &r->recv);
	if (rc)
		return rc;
	r->lane = calloc((size_t)vb.open_lanes, sizeof(r->lane[0]));
	if (!r->lane)
		return -ENOMEM;
	for (int i = 0; i < vb.open_lanes && !rc; i++) {
		r->lane[i].turn = i % vb.open_qps;
		rc = lane_open(r, &r->lane[i]);
	}
	return rc;
}

int vb_open(const struct bench *b, int rails)
{
	const int group = vb_group_max(b->window);
	int rc = 0;

	vb.open_qps = vb.qps = (int)vbench.qps;
	vb.open_lanes = vb.open_qps * b->peers;
	vb.window = b->window;
	vb.inline_bytes = UINT32_MAX;
	vb.ends_last = true;
	vb.places = group;
	vb.place = calloc((size_t)group, sizeof(vb.place[0]));
	if (!vb.place) {
		rg_error("no memory for %d messages", group);
		return -ENOMEM;
	}
	for (int i = 0; i < rails && !rc && b->pair >= 0; i++) {
		vb.rails++;
		rc = rail_open(&vb.rail[i], i, group);
	}
	return rc;
}

/* Both ends of a pair take the same way: a rank that may not poll memory decides for all. */
int vb_agree(MPI_Comm all)
{
	int ends_last = vb.ends_last;

	MPI_Allreduce(MPI_IN_PLACE, &ends_last, 1, MPI_INT, MPI_MIN, all);
	vb.ends_last = ends_last;
	if (ends_last)
		return 0;
	if (vbench.arrival == VBENCH_MEMORY) {
		rg_error("--arrival memory: " VB_NO_LAST_BYTE " (accepted: auto, cq, event)");
		return -EINVAL;
	}
	if (bench_def.variants)
		rg_warn("memory: " VB_NO_LAST_BYTE ", so its column may show data that are not whole");
	return 0;
}

const char *vb_sizes(struct opt_range *out)
{
	*out = (struct opt_range){ .min = 0, .max = UINT64_C(1) << 30 };
	if (vb_is_atomic()) {
		out->min = out->max = sizeof(uint64_t);
		return "an atomic operation has 8 bytes";
	}
	if (vbench.transport == VBENCH_UD) {
		for (int i = 0; i < vb.rails; i++)
			if (vrb_mtu_bytes(vb.rail[i].port->active_mtu) < out->max)
				out->max = vrb_mtu_bytes(vb.rail[i].port->active_mtu);
		return "a datagram is no longer than the MTU";
	}
	if (vb_arrival() == VBENCH_MEMORY)
		out->min = 1;
	return "the last byte of a message is polled for";
}

/* ---- Memory ------------------------------------------------------------------------------ */

static int memory_register(struct vb_rail *r, void *at, size_t bytes, struct ibv_mr **out)
{
	bool polled = vb_is_single() && vbench.op == VBENCH_WRITE;
	enum vrb_mr_use use = vb_is_atomic() ? VRB_MR_ATOMIC :
			      polled ? VRB_MR_POLLED : VRB_MR_BULK;
	int rc = vrb_mr_register(&r->adapter, at, bytes, use, out);

	if (rc)
		rg_error("%s: cannot register a buffer of %zu bytes: %s (use smaller --sizes)",
			 r->port->name, bytes, strerror(-rc));
	return rc;
}

int vb_memory(const struct bench *b, size_t sbuf_bytes, size_t rbuf_bytes)
{
	const bool registers = vb_registers(b);
	int rc = registers ? vb_register_open() : 0;

	if (vbench.transport == VBENCH_UD || vbench.completion == VBENCH_BY_CONTROL) {
		MPI_Alloc_mem(ASIDE_BYTES, MPI_INFO_NULL, &aside);
		memset(aside, 0, ASIDE_BYTES);
	}
	for (int i = 0; i < vb.rails && !rc; i++) {
		struct vb_rail *r = &vb.rail[i];

		if (!registers || vbench_is_one_sided())
			rc = memory_register(r, b->sbuf, sbuf_bytes, &r->smr);
		if (!rc && (!registers || !vbench_is_one_sided()))
			rc = memory_register(r, b->rbuf, rbuf_bytes, &r->rmr);
		if (!rc && aside)
			rc = memory_register(r, aside, ASIDE_BYTES, &r->aside);
	}
	return rc;
}

/* ---- To the peers --------------------------------------------------------------------------- */

/*
 * The message of a side to the other: hello, then per rail a hello_rail and its lanes' addresses.
 */
struct hello { uint64_t sbuf, rbuf; };
struct hello_rail { uint32_t skey, rkey; };

static size_t hello_bytes(void)
{
	return sizeof(struct hello) + (size_t)vb.rails * (sizeof(struct hello_rail) +
		(size_t)vb.open_qps * sizeof(struct vrb_address));
}

static void hello_write(const struct bench *b, int peer, unsigned char *at)
{
	struct hello hello = { (uintptr_t)b->sbuf, (uintptr_t)b->rbuf };

	memcpy(at, &hello, sizeof(hello));
	at += sizeof(hello);
	for (int i = 0; i < vb.rails; i++) {
		const struct vb_rail *r = &vb.rail[i];
		/* Keys of memory that this side registers per message are not for the peer. */
		struct hello_rail keys = { r->smr ? r->smr->rkey : 0, r->rmr ? r->rmr->rkey : 0 };

		memcpy(at, &keys, sizeof(keys));
		at += sizeof(keys);
		for (int l = 0; l < vb.open_qps; l++, at += sizeof(struct vrb_address)) {
			struct vrb_address mine;

			vrb_qp_address(&r->adapter, &vb_lane(r, peer, l)->qp, r->port, &mine);
			memcpy(at, &mine, sizeof(mine));
		}
	}
}

static int hello_read(int peer, const unsigned char *at)
{
	struct hello hello;
	int rc = 0;

	memcpy(&hello, at, sizeof(hello));
	at += sizeof(hello);
	for (int i = 0; i < vb.rails && !rc; i++) {
		struct vb_rail *r = &vb.rail[i];
		struct hello_rail keys;

		memcpy(&keys, at, sizeof(keys));
		at += sizeof(keys);
		for (int l = 0; l < vb.open_qps && !rc; l++, at += sizeof(struct vrb_address)) {
			struct vb_lane *lane = vb_lane(r, peer, l);

			lane->peer_sbuf = hello.sbuf;
			lane->peer_rbuf = hello.rbuf;
			lane->their_skey = keys.skey;
			lane->their_rkey = keys.rkey;
			memcpy(&lane->theirs, at, sizeof(lane->theirs));
			rc = vrb_qp_connect(&r->adapter, &lane->qp, r->port, &lane->theirs);
		}
	}
	return rc;
}

int vb_connect(const struct bench *b)
{
	const size_t bytes = hello_bytes();
	unsigned char *mine, *theirs;
	int rc = 0;

	if (b->pair < 0)
		return 0;
	mine = malloc(2 * bytes);
	if (!mine)
		vb_die("no memory for addresses", strerror(ENOMEM));
	theirs = mine + bytes;
	/* Answer all peers even after a failure, since each waits. */
	for (int p = 0; p < b->peers; p++) {
		int failed;

		hello_write(b, p, mine);
		MPI_Sendrecv(mine, (int)bytes, MPI_BYTE, b->peer + p, HELLO_TAG, theirs, (int)bytes,
			     MPI_BYTE, b->peer + p, HELLO_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		failed = hello_read(p, theirs);
		rc = rc ? rc : failed;
	}
	free(mine);
	return rc;
}

static void cq_empty(struct vrb_cq *cq)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(cq->cq, 1, &wc) > 0)
		;
}

void vb_reset(void)
{
	for (int i = 0; i < vb.rails; i++) {
		struct vb_rail *r = &vb.rail[i];
		int rc = 0;

		for (int l = 0; l < vb.open_lanes && !rc; l++) {
			rc = vrb_qp_reset(&r->lane[l].qp, r->port);
			if (!rc)
				rc = vrb_qp_connect(&r->adapter, &r->lane[l].qp, r->port,
						    &r->lane[l].theirs);
		}
		if (rc)
			vb_die("queue pairs cannot be set back", strerror(abs(rc)));
		cq_empty(&r->send);
		cq_empty(&r->recv);
	}
}

/* ---- The end ------------------------------------------------------------------------ */

/* Drain a queue pair before it is destroyed: some kernels' devices require it. */
static void rail_drain(struct vb_rail *r)
{
	const uint64_t end_ns = rg_now_ns() + CLOSE_NS;
	int marks = 0;

	for (int l = 0; r->lane && l < vb.open_lanes; l++)
		marks += vrb_qp_stop_marked(&r->lane[l].qp, MARK);
	while (marks > 0 && rg_now_ns() < end_ns) {
		struct ibv_wc wc;

		if (ibv_poll_cq(r->send.cq, 1, &wc) > 0 || ibv_poll_cq(r->recv.cq, 1, &wc) > 0)
			marks -= wc.wr_id == MARK;
		else
			rg_yield();
	}
}

static void rail_close(struct vb_rail *r)
{
	for (int l = 0; r->lane && l < vb.open_lanes; l++)
		vrb_qp_destroy(&r->lane[l].qp);
	free(r->lane);
	vrb_mr_deregister(r->smr);
	vrb_mr_deregister(r->rmr);
	vrb_mr_deregister(r->aside);
	vrb_cq_destroy(&r->send);
	vrb_cq_destroy(&r->recv);
	vrb_adapter_close(&r->adapter);
}

void vb_close(void)
{
	for (int i = 0; i < vb.rails; i++)
		rail_drain(&vb.rail[i]);
	vb_register_close();
	for (int i = 0; i < vb.rails; i++)
		rail_close(&vb.rail[i]);
	if (aside)
		MPI_Free_mem(aside);
	aside = NULL;
	free(vb.place);
	memset(&vb, 0, sizeof(vb));
}

int vb_ledger(int rail, struct rail_ledger *out)
{
	const struct rail_ledger *l;
	int rc = rail < RAILMPI_RAILS_MAX ? railmpi_ledger(rail, out) : -ENOENT;

	if (rc)
		return rc;
	l = &vb.rail[rail].ledger;
	/* Keep only the adapter's count of librail's ledger. */
	*out = (struct rail_ledger){
		.tx_messages = l->tx_messages, .tx_chunks = l->tx_chunks, .tx_bytes = l->tx_bytes,
		.rx_messages = l->rx_messages, .rx_chunks = l->rx_chunks, .rx_bytes = l->rx_bytes,
		.retries = out->retries,
	};
	return 0;
}
