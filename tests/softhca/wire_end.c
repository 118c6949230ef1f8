/* wire_end.c - see wire_end.h. */
#include "wire_end.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#include "softhca/base/netif.h"
#include "softhca/engine/engine.h"
#include "softhca/softhca.h"
#include "util/clock.h"

#define SECRET "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
enum { LIMIT_S = 60, SETTLED = 64, PASS_NS = 500, FIRST_NUMBER = 0x1000 };

struct wire_host wire;
unsigned char wire_pattern[WIRE_MEMORY];

uint64_t __real_rg_now_ns(void);

/* ---- Waiting ------------------------------ */

static uint64_t limit_ns(void)
{
	return __real_rg_now_ns() + LIMIT_S * UINT64_C(1000000000);
}

static void assert_before(uint64_t limit)
{
	assert_true(__real_rg_now_ns() < limit);
}

static struct hca_fabric *wire_fabric(void)
{
	return hca_context_of(wire.ctx)->fabric;
}

struct hca_wire *wire_state(void)
{
	return wire_fabric()->wire_state;
}

/* The thread of the library may be at it: then another one follows. */
void wire_pass(void)
{
	struct hca_engine *e = hca_engine_of(wire_fabric());
	const uint32_t before = atomic_load(&e->runs);

	for (hca_engine_run(&e->fabric); atomic_load(&e->runs) == before; hca_engine_run(&e->fabric))
		sched_yield();
	meet_time_pass(PASS_NS);
	hca_meet_progress(wire.peer.meet);
}

void wire_settle(void)
{
	int i;

	for (i = 0; i < SETTLED; i++)
		wire_pass();
}

/* ---- This process's fabric ------------------------------ */

static void device_open(void)
{
	const char *spec = getenv("WIRE_SPEC");
	const struct softhca_config c = { .fabric = wire.name, .spec = spec ? spec : "net=lo",
					  .node = -1, .secret = SECRET };
	struct ibv_device **list = softhca_get_device_list(&c, NULL);

	if (!list)
		fail_msg("%s", softhca_last_error());
	wire.ctx = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	assert_non_null(wire.ctx);
	wire.pd = ibv_alloc_pd(wire.ctx);
	wire.memory = calloc(1, WIRE_MEMORY);
	assert_non_null(wire.memory);
	wire.mr = ibv_reg_mr(wire.pd, wire.memory, WIRE_MEMORY, WIRE_ACCESS);
	assert_non_null(wire.mr);
}

int wire_host_open(void **state)
{
	unsigned i;

	(void)state;
	for (i = 0; i < sizeof(wire_pattern); i++)
		wire_pattern[i] = (unsigned char)(i * 7 + i / 251 + 1);
	snprintf(wire.name, sizeof(wire.name), "wire.%d", (int)getpid());
	setenv("SOFTHCA_PORTS", "18600-18631", 1);
	device_open();
	if (!wire.peer_host)
		wire.peer_host = 2;
	meet_end_prepare(&wire.peer, wire.peer_host);
	wire.peer.config.fabric = wire.name;
	wire.peer.config.port_last = 18631;
	for (i = 0; i < sizeof(wire.peer.config.secret); i++)
		wire.peer.config.secret[i] = (unsigned char)i;
	assert_int_equal(meet_end_open(&wire.peer), 0);
	return 0;
}

int wire_host_close(void **state)
{
	(void)state;
	meet_end_close(&wire.peer);
	assert_int_equal(ibv_dereg_mr(wire.mr), 0);
	free(wire.memory);
	assert_int_equal(ibv_dealloc_pd(wire.pd), 0);
	assert_int_equal(ibv_close_device(wire.ctx), 0);
	return 0;
}

/* ---- Queue pairs ------------------------------ */

union ibv_gid wire_gid(bool lower)
{
	const struct sockaddr_storage at = meet_host(wire.peer_host);
	union ibv_gid gid = { .raw = { [10] = 0xff, 0xff, 126, 0, 0, 1 } };

	if (!lower)
		memcpy(gid.raw + 12, &((const struct sockaddr_in *)(const void *)&at)->sin_addr, 4);
	return gid;
}

