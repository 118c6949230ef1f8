/*
 * fuzz_wire.c - arbitrary bytes after the handshake, to queue pairs of all types in a real fabric: no
 * byte outside the memory that the peer may write changes, each request and each receive completes
 * once, what the queue pair sends are frames, and nothing is left of it.
 *
 * Input: the type; requests that are under way; receives; bytes per pass; then the stream.  Keys
 * and numbers are made the same in each process, and addresses of the registration begin at 0.
 */
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../random.h"
#include "../scratch.h"
#include "fuzz.h"
#include "softhca/base/netif.h"
#include "softhca/engine/engine.h"
#include "softhca/link/wire/wire.h"
#include "softhca/object/device.h"
#include "softhca/object/fabric.h"
#include "softhca/softhca.h"

enum {
	HEAD = 4,			/* bytes of the input before the stream */
	MEMORY = 40000, GUARD = 512,	/* registered bytes; bytes before and after them */
	PRIVATE = 24000,		/* registered without rights of the peer */
	LONG = 20000,			/* a request that leaves from its place */
	REQUESTS = 4, RECEIVES = 8, PEER = 0x4711, QKEY = 7, PASSES = 6,
	ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_ZERO_BASED,
};
enum type { RC, RC_SHARED, UC, UD, TYPES };

const unsigned fuzz_rounds = 20000;

void __sanitizer_set_report_fd(void *fd) __attribute__((weak));

static struct {
	char directory[SCRATCH_PATH];
	int say, quiet;			/* stderr, and what it is while inputs run */
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct hca_fabric *fabric;
	unsigned char before[GUARD], memory[MEMORY], after[GUARD], hidden[PRIVATE];
	struct ibv_mr *mr, *own;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_qp *qp[TYPES];
} w;

static void check(bool holds)
{
	if (!holds)
		abort();
}

/* ---- The fabric ------------------------------ */

static void clean_up(void)
{
	scratch_remove(w.directory);
}

static union ibv_gid peer_gid(void)
{
	return (union ibv_gid){ .raw = { [10] = 0xff, 0xff, 126, 0, 0, 1 } };
}

static struct ibv_qp *qp_make(enum type type)
{
	struct ibv_qp_init_attr init = {
		.qp_type = type == UD ? IBV_QPT_UD : type == UC ? IBV_QPT_UC : IBV_QPT_RC,
		.send_cq = w.cq, .recv_cq = w.cq, .srq = type == RC_SHARED ? w.srq : NULL,
		.cap = { .max_send_wr = REQUESTS, .max_recv_wr = RECEIVES, .max_send_sge = 1,
			 .max_recv_sge = 2 }, .sq_sig_all = 1,
	};
	struct ibv_qp *qp = ibv_create_qp(w.pd, &init);

	check(qp);
	return qp;
}

/* Keys begin at random: an index is used until its key is the first one of an index. */
static struct ibv_mr *reg(void *at, size_t bytes, int access)
{
	const uint32_t mask = (1u << HCA_KEY_GEN_BITS) - 1;
	struct ibv_mr *mr = ibv_reg_mr(w.pd, at, bytes, access);

	while (mr && (mr->rkey & mask) != 1) {
		check(!ibv_dereg_mr(mr));
		mr = ibv_reg_mr(w.pd, at, bytes, access);
	}
	return mr;
}

static void fabric_open(void)
{
	const struct softhca_config c = {
		.fabric = "fuzz", .spec = "net=lo", .node = -1, .remap = SOFTHCA_REMAP_NEVER,
		.secret = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
	};
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = RECEIVES, .max_sge = 2 } };
	struct ibv_device **list = softhca_get_device_list(&c, NULL);
	unsigned i;

	if (!list)
		fprintf(stderr, "%s\n", softhca_last_error());
	check(list);
	w.ctx = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	check(w.ctx);
	w.fabric = hca_context_of(w.ctx)->fabric;
	w.pd = ibv_alloc_pd(w.ctx);
	w.mr = reg(w.memory, MEMORY, ACCESS);
	w.own = reg(w.hidden, PRIVATE, IBV_ACCESS_LOCAL_WRITE);
	w.cq = ibv_create_cq(w.ctx, 64, NULL, NULL, 0);
	w.srq = ibv_create_srq(w.pd, &srq);
	check(w.mr && w.own && w.cq && w.srq);
	atomic_store(&w.fabric->shm->qp_cursor, 1);	/* it begins at random */
	for (i = 0; i < TYPES; i++)
		w.qp[i] = qp_make((enum type)i);
	check(!fcntl(w.ctx->async_fd, F_SETFL, O_NONBLOCK));
}

