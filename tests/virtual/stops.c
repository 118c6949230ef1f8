/*
 * stops.c - a member stops at any instruction of a verb, and others go on.
 *
 * Three members on the virtual clock: a sender, the owner of the queues that it sends to, and
 * another sender, whose messages come to the same completion queue and shared receive queue.  A
 * verb of the sender or the owner is single-stepped.  Before its k-th instruction in the library
 * it stops, and the other side acts: the owner polls, resizes its completion queue, closes,
 * resets or destroys its queue pairs, withdraws memory; or the senders send.  The verb goes on when
 * that is done, or after 5 ms (claims in a mailbox are respected for 1 ms) or 3 s (longer than any
 * wait).  This is done for each pair of verb and act, and each k.  Then
 *	- each message that the sender was told has arrived is there, once, in order, whole,
 *	- all messages of the other sender are, and before the verb goes on if the owner polls,
 *	- each receive of the queue pair that was closed is complete or flushed, once,
 *	- every queue that is left has all its receives: they are used up, one by one,
 *	- nothing is written to memory that was withdrawn.
 * After 3 s the last three do not hold for claims of the stopped sender on a queue pair that is
 * gone: no process can know whether the sender will ever go on.
 *
 * Usage: stops [STRIDE [SEED]]	each pair at every STRIDE-th instruction, from one that is drawn;
 *				for 3 s at a quarter of those
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "random.h"
#include "util/clock.h"
#include "stops.h"

#if STOPS_KNOWN

enum { STRIDE = 61 };

/* The longest wait for a stopped process. */
#define PATIENCE_NS (1000 * MS_NS)

/* The present trial: a verb that is stopped, and the act meanwhile. */
static const struct verb {
	const char *name;
	void (*before)(void), (*verb)(void);
	bool owners;
} *verb;

static const struct act {
	const char *name;
	void (*act)(void);
	bool owners;
} *act;

/* The message of the stopped verb. */
static struct message verbs_message;

static void post_verbs_message(void)
{
	post_message(&verbs_message);
}

/* ---- What the owner and the senders do ------------------------------------- */

static void others_send(void)
{
	all_send(OTHER);
}

/* More messages than the completion queue has places. */
static void owner_polls(void)
{
	int round, kind;

	run.reposts = true;
	for (round = 0; round < 10; round++) {
		const uint64_t end_ns = now_ns() + 4 * MS_NS;

		others_send();
		do {
			take_any();
			take_sent(OTHER);
		} while (!(all_ended(OTHER) && all_here(OTHER)) && goes_on(end_ns));
		for (kind = 0; kind < KINDS; kind++)
			if (run.received[OTHER][kind] != run.sent[OTHER][kind])
				fail("a message of kind %d behind one that is stopped does not "
				     "arrive", kind);
	}
	run.reposts = false;
}

static void resize(void)
{
	require_equal(ibv_resize_cq(member[OWNER].cq, 256), 0);
}

static void owner_resizes(void)
{
	resize();
	others_send();
	take_any();
}

static void close_ends(void)
{
	int kind;

	for (kind = 0; kind < UD; kind++)
		require_equal(end_to(&member[OWNER].e[SENDER][kind], IBV_QPS_ERR), 0);
	run.closed = true;
}

static void owner_closes(void)
{
	run.closed = true;
	others_send();
	close_ends();
	take_any();
}

static void reset_ends(void)
{
	int kind;

	for (kind = 0; kind < UD; kind++)
		require_equal(end_to(&member[OWNER].e[SENDER][kind], IBV_QPS_RESET), 0);
}

static void owner_resets(void)
{
	run.gone = true;
	reset_ends();
	others_send();
}

static void destroy_ends(void)
{
	int kind;

	for (kind = 0; kind < UD; kind++) {
		require_equal(ibv_destroy_qp(member[OWNER].e[SENDER][kind].qp), 0);
		member[OWNER].e[SENDER][kind].qp = NULL;
	}
}

static void owner_destroys(void)
{
	run.gone = true;
	others_send();
	destroy_ends();
	take_any();
}

/* Memory that the sender writes to. */
static void withdraw(void)
{
	require_equal(ibv_dereg_mr(member[OWNER].away.mr), 0);
	member[OWNER].away.mr = NULL;
}

static void owner_withdraws(void)
{
	withdraw();
	run.withdrawn = true;
	run.refused = !verb->owners && verbs_message.wr.opcode == IBV_WR_RDMA_WRITE;
	memset(member[OWNER].away.at, 0xaa, BYTES);
	others_send();
}

static void both_send(void)
{
	all_send(SENDER);
	all_send(OTHER);
}

static void poll_some(void)
{
	struct ibv_wc wc[2];
	int i, n = ibv_poll_cq(member[OWNER].cq, 2, wc);

	for (i = 0; i < n; i++)
		if (wc[i].status == IBV_WC_SUCCESS)
			take_message(&wc[i]);
}

