/* channels.c - completion channels: a sleeping program gets each event, once. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "conformance.h"
#include "random.h"

/* An end whose queue belongs to a channel; a buffer; connected. */
struct heard {
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct end e;
	struct buffer b;
};

static struct heard heard_as(struct side *s, struct end_config c)
{
	struct heard h = { .channel = ibv_create_comp_channel(s->ctx) };

	require(h.channel != NULL);
	h.cq = ibv_create_cq(s->ctx, 256, &h, h.channel, 0);
	require(h.cq != NULL);
	c.cq = h.cq;
	h.e = end_new(s, &c);
	h.b = buffer_new(s, 4096, ACCESS_ALL);
	end_connect(s, &h.e);
	return h;
}

static struct heard heard_new(struct side *s)
{
	return heard_as(s, end_defaults);
}

static void heard_free(struct side *s, struct heard *h)
{
	end_free(&h->e);
	require_equal(ibv_destroy_comp_channel(h->channel), EBUSY);
	require_equal(ibv_destroy_cq(h->cq), 0);
	require_equal(ibv_destroy_comp_channel(h->channel), 0);
	buffer_free(s, &h->b);
}

static void heard_receive(struct heard *h, uint64_t wr_id)
{
	struct ibv_sge sge = sge_of(&h->b, 2048, 64);

	post_receive(&h->e, wr_id, &sge, 1);
}

static void heard_send(struct heard *h, unsigned flags)
{
	struct ibv_sge sge = sge_of(&h->b, 0, 64);

	post(&h->e, (struct ibv_send_wr){ .wr_id = 1, .sg_list = &sge, .num_sge = 1,
		.opcode = IBV_WR_SEND, .send_flags = flags });
}

/*
 * The channel's next event, which must be of this queue.  A descriptor may be
 * readable for nothing, as any other.
 */
static void take_event(struct heard *h)
{
	uint64_t end = patience_end();
	struct ibv_cq *cq = NULL;
	void *context;
	int rc;

	do {
		if (!readable(h->channel->fd, patience_ms()) || now_ns() > end)
			fail("no completion event for %u s", patience_s);
		rc = ibv_get_cq_event(h->channel, &cq, &context);
	} while (rc && errno == EAGAIN);
	require_equal(rc, 0);
	require(cq == h->cq && context == h->cq->cq_context);
	ibv_ack_cq_events(cq, 1);
}

static void expect_no_event(struct heard *h, int ms)
{
	struct ibv_cq *cq;
	void *context;

	require(!readable(h->channel->fd, ms));
	require_equal(ibv_get_cq_event(h->channel, &cq, &context), -1);
	require_equal(errno, EAGAIN);
}

static void test_channel_receive(struct side *s)
{
	struct heard h = heard_new(s);

	set_nonblocking(h.channel->fd);
	expect_no_event(&h, 0);
	if (s->me == 0) {
		barrier(s);
		heard_send(&h, IBV_SEND_SIGNALED);	/* not armed there: tells nobody */
		wait_ok(h.cq);
		barrier(s);
		barrier(s);
		heard_send(&h, IBV_SEND_SIGNALED);
		wait_ok(h.cq);
		expect_no_event(&h, 0);			/* nor here */
	} else {
		heard_receive(&h, 1);
		heard_receive(&h, 2);
		barrier(s);
		barrier(s);
		expect_no_event(&h, 20);
		require_equal(wait_ok(h.cq).wr_id, 1);
		require_equal(ibv_req_notify_cq(h.cq, 0), 0);
		expect_no_event(&h, 0);
		barrier(s);
		take_event(&h);
		require_equal(wait_ok(h.cq).wr_id, 2);
		expect_no_event(&h, 0);
	}
	barrier(s);
	heard_free(s, &h);
}

/* One's own completions wake, too; one event for each arming, however many entries. */
static void test_channel_send(struct side *s)
{
	struct heard h = heard_new(s);
	int i;

	set_nonblocking(h.channel->fd);
	for (i = 0; i < 4; i++)
		heard_receive(&h, (uint64_t)i);
	barrier(s);
	if (s->me == 0) {
		require_equal(ibv_req_notify_cq(h.cq, 0), 0);
		heard_send(&h, IBV_SEND_SIGNALED);
		heard_send(&h, IBV_SEND_SIGNALED);
		take_event(&h);
		wait_ok(h.cq);
		wait_ok(h.cq);
		expect_no_event(&h, 10);
		require_equal(ibv_req_notify_cq(h.cq, 0), 0);
		heard_send(&h, 0);		/* leaves no completion */
		expect_no_event(&h, 10);
		heard_send(&h, IBV_SEND_SIGNALED);
		take_event(&h);
		wait_ok(h.cq);
	}
	barrier(s);
	heard_free(s, &h);
}

