/* test_policy.c - the table of policies against a table by hand, and all that reads a row. */
#include "cmocka_all.h"

#include <errno.h>
#include <string.h>

#include "rail/policy.h"
#include "rail/open/rail_ctx.h"
#include "rail/message/stripe.h"
#include "verbs/vrb.h"

enum { THRESHOLD = 8192, EAGER = 16384, RAILS = 3 };

/* The numbers that cross the wire. */
static const struct expected {
	const char *name;
	bool cuts, pulls, names_rail, chooses, by_rate, by_control, by_both;
} expected[] = {
	{ "single", false, false, true, true, false, true, true },
	{ "bind", false, false, false, false, false, true, true },
	{ "stripe", true, false, false, false, false, true, true },
	{ "weighted", true, false, false, false, true, true, false },
	{ "pull", true, true, false, false, false, false, false },
};

static void test_rows(void **unused)
{
	int naming = 0;

	(void)unused;
	assert_int_equal(sizeof(expected) / sizeof(*expected), RAIL_POLICIES);
	for (int p = 0; p < RAIL_POLICIES; p++) {
		const struct rail_policy_row *row = &rail_policies[p];

		assert_string_equal(row->name, expected[p].name);
		assert_true(row->help && *row->help);
		assert_int_equal(row->spreads != RAIL_SPREADS_NOTHING, expected[p].cuts);
		assert_int_equal(row->spreads == RAIL_SPREADS_CHUNKS, expected[p].pulls);
		assert_int_equal(row->names_rail, expected[p].names_rail);
		assert_int_equal(row->choose != NULL, expected[p].chooses);
		assert_int_equal(row->measures, expected[p].by_rate);
		assert_int_equal(!row->not_control, expected[p].by_control);
		assert_int_equal(!row->not_both, expected[p].by_both);
		assert_int_equal(row->weigh != NULL, expected[p].cuts);
		naming += row->names_rail;
		for (int q = 0; q < p; q++)
			assert_string_not_equal(row->name, rail_policies[q].name);
	}
	assert_int_equal(naming, 1);	/* single:N */
}

static void check_cut(int policy, int rails, int bound, bool above)
{
	static const uint8_t rate[RAIL_MAX] = { 240, 0, 80, 7, 1, 255, 3, 9 };
	const struct expected *e = &expected[policy];
	struct rail_cut cut;

	memset(&cut, 0xff, sizeof(cut));
	cut.rail_count = rails;
	cut.chunk_bytes = 4096;
	rail_policy_cut(&cut, policy, THRESHOLD, THRESHOLD + above, bound, rate);
	assert_int_equal(cut.rail_count, rails);
	assert_int_equal(cut.chunk_bytes, 4096);
	assert_int_equal(cut.pull, above && e->pulls);
	for (int r = 0; r < RAIL_MAX; r++)
		if (r >= rails)
			assert_int_equal(cut.weight[r], 0);
		else if (above && e->cuts)
			assert_int_equal(cut.weight[r], e->by_rate ? rate[r] : 1);
		else
			assert_int_equal(cut.weight[r], r == bound);
}

static void test_cuts(void **unused)
{
	(void)unused;
	for (int policy = 0; policy < RAIL_POLICIES; policy++) {
		for (int rails = 1; rails <= RAIL_MAX; rails++)
			for (int bound = 0; bound < rails; bound++) {
				check_cut(policy, rails, bound, false);
				check_cut(policy, rails, bound, true);
			}
		assert_false(rail_policy_cuts((unsigned)policy, THRESHOLD, THRESHOLD));
		assert_int_equal(rail_policy_cuts((unsigned)policy, THRESHOLD + 1, THRESHOLD),
				 expected[policy].cuts);
	}
}

/* The chosen rail of a whole message is one of the peer's; a policy that names a rail takes it. */
static void test_choices(void **unused)
{
	(void)unused;
	for (int policy = 0; policy < RAIL_POLICIES; policy++)
		for (unsigned n = 0; n < 256 && rail_policies[policy].choose; n++) {
			const struct rail_choice choice = {
				.rail_count = RAILS, .bound = 1, .named = 2, .message = n,
			};
			const int rail = rail_policies[policy].choose(&choice);

			assert_in_range(rail, 0, RAILS - 1);
			if (expected[policy].names_rail)
				assert_int_equal(rail, 2);
		}
}