static void prepare(void)
{
	if (w.ctx)
		return;
	check(!scratch_make(w.directory));
	setenv("SOFTHCA_DIR", w.directory, 1);
	atexit(clean_up);
	fabric_open();
	w.say = dup(STDERR_FILENO);
	w.quiet = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (__sanitizer_set_report_fd)
		__sanitizer_set_report_fd((void *)(intptr_t)w.say);
}

/* ---- A queue pair with its peer ------------------------------ */

static void modify(struct ibv_qp *qp, struct ibv_qp_attr *a, int mask)
{
	check(!ibv_modify_qp(qp, a, mask));
}

static void connect_qp(struct ibv_qp *qp, enum type type)
{
	const int rc = type < UC ? IBV_QP_MIN_RNR_TIMER | IBV_QP_MAX_DEST_RD_ATOMIC : 0;
	const int more = type < UC ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				     IBV_QP_MAX_QP_RD_ATOMIC : 0;
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY, .path_mtu = IBV_MTU_1024,
		.qp_access_flags = ACCESS & ~IBV_ACCESS_ZERO_BASED, .dest_qp_num = PEER,
		.max_dest_rd_atomic = 2, .max_rd_atomic = REQUESTS, .min_rnr_timer = 1,
		.timeout = 10, .retry_cnt = 1, .rnr_retry = 1,
		.ah_attr = { .is_global = 1, .port_num = 1, .grh.dgid = peer_gid() },
	};

	modify(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
	       (type == UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
	a.qp_state = IBV_QPS_RTR;
	modify(qp, &a, type == UD ? IBV_QP_STATE : IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
	       IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | rc);
	a.qp_state = IBV_QPS_RTS;
	modify(qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN | more);
}

/* The peer's end of a stream that has proven itself. */
static int inject(const struct ibv_qp *qp, enum type type)
{
	const struct hca_hello h = {
		.kind = type == UD ? HCA_MEET_DATAGRAMS : HCA_MEET_QP, .source_qpn = PEER,
		.target_qpn = qp->qp_num, .mtu = w.fabric->netif[0].mtu, .rails = 1,
		.source = peer_gid(), .target = w.fabric->netif[0].gid,
	};
	int fd[2];

	check(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd));
	hca_lock(&w.fabric->life);
	hca_wire_arrived(w.fabric->wire_state, fd[0], &h);
	hca_unlock(&w.fabric->life);
	return fd[1];
}

/* Each receive takes 100 bytes in two pieces. */
static void post_receives(struct ibv_qp *qp, enum type type, unsigned count)
{
	unsigned i;

	for (i = 0; i < count; i++) {
		struct ibv_sge sge[2] = { { (uintptr_t)w.hidden + 100 * i, 40, w.own->lkey },
					  { (uintptr_t)w.hidden + 100 * i + 40, 60, w.own->lkey } };
		struct ibv_recv_wr wr = { .wr_id = i, .sg_list = sge, .num_sge = 2 }, *bad;

		check(!(type == RC_SHARED ? ibv_post_srq_recv(w.srq, &wr, &bad) :
			ibv_post_recv(qp, &wr, &bad)));
	}
}

static void post_request(struct ibv_qp *qp, enum type type, unsigned i, unsigned which)
{
	static const enum ibv_wr_opcode of_rc[] = {
		IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD
	};
	struct ibv_sge sge = { (uintptr_t)w.hidden + 900 + 8 * i, 8, w.own->lkey };
	struct ibv_send_wr wr = { .wr_id = RECEIVES + i, .sg_list = &sge, .num_sge = 1,
				  .opcode = of_rc[type == UC ? which % 2 : which] };
	struct ibv_send_wr *bad;

	if (i == REQUESTS - 1 && which < 2)
		sge.length = LONG;
	check(!ibv_post_send(qp, &wr, &bad));
}

/* ---- An input ------------------------------ */

/* What the queue pair sends are frames. */
struct reader {
	unsigned char head[HCA_FRAME_BYTES];
	size_t have, skip;
};