/* Armed for solicited entries only: those, and errors. */
static void test_channel_solicited(struct side *s)
{
	struct heard h = heard_new(s);
	int i;

	set_nonblocking(h.channel->fd);
	for (i = 0; i < 4; i++)
		heard_receive(&h, (uint64_t)i);
	if (s->me == 1)
		require_equal(ibv_req_notify_cq(h.cq, 1), 0);
	barrier(s);
	if (s->me == 0) {
		heard_send(&h, IBV_SEND_SIGNALED);
		wait_ok(h.cq);
		barrier(s);
		barrier(s);
		heard_send(&h, IBV_SEND_SIGNALED | IBV_SEND_SOLICITED);
		wait_ok(h.cq);
		barrier(s);
	} else {
		barrier(s);
		require_equal(wait_ok(h.cq).wr_id, 0);
		expect_no_event(&h, 20);
		/* A request that asks for more prevails; one for less does not. */
		require_equal(ibv_req_notify_cq(h.cq, 1), 0);
		barrier(s);
		take_event(&h);
		require_equal(wait_ok(h.cq).wr_id, 1);
		barrier(s);
		require_equal(ibv_req_notify_cq(h.cq, 1), 0);
		require_equal(end_to(&h.e, IBV_QPS_ERR), 0);
		take_event(&h);
		require_equal(wait_wc(h.cq).status, IBV_WC_WR_FLUSH_ERR);
	}
	barrier(s);
	heard_free(s, &h);
}

static void test_channel_solicited_then_any(struct side *s)
{
	struct heard h = heard_new(s);

	set_nonblocking(h.channel->fd);
	heard_receive(&h, 0);
	if (s->me == 1) {
		require_equal(ibv_req_notify_cq(h.cq, 1), 0);
		require_equal(ibv_req_notify_cq(h.cq, 0), 0);
		require_equal(ibv_req_notify_cq(h.cq, 1), 0);
	}
	barrier(s);
	if (s->me == 0) {
		heard_send(&h, IBV_SEND_SIGNALED);
		wait_ok(h.cq);
	} else {
		take_event(&h);
		wait_ok(h.cq);
	}
	barrier(s);
	heard_free(s, &h);
}

/* Events wait for each other: armed again before the first was taken, there are two. */
static void test_channel_two_events(struct side *s)
{
	struct heard h = heard_new(s);

	set_nonblocking(h.channel->fd);
	heard_receive(&h, 0);
	heard_receive(&h, 1);
	barrier(s);
	if (s->me == 0) {
		require_equal(ibv_req_notify_cq(h.cq, 0), 0);
		heard_send(&h, IBV_SEND_SIGNALED);
		wait_ok(h.cq);
		require(readable(h.channel->fd, patience_ms()));
		require_equal(ibv_req_notify_cq(h.cq, 0), 0);
		heard_send(&h, IBV_SEND_SIGNALED);
		wait_ok(h.cq);
		pause_ns(10000000);
		take_event(&h);
		take_event(&h);
		expect_no_event(&h, 10);
	}
	barrier(s);
	heard_free(s, &h);
}