static void post_more(void)
{
	post_slot(OTHER, SHARED, 0);
}

/* ---- Verbs that are stopped ------------------------------------------------- */

static void before_own(void) { prepare(&verbs_message, SENDER, OWN, false); }
static void before_shared(void) { prepare(&verbs_message, SENDER, SHARED, false); }
static void before_loose(void) { prepare(&verbs_message, SENDER, LOOSE, false); }
static void before_ud(void) { prepare(&verbs_message, SENDER, UD, false); }
static void before_long(void) { prepare(&verbs_message, SENDER, LOOSE, true); }
static void before_long_ud(void) { prepare(&verbs_message, SENDER, UD, true); }

static void before_write(void)
{
	struct member *m = &member[SENDER], *o = &member[OWNER];

	fill(m->out.at + KINDS * OUT * SLOT, 99, BYTES);
	verbs_message.sge = sge_of(&m->out, KINDS * OUT * SLOT, BYTES);
	verbs_message.wr = send_wr(&verbs_message.sge, KINDS);
	verbs_message.wr.opcode = IBV_WR_RDMA_WRITE;
	verbs_message.wr.wr.rdma.remote_addr = (uintptr_t)o->away.at;
	verbs_message.wr.wr.rdma.rkey = o->away.mr->rkey;
	verbs_message.end = end_to_owner(SENDER, OWN);
}

static void before_poll(void)
{
	send_one(SENDER, OWN);
	send_one(OTHER, SHARED);
}

static void before_close(void)
{
	before_poll();
	run.closed = true;
}

static void before_reset(void)
{
	before_poll();
	run.gone = true;
}

/* A receive of the shared queue is used up, so that another one fits. */
static void before_post(void)
{
	send_one(OTHER, SHARED);
	settle(10 * MS_NS);
	require_equal(run.received[OTHER][SHARED], 1);
	run.received[OTHER][SHARED] = run.ok[OTHER][SHARED] = 0;
	run.sent[OTHER][SHARED] = run.ended[OTHER][SHARED] = 0;
}

static const struct verb verbs[] = {
	{ "send to an own queue", before_own, post_verbs_message, false },
	{ "send to the shared queue", before_shared, post_verbs_message, false },
	{ "send over UC", before_loose, post_verbs_message, false },
	{ "send a datagram", before_ud, post_verbs_message, false },
	{ "send what is too long over UC", before_long, post_verbs_message, false },
	{ "send too long a datagram", before_long_ud, post_verbs_message, false },
	{ "write", before_write, post_verbs_message, false },
	{ "poll", before_poll, poll_some, true },
	{ "resize", before_poll, resize, true },
	{ "close", before_close, close_ends, true },
	{ "reset", before_reset, reset_ends, true },
	{ "destroy", before_reset, destroy_ends, true },
	{ "post to the shared queue", before_post, post_more, true },
};

static const struct act acts[] = {
	{ "the owner polls", owner_polls, true },
	{ "the owner resizes", owner_resizes, true },
	{ "the owner closes", owner_closes, true },
	{ "the owner resets", owner_resets, true },
	{ "the owner destroys", owner_destroys, true },
	{ "the owner withdraws memory", owner_withdraws, true },
	{ "both send", both_send, false },
};

/* ---- A round ---------------------------------------------------------------- */

static void judge(void)
{
	int from, kind;
	uint32_t used;

	settle(5000 * MS_NS);
	must_have_all(OTHER);
	if (!run.in_time && (run.closed || run.gone))
		return;
	if (!run.closed)
		must_have_all(SENDER);
	if (run.withdrawn && run.in_time)
		check_untouched(member[OWNER].away.at, 0xaa, BYTES, "memory that was withdrawn");
	for (kind = 0; kind < UD && run.closed; kind++) {
		if (kind != LOOSE && run.received[SENDER][kind] < run.ok[SENDER][kind])
			fail("%u messages of kind %d, of which %u have arrived, says the sender",
			     run.received[SENDER][kind], kind, run.ok[SENDER][kind]);
		if (kind != SHARED)
			require_equal(run.received[SENDER][kind] + run.flushed[kind], DEPTH);
	}
	for (from = 0; from < MEMBERS; from++)
		for (kind = 0; from != OWNER && kind < UD; kind++)
			if (kind != SHARED && (from == OTHER || !(run.gone || run.closed ||
								  (run.refused && kind == OWN))))
				use_up(from, kind, DEPTH - taken_by(from, kind));
	/* Completions that no poll saw have gone with their queue pair. */
	used = taken_by(SENDER, SHARED) + taken_by(OTHER, SHARED);
	if (run.gone && run.ok[SENDER][SHARED] > run.received[SENDER][SHARED])
		used += run.ok[SENDER][SHARED] - run.received[SENDER][SHARED];
	use_up(OTHER, SHARED, DEPTH - used);
	use_up(OTHER, UD, DEPTH - taken_by(SENDER, UD) - taken_by(OTHER, UD));
}