struct ibv_ah *wire_ah(void)
{
	struct ibv_ah_attr a = { .is_global = 1, .port_num = 1, .grh.dgid = wire_gid(false) };
	struct ibv_ah *ah = ibv_create_ah(wire.pd, &a);

	assert_non_null(ah);
	return ah;
}

static void to_init(struct ibv_qp *qp, const struct wire_config *c)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 7,
				 .qp_access_flags = c->access ? c->access : WIRE_ACCESS };

	assert_int_equal(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
		(qp->qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)), 0);
}

static void to_rtr(struct ibv_qp *qp, uint32_t peer_qpn, const struct wire_config *c)
{
	const int connected = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = peer_qpn, .rq_psn = c->psn,
		.max_dest_rd_atomic = WIRE_READS, .min_rnr_timer = WIRE_RNR_TIMER,
		.ah_attr = { .is_global = 1, .port_num = 1, .grh.dgid = wire_gid(c->expects) },
	};

	assert_int_equal(ibv_modify_qp(qp, &a, IBV_QP_STATE |
		(qp->qp_type == IBV_QPT_UD ? 0 : connected) |
		(qp->qp_type == IBV_QPT_RC ? IBV_QP_MIN_RNR_TIMER | IBV_QP_MAX_DEST_RD_ATOMIC : 0)),
		0);
}

static void to_rts(struct ibv_qp *qp, const struct wire_config *c)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RTS, .max_rd_atomic = WIRE_READS,
				 .timeout = 14, .retry_cnt = 7, .sq_psn = c->psn,
				 .rnr_retry = c->rnr_retry ? c->rnr_retry : 7 };

	assert_int_equal(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN |
		(qp->qp_type == IBV_QPT_RC ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		 IBV_QP_MAX_QP_RD_ATOMIC : 0)), 0);
}

struct wire_qp wire_qp_open(struct wire_config c)
{
	struct wire_qp q = { .fd = -1, .peer_qpn = FIRST_NUMBER + ++wire.numbers };
	struct ibv_qp_init_attr init = { .qp_type = c.type ? c.type : IBV_QPT_RC, .srq = c.srq,
		.cap = { .max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 2, .max_recv_sge = 2,
			 .max_inline_data = 64 } };

	q.cq = ibv_create_cq(wire.ctx, c.cqe ? c.cqe : 64, NULL, NULL, 0);
	assert_non_null(q.cq);
	init.send_cq = init.recv_cq = q.cq;
	q.qp = ibv_create_qp(wire.pd, &init);
	assert_non_null(q.qp);
	to_init(q.qp, &c);
	if (!c.init)
		wire_qp_connect(&q, c);
	return q;
}

void wire_qp_connect(struct wire_qp *q, struct wire_config c)
{
	uint64_t limit;

	to_rtr(q->qp, q->peer_qpn, &c);
	if (c.rtr)
		return;
	to_rts(q->qp, &c);
	if (q->qp->qp_type == IBV_QPT_UD || c.alone || c.expects)
		return;
	q->fd = wire_peer_accept(q->peer_qpn);
	wire_put_plain(q, HCA_FRAME_ACK, 0, 0, 0);
	for (limit = limit_ns(); wire_of(q)->state != HCA_WIRE_OPEN; wire_pass())
		assert_before(limit);
}

void wire_qp_sends(struct wire_qp *q, struct wire_config c)
{
	to_rts(q->qp, &c);
}

struct hca_wire_qp *wire_of(const struct wire_qp *q)
{
	return hca_qp_of(q->qp)->wire;
}

void wire_qp_close(struct wire_qp *q)
{
	assert_int_equal(ibv_destroy_qp(q->qp), 0);
	assert_int_equal(ibv_destroy_cq(q->cq), 0);
	if (q->fd >= 0)
		close(q->fd);
}

/* ---- The peer's meetings ------------------------------ */

static int take(const struct meet_told *t)
{
	const int fd = t->fd;

	wire.peer.told[t - wire.peer.told] = wire.peer.told[--wire.peer.count];
	return fd;
}

int wire_peer_accept(uint32_t peer_qpn)
{
	const uint64_t limit = limit_ns();
	unsigned i;

	for (;; wire_pass()) {
		assert_before(limit);
		for (i = 0; i < wire.peer.count; i++)
			if (!wire.peer.told[i].token && wire.peer.told[i].h.target_qpn == peer_qpn)
				return take(&wire.peer.told[i]);
	}
}