/* Several queues at one channel: each event names its own. */
static void test_channel_many_queues(struct side *s)
{
	enum { QUEUES = 8, ROUNDS = 20 };
	struct ibv_comp_channel *channel = ibv_create_comp_channel(s->ctx);
	struct buffer b = buffer_new(s, 4096, ACCESS_ALL);
	struct ibv_sge sge = sge_of(&b, 0, 8);
	struct end e[QUEUES];
	int i, round;

	require(channel != NULL);
	for (i = 0; i < QUEUES; i++) {
		struct end_config c = end_defaults;

		c.cq = ibv_create_cq(s->ctx, 16, &e[i], channel, 0);
		require(c.cq != NULL);
		e[i] = end_new(s, &c);
		end_connect(s, &e[i]);
		if (s->me == 1)
			require_equal(ibv_req_notify_cq(e[i].cq, 0), 0);
	}
	for (round = 0; round < ROUNDS; round++) {
		bool seen[QUEUES] = { false };

		for (i = 0; i < QUEUES && s->me == 1; i++)
			post_receive(&e[i], (uint64_t)i, &sge, 1);
		barrier(s);
		for (i = 0; i < QUEUES && s->me == 0; i++) {
			post(&e[i], (struct ibv_send_wr){ .sg_list = &sge, .num_sge = 1,
				.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED });
			wait_ok(e[i].cq);
		}
		for (i = 0; i < QUEUES && s->me == 1; i++) {
			struct ibv_cq *cq;
			struct end *which;
			void *context;

			require_equal(ibv_get_cq_event(channel, &cq, &context), 0);
			which = context;
			require(which >= e && which < e + QUEUES && which->cq == cq);
			ibv_ack_cq_events(cq, 1);
			require_equal(ibv_req_notify_cq(cq, 0), 0);
			/*
			 * The queue was armed before its entry was taken: adapters raise another event
			 * then, and so does a peer that is slow between the entry and the event.
			 */
			if (seen[which - e]) {
				i--;
				continue;
			}
			seen[which - e] = true;
			require_equal(wait_ok(cq).wr_id, which - e);
		}
	}
	barrier(s);
	for (i = 0; i < QUEUES; i++) {
		end_free(&e[i]);
		require_equal(ibv_destroy_cq(e[i].cq), 0);
	}
	require_equal(ibv_destroy_comp_channel(channel), 0);
	buffer_free(s, &b);
}

struct waiter {
	pthread_t thread;
	struct ibv_comp_channel *channel;
	_Atomic int *ended;
	int events;
};

static void *wait_for_events(void *arg)
{
	struct waiter *w = arg;
	struct ibv_cq *cq;
	void *context;

	while (ibv_get_cq_event(w->channel, &cq, &context) == 0) {
		_Atomic bool *last = context;

		w->events++;
		ibv_ack_cq_events(cq, 1);
		if (*last) {
			++*w->ended;
			return NULL;
		}
		ibv_req_notify_cq(cq, 0);
	}
	return "ibv_get_cq_event failed";
}

/* Several threads sleep on one channel: each event wakes one of them. */
static void test_channel_threads(struct side *s)
{
	/* Behind EVENTS one every 20 ms, for a minute. */
	enum { THREADS = 4, EVENTS = 200, MOST = EVENTS + 3000 };
	struct ibv_comp_channel *channel = ibv_create_comp_channel(s->ctx);
	struct waiter w[THREADS] = { { .events = 0 } };
	struct buffer b = buffer_new(s, 4096, ACCESS_ALL);
	struct ibv_sge sge = sge_of(&b, 0, 8);
	struct end_config c = end_defaults;
	int i, mine, sent, ended = 0, total = 0;
	_Atomic int threads_ended = 0;
	_Atomic bool last = false;
	void *failed;
	struct end e;

	c.cq = ibv_create_cq(s->ctx, 2 * EVENTS, (void *)&last, channel, 0);
	require(c.cq != NULL);
	c.recv_wr = MOST;
	e = end_new(s, &c);
	end_connect(s, &e);
	for (i = 0; i < MOST && s->me == 1; i++)
		post_receive(&e, (uint64_t)i, &sge, 1);
	if (s->me == 1) {
		require_equal(ibv_req_notify_cq(e.cq, 0), 0);
		for (i = 0; i < THREADS; i++) {
			w[i].channel = channel;
			w[i].ended = &threads_ended;
			require_equal(pthread_create(&w[i].thread, NULL, wait_for_events, &w[i]),
				      0);
		}
	}
	for (sent = 0; ended < THREADS; sent++) {
		require(sent < MOST);
		last = sent >= EVENTS;
		if (s->me == 0)
			post(&e, (struct ibv_send_wr){ .sg_list = &sge, .num_sge = 1,
				.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED });
		require_equal(wait_ok(e.cq).wr_id, s->me ? sent : 0);
		/* One thread more has ended: the others must be woken by the next. */
		pause_ns(sent < EVENTS ? 200000 : 20000000);
		if (s->me == 1 && sent >= EVENTS)
			require_equal(ibv_req_notify_cq(e.cq, 0), 0);
		/* Both go by what side 1 saw. */
		mine = threads_ended;
		swap(s, &mine, &ended, sizeof(ended));
		if (s->me == 1)
			ended = mine;
	}
	for (i = 0; i < THREADS && s->me == 1; i++) {
		require_equal(pthread_join(w[i].thread, &failed), 0);
		if (failed)
			fail("%s", (char *)failed);
		total += w[i].events;
	}
	if (s->me == 1 && (total < THREADS || total > sent))
		fail("%d events for %d messages and %d threads", total, sent, THREADS);
	barrier(s);
	end_free(&e);
	require_equal(ibv_destroy_cq(e.cq), 0);
	require_equal(ibv_destroy_comp_channel(channel), 0);
	buffer_free(s, &b);
}

