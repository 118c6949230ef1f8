/*
 * served.c - who serves a wire: the progress thread while the program calls no verb, a verb that
 * waits for an event, a program that polls; and who sleeps meanwhile.  On the virtual clock
 * (tests/virtual/served) also when and how often.
 */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "../conformance/conformance.h"
#include "fake_link.h"
#include "softhca/object/device.h"
#include "softhca/softhca.h"
#include "util/clock.h"
#ifdef VIRTUAL_CLOCK
#include "../virtual/virtual.h"
#endif

#define USEC 1000ull
#define MSEC 1000000ull
#define SEC 1000000000ull

enum { RNR_CODE = 14, RNR_NS = 1280000 };

/* The program, and what is to be said to it. */
static struct program {
	struct ibv_device **list;
	struct ibv_context *c;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	_Atomic uint32_t ready, done;	/* the peer may begin; it has ended */
} p;

static void await(_Atomic uint32_t *word)
{
	while (!atomic_load(word))
		rg_wait_word(word, 0, UINT64_MAX, false);
}

static void say(_Atomic uint32_t *word)
{
	atomic_store(word, 1);
	rg_wake_word(word, false);
}

static void connect_qp(void)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1,
				 .path_mtu = IBV_MTU_1024, .max_dest_rd_atomic = 1,
				 .max_rd_atomic = 1, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7,
				 .ah_attr = { .dlid = 1, .port_num = 1 } };

	a.dest_qp_num = p.qp->qp_num;
	require_equal(ibv_modify_qp(p.qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				    IBV_QP_ACCESS_FLAGS), 0);
	a.qp_state = IBV_QPS_RTR;
	require_equal(ibv_modify_qp(p.qp, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				    IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MIN_RNR_TIMER |
				    IBV_QP_MAX_DEST_RD_ATOMIC), 0);
	a.qp_state = IBV_QPS_RTS;
	require_equal(ibv_modify_qp(p.qp, &a, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				    IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC), 0);
}

static void begin(void)
{
	char name[32];
	struct softhca_config a = { .fabric = name, .spec = "" };
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .sq_sig_all = 1,
					 .cap = { .max_send_wr = 16, .max_recv_wr = 1 } };

	snprintf(name, sizeof(name), "served.%d", (int)getpid());
	p.list = softhca_get_device_list(&a, NULL);
	require(p.list != NULL);
	p.c = ibv_open_device(p.list[0]);
	require(p.c != NULL);
	fake_install(hca_context_of(p.c)->fabric, true);
	fake.rnr_timer = RNR_CODE;
	p.pd = ibv_alloc_pd(p.c);
	p.channel = ibv_create_comp_channel(p.c);
	p.cq = ibv_create_cq(p.c, 16, NULL, p.channel, 0);
	init.send_cq = init.recv_cq = p.cq;
	p.qp = ibv_create_qp(p.pd, &init);
	require(p.qp != NULL);
	connect_qp();
}

static void end(void)
{
	require_equal(ibv_destroy_qp(p.qp), 0);
	require_equal(ibv_destroy_cq(p.cq), 0);
	require_equal(ibv_destroy_comp_channel(p.channel), 0);
	require_equal(ibv_dealloc_pd(p.pd), 0);
	require_equal(ibv_close_device(p.c), 0);
	ibv_free_device_list(p.list);
	fake_remove();
}

static void send_one(void)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad;

	require_equal(ibv_post_send(p.qp, &wr, &bad), 0);
}

static void expect_one(void)
{
	struct ibv_wc wc;

	require_equal(ibv_poll_cq(p.cq, 1, &wc), 1);
	require_equal(wc.status, IBV_WC_SUCCESS);
}

/* Something arrives, and says this. */
static void arrives(enum fake_what what, int value)
{
	fake_tell(p.qp, what, value);
	fake_ring();
}

static void await_told(unsigned count)
{
	while (atomic_load(&fake.told) < count)
		rg_sleep_ns(MSEC);
}

/* On the virtual clock: within so long, from now on. */
static void require_told(unsigned count, uint64_t ns)
{
#ifdef VIRTUAL_CLOCK
	rg_sleep_ns(ns);
	require_equal(atomic_load(&fake.told), count);
#else
	(void)count, (void)ns;
#endif
}

/* ---- The program computes, or sleeps ------------------------------------------ */

static void computes(void)
{
	send_one();
	say(&p.ready);
	await_told(1);
	expect_one();
}

static void peer_ends_one(void)
{
	rg_sleep_ns(3 * MSEC);
	arrives(FAKE_ENDED, 1);
	require_told(1, 10 * USEC);
}

/* A request is tried again on time, and what was posted behind it follows. */
static void sleeps_over_retry(void)
{
	send_one();
	say(&p.ready);
	while (atomic_load(&fake.handed_count) < 2)
		rg_sleep_ns(MSEC);
	await_told(2);
	expect_one();
}

static void peer_refuses_once(void)
{
	arrives(FAKE_REWOUND, HCA_NO_RECEIVE);
#ifdef VIRTUAL_CLOCK
	rg_sleep_ns(RNR_NS - 1);
	require_equal(atomic_load(&fake.handed_count), 1);
	rg_sleep_ns(20 * USEC);
	require_equal(atomic_load(&fake.handed_count), 2);
#endif
	while (atomic_load(&fake.handed_count) < 2)
		rg_sleep_ns(MSEC);
	arrives(FAKE_ENDED, 1);
}

/* ---- A verb waits ----------------------------------------------------------------- */

static void take_event(void)
{
	struct ibv_cq *cq;
	void *context;

	require_equal(ibv_get_cq_event(p.channel, &cq, &context), 0);
	require(cq == p.cq);
	ibv_ack_cq_events(cq, 1);
}