/* A context with the fields that rail_way_check reads. */
static struct rail_ctx *context(void)
{
	static struct vrb_port port[RAILS] = { { .name = "a:1" }, { .name = "b:1" }, { .name = "c:1" } };
	static struct rail_ctx ctx;

	ctx.rail_count = RAILS;
	ctx.eager_max = EAGER;
	for (int r = 0; r < RAILS; r++)
		ctx.rail[r].port = &port[r];
	return &ctx;
}

static void test_eager_limits(void **unused)
{
	(void)unused;
	for (int policy = 0; policy < RAIL_POLICIES; policy++) {
		struct rail_way way = { .policy = policy, .threshold = THRESHOLD, .eager = EAGER };

		assert_int_equal(rail_eager_limit(context(), &way),
				 expected[policy].cuts ? THRESHOLD : EAGER);
		way.threshold = 2 * EAGER;
		assert_int_equal(rail_eager_limit(context(), &way), EAGER);
	}
}

static void check_way(int policy, int rendezvous, int completion)
{
	const struct rail_way way = {
		.policy = policy, .threshold = THRESHOLD, .eager = EAGER,
		.rendezvous = (uint8_t)rendezvous, .completion = (uint8_t)completion,
	};
	const struct expected *e = &expected[policy];
	bool both = rendezvous == RAIL_BY_BOTH || rendezvous == RAIL_BY_TURNS || rendezvous == RAIL_BY_RING ||
		    rendezvous > RAIL_BY_AUTO;
	bool control = completion == RAIL_BY_CONTROL;
	bool right = (e->by_both || !both) && (e->by_control || !control) &&
		     !(control && (both || rendezvous == RAIL_BY_READ));
	char why[256] = "";

	assert_int_equal(rail_way_check(context(), &way, why, sizeof(why)), right ? 0 : -EINVAL);
	assert_int_equal(right, !*why);
	if ((both && !e->by_both) || (control && !e->by_control))
		assert_non_null(strstr(why, e->name));
	/* The accepted policies are all that agree with both. */
	if (!control && both && !e->by_both)
		assert_non_null(strstr(why, "(accepted: single, bind, stripe)"));
}

static void test_exclusions(void **unused)
{
	(void)unused;
	for (int policy = 0; policy < RAIL_POLICIES; policy++)
		for (int rendezvous = RAIL_BY_WRITE; rendezvous <= RAIL_BY_RING_LONG; rendezvous++)
			for (int completion = 0; completion <= RAIL_BY_CONTROL; completion++)
				check_way(policy, rendezvous, completion);
}

static void test_no_such(void **unused)
{
	struct rail_way way = { .policy = RAIL_POLICIES, .threshold = THRESHOLD, .eager = EAGER };
	char why[256];

	(void)unused;
	assert_int_equal(rail_way_check(context(), &way, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "(accepted: single, bind, stripe, weighted, pull)"));
	for (int policy = 0; policy < RAIL_POLICIES; policy++) {
		way.policy = policy;
		way.rail = RAILS;
		assert_int_equal(rail_way_check(context(), &way, why, sizeof(why)),
				 expected[policy].names_rail ? -EINVAL : 0);
	}
	way.policy = RAIL_SINGLE;
	assert_int_equal(rail_way_check(context(), &way, why, sizeof(why)), -EINVAL);
	assert_string_equal(why, "single:3: there is no such rail (accepted: single:0, which is a:1, "
			    "to single:2, which is c:1)");
}

/* A job whose adapters have few queue pairs takes one rail a peer. */
static void test_narrow(void **unused)
{
	struct rail_way way = { .policy = RAIL_SINGLE, .threshold = THRESHOLD, .eager = EAGER };
	struct rail_ctx *ctx = context();
	char why[256];

	(void)unused;
	ctx->narrow = true;
	assert_int_equal(rail_way_check(ctx, &way, why, sizeof(why)), 0);
	way.rail = 1;
	assert_int_equal(rail_way_check(ctx, &way, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "single:1: a peer has one of the rails in this job"));
	way.policy = RAIL_STRIPE;
	assert_int_equal(rail_way_check(ctx, &way, why, sizeof(why)), 0);
	ctx->narrow = false;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_cuts),
		cmocka_unit_test(test_choices),
		cmocka_unit_test(test_eager_limits),
		cmocka_unit_test(test_exclusions),
		cmocka_unit_test(test_no_such),
		cmocka_unit_test(test_narrow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