static void read_frames(struct reader *r, const unsigned char *at, size_t count)
{
	while (count) {
		size_t n = r->skip ? r->skip : HCA_FRAME_BYTES - r->have;
		struct hca_frame f;

		if (n > count)
			n = count;
		if (r->skip) {
			r->skip -= n;
		} else {
			memcpy(r->head + r->have, at, n);
			r->have += n;
		}
		at += n;
		count -= n;
		if (r->have < HCA_FRAME_BYTES)
			continue;
		check(!hca_frame_read(r->head, &f));
		r->have = 0;
		r->skip = f.bytes;
	}
}

static void pass(int fd, struct reader *r)
{
	static unsigned char bytes[1 << 16];
	ssize_t n;

	hca_engine_run(w.fabric);
	while ((n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0)
		read_frames(r, bytes, (size_t)n);
}

static void feed(int fd, const uint8_t *data, size_t size, size_t part)
{
	struct reader r = { .have = 0 };
	unsigned i;

	while (size) {
		ssize_t n = send(fd, data, part < size ? part : size, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n > 0) {
			data += n;
			size -= (size_t)n;
		} else {
			size = 0;	/* the stream has ended */
		}
		pass(fd, &r);
	}
	for (i = 0; i < PASSES; i++)
		pass(fd, &r);
}

/* Each identity completes at most once. */
static void take_completions(unsigned *seen)
{
	struct ibv_wc wc[16];
	int i, n;

	while ((n = ibv_poll_cq(w.cq, 16, wc)) > 0)
		for (i = 0; i < n; i++) {
			check(wc[i].wr_id < RECEIVES + REQUESTS);
			check(!(*seen & 1u << wc[i].wr_id));
			*seen |= 1u << wc[i].wr_id;
		}
}

static void take_events(void)
{
	struct ibv_async_event e;

	while (!ibv_get_async_event(w.ctx, &e))
		ibv_ack_async_event(&e);
}

static void guard(unsigned char *at)
{
	memset(at, 0xa5, GUARD);
}

static void check_guard(const unsigned char *at)
{
	unsigned i;

	for (i = 0; i < GUARD; i++)
		check(at[i] == 0xa5);
}

/* Receives of a shared queue stay posted: an end of all of them is a new queue. */
static void renew_shared(void)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = RECEIVES, .max_sge = 2 } };

	check(!ibv_destroy_qp(w.qp[RC_SHARED]) && !ibv_destroy_srq(w.srq));
	w.srq = ibv_create_srq(w.pd, &init);
	check(w.srq);
	w.qp[RC_SHARED] = qp_make(RC_SHARED);
}

/* Nothing of the queue pair or its peer is left on the wire. */
static void check_idle(void)
{
	const struct hca_wire *wire = w.fabric->wire_state;

	check(!wire->all && !wire->active && !wire->active_count && !atomic_load(&wire->owed));
	check(!atomic_load(&wire->peers.count) && !wire->peers.oldest && !wire->parked);
}

static void end(enum type type, int fd, unsigned receives)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_ERR };
	unsigned seen = 0, i;

	take_completions(&seen);
	modify(w.qp[type], &a, IBV_QP_STATE);
	for (i = 0; i < 2; i++)
		hca_engine_run(w.fabric);
	take_completions(&seen);
	if (type != RC_SHARED)
		check((seen & ((1u << RECEIVES) - 1)) == (1u << receives) - 1);
	close(fd);
	hca_engine_run(w.fabric);
	a.qp_state = IBV_QPS_RESET;
	modify(w.qp[type], &a, IBV_QP_STATE);
	if (type == RC_SHARED)
		renew_shared();
	take_events();
	check_idle();
}

static void run(const uint8_t *data, size_t size)
{
	const enum type type = (enum type)(data[0] % TYPES);
	const unsigned receives = data[2] % (RECEIVES + 1);
	struct ibv_qp *qp = w.qp[type];
	unsigned i;
	int fd;

	guard(w.before);
	guard(w.after);
	connect_qp(qp, type);
	post_receives(qp, type, receives);
	fd = inject(qp, type);
	for (i = 0; type != UD && i < REQUESTS; i++)
		if (data[1] & 1 << i)
			post_request(qp, type, i, data[1] >> (4 + (i & 1)) & 3);
	feed(fd, data + HEAD, size - HEAD, data[3] ? data[3] : SIZE_MAX);
	end(type, fd, receives);
	check_guard(w.before);
	check_guard(w.after);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < HEAD)
		return 0;
	prepare();
	dup2(w.quiet, STDERR_FILENO);
	run(data, size);
	dup2(w.say, STDERR_FILENO);
	return 0;
}