/* The device goes on with what has to wait while its program sleeps. */
static void test_channel_late_receive(struct side *s)
{
	struct heard h = heard_new(s);
	int round;

	set_nonblocking(h.channel->fd);
	for (round = 0; round < 5; round++) {
		barrier(s);
		if (s->me == 0) {
			require_equal(ibv_req_notify_cq(h.cq, 0), 0);
			heard_send(&h, IBV_SEND_SIGNALED);
			take_event(&h);
		} else {
			pause_ns(20000000);
			heard_receive(&h, 7);
		}
		wait_ok(h.cq);
	}
	barrier(s);
	heard_free(s, &h);
}

static void *acknowledge_late(void *arg)
{
	pause_ns(50000000);
	ibv_ack_cq_events(arg, 2);
	return NULL;
}

/* A queue goes when its events are acknowledged, not before. */
static void test_channel_ack(struct side *s)
{
	struct heard h = heard_new(s);
	struct ibv_cq *cq;
	void *context;
	int i;

	heard_receive(&h, 0);
	heard_receive(&h, 1);
	barrier(s);
	if (s->me == 0) {
		pthread_t thread;
		uint64_t begin;

		for (i = 0; i < 2; i++) {
			require_equal(ibv_req_notify_cq(h.cq, 0), 0);
			heard_send(&h, IBV_SEND_SIGNALED);
			require_equal(ibv_get_cq_event(h.channel, &cq, &context), 0);
			wait_ok(h.cq);
		}
		barrier(s);
		end_free(&h.e);
		begin = now_ns();
		require_equal(pthread_create(&thread, NULL, acknowledge_late, h.cq), 0);
		require_equal(ibv_destroy_cq(h.cq), 0);
		require(now_ns() - begin >= 40000000);
		pthread_join(thread, NULL);
		require_equal(ibv_destroy_comp_channel(h.channel), 0);
		buffer_free(s, &h.b);
	} else {
		barrier(s);
		heard_free(s, &h);
	}
}

static void nothing(int sig)
{
}

static void *interrupt(void *arg)
{
	pthread_t *whom = arg;

	pause_ns(30000000);
	pthread_kill(*whom, SIGUSR1);
	return NULL;
}

/* A signal ends the wait: a program can be stopped. */
static void test_channel_signal(struct side *s)
{
	struct sigaction act = { .sa_handler = nothing };
	pthread_t self = pthread_self(), thread;
	struct heard h = heard_new(s);
	struct ibv_cq *cq;
	void *context;

	sigaction(SIGUSR1, &act, NULL);
	require_equal(ibv_req_notify_cq(h.cq, 0), 0);
	require_equal(pthread_create(&thread, NULL, interrupt, &self), 0);
	require_equal(ibv_get_cq_event(h.channel, &cq, &context), -1);
	require_equal(errno, EINTR);
	pthread_join(thread, NULL);
	barrier(s);
	heard_free(s, &h);
}

/* Who sleeps while its message waits for a receive learns that there will be none. */
static void test_channel_peer_dies(struct side *s)
{
	struct end_config c = end_defaults;
	struct heard h;

	c.timeout = 8;			/* 1 ms */
	c.retry_cnt = 1;
	c.rnr_retry = 7;
	h = heard_as(s, c);
	set_nonblocking(h.channel->fd);
	if (s->me == 0) {
		require_equal(ibv_req_notify_cq(h.cq, 0), 0);
		heard_send(&h, IBV_SEND_SIGNALED);
		expect_nothing(h.cq, 5);
	}
	side_dies(s, 1);
	take_event(&h);
	expect(h.cq, 1, IBV_WC_RETRY_EXC_ERR);
	heard_free(s, &h);
	side_is_alone(s);
}