struct hca_hello wire_hello(enum hca_meet_kind kind, bool lower, uint32_t from, uint32_t qpn)
{
	const struct hca_netif *own = wire_fabric()->netif;

	return (struct hca_hello){ .kind = (uint8_t)kind, .source_qpn = from, .target_qpn = qpn,
				   .mtu = own->mtu, .rails = 1, .source = wire_gid(lower),
				   .target = own->gid };
}

int wire_inject(const struct hca_hello *h)
{
	struct hca_fabric *f = wire_fabric();
	int fd[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fd), 0);
	hca_lock(&f->life);
	hca_wire_arrived(f->wire_state, fd[0], h);
	hca_unlock(&f->life);
	return fd[1];
}

int wire_peer_call(enum hca_meet_kind kind, uint32_t from, uint32_t qpn)
{
	const struct hca_hello h = wire_hello(kind, false, from, qpn);
	const uint64_t limit = limit_ns();
	static char token;
	unsigned i;

	assert_int_equal(hca_meet_call(wire.peer.meet, &wire_fabric()->netif[0].address, &h,
				       &token), 0);
	for (;; wire_pass()) {
		assert_before(limit);
		for (i = 0; i < wire.peer.count; i++)
			if (wire.peer.told[i].token == &token)
				return take(&wire.peer.told[i]);
	}
}

/* ---- Frames ------------------------------ */

void wire_put_bytes(int fd, const void *bytes, size_t count)
{
	const uint64_t limit = limit_ns();
	const unsigned char *at = bytes;

	while (count) {
		ssize_t n = send(fd, at, count, MSG_DONTWAIT | MSG_NOSIGNAL);

		assert_before(limit);
		if (n < 0 && errno != EAGAIN)
			return;			/* the test finds out by what it reads */
		if (n < 0) {
			wire_pass();
			continue;
		}
		at += n;
		count -= (size_t)n;
	}
}

void wire_put(struct wire_qp *q, const struct hca_frame *f, const void *payload)
{
	unsigned char head[HCA_FRAME_BYTES];

	hca_frame_write(head, f);
	wire_put_bytes(q->fd, head, sizeof(head));
	wire_put_bytes(q->fd, payload, payload ? f->bytes : 0);
}

struct hca_frame wire_request(struct wire_qp *q, enum hca_frame_kind kind, uint32_t bytes)
{
	return (struct hca_frame){ .kind = (uint8_t)kind, .flags = HCA_FRAME_LAST, .bytes = bytes,
				   .total = bytes, .sequence = q->sequence++, .ack = q->ack };
}

void wire_put_plain(struct wire_qp *q, enum hca_frame_kind kind, unsigned flags, uint16_t aux,
		    uint32_t sequence)
{
	const struct hca_frame f = { .kind = (uint8_t)kind, .flags = (uint8_t)flags, .aux = aux,
				     .sequence = sequence, .ack = q->ack };

	wire_put(q, &f, NULL);
}

/* All of them, or false: the stream has ended. */
static bool get_bytes(int fd, unsigned char *to, size_t count)
{
	const uint64_t limit = limit_ns();

	while (count) {
		ssize_t n = recv(fd, to, count, MSG_DONTWAIT);

		assert_before(limit);
		if (n == 0 || (n < 0 && errno != EAGAIN))
			return false;
		if (n < 0) {
			wire_pass();
			continue;
		}
		to += n;
		count -= (size_t)n;
	}
	return true;
}

bool wire_get(struct wire_qp *q, struct hca_frame *f, void *payload, size_t most)
{
	unsigned char head[HCA_FRAME_BYTES];

	if (!get_bytes(q->fd, head, sizeof(head)))
		return false;
	assert_int_equal(hca_frame_read(head, f), 0);
	assert_true(f->bytes <= most);
	q->acked = f->ack;
	return get_bytes(q->fd, payload, f->bytes);
}

struct hca_frame wire_expect(struct wire_qp *q, enum hca_frame_kind kind, void *payload, size_t most)
{
	struct hca_frame f;