/* ---- Streams that go far ------------------------------ */

struct writer {
	unsigned char *at;
	size_t size, most;
	uint32_t sequence, ack, total, done;
};

static void add_bytes(struct writer *o, const void *bytes, size_t count)
{
	if (o->size + count > o->most)
		count = o->most - o->size;
	memcpy(o->at + o->size, bytes, count);
	o->size += count;
}

static void add_frame(struct writer *o, const struct hca_frame *f)
{
	static const unsigned char payload[HCA_FRAME_BYTES * 110];
	unsigned char head[HCA_FRAME_BYTES];

	hca_frame_write(head, f);
	add_bytes(o, head, sizeof(head));
	add_bytes(o, payload, f->bytes < sizeof(payload) ? f->bytes : sizeof(payload));
}

static struct hca_frame request(struct writer *o, enum hca_frame_kind kind, uint32_t total,
				uint64_t addr)
{
	return (struct hca_frame){ .kind = (uint8_t)kind, .flags = HCA_FRAME_LAST, .total = total,
				   .bytes = kind == HCA_FRAME_READ ? 0 : total, .ack = o->ack,
				   .sequence = o->sequence++, .addr = addr,
				   .rkey = kind == HCA_FRAME_SEND ? 0 : w.mr->rkey };
}

static void add_datagram(struct writer *o, uint32_t bytes, uint32_t qkey)
{
	struct hca_datagram d = { .source_qpn = PEER, .target_qpn = w.qp[UD]->qp_num,
				  .qkey = qkey };
	const struct hca_frame f = { .kind = HCA_FRAME_DATAGRAM, .total = bytes,
				     .flags = HCA_FRAME_LAST | HCA_FRAME_GRH,
				     .bytes = HCA_DATAGRAM_BYTES + bytes };
	unsigned char head[HCA_FRAME_BYTES + HCA_DATAGRAM_BYTES];
	static const unsigned char data[HCA_DATAGRAM_MAX];

	memcpy(d.source, peer_gid().raw, sizeof(d.source));
	hca_frame_write(head, &f);
	hca_datagram_write(head + HCA_FRAME_BYTES, &d);
	add_bytes(o, head, sizeof(head));
	add_bytes(o, data, bytes < sizeof(data) ? bytes : sizeof(data));
}

static void add_all_kinds(struct writer *o)
{
	static const struct { enum hca_frame_kind kind; uint32_t total; } list[] = {
		{ HCA_FRAME_SEND, 8 }, { HCA_FRAME_WRITE, 300 }, { HCA_FRAME_READ, MEMORY },
		{ HCA_FRAME_CMP_SWAP, 16 }, { HCA_FRAME_SEND, 100 }, { HCA_FRAME_FETCH_ADD, 16 },
	};
	unsigned i;

	for (i = 0; i < sizeof(list) / sizeof(*list); i++) {
		const struct hca_frame f = request(o, list[i].kind, list[i].total, 8 * i);

		add_frame(o, &f);
	}
}

size_t fuzz_seed(unsigned index, unsigned char *to, size_t most)
{
	struct writer o = { .at = to, .size = HEAD, .most = most };
	struct hca_frame f;

	prepare();
	if (index > TYPES || most < 16384)
		return 0;
	memcpy(to, (unsigned char[]){ (unsigned char)index, 0x0f, 5, 0 }, HEAD);
	if (index == UD) {
		add_datagram(&o, 10, QKEY);
		add_datagram(&o, 60, QKEY);
		return o.size;
	}
	if (index < TYPES) {
		add_all_kinds(&o);
		return o.size;
	}
	/* Answers to two READs, an acknowledgement, a farewell. */
	to[0] = RC;
	to[1] = 0x23;
	for (o.sequence = 0; o.sequence < 2; o.sequence++) {
		f = (struct hca_frame){ .kind = HCA_FRAME_RESPONSE, .flags = HCA_FRAME_LAST,
					.bytes = 8, .total = 8, .sequence = o.sequence };
		add_frame(&o, &f);
	}
	f = (struct hca_frame){ .kind = HCA_FRAME_ACK, .flags = HCA_FRAME_LAST, .ack = 2 };
	add_frame(&o, &f);
	return o.size;
}

static uint32_t few(uint64_t *random, uint32_t limit)
{
	return (uint32_t)random_below(random, limit);
}

