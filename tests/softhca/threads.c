/*
 * threads.c - many threads of two processes use the same objects.
 *
 * Some post on queue pairs that they share, some poll a completion queue that
 * all share, one sleeps on a channel, one reads asynchronous events, one creates
 * and destroys objects of every kind meanwhile.  Every message that was sent
 * arrives, once and whole.  This is the test for builds with a thread sanitizer.
 *
 * Usage: threads [MILLISECONDS [SPEC]]
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "kit.h"
#include "random.h"

enum {
	ENDS = 4,		/* queue pairs to the other process: two on a shared receive queue */
	POSTERS = 3, POLLERS = 2,
	DEPTH = 32,		/* receives per queue pair */
	IN_FLIGHT = 16,
	SLOT = 256,
	CHANNEL = ENDS,		/* the one whose completions are waited for */
};

#define SENT (1u << 31)		/* in a wr_id; as an enumerator it makes all of them unsigned (C23) */

struct header {
	uint32_t end, bytes;
	uint64_t seed;
};

static struct side side;
static struct end end[ENDS + 1];
static struct ibv_cq *cq, *channel_cq;
static struct ibv_srq *srq;
static struct ibv_comp_channel *channel;
static struct buffer in;
static _Atomic uint64_t sent[ENDS + 1], acked[ENDS + 1], received[ENDS + 1];
static _Atomic int no_more, stop;

/* ---- Setting up ---------------------------------------------------------- */

static bool is_shared(int i)
{
	return srq && i < 2;
}

static size_t slot_at(int i, uint32_t slot)
{
	return ((size_t)i * DEPTH + slot) * SLOT;
}

static void receive(int i, uint32_t slot)
{
	struct ibv_sge sge = sge_of(&in, slot_at(i, slot), SLOT);
	struct ibv_recv_wr wr = { .wr_id = (uint64_t)i << 32 | slot, .sg_list = &sge,
				  .num_sge = 1 }, *bad;

	if (is_shared(i))
		require_equal(ibv_post_srq_recv(srq, &wr, &bad), 0);
	else
		require_equal(ibv_post_recv(end[i].qp, &wr, &bad), 0);
}

static void make_end(int i)
{
	struct ibv_cq *queue = i == CHANNEL && channel ? channel_cq : cq;
	struct ibv_qp_init_attr init = {
		.send_cq = queue, .recv_cq = queue, .qp_type = IBV_QPT_RC,
		.srq = is_shared(i) ? srq : NULL,
		.cap = { .max_send_wr = 2 * IN_FLIGHT + POSTERS, .max_send_sge = 1, .max_recv_sge = 1,
			 .max_recv_wr = is_shared(i) ? 0 : DEPTH, .max_inline_data = SLOT },
	};

	end[i] = (struct end){ .config = end_defaults, .cq = queue };
	end[i].qp = ibv_create_qp(side.pd, &init);
	require(end[i].qp != NULL);
}

static void open_all(int me, int sock)
{
	struct ibv_srq_init_attr a = { .attr = { .max_wr = 2 * DEPTH, .max_sge = 1 } };
	int i;

	side = side_open(0, me, sock);
	in = buffer_new(&side, (ENDS + 1) * DEPTH * SLOT, ACCESS_ALL);
	cq = ibv_create_cq(side.ctx, 1024, NULL, NULL, 0);
	srq = ibv_create_srq(side.pd, &a);
	channel = ibv_create_comp_channel(side.ctx);
	require(cq != NULL);
	if (channel) {
		fcntl(channel->fd, F_SETFL, O_NONBLOCK);
		channel_cq = ibv_create_cq(side.ctx, 256, NULL, channel, 0);
		require_equal(ibv_req_notify_cq(channel_cq, 0), 0);
	}
	fcntl(side.ctx->async_fd, F_SETFL, O_NONBLOCK);
	for (i = 0; i <= ENDS; i++)
		make_end(i);
}

static void connect_all(void)
{
	uint32_t slot;
	int i;

	for (i = 0; i <= ENDS; i++) {
		struct peer_address mine = end_address(&side, &end[i]), theirs;

		swap(&side, &mine, &theirs, sizeof(mine));
		require_equal(end_to_init(&side, &end[i]), 0);
		for (slot = 0; slot < DEPTH; slot++)
			receive(i, slot);
		require_equal(end_to_rtr(&side, &end[i], &theirs), 0);
		require_equal(end_to_rts(&end[i]), 0);
	}
	barrier(&side);
}

/* ---- Posting, polling ------------------------------------------------------ */