static struct {
	bool over;
	bool served;		/* a copy service took part: the path may differ */
	uint64_t number, nap_ns;
	_Atomic uint32_t go, done;
} now;

static uint64_t stride, drawn;

/* The wait in the middle of the verb. */
static void nap(void)
{
	const uint64_t stopped_ns = rg_now_ns();

	atomic_store(&now.go, 1);
	rg_wait_word(&now.done, 0, now.nap_ns, false);
	run.in_time = rg_now_ns() - stopped_ns < PATIENCE_NS;
}

/* Carry out the verb, and stop it; false: it was not stopped. */
static bool one(uint64_t number)
{
	bool stopped;

	set_up();
	verb->before();
	run.in_time = true;
	now.number = number;
	atomic_store(&now.done, 0);
	stopped = stop_verb(verb->verb, number, nap);
	if (!stopped)
		atomic_store(&now.go, 1);
	while (!atomic_load(&now.done))
		rg_wait_word(&now.done, 0, UINT64_MAX, false);
	judge();
	tear_down();
	return stopped;
}

static void trace_alone(void)
{
	set_up();
	verb->before();
	run.in_time = true;
	trace_verb(verb->verb);
	judge();
	tear_down();
}

/* A failure calls exit: report the trial then. */
static void say_where(void)
{
	if (act)
		fprintf(stderr, "  in: %s, stopped before instruction %llu, at %p, for %llu ms; %s\n",
			verb->name, (unsigned long long)now.number, trace_at(now.number),
			(unsigned long long)(now.nap_ns / MS_NS), act->name);
}

static void pair(uint64_t nap_ns, uint64_t every)
{
	uint64_t k, stops = 0, reached = 0;

	now.nap_ns = nap_ns;
	for (k = random_below(&drawn, every); k < trace_length; k += every) {
		reached += one(k);
		stops++;
	}
	printf("%s; %s; %llu ms: stopped at %llu of %llu instructions\n", verb->name, act->name,
	       (unsigned long long)(nap_ns / MS_NS), (unsigned long long)reached,
	       (unsigned long long)trace_length);
	fflush(stdout);
	/* The first and last few are not the verb's. */
	if (reached + 20 / every + 2 < stops - (now.served ? stops / 10 : 0))
		fail("%llu instructions were not met again", (unsigned long long)(stops - reached));
}

static void run_verbs(void)
{
	unsigned i, j;

	for (i = 0; i < sizeof(verbs) / sizeof(*verbs); i++) {
		verb = &verbs[i];
		trace_alone();
		for (j = 0; j < sizeof(acts) / sizeof(*acts); j++) {
			if (verb->owners == acts[j].owners)
				continue;
			act = &acts[j];
			pair(5 * MS_NS, stride);
			pair(3000 * MS_NS, 4 * stride);
		}
		act = NULL;
	}
}

static void run_acts(void *arg)
{
	(void)arg;
	for (;;) {
		while (!atomic_load(&now.go))
			rg_wait_word(&now.go, 0, UINT64_MAX, false);
		if (now.over)
			return;
		atomic_store(&now.go, 0);
		act->act();
		atomic_store(&now.done, 1);
		rg_wake_word(&now.done, false);
	}
}

static void run_all(void *arg)
{
	(void)arg;
	members_open();
	virtual_task("who acts meanwhile", 0, run_acts, NULL);
	run_verbs();
	now.over = true;
	atomic_store(&now.go, 1);
	members_close();
}

static void in_mode(const char *name, const char *copy, bool arena)
{
	printf("== %s\n", name);
	now.over = false;
	now.served = strcmp(copy, "bounce") == 0;
	atomic_store(&now.go, 0);
	fabric_new("stops");
	side_options.arena = arena;
	setenv("SOFTHCA_COPY", copy, 1);
	virtual_begin(&(struct virtual_config){ .rounds = 2, .limit_ns = UINT64_MAX });
	virtual_task("who stops", 0, run_all, NULL);
	virtual_run();
}

int main(int argc, char **argv)
{
	stride = argc > 1 ? strtoull(argv[1], NULL, 10) : getenv("RG_LONG") ? 1 : STRIDE;
	drawn = drawn_seed(argc > 2 ? argv[2] : NULL);
	if (!stride) {
		fprintf(stderr, "stops: STRIDE %s (accepted: 1 and more)\n", argv[1]);
		return 3;
	}
	printf("at one instruction of %llu, seed %llu\n", (unsigned long long)stride,
	       (unsigned long long)drawn);
	atexit(say_where);
	stops_prepare();
	setenv("SOFTHCA_REMAP", "never", 1);
	unsetenv("SOFTHCA_SPEC");
	in_mode("mapped", "kernel", true);
	in_mode("copied", "kernel", false);
	in_mode("bounced", "bounce", false);
	return 0;
}

#else

int main(void)
{
	fprintf(stderr, "skipped: single steps are known for x86-64, without sanitizers\n");
	return 77;
}

#endif