/* Wait for an event in one of the ways there are. */
static void sleep_once(struct heard *h, int epoll, unsigned way)
{
	struct epoll_event event;
	struct ibv_cq *cq;
	void *context;

	/* A wait of our own comes first: tests/virtual/virtual.h. */
	if (way % 3 == 0 && (!readable(epoll, patience_ms()) ||
			     epoll_wait(epoll, &event, 1, 0) != 1))
		fail("epoll: no completion event for %u s", patience_s);
	if (way % 3 == 1 && !readable(h->channel->fd, patience_ms()))
		fail("poll: no completion event for %u s", patience_s);
	require_equal(ibv_get_cq_event(h->channel, &cq, &context), 0);
	ibv_ack_cq_events(cq, 1);
}

/*
 * The way a program sleeps: arm, look once more, sleep.  Whatever the order in
 * which the two sides do things, nobody sleeps for ever.
 */
static void sleep_for_receive(struct heard *h, int epoll, unsigned way, unsigned solicited)
{
	struct ibv_wc wc;

	for (;;) {
		int n = ibv_poll_cq(h->cq, 1, &wc);

		if (!n) {
			require_equal(ibv_req_notify_cq(h->cq, (int)solicited), 0);
			n = ibv_poll_cq(h->cq, 1, &wc);
		}
		require(n >= 0);
		if (!n) {
			sleep_once(h, epoll, way);
			continue;
		}
		require_equal(wc.status, IBV_WC_SUCCESS);
		if (wc.opcode == IBV_WC_RECV)
			return;
	}
}

static void ping_pong(struct side *s, unsigned solicited)
{
	enum { ROUNDS = 3000 };
	struct heard h = heard_new(s);
	struct epoll_event want = { .events = EPOLLIN };
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	uint64_t seed = 11u + (unsigned)s->me;
	unsigned i, spin;

	require(epoll >= 0);
	require_equal(epoll_ctl(epoll, EPOLL_CTL_ADD, h.channel->fd, &want), 0);
	heard_receive(&h, 0);
	barrier(s);
	for (i = 0; i < ROUNDS; i++) {
		if (s->me == 1) {
			sleep_for_receive(&h, epoll, i, solicited);
			heard_receive(&h, i);
		}
		/* From at once to well after the other has fallen asleep. */
		for (spin = (unsigned)random_below(&seed, 1024); spin; spin--)
			__asm__ __volatile__("" ::: "memory");
		if (i % 64 == 0)
			pause_ns(1000 * random_below(&seed, 1024));
		heard_send(&h, (i % 16 == 15 ? IBV_SEND_SIGNALED : 0) |
			       (solicited ? IBV_SEND_SOLICITED : 0));
		if (s->me == 0) {
			sleep_for_receive(&h, epoll, i, solicited);
			heard_receive(&h, i);
		}
	}
	barrier(s);
	close(epoll);
	heard_free(s, &h);
}

static void test_channel_ping_pong(struct side *s)
{
	ping_pong(s, 0);
}

static void test_channel_ping_pong_solicited(struct side *s)
{
	ping_pong(s, 1);
}

const struct test channel_tests[] = {
	{ "channel/receive", test_channel_receive },
	{ "channel/send", test_channel_send },
	{ "channel/solicited", test_channel_solicited },
	{ "channel/solicited-then-any", test_channel_solicited_then_any },
	{ "channel/two-events", test_channel_two_events },
	{ "channel/many-queues", test_channel_many_queues },
	{ "channel/threads", test_channel_threads },
	{ "channel/late-receive", test_channel_late_receive },
	{ "channel/peer-dies", test_channel_peer_dies },
	{ "channel/acknowledge", test_channel_ack },
	{ "channel/signal", test_channel_signal },
	{ "channel/ping-pong", test_channel_ping_pong },
	{ "channel/ping-pong-solicited", test_channel_ping_pong_solicited },
	{ NULL, NULL },
};
