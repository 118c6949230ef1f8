/* side.c - the functions that cases share: a device, memory, connected queue pairs. */
#include <fcntl.h>
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/clock.h"
#include "conformance.h"
#include "softhca/softhca.h"

static void say(const char *fmt, va_list args)
{
	char line[512];
	int n = vsnprintf(line, sizeof(line) - 1, fmt, args);

	if (n < 0)
		n = 0;
	if (n > (int)sizeof(line) - 2)
		n = (int)sizeof(line) - 2;
	line[n++] = '\n';
	if (write(STDERR_FILENO, line, (size_t)n) < 0)
		return;
}

void fail_at(const char *file, int line, const char *fmt, ...)
{
	const char *base = strrchr(file, '/');
	char text[400];
	va_list args;

	snprintf(text, sizeof(text), "  %s:%d: %s", base ? base + 1 : file, line, fmt);
	va_start(args, fmt);
	say(text, args);
	va_end(args);
	exit(1);
}

void skip(const char *fmt, ...)
{
	char text[400];
	va_list args;

	snprintf(text, sizeof(text), "  skipped: %s", fmt);
	va_start(args, fmt);
	say(text, args);
	va_end(args);
	exit(77);
}

uint64_t now_ns(void)
{
	return rg_now_ns();
}

unsigned drawn_seed(const char *argument)
{
	const char *text = argument ? argument : getenv("RG_SEED");

	return text ? (unsigned)strtoul(text, NULL, 10) : (unsigned)getpid();
}

bool time_is_exact;

void pause_ns(uint64_t ns)
{
	rg_sleep_ns(ns);
}

void turn(unsigned *turns, uint64_t end_ns)
{
	/* The other side may need this very processor. */
	if (++*turns % 64 == 0)
		rg_yield();
	else
		rg_relax(end_ns);
}

bool goes_on(uint64_t end_ns)
{
	static _Thread_local unsigned turns;

	turn(&turns, end_ns);
	return now_ns() < end_ns;
}

/* ---- Between the sides --------------------------------------------------- */

/* Weak: tests/virtual/sides.c has both in one process. */
__attribute__((weak)) bool two_sides(void (*run)(int me, int sock, const void *arg), const void *arg)
{
	int pair[2], me, status;
	bool good = true;
	pid_t pid[2];

	require_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	for (me = 0; me < 2; me++) {
		fflush(NULL);
		pid[me] = fork();
		require(pid[me] >= 0);
		if (pid[me] == 0) {
			close(pair[!me]);
			run(me, pair[me], arg);
			exit(0);
		}
	}
	close(pair[0]);
	close(pair[1]);
	for (me = 0; me < 2; me++) {
		require_equal(waitpid(pid[me], &status, 0), pid[me]);
		good = good && WIFEXITED(status) && WEXITSTATUS(status) == 0;
	}
	return good;
}

__attribute__((weak)) void side_over(void)
{
	exit(0);
}

__attribute__((weak)) void virtual_found(void)
{
}

void swap(struct side *s, const void *mine, void *theirs, size_t bytes)
{
	bool sent = send(s->sock, mine, bytes, MSG_NOSIGNAL) == (ssize_t)bytes;

	rg_wait_readable(s->sock, UINT64_MAX);
	if (!sent ||
	    recv(s->sock, theirs, bytes, MSG_WAITALL) != (ssize_t)bytes) {
		fprintf(stderr, "  side %d: the other side has ended\n", s->me);
		exit(EXIT_ALONE);
	}
}

void barrier(struct side *s)
{
	char mine = 'b', theirs;

	swap(s, &mine, &theirs, 1);
}

__attribute__((weak)) void side_dies(struct side *s, int who)
{
	char none;

	barrier(s);
	if (s->me == who)
		_exit(0);
	/* Its end of the socket closes with it. */
	while (recv(s->sock, &none, 1, 0) > 0)
		;
}

void side_is_alone(struct side *s)
{
	require_equal(ibv_dealloc_pd(s->pd), 0);
	require_equal(ibv_close_device(s->ctx), 0);
	side_over();
}

/* ---- Memory -------------------------------------------------------------- */

struct buffer buffer_new(struct side *s, size_t bytes, int access)
{
	struct buffer b = { .bytes = bytes };
	void *at = NULL;

