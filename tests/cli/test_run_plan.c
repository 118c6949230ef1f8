/* test_run_plan.c - the plan of a campaign: its order, its budgets, its record. */
#include "cmocka_all.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "cli/run_plan.h"

static struct run_settings settings_of(const char *preset)
{
	const struct run_preset *p = run_preset_find(preset);

	return (struct run_settings){
		.preset = p->name, .launcher = "mpirun", .launches = p->launches, .ranks = 2,
		.seed = 1, .cap_ns = p->cap_ns, .ways = "native,single,stripe",
	};
}

static void plan_of(const struct run_settings *s, struct run_plan *p)
{
	const char *why;
	json_t *header = run_header(s);

	assert_non_null(header);
	assert_int_equal(run_plan_make(header, p, &why), 0);
}

static bool same_order(const struct run_plan *a, const struct run_plan *b)
{
	return a->count == b->count &&
	       memcmp(a->item, b->item, (size_t)a->count * sizeof(a->item[0])) == 0;
}

/* Each round has each program with each build once, in an order of its own. */
static void test_rounds(void **state)
{
	struct run_settings s = settings_of("quick");
	struct run_plan p;
	bool first[6] = { false };

	s.builds = 2;
	s.build[0] = (struct run_build){ "old", "", "", "" };
	s.build[1] = (struct run_build){ "new", "", "--qps 4", "" };
	s.launches = 200;
	plan_of(&s, &p);
	assert_int_equal(p.count, 200 * 6);
	for (int k = 0; k < 200; k++) {
		bool seen[6] = { false };

		for (int i = 0; i < 6; i++) {
			const struct run_item *item = &p.item[k * 6 + i];
			int which = item->program * 2 + item->build;

			assert_int_equal(item->launch, k);
			assert_false(seen[which]);
			seen[which] = true;
			if (i == 0)
				first[which] = true;
		}
	}
	for (int i = 0; i < 6; i++)
		assert_true(first[i]);
	assert_string_equal(p.build[1].settings, "--qps 4");
	assert_true(json_is_true(json_object_get(p.header, "interleaved")));
	run_plan_free(&p);
}

static void test_seed(void **state)
{
	struct run_settings s = settings_of("quick");
	struct run_plan a, b, c;

	plan_of(&s, &a);
	plan_of(&s, &b);
	s.seed = 2;
	plan_of(&s, &c);
	assert_true(same_order(&a, &b));
	assert_false(same_order(&a, &c));
	assert_true(json_is_false(json_object_get(a.header, "interleaved")));
	run_plan_free(&a);
	run_plan_free(&b);
	run_plan_free(&c);
}

/* A journal's record gives the same plan. */
static void test_record(void **state)
{
	struct run_settings s = settings_of("standard");
	struct run_plan a, b;
	const char *why;
	char *text;

	plan_of(&s, &a);
	text = json_dumps(a.header, JSON_COMPACT);
	assert_int_equal(run_plan_make(json_loads(text, 0, NULL), &b, &why), 0);
	free(text);
	assert_true(same_order(&a, &b));
	assert_int_equal(b.cap_ns, a.cap_ns);
	assert_string_equal(b.launcher, "mpirun");
	run_plan_free(&a);
	run_plan_free(&b);
}

static void test_damaged(void **state)
{
	static const char *const members[] = { "type", "version", "launches", "ranks", "seed", "cap_ns",
					       "preset", "launcher", "builds", "programs" };
	struct run_settings s = settings_of("quick");

	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		json_t *header = run_header(&s);
		struct run_plan p;
		const char *why = "";

		json_object_set_new(header, members[i], json_null());
		assert_int_equal(run_plan_make(header, &p, &why), -EINVAL);
		assert_string_equal(why, members[i]);
	}
}

static double seconds_of(const char *preset)
{
	struct run_settings s = settings_of(preset);
	struct run_plan p;
	double ns = 0;

	plan_of(&s, &p);
	for (int i = 0; i < p.count; i++)
		ns += (double)run_item_ns(&p, &p.item[i]);
	run_plan_free(&p);
	return ns / 1e9;
}

static void test_budgets(void **state)
{
	assert_true(seconds_of("quick") > 100 && seconds_of("quick") < 125);
	assert_true(seconds_of("standard") > 3300 && seconds_of("standard") <= 3600);
	assert_true(seconds_of("paper") > 27000 && seconds_of("paper") <= 28800);
}

static void test_quick(void **state)
{
	struct run_settings s = settings_of("quick");
	char name[RUN_NAME_BYTES];
	struct run_plan p;

	plan_of(&s, &p);
	assert_int_equal(p.programs, 3);
	assert_int_equal(p.launches, 10);
	assert_int_equal(p.program[0].rows, 21);	/* 7 sizes, 3 ways */
	assert_string_equal(run_item_name(&p, &(struct run_item){ 1, 0, 7 }, name), "rg_bw.007");
	run_plan_free(&p);
}

/* The ways of an unknown program are builds. */
static void test_unknown(void **state)
{
	char *argv[] = { (char *)"./a.out", (char *)"-n", (char *)"two words", NULL };
	struct run_settings s = settings_of("quick");
	char name[RUN_NAME_BYTES];
	struct run_plan p;

	s.argv = argv;
	plan_of(&s, &p);
	assert_true(run_plan_is_unknown(&p));
	assert_int_equal(p.programs, 1);
	assert_int_equal(p.builds, 3);
	assert_string_equal(p.build[2].over, "stripe");
	assert_int_equal(json_array_size(p.program[0].options), 2);
	assert_string_equal(run_item_name(&p, &(struct run_item){ 0, 1, 12 }, name), "single.a.out.012");
	run_plan_free(&p);
}

static void test_sizes(void **state)
{
	struct run_settings s = settings_of("quick");
	struct run_plan p;

	s.sizes = "0:8";
	plan_of(&s, &p);
	assert_int_equal(p.program[0].rows, 15);	/* 0, 1, 2, 4, 8 */
	run_plan_free(&p);
	s.sizes = "8:4";
	capture_begin(2);
	assert_null(run_header(&s));
	assert_string_equal(capture_end(), "railgauge: --sizes 8:4: makes no sense (accepted: MIN:MAX or one "
			    "size)\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rounds), cmocka_unit_test(test_seed),
		cmocka_unit_test(test_record), cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_budgets), cmocka_unit_test(test_quick),
		cmocka_unit_test(test_unknown), cmocka_unit_test(test_sizes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