	do
		assert_true(wire_get(q, &f, payload, most));
	while (f.kind == HCA_FRAME_ACK && !f.flags && kind != HCA_FRAME_ACK);
	assert_int_equal(f.kind, kind);
	return f;
}

void wire_expect_ack(struct wire_qp *q, uint32_t sequence)
{
	struct hca_frame f;

	while (q->acked != sequence)
		assert_true(wire_get(q, &f, NULL, 0));
}

bool wire_has_ended(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLRDHUP };

	return poll(&p, 1, 0) == 1 && (p.revents & (POLLRDHUP | POLLHUP | POLLERR));
}

void wire_expect_end(struct wire_qp *q)
{
	unsigned char bytes[4096];

	while (get_bytes(q->fd, bytes, 1))
		while (recv(q->fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
			;
}

/* ---- The queue pair's side ------------------------------ */

void wire_post_recv(struct wire_qp *q, uint64_t id, size_t at, uint32_t bytes)
{
	struct ibv_sge sge = { (uintptr_t)wire.memory + at, bytes, wire.mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 }, *bad;

	assert_int_equal(ibv_post_recv(q->qp, &wr, &bad), 0);
}

void wire_post_srq(struct ibv_srq *srq, uint64_t id, size_t at, uint32_t bytes)
{
	struct ibv_sge sge = { (uintptr_t)wire.memory + at, bytes, wire.mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 }, *bad;

	assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), 0);
}

void wire_post(struct wire_qp *q, enum ibv_wr_opcode op, uint64_t id, size_t at, uint32_t bytes)
{
	struct ibv_sge sge = { (uintptr_t)wire.memory + at, bytes, wire.mr->lkey };
	struct ibv_send_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1, .opcode = op,
				  .send_flags = IBV_SEND_SIGNALED, .imm_data = htobe32(0x1234) };
	struct ibv_send_wr *bad;

	if (op == IBV_WR_ATOMIC_CMP_AND_SWP || op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = 0x1000;
		wr.wr.atomic.rkey = 0x77;
		wr.wr.atomic.compare_add = 5;
		wr.wr.atomic.swap = 6;
	} else {
		wr.wr.rdma.remote_addr = 0x1000;
		wr.wr.rdma.rkey = 0x77;
	}
	assert_int_equal(ibv_post_send(q->qp, &wr, &bad), 0);
}

struct ibv_wc wire_completion(struct wire_qp *q, uint64_t id, enum ibv_wc_status status)
{
	const uint64_t limit = limit_ns();
	struct ibv_wc wc;

	while (ibv_poll_cq(q->cq, 1, &wc) == 0)
		assert_before(limit);
	assert_int_equal(wc.wr_id, id);
	assert_int_equal(wc.status, status);
	return wc;
}

void wire_expect_none(struct wire_qp *q)
{
	struct ibv_wc wc;

	wire_settle();
	assert_int_equal(ibv_poll_cq(q->cq, 1, &wc), 0);
}

static bool event_waits(void)
{
	struct pollfd p = { .fd = wire.ctx->async_fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

void wire_expect_event(enum ibv_event_type type)
{
	const uint64_t limit = limit_ns();
	struct ibv_async_event e;

	while (!event_waits()) {
		wire_pass();
		assert_before(limit);
	}
	assert_int_equal(ibv_get_async_event(wire.ctx, &e), 0);
	assert_int_equal(e.event_type, type);
	ibv_ack_async_event(&e);
}

void wire_expect_no_event(void)
{
	wire_settle();
	assert_false(event_waits());
}

void wire_expect_state(struct wire_qp *q, enum ibv_qp_state state)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;

	assert_int_equal(ibv_query_qp(q->qp, &a, IBV_QP_STATE, &init), 0);
	assert_int_equal(a.qp_state, state);
}

void wire_expect_breach(struct wire_qp *q, const char *lines)
{
	char line[96];
	const char *first;

	snprintf(line, sizeof(line), "softhca: lo: the peer of queue pair %u has sent bytes",
		 q->qp->qp_num);
	first = strstr(lines, line);
	if (!first)
		fail_msg("no line about queue pair %u: %s", q->qp->qp_num, lines);
	assert_null(strstr(first + 1, "softhca:"));
	wire_expect_state(q, IBV_QPS_ERR);
}