	if (s->options->arena)
		at = softhca_arena_alloc(bytes);
	else if (posix_memalign(&at, 64, bytes ? bytes : 1))
		at = NULL;
	require(at != NULL);
	b.at = at;
	memset(b.at, 0xee, bytes);
	b.mr = ibv_reg_mr(s->pd, at, bytes, access);
	if (!b.mr)
		fail("ibv_reg_mr of %zu bytes: %s", bytes, strerror(errno));
	return b;
}

void buffer_free(struct side *s, struct buffer *b)
{
	if (b->mr)
		require_equal(ibv_dereg_mr(b->mr), 0);
	if (s->options->arena)
		softhca_arena_free(b->at);
	else
		free(b->at);
}

void buffer_swap(struct side *s, struct buffer *b)
{
	struct { uint64_t addr; uint32_t rkey, pad; } mine = { (uintptr_t)b->at, b->mr->rkey, 0 };
	struct { uint64_t addr; uint32_t rkey, pad; } theirs;

	swap(s, &mine, &theirs, sizeof(mine));
	b->addr = theirs.addr;
	b->rkey = theirs.rkey;
}

void fill(unsigned char *at, uint64_t seed, size_t bytes)
{
	size_t i;

	for (i = 0; i < bytes; i++)
		at[i] = pattern(seed, i);
}

void check(const unsigned char *at, uint64_t seed, size_t bytes, const char *what)
{
	size_t i;

	for (i = 0; i < bytes; i++)
		if (at[i] != pattern(seed, i))
			fail("%s: byte %zu of %zu is 0x%02x, not 0x%02x", what, i, bytes, at[i],
			     pattern(seed, i));
}

void check_untouched(const unsigned char *at, unsigned char value, size_t bytes, const char *what)
{
	size_t i;

	for (i = 0; i < bytes; i++)
		if (at[i] != value)
			fail("%s: byte %zu was touched (0x%02x)", what, i, at[i]);
}

/* ---- Queue pairs --------------------------------------------------------- */

const struct end_config end_defaults = {
	.rnr_retry = 7, .retry_cnt = 6, .timeout = 14, .min_rnr_timer = 1, .access = ACCESS_ALL,
};

static enum ibv_qp_type end_type(const struct end *e)
{
	return e->config.type ? e->config.type : IBV_QPT_RC;
}

void want_limit(const char *what, uint32_t want, int have)
{
	if (have < 0 || want > (uint32_t)have)
		skip("%u %s, the device has %d", want, what, have);
}

/* No attribute of a device says how much it has: a queue pair without is made, one with it is not. */
void want_inline(struct side *s, uint32_t bytes)
{
	struct ibv_cq *cq = bytes ? ibv_create_cq(s->ctx, 16, NULL, NULL, 0) : NULL;
	struct ibv_qp *qp[2] = { NULL };

	for (int i = 0; cq && i < 2; i++) {
		struct ibv_qp_init_attr init = {
			.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
			.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1,
				 .max_inline_data = i ? bytes : 0 },
		};

		qp[i] = ibv_create_qp(s->pd, &init);
		if (qp[i])
			require_equal(ibv_destroy_qp(qp[i]), 0);
	}
	if (cq)
		require_equal(ibv_destroy_cq(cq), 0);
	if (qp[0] && !qp[1])
		skip("%u bytes of inline data", bytes);
}

static void end_limits(const struct side *s, const struct ibv_qp_cap *cap)
{
	want_limit("requests", cap->max_send_wr, s->dev.max_qp_wr);
	want_limit("requests", cap->max_recv_wr, s->dev.max_qp_wr);
	want_limit("pieces of a request", cap->max_send_sge, s->dev.max_sge);
	want_limit("pieces of a request", cap->max_recv_sge, s->dev.max_sge);
}

struct end end_new(struct side *s, const struct end_config *config)
{
	struct end e = { .config = config ? *config : end_defaults };
	const struct end_config *c = &e.config;
	struct ibv_qp_init_attr init;

