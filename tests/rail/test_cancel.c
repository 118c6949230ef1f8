/*
 * test_cancel.c - sends that are taken back: each has come at its receiver, or has ended
 * with -ECANCELED and is nowhere; never both, never neither, whatever crosses what.
 */
#include "config.h"		/* _GNU_SOURCE */
#include "cmocka_all.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "capture.h"
#include "rail/message/eager.h"
#include "rail/lane/lane.h"
#include "rail/peer/peer_failure.h"
#include "rail/rail.h"
#include "rail/open/rail_ctx.h"
#include "rail/peer/peer.h"
#include "rail/message/rail_record.h"
#include "rail/message/table.h"
#include "traffic.h"

#define MODELLED "rate=20GB/s,latency=1us"

/* ---- Messages in all states, taken back at random ------------------------ */

enum { MESSAGES = 400, WINDOW = 48, BYTES_MAX = 100001 };
enum outcome { UNKNOWN, SENT, CANCELLED, RECEIVED };

/* The fate of each message, at both ends, in memory of all processes: [of][for]. */
static struct outcomes {
	_Atomic int finished, flag;
	uint8_t sender[JOB_MAX][JOB_MAX][MESSAGES], receiver[JOB_MAX][JOB_MAX][MESSAGES];
} *shared;

struct message {
	struct rail_op op;
	int i, peer;
	size_t bytes;
	unsigned char *data;
	uint64_t rendezvous;		/* kept: waits to be accepted */
	bool pinned;			/* ... and is not given back any more */
	bool flying;
};

static struct {
	struct job *job;
	struct rail_way ways[2 * RAIL_POLICIES];
	struct message out[JOB_MAX][MESSAGES], in[JOB_MAX][MESSAGES];
	int sent[JOB_MAX], flying, accepting, cancelled;
	int last_of_way[JOB_MAX][2 * RAIL_POLICIES];
	uint64_t dice;
} run;

static uint32_t roll(uint32_t sides)
{
	run.dice = run.dice * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(run.dice >> 33) % sides;
}

static size_t bytes_of(int from, int to, int i)
{
	static const size_t sizes[] = { 0, 8, 100, 8192, 8193, 20000, BYTES_MAX };

	return sizes[(unsigned)(from * 3 + to * 5 + i * 11) % (sizeof(sizes) / sizeof(*sizes))];
}

static unsigned char byte_of(int from, int to, int i, size_t k)
{
	return (unsigned char)((size_t)(from * 31 + to * 57 + i * 7) + k * 3 + (k >> 8));
}

static const struct rail_way *way_of(int i)
{
	return &run.ways[i % (2 * RAIL_POLICIES)];
}

static void check_data(int from, int i, const unsigned char *data)
{
	for (size_t k = 0; k < bytes_of(from, run.job->rank, i); k++)
		if (data[k] != byte_of(from, run.job->rank, i, k))
			job_fail(__FILE__, __LINE__, "message %d from %d: wrong byte %zu", i, from,
				 k);
}

static void came(int from, int i)
{
	uint8_t *state = &shared->receiver[from][run.job->rank][i];

	CHECK_EQUAL(*state, UNKNOWN);
	*state = RECEIVED;
}

static void received(struct rail_op *op, int status)
{
	struct message *m = (struct message *)op;

	CHECK_EQUAL(status, 0);
	check_data(m->peer, m->i, m->data);
	came(m->peer, m->i);
	free(m->data);
	run.accepting--;
}

static void accept_one(struct message *m)
{
	struct rail_buf buf = { m->data = malloc(m->bytes + 1), m->bytes, RAIL_MEM_HOST };

	m->op.done = received;
	run.accepting++;
	CHECK_EQUAL(rail_accept(run.job->peer[m->peer], m->rendezvous, &buf, &m->op), 0);
	m->rendezvous = 0;
}

