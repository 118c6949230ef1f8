/*
 * test_match.c - the order of matching against two lists: of receives in the order in which they
 * were posted, of messages in the order in which they came.
 *
 * The test runs every sequence of SHORT events, and long random sequences: receives by name and
 * from any source, with and without a tag, messages, notices of lost ranks, receives that are
 * withdrawn.
 */
#include "cmocka_all.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "mpi/p2p/match_order.h"
#include "random.h"

enum { SHORT = 5, LONG = 60, RUNS = 20000, SOURCES = 2, ERROR = 77 };

enum what { RECEIVE, MESSAGE, NOTICE, WITHDRAW };
struct event { enum what what; int source, tag; };

static const struct event events[] = {
	{ RECEIVE, 0, 0 }, { RECEIVE, 0, 1 }, { RECEIVE, 0, MPI_ANY_TAG },
	{ RECEIVE, 1, 0 }, { RECEIVE, 1, 1 }, { RECEIVE, 1, MPI_ANY_TAG },
	{ RECEIVE, MPI_ANY_SOURCE, 0 }, { RECEIVE, MPI_ANY_SOURCE, 1 },
	{ RECEIVE, MPI_ANY_SOURCE, MPI_ANY_TAG },
	{ MESSAGE, 0, 0 }, { MESSAGE, 0, 1 }, { MESSAGE, 1, 0 }, { MESSAGE, 1, 1 },
	{ NOTICE, 0, 0 },
	{ WITHDRAW, 0, 0 },		/* the receive that was posted first */
};
enum { EVENTS = sizeof(events) / sizeof(*events) };

static struct {
	struct comm comm;
	struct source source[SOURCES];
	struct req receive[LONG];		/* by event */
	struct unexpected message[LONG];
	/* The lists: events, in order. */
	int posted[LONG], posted_count, waiting[LONG], waiting_count;
	const struct event *event[LONG];
} run;

static const char *rank_text(int source)
{
	static char text[24];

	if (source == MPI_ANY_SOURCE)
		return "any rank";
	snprintf(text, sizeof(text), "rank %d", source);
	return text;
}

static const char *tag_text(int tag)
{
	static char text[24];

	if (tag == MPI_ANY_TAG)
		return "any tag";
	snprintf(text, sizeof(text), "tag %d", tag);
	return text;
}

static const char *event_text(char *text, size_t size, int event)
{
	if (event < 0)
		return "none";
	snprintf(text, size, "event %d", event);
	return text;
}

/* Fail unless event n has met event `expected`; -1: none.  The failure shows all events up to n. */
static void check_met(int n, int met, int expected)
{
	static const char *const texts[] = {
		[RECEIVE] = "a receive from", [MESSAGE] = "a message from",
		[NOTICE] = "a notice of", [WITHDRAW] = "the first receive is withdrawn",
	};
	char text[2][24];

	if (met == expected)
		return;
	for (int i = 0; i <= n; i++) {
		const struct event *e = run.event[i];

		print_error("event %d: %s", i, texts[e->what]);
		if (e->what != WITHDRAW)
			print_error(" %s", rank_text(e->source));
		if (e->what == RECEIVE || e->what == MESSAGE)
			print_error(", %s", tag_text(e->tag));
		print_error("\n");
	}
	fail_msg("event %d met %s, expected: %s", n, event_text(text[0], sizeof(text[0]), met),
		 event_text(text[1], sizeof(text[1]), expected));
}

static void list_remove(int *list, int *count, int at)
{
	--*count;
	memmove(list + at, list + at + 1, (size_t)(*count - at) * sizeof(*list));
}

static bool goes_with(const struct event *receive, const struct event *message)
{
	return (receive->source == MPI_ANY_SOURCE || receive->source == message->source) &&
	       (receive->tag == MPI_ANY_TAG || receive->tag == message->tag);
}

/* The event of the message that a receive takes, else the last notice, else -1. */
static int list_receive(const struct event *e)
{
	int notice = -1;

	for (int i = 0; i < run.waiting_count; i++) {
		int n = run.waiting[i];
		const struct event *m = run.event[n];

		if (m->what == NOTICE) {
			if (e->source == MPI_ANY_SOURCE || e->source == m->source)
				notice = n;
		} else if (goes_with(e, m)) {
			list_remove(run.waiting, &run.waiting_count, i);
			return n;
		}
	}
	return notice;
}

static int list_message(const struct event *e)
{
	for (int i = 0; i < run.posted_count; i++) {
		int n = run.posted[i];

		if (goes_with(run.event[n], e)) {
			list_remove(run.posted, &run.posted_count, i);
			return n;
		}
	}
	return -1;
}

static void receive(int n, const struct event *e)
{
	struct req *r = &run.receive[n];
	const int expected = list_receive(e);
	const bool quiet = !match_waits(&run.comm, e->source);
	struct unexpected *u, *probed = match_probe(&run.comm, e->source, e->tag);

	*r = (struct req){ .source = e->source, .tag = e->tag };
	u = match_receive(&run.comm, r, quiet);
	check_met(n, u ? (int)(u - run.message) : -1, expected);
	check_met(n, probed ? (int)(probed - run.message) : -1, expected);
	assert_int_equal(r->posted, !u);
	if (!u)
		run.posted[run.posted_count++] = n;
}

static void message(int n, const struct event *e)
{
	const int expected = list_message(e);
	struct req *r = match_message(&run.comm, e->source, e->tag);

	check_met(n, r ? (int)(r - run.receive) : -1, expected);
	if (r) {
		assert_false(r->posted);
		return;
	}
	run.message[n] = (struct unexpected){ .source = e->source, .tag = e->tag };
	unexpected_queue(&run.comm, &run.message[n]);
	run.waiting[run.waiting_count++] = n;
}

static void notice(int n, const struct event *e)
{
	run.message[n] = (struct unexpected){ .source = e->source, .tag = MPI_ANY_TAG, .lost = ERROR };
	unexpected_queue(&run.comm, &run.message[n]);
	run.waiting[run.waiting_count++] = n;
}

static void withdraw(void)
{
	if (!run.posted_count)
		return;
	match_unpost(&run.receive[run.posted[0]]);
	list_remove(run.posted, &run.posted_count, 0);
}

static void begin(void)
{
	run.comm = (struct comm){ .size = SOURCES, .source = run.source };
	match_comm_init(&run.comm);
	run.posted_count = run.waiting_count = 0;
}

static void step(int n, const struct event *e)
{
	run.event[n] = e;
	switch (e->what) {
	case RECEIVE:
		receive(n, e);
		break;
	case MESSAGE:
		message(n, e);
		break;
	case NOTICE:
		notice(n, e);
		break;
	case WITHDRAW:
		withdraw();
		break;
	}
}

static void test_every_order(void **unused)
{
	unsigned all = 1;

	(void)unused;
	for (int i = 0; i < SHORT; i++)
		all *= EVENTS;
	for (unsigned code = 0; code < all; code++) {
		unsigned rest = code;

		begin();
		for (int i = 0; i < SHORT; i++, rest /= EVENTS)
			step(i, &events[rest % EVENTS]);
	}
}

static void test_long(void **unused)
{
	uint64_t state = 20041106;

	(void)unused;
	for (int i = 0; i < RUNS; i++) {
		begin();
		for (int n = 0; n < LONG; n++) {
			step(n, &events[random_below(&state, EVENTS)]);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_order),
		cmocka_unit_test(test_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