	e.cq = c->cq;
	if (!e.cq) {
		e.cq = ibv_create_cq(s->ctx, c->cqe ? c->cqe : 256, NULL, NULL, 0);
		e.own_cq = true;
	}
	require(e.cq != NULL);
	init = (struct ibv_qp_init_attr){
		.send_cq = e.cq, .recv_cq = e.cq, .srq = c->srq, .qp_type = end_type(&e),
		.sq_sig_all = c->signal_all,
		.cap = { .max_send_wr = c->send_wr ? c->send_wr : 64,
			 .max_recv_wr = c->recv_wr ? c->recv_wr : 64,
			 .max_send_sge = c->send_sge ? c->send_sge : 1,
			 .max_recv_sge = c->recv_sge ? c->recv_sge : 1,
			 .max_inline_data = c->inline_bytes },
	};
	end_limits(s, &init.cap);
	want_inline(s, c->inline_bytes);
	e.qp = ibv_create_qp(s->pd, &init);
	if (!e.qp && c->type && (errno == EOPNOTSUPP || errno == ENOSYS))
		skip("queue pairs of type %d", (int)c->type);
	if (!e.qp)
		fail("ibv_create_qp: %s", strerror(errno));
	e.cap = init.cap;
	return e;
}

struct peer_address end_address(const struct side *s, const struct end *e)
{
	return (struct peer_address){ .qpn = e->qp->qp_num, .lid = s->port.lid, .gid = s->gid,
				      .port = (uint8_t)s->port_num };
}

int end_to_init(struct side *s, struct end *e)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = (uint8_t)s->port_num,
				 .qp_access_flags = e->config.access };

	return ibv_modify_qp(e->qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			     IBV_QP_ACCESS_FLAGS);
}

static uint8_t count_of(int configured)
{
	return (uint8_t)(configured < 0 ? 0 : configured ? configured : 1);
}

int end_to_rtr(struct side *s, struct end *e, const struct peer_address *to)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_RTR, .path_mtu = s->port.active_mtu,
		.dest_qp_num = to->qpn, .rq_psn = 7,
		.max_dest_rd_atomic = count_of(e->config.answers),
		.min_rnr_timer = (uint8_t)e->config.min_rnr_timer,
		.ah_attr = { .dlid = to->lid, .port_num = (uint8_t)s->port_num },
	};

	if (s->gid_index >= 0) {
		a.ah_attr.is_global = 1;
		a.ah_attr.grh.dgid = to->gid;
		a.ah_attr.grh.sgid_index = (uint8_t)s->gid_index;
		a.ah_attr.grh.hop_limit = 64;
	}
	e->remote_qpn = to->qpn;
	return ibv_modify_qp(e->qp, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
			     IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			     (end_type(e) == IBV_QPT_RC ? IBV_QP_MAX_DEST_RD_ATOMIC |
							  IBV_QP_MIN_RNR_TIMER : 0));
}

int end_to_rts(struct end *e)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_RTS, .timeout = (uint8_t)e->config.timeout,
		.retry_cnt = (uint8_t)e->config.retry_cnt,
		.rnr_retry = (uint8_t)e->config.rnr_retry, .sq_psn = 7,
		.max_rd_atomic = count_of(e->config.asks),
	};

	return ibv_modify_qp(e->qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN |
			     (end_type(e) == IBV_QPT_RC ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
							  IBV_QP_RNR_RETRY |
							  IBV_QP_MAX_QP_RD_ATOMIC : 0));
}

int end_to(struct end *e, enum ibv_qp_state state)
{
	struct ibv_qp_attr a = { .qp_state = state };

	return ibv_modify_qp(e->qp, &a, IBV_QP_STATE);
}

enum ibv_qp_state end_state(struct end *e)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;

	require_equal(ibv_query_qp(e->qp, &a, IBV_QP_STATE, &init), 0);
	return a.qp_state;
}

void end_connect(struct side *s, struct end *e)
{
	struct peer_address mine = end_address(s, e), theirs;

	swap(s, &mine, &theirs, sizeof(mine));
	require_equal(end_to_init(s, e), 0);
	require_equal(end_to_rtr(s, e, &theirs), 0);
	require_equal(end_to_rts(e), 0);
	barrier(s);
}

void end_free(struct end *e)
{
	require_equal(ibv_destroy_qp(e->qp), 0);
	if (e->own_cq)
		require_equal(ibv_destroy_cq(e->cq), 0);
}

struct ibv_qp_cap end_granted(struct end *e)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;

	require_equal(ibv_query_qp(e->qp, &a, IBV_QP_CAP, &init), 0);
	require(init.cap.max_send_wr >= e->cap.max_send_wr);
	require(init.cap.max_recv_wr >= e->cap.max_recv_wr);
	return init.cap;
}