static void on_message(void *user, const struct rail_message *msg)
{
	int i = (int)msg->header->word[0], from = (int)msg->index;
	int *last = &run.last_of_way[from][i % (2 * RAIL_POLICIES)];
	struct message *m = &run.in[from][i];

	(void)user;
	CHECK(i >= *last);		/* some between them are never seen */
	*last = i + 1;
	CHECK_EQUAL(msg->bytes, bytes_of(from, run.job->rank, i));
	if (!msg->rendezvous) {
		check_data(from, i, msg->payload);
		came(from, i);
		return;
	}
	CHECK(!m->rendezvous);
	m->i = i;
	m->peer = from;
	m->bytes = msg->bytes;
	m->rendezvous = msg->rendezvous;
	if (roll(3) == 0)
		accept_one(m);
}

static bool on_cancel(void *user, uint64_t rendezvous)
{
	(void)user;
	for (int p = 0; p < run.job->count; p++)
		for (int i = 0; i < MESSAGES; i++) {
			struct message *m = &run.in[p][i];

			if (m->rendezvous != rendezvous)
				continue;
			m->pinned = roll(4) == 0;
			if (m->pinned)
				return false;
			m->rendezvous = 0;
			return true;
		}
	job_fail(__FILE__, __LINE__, "a message is cancelled that is not there");
}

static void sent(struct rail_op *op, int status)
{
	struct message *m = (struct message *)op;
	uint8_t *state = &shared->sender[run.job->rank][m->peer][m->i];

	CHECK(status == 0 || status == -ECANCELED);
	CHECK_EQUAL(*state, UNKNOWN);
	*state = status ? CANCELLED : SENT;
	run.cancelled += !!status;
	m->flying = false;
	run.flying--;
	free(m->data);
}

static void send_one(int p)
{
	int i = run.sent[p]++, me = run.job->rank, rc;
	struct message *m = &run.out[p][i];
	struct rail_header header = { { (uint64_t)i, 0 } };
	struct rail_buf buf;

	m->i = i;
	m->peer = p;
	m->bytes = bytes_of(me, p, i);
	m->data = malloc(m->bytes + 1);
	for (size_t k = 0; k < m->bytes; k++)
		m->data[k] = byte_of(me, p, i, k);
	m->op.done = sent;
	buf = (struct rail_buf){ m->data, m->bytes, RAIL_MEM_HOST };
	m->flying = true;
	run.flying++;
	rc = rail_send(run.job->peer[p], way_of(i), &header, &buf, roll(2) ? RAIL_SEND_SYNC : 0,
		       &m->op);
	CHECK(rc >= 0);
	if (rc == 1)
		sent(&m->op, 0);
	else if (roll(3) == 0)
		CHECK_EQUAL(rail_cancel(&m->op), 0);
}

static void some_step(struct job *job)
{
	for (int p = 0; p < job->count; p++) {
		while (run.sent[p] < MESSAGES && run.flying < WINDOW)
			send_one(p);
		for (int i = 0; i < MESSAGES; i++) {
			if (run.out[p][i].flying && roll(16) == 0)
				CHECK_EQUAL(rail_cancel(&run.out[p][i].op), 0);
			if (run.in[p][i].rendezvous && roll(16) == 0)
				accept_one(&run.in[p][i]);
		}
	}
	job_progress(job);
}

static bool all_sent(const struct job *job)
{
	for (int p = 0; p < job->count; p++)
		if (run.sent[p] < MESSAGES)
			return false;
	return !run.flying;
}