/* A part of the message that has begun, or a whole one, mostly within its bounds. */
static void add_part(struct writer *o, struct hca_frame f, uint64_t *random)
{
	uint32_t left = o->total - o->done;

	f.total = o->total;
	f.bytes = few(random, 3) ? 1 + few(random, left ? left : 1) : left;
	f.flags = f.bytes == left ? HCA_FRAME_LAST : 0;
	if (!o->done && f.kind != HCA_FRAME_RESPONSE)
		f.flags |= few(random, 4) ? 0 : HCA_FRAME_IMM;
	o->done += f.bytes;
	if (o->done == o->total)
		o->sequence++;
	add_frame(o, &f);
}

static void add_message(struct writer *o, uint64_t *random)
{
	struct hca_frame f = { .kind = HCA_FRAME_CONT, .sequence = o->sequence, .ack = o->ack };

	if (o->done < o->total) {
		add_part(o, f, random);
		return;
	}
	o->total = few(random, 3) ? few(random, 120) : few(random, 4000);
	o->done = 0;
	f = request(o, few(random, 2) ? HCA_FRAME_SEND : HCA_FRAME_WRITE, o->total,
		    few(random, MEMORY));
	o->sequence--;
	add_part(o, f, random);
}

static void add_question(struct writer *o, uint64_t *random)
{
	const bool atomic = few(random, 2);
	const struct hca_frame f = request(o, atomic ? HCA_FRAME_FETCH_ADD : HCA_FRAME_READ,
					   atomic ? HCA_OPERANDS_BYTES : few(random, MEMORY + 2),
					   8 * few(random, MEMORY / 8));

	add_frame(o, &f);
}

static void add_plain(struct writer *o, uint64_t *random)
{
	static const uint8_t kinds[] = { HCA_FRAME_ACK, HCA_FRAME_ACK, HCA_FRAME_NAK, HCA_FRAME_RNR };
	struct hca_frame f = { .kind = kinds[few(random, 4)], .sequence = o->ack, .ack = o->ack };

	if (f.kind == HCA_FRAME_NAK)
		f.aux = IBV_WC_REM_ACCESS_ERR;
	else if (f.kind == HCA_FRAME_RNR)
		f.aux = (uint16_t)few(random, 32);
	else
		f.ack = o->ack += few(random, 2);
	if (f.kind == HCA_FRAME_ACK && !few(random, 8)) {
		f.flags = HCA_FRAME_LAST;
		f.imm = few(random, 2);
	}
	add_frame(o, &f);
}

static void add_answer(struct writer *o, uint64_t *random)
{
	const uint32_t cut = few(random, 4) ? 8 : 1 + few(random, 7);
	struct hca_frame f = { .kind = HCA_FRAME_RESPONSE, .total = 8, .bytes = cut,
			       .flags = cut == 8 ? HCA_FRAME_LAST : 0, .sequence = o->ack,
			       .ack = o->ack };

	add_frame(o, &f);
	if (cut < 8) {
		f.bytes = 8 - cut;
		f.flags = HCA_FRAME_LAST;
		add_frame(o, &f);
	}
	o->ack++;
}

static void add_any(struct writer *o, enum type type, uint64_t *random)
{
	if (type == UD) {
		add_datagram(o, few(random, 70), few(random, 4) ? QKEY : 8);
		return;
	}
	switch (few(random, 6)) {
	case 0:
		add_question(o, random);
		break;
	case 1:
		add_plain(o, random);
		break;
	case 2:
		add_answer(o, random);
		break;
	default:
		add_message(o, random);
	}
}

/* Of the frames, a few have a bit changed. */
size_t fuzz_mutate(unsigned char *data, size_t size, size_t most, uint64_t *random)
{
	struct writer o = { .at = data, .size = HEAD, .most = most < 8192 ? most : 8192 };
	uint32_t frames = 1 + few(random, 12);

	if (o.most < HEAD)
		return size;
	prepare();
	data[0] = (unsigned char)few(random, TYPES);
	data[1] = (unsigned char)few(random, 256);
	data[2] = (unsigned char)few(random, RECEIVES + 1);
	data[3] = few(random, 4) ? 0 : (unsigned char)(20 + few(random, 200));
	while (frames--) {
		const size_t begin = o.size;

		add_any(&o, (enum type)data[0], random);
		if (!few(random, 12) && o.size > begin)
			data[begin + few(random, (uint32_t)(o.size - begin < 40 ? o.size - begin : 40))]
				^= (unsigned char)(1 << few(random, 8));
	}
	return o.size;
}