static void send_one(int i, uint64_t *random)
{
	unsigned char bytes[SLOT];
	struct header h = { .end = (uint32_t)i, .seed = random_below(random, 65536) };
	struct ibv_sge sge = { .addr = (uintptr_t)bytes };
	struct ibv_send_wr wr = send_wr(&sge, (uint64_t)i << 32 | SENT), *bad;

	h.bytes = sge.length = (uint32_t)sizeof(h) + random_below(random, SLOT - (unsigned)sizeof(h));
	memcpy(bytes, &h, sizeof(h));
	fill(bytes + sizeof(h), h.seed, h.bytes - sizeof(h));
	wr.send_flags |= IBV_SEND_INLINE;
	atomic_fetch_add(&sent[i], 1);
	require_equal(ibv_post_send(end[i].qp, &wr, &bad), 0);
}

static void *poster(void *arg)
{
	uint64_t random = (uintptr_t)arg * 7919u + (unsigned)side.me;

	while (!atomic_load(&no_more)) {
		int i = (int)random_below(&random, ENDS + 1);

		if (atomic_load(&sent[i]) < atomic_load(&acked[i]) + IN_FLIGHT)
			send_one(i, &random);
		else
			sched_yield();
	}
	return NULL;
}

static void handle(const struct ibv_wc *wc)
{
	int i = (int)(wc->wr_id >> 32);
	uint32_t slot = (uint32_t)wc->wr_id;
	struct header h;

	if (wc->status)
		fail("end %d: %s", i, ibv_wc_status_str(wc->status));
	if (slot & SENT) {
		atomic_fetch_add(&acked[i], 1);
		return;
	}
	memcpy(&h, in.at + slot_at(i, slot), sizeof(h));
	require(h.end <= ENDS);
	require_equal(h.bytes, wc->byte_len);
	require_equal(wc->qp_num, end[h.end].qp->qp_num);
	check(in.at + slot_at(i, slot) + sizeof(h), h.seed, h.bytes - sizeof(h), "a message");
	receive(i, slot);
	atomic_fetch_add(&received[h.end], 1);
}

static int poll_some(struct ibv_cq *queue)
{
	struct ibv_wc wc[4];
	int n = ibv_poll_cq(queue, 4, wc), k;

	require(n >= 0);
	for (k = 0; k < n; k++)
		handle(&wc[k]);
	return n;
}

static void *poller(void *arg)
{
	while (!atomic_load(&stop))
		if (!poll_some(cq))
			sched_yield();
	return arg;
}

static void *sleeper(void *arg)
{
	struct pollfd p = { .fd = channel->fd, .events = POLLIN };
	struct ibv_cq *queue;
	void *context;

	while (!atomic_load(&stop)) {
		if (poll(&p, 1, 50) != 1 || ibv_get_cq_event(channel, &queue, &context))
			continue;
		ibv_ack_cq_events(queue, 1);
		require_equal(ibv_req_notify_cq(queue, 0), 0);
		while (poll_some(queue))
			;
	}
	return arg;
}

static void *listener(void *arg)
{
	struct pollfd p = { .fd = side.ctx->async_fd, .events = POLLIN };
	struct ibv_async_event event;

	while (!atomic_load(&stop))
		if (poll(&p, 1, 50) == 1 && ibv_get_async_event(side.ctx, &event) == 0)
			ibv_ack_async_event(&event);
	return arg;
}

/* ---- Coming and going -------------------------------------------------------- */

/* A queue pair of its own, connected with itself, that sends, fails and goes. */
static void a_life(struct ibv_cq *queue, struct buffer *b)
{
	struct end_config c = end_defaults;
	struct peer_address a;
	struct ibv_sge sge = sge_of(b, 0, 64);
	struct ibv_wc wc;
	struct end e;

	c.cq = queue;
	e = end_new(&side, &c);
	a = end_address(&side, &e);
	require_equal(end_to_init(&side, &e), 0);
	post_receive(&e, 1, &sge, 1);
	require_equal(end_to_rtr(&side, &e, &a), 0);
	require_equal(end_to_rts(&e), 0);
	post(&e, send_wr(&sge, 2));
	require_equal(wait_ok(queue).status, IBV_WC_SUCCESS);
	require_equal(wait_ok(queue).status, IBV_WC_SUCCESS);
	post_receive(&e, 3, &sge, 1);
	require_equal(end_to(&e, IBV_QPS_ERR), 0);
	wc = wait_wc(queue);
	require_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	end_free(&e);
}