static void random_body(struct job *job)
{
	bool told = false;

	run.job = job;
	run.dice = 77 + (uint64_t)job->rank;
	for (int w = 0; w < 2 * RAIL_POLICIES; w++)
		run.ways[w] = (struct rail_way){ .policy = w / 2, .threshold = 8192, .eager = 8192,
						 .rendezvous = w % 2 };
	job->rail.on_message = on_message;
	job->rail.on_cancel = on_cancel;
	job_connect(job);
	while (atomic_load(&shared->finished) < job->count || run.accepting) {
		some_step(job);
		if (!told && all_sent(job)) {
			told = true;
			atomic_fetch_add(&shared->finished, 1);
		}
	}
	while (rail_busy(job->ctx))
		job_progress(job);
	job_barrier(job);
	for (int p = 0; p < job->count; p++) {
		CHECK_EQUAL(job->peer[p]->error, 0);
		CHECK_EQUAL(job->peer[p]->ops, 0);
		for (int i = 0; i < MESSAGES; i++)
			CHECK_EQUAL(shared->sender[job->rank][p][i] == SENT,
				    shared->receiver[job->rank][p][i] == RECEIVED);
	}
	for (uint32_t i = 0; i < job->ctx->table.count; i++)
		CHECK(!job->ctx->table.entry[i].peer);
	CHECK(run.cancelled > 0);
	job_close(job);
}