/* The thread serves again after that. */
static void waits(void)
{
	require_equal(ibv_req_notify_cq(p.cq, 0), 0);
	send_one();
	send_one();
	say(&p.ready);
	take_event();
	await_told(2);
	expect_one();
	expect_one();
}

static void peer_ends_two(void)
{
	rg_sleep_ns(300 * MSEC);
	arrives(FAKE_ENDED, 1);
	require_told(1, 10 * USEC);
	rg_sleep_ns(20 * MSEC);
	arrives(FAKE_ENDED, 1);
	require_told(2, 10 * MSEC);
}

static void waits_for_fault(void)
{
	struct ibv_async_event e;

	say(&p.ready);
	require_equal(ibv_get_async_event(p.c, &e), 0);
	require_equal(e.event_type, IBV_EVENT_QP_FATAL);
	ibv_ack_async_event(&e);
}

static void peer_is_lost(void)
{
	rg_sleep_ns(3 * MSEC);
	arrives(FAKE_LOST, 0);
	require_told(1, 10 * USEC);
}

#ifndef VIRTUAL_CLOCK

/* ---- A verb is cancelled ------------------------------------------------------------ */

static __attribute__((unused)) void *cancelled(void *arg)
{
	(void)arg;
	take_event();
	return NULL;
}

static void cancels(void)
{
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	/* Both fail in threads that are cancelled. */
	pthread_t thread;
	void *result;

	require_equal(pthread_create(&thread, NULL, cancelled, NULL), 0);
	rg_sleep_ns(20 * MSEC);
	require_equal(pthread_cancel(thread), 0);
	require_equal(pthread_join(thread, &result), 0);
	require(result == PTHREAD_CANCELED);
#endif
	computes();
}

#else

/* ---- How often ------------------------------------------------------------------------ */

static void sleeps_long(void)
{
	unsigned before;

	rg_sleep_ns(SEC);
	before = atomic_load(&fake.progressed);
	rg_sleep_ns(10 * SEC);
	require(atomic_load(&fake.progressed) - before < 200);
	say(&p.ready);
}

static void waits_long(void)
{
	unsigned before;

	require_equal(ibv_req_notify_cq(p.cq, 0), 0);
	send_one();
	say(&p.ready);
	before = atomic_load(&fake.progressed) + atomic_load(&fake.waits);
	take_event();
	/* Both, and the thread's waits for the end of the verb's. */
	require(atomic_load(&fake.progressed) + atomic_load(&fake.waits) - before < 2 * 200);
	expect_one();
}

static void peer_ends_late(void)
{
	rg_sleep_ns(10 * SEC);
	arrives(FAKE_ENDED, 1);
}

/* Messages to a program that polls wake nobody; when it stops, the thread takes over. */
static void polls(void)
{
	struct ibv_wc wc;
	unsigned before;
	uint64_t until;

	rg_sleep_ns(SEC);
	until = rg_now_ns() + 100 * MSEC;
	before = atomic_load(&fake.waits);
	say(&p.ready);
	while (!rg_reached(until, rg_now_ns())) {
		require_equal(ibv_poll_cq(p.cq, 1, &wc), 0);
		rg_yield();
	}
	require(atomic_load(&fake.waits) - before <= 1);
	send_one();
	await(&p.done);
	expect_one();
}

static void peer_rings(void)
{
	uint64_t until = rg_now_ns() + 100 * MSEC;

	for (unsigned i = 0; !rg_reached(until, rg_now_ns()); i++) {
		fake_ring();
		rg_sleep_ns(50 * USEC);
	}
	rg_sleep_ns(MSEC);		/* it does not poll any more */
	arrives(FAKE_ENDED, 1);
	require_told(1, 9 * MSEC);
}

static void peer_does_nothing(void)
{
}

#endif

/* ---- Cases ------------------------------------------------------------------------------ */

static const struct served_case {
	const char *name;
	void (*program)(void), (*peer)(void);
} cases[] = {
	{ "the program computes", computes, peer_ends_one },
	{ "a retry while it sleeps", sleeps_over_retry, peer_refuses_once },
	{ "a verb waits for a completion", waits, peer_ends_two },
	{ "a verb waits for an asynchronous event", waits_for_fault, peer_is_lost },
#ifndef VIRTUAL_CLOCK
	{ "a waiting verb is cancelled", cancels, peer_ends_one },
#else
	{ "idle, asleep", sleeps_long, peer_does_nothing },
	{ "idle, in a verb", waits_long, peer_ends_late },
	{ "a program that polls", polls, peer_rings },
#endif
};

static void run_program(void *arg)
{
	const struct served_case *c = arg;

	begin();
	c->program();
	await(&p.done);
	end();
}

static void run_peer(void *arg)
{
	const struct served_case *c = arg;

	await(&p.ready);
	c->peer();
	say(&p.done);
}

#ifdef VIRTUAL_CLOCK
static void run(struct served_case *c)
{
	virtual_begin(&(struct virtual_config){ 0 });
	virtual_task("program", 0, run_program, c);
	virtual_task("peer", 0, run_peer, c);
	virtual_run();
}
#else
static void *peer_thread(void *arg)
{
	run_peer(arg);
	return NULL;
}

static void run(struct served_case *c)
{
	pthread_t thread;

	require_equal(pthread_create(&thread, NULL, peer_thread, c), 0);
	run_program(c);
	require_equal(pthread_join(thread, NULL), 0);
}
#endif

int main(void)
{
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct served_case c = cases[i];

		p = (struct program){ 0 };
		run(&c);
		printf("ok %s\n", c.name);
		fflush(stdout);
	}
	return 0;
}
