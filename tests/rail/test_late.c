/* test_late.c - senders that answer late: when a record is late, and how long messages are read then. */
#include "cmocka_all.h"

#include "rail/message/late.h"

enum { READ_NS = 10000, LIMIT = LATE_NS + READ_NS, NOW = 1000 };

/* A record whose data comes after wait_ns of polling, with a look at each end.  The time of the last one. */
static uint64_t answered_after(struct rail_late *late, uint64_t now, uint64_t wait_ns)
{
	rail_late_ask(late, READ_NS);
	assert_true(rail_late_look(late, now));
	assert_true(rail_late_look(late, now + wait_ns));
	late->answers++;
	assert_false(rail_late_look(late, now + wait_ns));
	return now + wait_ns;
}

static void test_in_time(void **state)
{
	struct rail_late late = { 0 };
	const uint64_t now = answered_after(&late, NOW, LIMIT - 1);

	(void)state;
	assert_false(rail_late_suspects(&late));
	assert_false(rail_late_reads(&late, now));
}

static void test_while_late(void **state)
{
	struct rail_late late = { 0 };

	(void)state;
	rail_late_ask(&late, READ_NS);
	assert_true(rail_late_look(&late, NOW));
	assert_false(rail_late_suspects(&late));
	assert_true(rail_late_look(&late, NOW + LIMIT));
	assert_true(rail_late_suspects(&late));
	assert_true(rail_late_reads(&late, NOW + LIMIT));
}

/* The receiver itself was away before it looked for the first time: that is no wait. */
static void test_receiver_away(void **state)
{
	struct rail_late late = { 0 };

	(void)state;
	rail_late_ask(&late, READ_NS);
	late.answers++;
	assert_false(rail_late_look(&late, NOW + 100 * LIMIT));
	assert_false(rail_late_suspects(&late));
}

/* Read as long as the data was late, then 4, 16, 64 times, and 64 times at most. */
static void test_row(void **state)
{
	static const uint64_t times[] = { 1, 4, 16, 64, 64 };
	struct rail_late late = { 0 };
	uint64_t now = NOW;

	(void)state;
	for (int i = 0; i < 5; i++) {
		const uint64_t wait = 3 * LIMIT;

		now = answered_after(&late, now, wait);
		assert_true(rail_late_reads(&late, now + times[i] * wait - 1));
		now += times[i] * wait;
		assert_false(rail_late_reads(&late, now));
		assert_false(rail_late_suspects(&late));
	}
	/* Data in time ends the row. */
	now = answered_after(&late, now, 1);
	now = answered_after(&late, now, LIMIT);
	assert_true(rail_late_reads(&late, now + LIMIT - 1));
	assert_false(rail_late_reads(&late, now + LIMIT));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_in_time),
		cmocka_unit_test(test_while_late),
		cmocka_unit_test(test_receiver_away),
		cmocka_unit_test(test_row),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
