/* test_counters.c - a port's counters, from a tree made here as the kernel makes it. */
#include "config.h"		/* _GNU_SOURCE */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "scratch.h"
#include "verbs/vrb.h"

static char port[SCRATCH_PATH];

static void tree_file(const char *name, const char *text)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", port, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static void tree_dir(const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", port, name);
	assert_int_equal(mkdir(path, 0700), 0);
}

static int setup(void **state)
{
	(void)state;
	return scratch_make(port);
}

static int teardown(void **state)
{
	(void)state;
	return scratch_remove(port);
}

struct seen {
	int count;
	struct { char name[64]; bool known; uint64_t value; } list[32];
};

static void keep(void *user, const char *name, const uint64_t *value)
{
	struct seen *s = user;

	assert_true(s->count < 32);
	snprintf(s->list[s->count].name, sizeof(s->list[0].name), "%s", name);
	s->list[s->count].known = value != NULL;
	s->list[s->count++].value = value ? *value : 0;
}

static void expect(const struct seen *s, int at, const char *name, bool known, uint64_t value)
{
	assert_string_equal(s->list[at].name, name);
	assert_int_equal(s->list[at].known, known);
	assert_int_equal(s->list[at].value, value);
}

static void test_as_it_is(void **state)
{
	struct seen s = { .count = 0 };

	(void)state;
	tree_dir("counters");
	tree_dir("hw_counters");
	tree_file("counters/port_xmit_data", "123456789012\n");
	tree_file("counters/symbol_error", "0\n");
	tree_file("hw_counters/local_ack_timeout_err", "7");
	tree_file("hw_counters/lifespan", "10\n");
	assert_int_equal(vrb_counters_read(port, keep, &s), 3);
	assert_int_equal(s.count, 3);
	expect(&s, 0, "port_xmit_data", true, 123456789012u);
	expect(&s, 1, "symbol_error", true, 0);
	expect(&s, 2, "local_ack_timeout_err", true, 7);
}

/* A counter at the end of its field stays there: it has a name and no value. */
static void test_saturated(void **state)
{
	static const struct { const char *name, *text; bool known; uint64_t value; } c[] = {
		{ "excessive_buffer_overrun_errors", "14\n", true, 14 },
		{ "link_downed", "255\n", false, 0 },
		{ "local_link_integrity_errors", "15\n", false, 0 },
		{ "port_rcv_data", "4294967295\n", false, 0 },
		{ "port_rcv_errors", "255\n", true, 255 },
		{ "port_xmit_data", "4294967296\n", true, 4294967296u },
		{ "symbol_error", "65535\n", false, 0 },
		{ "unicast_rcv_packets", "18446744073709551615\n", false, 0 },
	};
	const int count = sizeof(c) / sizeof(c[0]);
	struct seen s = { .count = 0 };
	char path[SCRATCH_PATH + 16];

	(void)state;
	tree_dir("counters");
	tree_dir("hw_counters");
	for (int i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "counters/%s", c[i].name);
		tree_file(path, c[i].text);
	}
	/* The drivers' own are 64 bits wide, whatever they are called. */
	tree_file("hw_counters/link_downed", "255\n");
	assert_int_equal(vrb_counters_read(port, keep, &s), count + 1);
	for (int i = 0; i < count; i++)
		expect(&s, i, c[i].name, c[i].known, c[i].value);
	expect(&s, count, "link_downed", true, 255);
}

static void test_nonsense(void **state)
{
	static const char *const bad[] = {
		"", "\n", "N/A (no PMA)\n", "-1\n", " 5\n", "0x10\n", "12 13\n", "12\n\n",
		"18446744073709551616\n", "99999999999999999999999999999999999999\n",
	};
	struct seen s = { .count = 0 };
	char path[SCRATCH_PATH + 32];

	(void)state;
	tree_dir("hw_counters");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(path, sizeof(path), "hw_counters/bad%zu", i);
		tree_file(path, bad[i]);
	}
	tree_dir("hw_counters/directory");
	tree_file("hw_counters/.hidden", "1\n");
	snprintf(path, sizeof(path), "%s/hw_counters/gone", port);
	assert_int_equal(symlink("/nowhere/at/all", path), 0);
	tree_file("hw_counters/good", "3\n");
	assert_int_equal(vrb_counters_read(port, keep, &s), 1);
	expect(&s, 0, "good", true, 3);
}

static void test_missing(void **state)
{
	struct seen s = { .count = 0 };

	(void)state;
	assert_int_equal(vrb_counters_read(port, keep, &s), 0);
	assert_int_equal(vrb_counters_read("/nowhere/at/all", keep, &s), 0);
	assert_int_equal(s.count, 0);
}

static void test_retries(void **state)
{
	(void)state;
	assert_true(vrb_counter_is_retry("local_ack_timeout_err"));
	assert_true(vrb_counter_is_retry("completer_retry_err"));
	assert_true(vrb_counter_is_retry("rcvd_rnr_err"));
	assert_true(vrb_counter_is_retry("sq_num_to"));
	assert_true(vrb_counter_is_retry("to_retransmits"));
	assert_true(vrb_counter_is_retry("seq_err_naks_rcvd"));
	/* The responder's side, and the end of all tries. */
	assert_false(vrb_counter_is_retry("out_of_sequence"));
	assert_false(vrb_counter_is_retry("send_rnr_err"));
	assert_false(vrb_counter_is_retry("retry_exceeded_err"));
	assert_false(vrb_counter_is_retry("duplicate_request"));
	assert_false(vrb_counter_is_retry("rq_num_oos"));
	assert_false(vrb_counter_is_retry("sq_num_tree"));
	assert_false(vrb_counter_is_retry("max_retry_exceeded"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_as_it_is, setup, teardown),
		cmocka_unit_test_setup_teardown(test_saturated, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nonsense, setup, teardown),
		cmocka_unit_test_setup_teardown(test_missing, setup, teardown),
		cmocka_unit_test(test_retries),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