static void test_random(void **state)
{
	static const struct job_config configs[] = {
		{ .soft = "ideal" }, { .soft = "ports=2," MODELLED }, { .soft = "ideal,ports=3" },
		{ .soft = "ideal", .count = 3 }, { .soft = "ports=2," MODELLED, .on_demand = true },
		{ .soft = "ideal", .count = 3, .on_demand = true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(configs) / sizeof(configs[0]); i++) {
		memset(shared, 0, sizeof(*shared));
		assert_int_equal(job_run(&configs[i], random_body, NULL, 0), 0);
	}
}

/* ---- One message ---------------------------------------------------------- */

static struct {
	uint64_t forgotten;
	bool refuse;
	int messages, errors, error;
} seen;

static bool forget(void *user, uint64_t rendezvous)
{
	(void)user;
	seen.forgotten = seen.refuse ? 0 : rendezvous;
	return !seen.refuse;
}

static void on_lost(void *user, unsigned index, int error)
{
	(void)user;
	(void)index;
	seen.errors++;
	seen.error = error;
}

static void keep_and_count(void *user, const struct rail_message *msg)
{
	(void)user;
	if (msg->rendezvous) {
		job_seen.handle = msg->rendezvous;
		return;
	}
	CHECK_EQUAL(msg->header->word[0], seen.messages);
	seen.messages++;
}

static const struct rail_header none;
static unsigned char data[BYTES_MAX];

static void wait_done(struct job *job, int done)
{
	while (job_seen.done < done || rail_busy(job->ctx))
		job_progress(job);
	CHECK_EQUAL(job_seen.done, done);
}

enum before { NOT_MATCHED, REFUSED, MATCHED, BEFORES };

struct one {
	struct rail_way way;
	size_t bytes;
	enum before when;
};

static void offer(struct job *job, const struct one *o)
{
	struct rail_op op = { .done = job_count_done };
	struct rail_buf buf = { data, o->bytes, RAIL_MEM_HOST };

	memset(data, 0x5a, o->bytes);
	CHECK_EQUAL(rail_send(job->peer[1], &o->way, &none, &buf, RAIL_SEND_SYNC, &op), 0);
	job_barrier(job);		/* the message has come */
	job_barrier(job);		/* perhaps it was accepted */
	for (int i = 0; i < 3; i++)
		CHECK_EQUAL(rail_cancel(&op), 0);
	if (o->when == REFUSED)
		job_barrier(job);
	wait_done(job, 1);
	CHECK_EQUAL(job_seen.status, o->when == NOT_MATCHED ? -ECANCELED : 0);
	/* The next one is not disturbed. */
	memset(data, 0x33, o->bytes);
	CHECK_EQUAL(rail_send(job->peer[1], &o->way, &none, &buf, RAIL_SEND_SYNC, &op), 0);
	wait_done(job, 2);
	CHECK_EQUAL(job_seen.status, 0);
}

static void take(struct job *job, const struct one *o, int byte)
{
	struct rail_op op = { .done = job_count_done };
	struct rail_buf buf = { data, o->bytes, RAIL_MEM_HOST };
	int done = job_seen.done + 1;

	CHECK_EQUAL(rail_accept(job->peer[0], job_seen.handle, &buf, &op), 0);
	job_seen.handle = 0;
	wait_done(job, done);
	CHECK_EQUAL(job_seen.status, 0);
	for (size_t k = 0; k < o->bytes; k++)
		CHECK_EQUAL(data[k], byte);
}

static void receive(struct job *job, const struct one *o)
{
	seen.refuse = o->when == REFUSED;
	while (!job_seen.handle)
		job_progress(job);
	job_barrier(job);
	if (o->when == NOT_MATCHED) {
		struct rail_buf buf = { data, o->bytes, RAIL_MEM_HOST };
		uint64_t handle = job_seen.handle;
		struct rail_op op;

		job_seen.handle = 0;
		job_barrier(job);
		while (!seen.forgotten)
			job_progress(job);
		CHECK_EQUAL(seen.forgotten, handle);
		capture_begin(2);
		CHECK_EQUAL(rail_accept(job->peer[0], handle, &buf, &op), -EINVAL);
		CHECK(strstr(capture_end(), "no message waits") != NULL);
	} else if (o->when == REFUSED) {
		job_barrier(job);
		job_barrier(job);	/* asked, and left where it is */
		take(job, o, 0x5a);
	} else {
		struct rail_op op = { .done = job_count_done };
		struct rail_buf buf = { data, o->bytes, RAIL_MEM_HOST };

		CHECK_EQUAL(rail_accept(job->peer[0], job_seen.handle, &buf, &op), 0);
		job_seen.handle = 0;
		job_barrier(job);
		wait_done(job, 1);
		CHECK(!seen.forgotten);
	}
	while (!job_seen.handle)
		job_progress(job);
	take(job, o, 0x33);
}

static void one_body(struct job *job)
{
	job->rail.on_message = job_keep_handle;
	job->rail.on_cancel = forget;
	job_connect(job);
	if (job->rank == 0)
		offer(job, job->arg);
	else
		receive(job, job->arg);
	job_close(job);
}

static void test_one(void **state)
{
	static const size_t sizes[] = { 0, 64, BYTES_MAX };

	(void)state;
	for (int when = 0; when < BEFORES; when++)
		for (int policy = 0; policy < RAIL_POLICIES; policy++)
			for (int how = 0; how < 6; how++) {
				struct one o = {
					{ .policy = policy, .threshold = 8192, .eager = 8192,
					  .rendezvous = how % 2 }, sizes[how / 2], when };

				assert_int_equal(job_run(&(struct job_config){
					.soft = policy % 2 ? "ideal" : "ports=2," MODELLED },
					one_body, &o, 0), 0);
			}
}

/* ---- While the lane is full ------------------------------------------------ */

enum { WAITING = 60, TAKEN_BACK = WAITING / 3 };

static int taken_back;

static void count_cancelled(struct rail_op *op, int status)
{
	(void)op;
	CHECK_EQUAL(status, -ECANCELED);
	taken_back++;
}

/*
 * Process 1 makes no progress until all is done here: an offer, as many messages as the lane
 * takes, then waiting ones.  Every third of these is cancelled, and last of all the offer.
 */
static void fill(struct job *job, const struct rail_way *way)
{
	static struct rail_op offer_op, waiting[WAITING];
	struct rail_buf buf = { data, 64, RAIL_MEM_HOST };
	struct rail_header header = { { 0 } };
	int n = 0;

	offer_op.done = count_cancelled;
	CHECK_EQUAL(rail_send(job->peer[1], way, &none, &buf, RAIL_SEND_SYNC, &offer_op), 0);
	while (n < WAITING) {
		int rc;

		waiting[n].done = n % 3 ? job_count_done : count_cancelled;
		rc = rail_send(job->peer[1], way, &header, &buf, n % 6 == 3 ? RAIL_SEND_SYNC : 0,
			       &waiting[n]);
		CHECK(rc >= 0);
		header.word[0] += rc || n % 3;		/* will come */
		n += !rc;
	}
	CHECK_EQUAL(rail_cancel(&offer_op), 0);
	for (n = 0; n < WAITING; n += 3) {
		CHECK_EQUAL(rail_cancel(&waiting[n]), 0);
		CHECK_EQUAL(rail_cancel(&waiting[n]), 0);
	}
	while (taken_back < TAKEN_BACK)
		job_progress(job);
	CHECK_EQUAL(taken_back, TAKEN_BACK);
	shared->sender[0][0][0] = (uint8_t)(header.word[0] >> 8);
	shared->sender[0][0][1] = (uint8_t)header.word[0];
	atomic_store(&shared->flag, 1);
	wait_done(job, WAITING - TAKEN_BACK);
	CHECK_EQUAL(taken_back, TAKEN_BACK + 1);
	job_barrier(job);
}

static void full_body(struct job *job)
{
	job->rail.on_message = keep_and_count;
	job->rail.on_cancel = forget;
	job_connect(job);
	if (job->rank == 0) {
		fill(job, job->arg);
	} else {
		int expected;

		while (!atomic_load(&shared->flag))
			sched_yield();
		expected = shared->sender[0][0][0] << 8 | shared->sender[0][0][1];
		while (seen.messages < expected || !seen.forgotten)
			job_progress(job);
		CHECK_EQUAL(seen.forgotten, job_seen.handle);
		job_barrier(job);
		CHECK_EQUAL(seen.messages, expected);
		while (rail_busy(job->ctx))
			job_progress(job);
	}
	job_close(job);
}

static void test_full(void **state)
{
	(void)state;
	for (int policy = 0; policy < RAIL_POLICIES; policy++)
		for (int how = 0; how < 4; how++) {
			struct rail_way way = { .policy = policy, .threshold = 8192, .eager = 8192,
						.rendezvous = how % 2 };

			memset(shared, 0, sizeof(*shared));
			assert_int_equal(job_run(&(struct job_config){
					.soft = how / 2 ? "ideal" : "ports=2," MODELLED },
					full_body, &way, 0), 0);
		}
}

/* ---- Peers that fail -------------------------------------------------------- */

enum failure { KILLED, ANSWER_WAITS, UNASKED, UNKNOWN_HANDLE, FAILURES };

static void peer_fails(struct job *job, enum failure what)
{
	struct rail_peer *peer = job->peer[!job->rank];
	struct rail_record record = { .header = { { 12345, 6 } }, .word = 7 };
	unsigned char nothing[RAIL_SLOT_PAYLOAD] = { 0 };

	if (what == UNASKED) {
		/* A message of this process, not cancelled. */
		for (uint32_t i = 0; i < job->ctx->table.count; i++)
			if (job->ctx->table.entry[i].op)
				record.header.word[0] = job->ctx->table.entry[i].op->handle;
		rail_record_arrived(&peer->rx[0], RECORD_CANCELLED, &record, nothing, 32);
		CHECK_EQUAL(peer->error, -ECONNRESET);
	} else if (what == UNKNOWN_HANDLE) {
		/* The first may have crossed an answer; the second may not. */
		rail_record_arrived(&peer->rx[0], RECORD_CANCEL, &record, nothing, 32);
		CHECK_EQUAL(peer->error, 0);
		rail_record_arrived(&peer->rx[0], RECORD_CANCELLED, &record, nothing, 32);
		CHECK_EQUAL(peer->error, -ECONNRESET);
	} else {
		rail_peer_fail(peer, -EPROTO, "to save time");
	}
}

static void sender_of_failed(struct job *job, enum failure what)
{
	const struct rail_way way = traffic_ways[RAIL_STRIPE];
	struct rail_buf buf = { data, BYTES_MAX, RAIL_MEM_HOST };
	struct rail_op offered = { .done = job_count_done }, waits = { .done = job_count_done };
	uint32_t depth;

	CHECK_EQUAL(rail_send(job->peer[1], &way, &none, &buf, 0, &offered), 0);
	if (what != KILLED)
		job_barrier(job);
	if (what == UNASKED || what == UNKNOWN_HANDLE) {
		peer_fails(job, what);
		CHECK_EQUAL(rail_cancel(&offered), 0);
		wait_done(job, 1);
		CHECK_EQUAL(job_seen.status, -ECONNRESET);
		return;
	}
	/* A CANCEL under way, and another that waits after one that has not left. */
	CHECK_EQUAL(rail_cancel(&offered), 0);
	depth = job->peer[1]->route[way.policy]->lane->sq_depth;
	job->peer[1]->route[way.policy]->lane->sq_depth = 0;
	CHECK_EQUAL(rail_send(job->peer[1], &way, &none, &buf, 0, &waits), 0);
	job->peer[1]->route[way.policy]->lane->sq_depth = depth;
	CHECK_EQUAL(rail_cancel(&waits), 0);
	rail_progress(job->ctx);
	CHECK_EQUAL(job_seen.done, 1);
	CHECK_EQUAL(job_seen.status, -ECANCELED);
	if (what == KILLED)
		atomic_store(&shared->flag, 1);
	else
		job_barrier(job);
	peer_fails(job, what);
	wait_done(job, 2);
	CHECK_EQUAL(job_seen.status, -ECONNRESET);
}

static void failed_receiver(struct job *job, enum failure what)
{
	if (what == KILLED) {
		while (!atomic_load(&shared->flag))
			sched_yield();
		raise(SIGKILL);
	}
	while (!job_seen.handle)
		job_progress(job);
	if (what == ANSWER_WAITS) {
		/* Nothing leaves any more: also not the answer. */
		job->peer[0]->route[RAIL_STRIPE]->lane->sq_depth = 0;
		job_barrier(job);
		while (!seen.forgotten)
			job_progress(job);
		CHECK_EQUAL(job->peer[0]->ops, 1);
		job_barrier(job);
	} else {
		job_barrier(job);
	}
	rail_peer_fail(job->peer[0], -EPROTO, "to save time");
	wait_done(job, 0);
	CHECK_EQUAL(job->peer[0]->ops, 0);
}

static void lost_body(struct job *job)
{
	const enum failure what = *(const enum failure *)job->arg;

	job->rail.on_message = job_keep_handle;
	job->rail.on_cancel = forget;
	job->rail.on_peer_error = on_lost;
	job_connect(job);
	capture_begin(2);
	if (job->rank == 0) {
		if (what == KILLED)
			job_lost(job, 1);
		sender_of_failed(job, what);
		CHECK_EQUAL(seen.errors, 1);
		CHECK(what != UNASKED || seen.error == -EPROTO);
	} else {
		failed_receiver(job, what);
	}
	CHECK(strstr(capture_end(), what == UNASKED && job->rank == 0 ?
		     "a CANCELLED for no message of ours" : "is lost") != NULL);
	job_close(job);
}

static void test_lost(void **state)
{
	(void)state;
	for (int s = 0; s < 2; s++)
		for (enum failure what = 0; what < FAILURES; what++) {
			memset(shared, 0, sizeof(*shared));
			assert_int_equal(job_run(&(struct job_config){
					.soft = s ? "ideal" : "ports=2," MODELLED }, lost_body,
					&what, what == KILLED ? 1 << 1 : 0), 0);
		}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_lost),
		cmocka_unit_test(test_random),
	};

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	if (shared == MAP_FAILED)
		return 1;
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
