/* test_learned.c - what a launch has learned, as a line: classes of one choice together, other records as "". */
#include "cmocka_all.h"

#include "report/learned.h"

#define CELL(table, load, bytes, scheme, why) \
	"{\"table\": \"" table "\", \"load\": \"" load "\", \"bytes\": " bytes ", \"scheme\": \"" scheme \
	"\", \"why\": \"" why "\"}"
#define END(rank, cells) "{\"learned\": [{\"rank\": " rank ", \"places\": {\"host\": [" cells "]}}]}"

static void expect(const char *record, const char *line)
{
	json_t *end = json_loads(record, 0, NULL);
	char text[LEARNED_TEXT];

	assert_non_null(end);
	learned_text(end, text, sizeof(text));
	assert_string_equal(text, line);
	json_decref(end);
}

static void test_classes_of_one_choice(void **state)
{
	expect(END("0", CELL("receive", "alone", "16384", "read", "measured") ", "
			CELL("receive", "alone", "32768", "read", "measured") ", "
			CELL("receive", "alone", "null", "halves", "measured") ", "
			CELL("receive", "queued", "16384", "turns", "assumed") ", "
			CELL("receive", "queued", "32768", "turns", "given") ", "
			CELL("send", "row", "16384", "eager", "measured")),
	       "host receive alone read to 32K, halves above; host receive queued turns to 32K (given); "
	       "host send row eager to 16K");
}

static void test_gaps_part_classes(void **state)
{
	expect(END("0", CELL("send", "alone", "16384", "eager", "measured") ", "
			CELL("send", "alone", "32768", "eager", "assumed") ", "
			CELL("send", "alone", "65536", "eager", "measured")),
	       "host send alone eager to 16K, eager to 64K");
}

#define RACE(collective, ranks, over, bytes, algorithm, why) \
	"{\"collective\": \"" collective "\", \"ranks\": " ranks ", \"nodes\": 1, \"over\": \"" over "\", \"places\": \"host\"" \
	", \"bytes\": " bytes ", \"algorithm\": \"" algorithm "\", \"why\": \"" why "\"}"
#define RACES(rank, races) "{\"learned\": [{\"rank\": " rank ", \"collectives\": [" races "]}]}"

static void test_races_of_collectives(void **state)
{
	expect(RACES("0", RACE("bcast", "4", "single", "16384", "chain", "racing") ", "
			RACE("allreduce", "2", "single", "16384", "doubling", "measured") ", "
			RACE("allreduce", "2", "single", "32768", "ring", "measured") ", "
			RACE("allreduce", "2", "single", "65536", "ring", "measured") ", "
			RACE("allreduce", "4", "single", "131072", "ring", "measured") ", "
			RACE("allreduce", "4", "single,rendezvous=read", "131072", "ring", "measured")),
	       "allreduce of 2 ranks over single doubling to 16K, ring to 64K; allreduce of 4 ranks over single ring to "
	       "128K; allreduce of 4 ranks over single,rendezvous=read ring to 128K");
	expect(RACES("1", RACE("allreduce", "2", "single", "16384", "doubling", "measured")), "");
	expect(RACES("0", "7, {}, null, {\"why\": \"measured\"}"), "? of 0 ranks over ? ? to 0");
}

static void test_nothing(void **state)
{
	char text[LEARNED_TEXT] = "x";

	learned_text(NULL, text, sizeof(text));
	assert_string_equal(text, "");
	expect("{}", "");
	expect("{\"learned\": 7}", "");
	expect("{\"learned\": [7]}", "");
	expect("{\"learned\": [{\"rank\": 0, \"places\": {\"host\": 7, \"x\": [7, {}, null]}}]}", "");
	expect(END("1", CELL("send", "row", "16384", "eager", "measured")), "");
	expect(END("0", "{\"why\": \"given\", \"bytes\": -1}"), "host ? ? ? above (given)");
}

/* A line that is too long ends early. */
static void test_short_buffer(void **state)
{
	json_t *end = json_loads(END("0", CELL("send", "row", "16384", "eager", "measured")), 0, NULL);
	char text[12];

	learned_text(end, text, sizeof(text));
	assert_string_equal(text, "host send r");
	json_decref(end);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_classes_of_one_choice),
		cmocka_unit_test(test_gaps_part_classes),
		cmocka_unit_test(test_races_of_collectives),
		cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_short_buffer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