/* ---- Work ---------------------------------------------------------------- */

struct ibv_sge sge_of(const struct buffer *b, size_t offset, size_t bytes)
{
	return (struct ibv_sge){ .addr = (uintptr_t)b->at + offset, .length = (uint32_t)bytes,
				 .lkey = b->mr->lkey };
}

struct ibv_send_wr send_wr(struct ibv_sge *sge, uint64_t wr_id)
{
	return (struct ibv_send_wr){ .wr_id = wr_id, .sg_list = sge, .num_sge = 1,
				     .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED };
}

struct ibv_send_wr write_wr(const struct buffer *b, struct ibv_sge *sge, uint64_t wr_id)
{
	return (struct ibv_send_wr){ .wr_id = wr_id, .sg_list = sge, .num_sge = 1,
				     .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED,
				     .wr.rdma = { b->addr, b->rkey } };
}

void post(struct end *e, struct ibv_send_wr wr)
{
	struct ibv_send_wr *bad = NULL;
	int rc = ibv_post_send(e->qp, &wr, &bad);

	if (rc)
		fail("ibv_post_send: %s", strerror(rc));
}

void post_receive(struct end *e, uint64_t wr_id, struct ibv_sge *sge, int count)
{
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = sge, .num_sge = count }, *bad;
	int rc = ibv_post_recv(e->qp, &wr, &bad);

	if (rc)
		fail("ibv_post_recv: %s", strerror(rc));
}

unsigned patience_s = 60;

uint64_t patience_end(void)
{
	return now_ns() + patience_s * 1000000000ull;
}

struct ibv_wc wait_wc(struct ibv_cq *cq)
{
	uint64_t end = patience_end();
	unsigned turns = 0;
	struct ibv_wc wc;
	int n;

	for (;;) {
		n = ibv_poll_cq(cq, 1, &wc);
		if (n < 0)
			fail("ibv_poll_cq: %d", n);
		if (n)
			break;
		if (rg_reached(end, now_ns()))
			fail("no completion for %u s", patience_s);
		turn(&turns, end);
	}
	virtual_found();
	return wc;
}

void expect(struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_status status)
{
	struct ibv_wc wc = wait_wc(cq);

	if (wc.status != status || wc.wr_id != wr_id)
		fail("wr_id %llu: %s; expected wr_id %llu: %s", (unsigned long long)wc.wr_id,
		     ibv_wc_status_str(wc.status), (unsigned long long)wr_id,
		     ibv_wc_status_str(status));
}

void wait_state(struct end *e, enum ibv_qp_state state)
{
	uint64_t end = patience_end();
	unsigned turns = 0;
	struct ibv_wc wc;

	while (end_state(e) != state && !rg_reached(end, now_ns())) {
		require_equal(ibv_poll_cq(e->cq, 1, &wc), 0);
		turn(&turns, end);
	}
	require_equal(end_state(e), state);
}

struct ibv_wc wait_ok(struct ibv_cq *cq)
{
	struct ibv_wc wc = wait_wc(cq);

	if (wc.status != IBV_WC_SUCCESS)
		fail("completion of wr_id %llu: %s", (unsigned long long)wc.wr_id,
		     ibv_wc_status_str(wc.status));
	return wc;
}

void expect_nothing(struct ibv_cq *cq, int ms)
{
	uint64_t end = now_ns() + (uint64_t)ms * 1000000;
	unsigned turns = 0;
	struct ibv_wc wc;

	do {
		turn(&turns, end);
		if (ibv_poll_cq(cq, 1, &wc))
			fail("unexpected completion of wr_id %llu: %s",
			     (unsigned long long)wc.wr_id, ibv_wc_status_str(wc.status));
	} while (!rg_reached(end, now_ns()));
}

/* ---- Descriptors --------------------------------------------------------- */

void set_nonblocking(int fd)
{
	require(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) == 0);
}

bool readable(int fd, int timeout_ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	rg_wait_readable(fd, (uint64_t)timeout_ms * 1000000);
	return poll(&p, 1, 0) == 1;
}

void wait_async(struct side *s, enum ibv_event_type expected)
{
	if (!readable(s->ctx->async_fd, patience_ms()))
		fail("no %s for %u s", ibv_event_type_str(expected), patience_s);
}