static void *churner(void *arg)
{
	struct ibv_srq_init_attr a = { .attr = { .max_wr = 4, .max_sge = 1 } };

	while (!atomic_load(&no_more)) {
		struct ibv_context *ctx = side.ctx;
		struct ibv_comp_channel *ch = ibv_create_comp_channel(ctx);
		struct ibv_cq *queue = ibv_create_cq(ctx, 16, NULL, ch, 0);
		struct ibv_srq *shared = ibv_create_srq(side.pd, &a);
		struct buffer b = buffer_new(&side, 4096, ACCESS_ALL);
		struct ibv_device **list = ibv_get_device_list(NULL);
		struct ibv_context *other = ibv_open_device(list[0]);

		require(queue && other);
		ibv_free_device_list(list);
		a_life(queue, &b);
		if (shared)
			require_equal(ibv_destroy_srq(shared), 0);
		buffer_free(&side, &b);
		require_equal(ibv_destroy_cq(queue), 0);
		if (ch)
			require_equal(ibv_destroy_comp_channel(ch), 0);
		require_equal(ibv_close_device(other), 0);
	}
	return arg;
}

static void *asker(void *arg)
{
	struct ibv_qp_init_attr init;
	struct ibv_port_attr port;
	struct ibv_qp_attr a;
	int i;

	while (!atomic_load(&no_more)) {
		for (i = 0; i <= ENDS; i++) {
			require_equal(ibv_query_qp(end[i].qp, &a, IBV_QP_STATE, &init), 0);
			require_equal(a.qp_state, IBV_QPS_RTS);
			a.min_rnr_timer = 1;
			require_equal(ibv_modify_qp(end[i].qp, &a, IBV_QP_MIN_RNR_TIMER), 0);
		}
		require_equal(ibv_query_port(side.ctx, 1, &port), 0);
		ibv_resize_cq(cq, 1024 + (i % 2) * 1024);
		usleep(500);
	}
	return arg;
}

/* ---- All of it ----------------------------------------------------------------- */

static void wait_for_all(void)
{
	uint64_t limit = now_ns() + 30000000000u, mine[ENDS + 1], theirs[ENDS + 1];
	int i;

	for (i = 0; i <= ENDS; i++)
		mine[i] = atomic_load(&sent[i]);
	swap(&side, mine, theirs, sizeof(mine));
	for (i = 0; i <= ENDS; i++) {
		while ((atomic_load(&received[i]) < theirs[i] || atomic_load(&acked[i]) < mine[i]) &&
		       now_ns() < limit)
			usleep(1000);
		require_equal(atomic_load(&received[i]), theirs[i]);
		require_equal(atomic_load(&acked[i]), mine[i]);
	}
	barrier(&side);
}

static void close_all(void)
{
	int i;

	for (i = 0; i <= ENDS; i++)
		require_equal(ibv_destroy_qp(end[i].qp), 0);
	if (srq)
		require_equal(ibv_destroy_srq(srq), 0);
	require_equal(ibv_destroy_cq(cq), 0);
	if (channel) {
		require_equal(ibv_destroy_cq(channel_cq), 0);
		require_equal(ibv_destroy_comp_channel(channel), 0);
	}
	buffer_free(&side, &in);
	side_close(&side);
}

static void run(int me, int sock, const void *arg)
{
	const unsigned ms = *(const unsigned *)arg;
	void *(*const stopped[])(void *) = { poller, poller, listener, sleeper };
	void *(*const first[])(void *) = { poster, poster, poster, churner, asker };
	enum { STOPPED = sizeof(stopped) / sizeof(*stopped), FIRST = sizeof(first) / sizeof(*first) };
	pthread_t a[FIRST], b[STOPPED];
	uintptr_t i, late;
	uint64_t sum = 0;

	alarm(120 + ms / 1000);
	open_all(me, sock);
	connect_all();
	late = channel ? STOPPED : STOPPED - 1;
	for (i = 0; i < late; i++)
		require_equal(pthread_create(&b[i], NULL, stopped[i], NULL), 0);
	for (i = 0; i < FIRST; i++)
		require_equal(pthread_create(&a[i], NULL, first[i], (void *)(i + 1)), 0);
	usleep(ms * 1000);
	atomic_store(&no_more, 1);
	for (i = 0; i < FIRST; i++)
		pthread_join(a[i], NULL);
	wait_for_all();
	atomic_store(&stop, 1);
	for (i = 0; i < late; i++)
		pthread_join(b[i], NULL);
	for (i = 0; i <= ENDS; i++)
		sum += received[i];
	printf("process %d: %llu messages\n", me, (unsigned long long)sum);
	fflush(stdout);
	close_all();
}

int main(int argc, char **argv)
{
	unsigned ms = argc > 1 ? (unsigned)atoi(argv[1]) : 3000;

	fabric_new("threads");
	if (argc > 2)
		setenv("SOFTHCA_SPEC", argv[2], 1);
	return !two_sides(run, &ms);
}
