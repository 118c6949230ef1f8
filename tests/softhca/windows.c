/*
 * windows.c - type 2 windows that the peer invalidates (SEND with invalidate), many
 * times over: the owner finds them unbound each time, old keys are invalid, the
 * peer cannot invalidate twice.  Between two processes and within one, by each
 * method of copying.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "kit.h"

enum {
	TIMES = 600,		/* the part of a key that changes has 8 bits */
	PIECE = 4096, PIECES = 16, BYTES = PIECES * PIECE,
	WRITE = 1, GIVE_BACK, RECEIVE, BIND,
};

/* ---- The owner ----------------------------------------------------------- */

struct owner {
	struct side *s;
	struct end *e;
	struct buffer b;
	struct ibv_mw *mw;
	uint32_t key;
	size_t at;		/* the window */
};

static struct owner owner_new(struct side *s, struct end *e)
{
	struct owner o = { .s = s, .e = e };

	o.b = buffer_new(s, BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	o.mw = ibv_alloc_mw(s->pd, IBV_MW_TYPE_2);
	require(o.mw != NULL);
	return o;
}

static void owner_bind(struct owner *o, unsigned turn)
{
	struct ibv_send_wr wr = { .wr_id = BIND, .opcode = IBV_WR_BIND_MW,
				  .send_flags = IBV_SEND_SIGNALED };

	o->at = turn % PIECES * PIECE;
	memset(o->b.at, 0xee, BYTES);
	wr.bind_mw.mw = o->mw;
	wr.bind_mw.rkey = o->key = ibv_inc_rkey(o->key ? o->key : o->mw->rkey);
	wr.bind_mw.bind_info = (struct ibv_mw_bind_info){ .mr = o->b.mr,
		.addr = (uintptr_t)o->b.at + o->at, .length = PIECE,
		.mw_access_flags = IBV_ACCESS_REMOTE_WRITE };
	post(o->e, wr);
	expect(o->e->cq, BIND, IBV_WC_SUCCESS);
}

static void owner_receive(struct owner *o)
{
	post_receive(o->e, RECEIVE, NULL, 0);
}

/* The window comes back, with the data written through it. */
static void owner_check(struct owner *o, unsigned turn)
{
	struct ibv_wc wc = wait_ok(o->e->cq);

	require_equal(wc.wr_id, RECEIVE);
	require(wc.wc_flags & IBV_WC_WITH_INV);
	require_equal(wc.invalidated_rkey, o->key);
	check(o->b.at + o->at, turn, PIECE, "through the window");
	check_untouched(o->b.at, 0xee, o->at, "before the window");
	check_untouched(o->b.at + o->at + PIECE, 0xee, BYTES - o->at - PIECE, "behind the window");
	/* No window is bound to it, or it could not be deregistered. */
	if (turn % 7 == 3) {
		require_equal(ibv_dereg_mr(o->b.mr), 0);
		o->b.mr = ibv_reg_mr(o->s->pd, o->b.at, BYTES,
				     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
		require(o->b.mr != NULL);
	}
}

static void owner_end(struct owner *o)
{
	require_equal(ibv_dealloc_mw(o->mw), 0);
	buffer_free(o->s, &o->b);
}

/* ---- The other ----------------------------------------------------------- */

static void write_piece(struct end *e, struct buffer *from, uint64_t to, uint32_t key,
			enum ibv_wc_status status)
{
	struct ibv_sge sge = sge_of(from, 0, PIECE);

	post(e, (struct ibv_send_wr){ .wr_id = WRITE, .sg_list = &sge, .num_sge = 1,
				      .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED,
				      .wr.rdma = { to, key } });
	expect(e->cq, WRITE, status);
}

static void give_back(struct end *e, uint32_t key, enum ibv_wc_status status)
{
	post(e, (struct ibv_send_wr){ .wr_id = GIVE_BACK, .opcode = IBV_WR_SEND_WITH_INV,
				      .send_flags = IBV_SEND_SIGNALED, .invalidate_rkey = key });
	expect(e->cq, GIVE_BACK, status);
}

/* ---- Two processes ------------------------------------------------------- */

struct offer {
	uint64_t addr;
	uint32_t key, old;
};

static struct offer exchange(struct side *s, struct offer mine)
{
	struct offer theirs;

	swap(s, &mine, &theirs, sizeof(mine));
	return theirs;
}

static void reconnect(struct side *s, struct end *e)
{
	barrier(s);
	require_equal(end_to(e, IBV_QPS_RESET), 0);
	end_connect(s, e);
}

static void own(struct side *s, struct end *e)
{
	struct owner o = owner_new(s, e);
	struct offer offer = { 0 };
	unsigned turn;

	for (turn = 0; turn < TIMES; turn++) {
		owner_bind(&o, turn);
		owner_receive(&o);
		offer = (struct offer){ (uintptr_t)o.b.at + o.at, o.key, offer.key };
		exchange(s, offer);
		owner_check(&o, turn);
	}
	barrier(s);
	/* Use after invalidation; a second invalidation; an old key, while another is valid. */
	reconnect(s, e);
	check(o.b.at + o.at, TIMES - 1, PIECE, "after it was given back");
	owner_receive(&o);
	barrier(s);
	require(wait_wc(e->cq).status != IBV_WC_SUCCESS);
	reconnect(s, e);
	owner_bind(&o, turn);
	offer = (struct offer){ (uintptr_t)o.b.at + o.at, o.key, offer.key };
	exchange(s, offer);
	barrier(s);
	check_untouched(o.b.at, 0xee, BYTES, "with an old key");
	barrier(s);
	owner_end(&o);
}

static void use(struct side *s, struct end *e)
{
	struct buffer b = buffer_new(s, PIECE, IBV_ACCESS_LOCAL_WRITE);
	struct offer offer = { 0 };
	unsigned turn;

	for (turn = 0; turn < TIMES; turn++) {
		offer = exchange(s, (struct offer){ 0 });
		fill(b.at, turn, PIECE);
		write_piece(e, &b, offer.addr, offer.key, IBV_WC_SUCCESS);
		write_piece(e, &b, offer.addr, offer.key, IBV_WC_SUCCESS);
		give_back(e, offer.key, IBV_WC_SUCCESS);
	}
	barrier(s);
	fill(b.at, turn, PIECE);
	write_piece(e, &b, offer.addr, offer.key, IBV_WC_REM_ACCESS_ERR);
	reconnect(s, e);
	barrier(s);
	give_back(e, offer.key, IBV_WC_REM_ACCESS_ERR);
	reconnect(s, e);
	offer = exchange(s, (struct offer){ 0 });
	write_piece(e, &b, offer.addr, offer.old, IBV_WC_REM_ACCESS_ERR);
	barrier(s);
	barrier(s);
	buffer_free(s, &b);
}

/* ---- One process --------------------------------------------------------- */

static void connect_here(struct side *s, struct end *a, struct end *b)
{
	struct peer_address to_a = end_address(s, a), to_b = end_address(s, b);

	require_equal(end_to(a, IBV_QPS_RESET) | end_to(b, IBV_QPS_RESET), 0);
	require_equal(end_to_init(s, a) | end_to_init(s, b), 0);
	require_equal(end_to_rtr(s, a, &to_b) | end_to_rtr(s, b, &to_a), 0);
	require_equal(end_to_rts(a) | end_to_rts(b), 0);
}

static void alone(struct side *s)
{
	struct end mine = end_new(s, NULL), other = end_new(s, NULL);
	struct buffer b = buffer_new(s, PIECE, IBV_ACCESS_LOCAL_WRITE);
	struct owner o = owner_new(s, &mine);
	uint32_t old = 0;
	unsigned turn;

	connect_here(s, &mine, &other);
	for (turn = 0; turn < TIMES; turn++) {
		owner_bind(&o, turn);
		owner_receive(&o);
		fill(b.at, turn, PIECE);
		write_piece(&other, &b, (uintptr_t)o.b.at + o.at, o.key, IBV_WC_SUCCESS);
		write_piece(&other, &b, (uintptr_t)o.b.at + o.at, o.key, IBV_WC_SUCCESS);
		give_back(&other, o.key, IBV_WC_SUCCESS);
		owner_check(&o, turn);
		old = o.key;
	}
	fill(b.at, turn, PIECE);
	write_piece(&other, &b, (uintptr_t)o.b.at + o.at, old, IBV_WC_REM_ACCESS_ERR);
	check(o.b.at + o.at, TIMES - 1, PIECE, "after it was given back");
	connect_here(s, &mine, &other);
	owner_receive(&o);
	give_back(&other, old, IBV_WC_REM_ACCESS_ERR);
	require(wait_wc(mine.cq).status != IBV_WC_SUCCESS);
	connect_here(s, &mine, &other);
	owner_bind(&o, turn);
	write_piece(&other, &b, (uintptr_t)o.b.at + o.at, old, IBV_WC_REM_ACCESS_ERR);
	check_untouched(o.b.at, 0xee, BYTES, "with an old key");
	owner_end(&o);
	buffer_free(s, &b);
	end_free(&mine);
	end_free(&other);
}

/* ---- All of it ----------------------------------------------------------- */

static void run(int me, int sock, const void *arg)
{
	struct side s = side_open(0, me, sock);
	struct end e = end_new(&s, NULL);

	alarm(100);
	end_connect(&s, &e);
	(me ? use : own)(&s, &e);
	end_free(&e);
	if (me)
		alone(&s);
	side_close(&s);
}

int main(void)
{
	static const char *const ways[][3] = {
		{ "auto", "auto", "" }, { "never", "kernel", "" }, { "never", "bounce", "" },
		{ "auto", "auto", "rate=1GB/s,latency=2us" },
	};
	bool failed = false;
	char name[96];
	unsigned i;

	fabric_new("windows");
	for (i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		snprintf(name, sizeof(name), "remap %s, copy %s, spec '%s'", ways[i][0], ways[i][1],
			 ways[i][2]);
		setenv("SOFTHCA_REMAP", ways[i][0], 1);
		setenv("SOFTHCA_COPY", ways[i][1], 1);
		setenv("SOFTHCA_SPEC", ways[i][2], 1);
		failed |= run_case(name, run, NULL);
	}
	return fabric_is_left() || failed;
}
