/* test_spec.c - the spec string: what is accepted, what it means, how it is refused. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmocka_all.h"
#include "softhca.h"
#include "spec.h"

static struct hca_spec parse(const char *text)
{
	struct hca_spec s;
	char why[320] = "";

	if (hca_spec_parse(text, &s, why, sizeof(why)))
		fail_msg("'%s' was refused: %s", text, why);
	return s;
}

static void test_defaults(void **state)
{
	struct hca_spec s = parse("");

	assert_int_equal(s.hcas, 1);
	assert_int_equal(s.ports, 2);
	assert_false(s.timed);
	assert_int_equal(s.mtu, 4096);
	assert_string_equal(parse("ideal").text, s.text);
}

static void test_every_key(void **state)
{
	struct hca_spec s = parse("ideal,hcas=2,ports=8,rate=1.5GB/s,latency=2.5us,"
				  "bus=781MB/s/1199MB/s:half,cap=1486MB/s,msg=100ns,pkt=20ns,"
				  "mtu=2048,window=64,outstanding=16,reads=4");

	assert_int_equal(s.hcas, 2);
	assert_int_equal(s.ports, 8);
	assert_int_equal(s.rate, 1500000000);
	assert_int_equal(s.latency_ns, 2500);
	assert_int_equal(s.bus_read, 781000000);
	assert_int_equal(s.bus_write, 1199000000);
	assert_true(s.bus_half);
	assert_int_equal(s.cap, 1486000000);
	assert_int_equal(s.msg_ns, 100);
	assert_int_equal(s.pkt_ns, 20);
	assert_int_equal(s.mtu, 2048);
	assert_int_equal(s.window, 64);
	assert_int_equal(s.outstanding, 16);
	assert_int_equal(s.reads, 4);
	assert_true(s.timed);
}

/* The canonical form means the same and is its own canonical form. */
static void test_canonical(void **state)
{
	static const char *const specs[] = {
		"", "ideal", "rate=1GB/s,latency=2us", "latency=2us,rate=8Gb/s",
		"bus=2GB/s/2GB/s", "bus=1GB/s/3GB/s:full,cap=none", "window=7,pkt=1ns,mtu=256",
		"rate=none,latency=0",
	};
	unsigned i;

	for (i = 0; i < sizeof(specs) / sizeof(*specs); i++) {
		char text[HCA_SPEC_MAX], again[HCA_SPEC_MAX];

		assert_int_equal(softhca_spec_canonical(specs[i], text, sizeof(text)), 0);
		assert_int_equal(softhca_spec_canonical(text, again, sizeof(again)), 0);
		assert_string_equal(text, again);
	}
	assert_string_equal(parse("rate=1GB/s,latency=2us").text,
			    parse("latency=2000ns,rate=8Gb/s,ports=2").text);
}

/* Each is refused, and the line names the key. */
static void test_refused(void **state)
{
	static const struct {
		const char *spec, *names;
	} bad[] = {
		{ "ports=0", "ports=0" }, { "ports=9", "ports=9" }, { "ports=", "ports=" },
		{ "ports", "ports" }, { "ports=2.5", "ports=2.5" }, { "ports=-1", "ports=-1" },
		{ "hcas=0", "hcas=0" }, { "hcas=9", "hcas=9" },
		{ "rate=0", "rate=0" }, { "rate=1", "rate=1" }, { "rate=1GB", "rate=1GB" },
		{ "rate=999B/s", "rate=999B/s" }, { "latency=5", "latency=5" },
		{ "latency=11s", "latency=11s" }, { "latency=none", "latency=none" },
		{ "bus=1GB/s", "bus=1GB/s" }, { "bus=1GB/s/0:half", "bus=1GB/s/0:half" },
		{ "bus=1GB/s/1GB/s:both", "bus=1GB/s/1GB/s:both" }, { "cap=0", "cap=0" },
		{ "mtu=1000", "mtu=1000" }, { "mtu=8192", "mtu=8192" }, { "mtu=128", "mtu=128" },
		{ "window=0", "window=0" }, { "outstanding=0", "outstanding=0" },
		{ "reads=0", "reads=0" }, { "reads=129", "reads=129" },
		{ "speed=1GB/s", "'speed'" }, { "ports=2,ports=2", "ports: given twice" },
		{ "ports=2,", "''" }, { ",ports=2,,", "''" }, { "fast", "'fast'" },
		{ "ports=2,ideal", "'ideal'" }, { "=1", "''" },
	};
	char why[320];
	unsigned i;

	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		why[0] = '\0';
		assert_int_equal(softhca_spec_check(bad[i].spec, why, sizeof(why)), -EINVAL);
		if (!strstr(why, bad[i].names) || !strstr(why, "accepted") || strchr(why, '\n'))
			fail_msg("'%s': the line is: %s", bad[i].spec, why);
	}
}

/* Keys of later versions: well-formed ones are refused as such. */
static void test_not_yet(void **state)
{
	static const char *const later[] = { "loss=0.01", "jitter=1us", "seed=7",
					     "down=0/soft0:1@10ms", "up=1/soft0:2@1s" };
	char why[320];
	unsigned i;

	for (i = 0; i < sizeof(later) / sizeof(*later); i++) {
		assert_int_equal(softhca_spec_check(later[i], why, sizeof(why)), -EINVAL);
		assert_non_null(strstr(why, "not yet"));
	}
	assert_int_equal(softhca_spec_check("loss=2", why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "accepted: 0 to 1"));
}

static void test_describe(void **state)
{
	struct hca_spec s = parse("rate=1GB/s,latency=2us");
	char text[160];

	hca_spec_describe(&s, text, sizeof(text));
	assert_string_equal(text, "2 ports, 1 GB/s per port and direction, 2 us");
	s = parse("ports=1");
	hca_spec_describe(&s, text, sizeof(text));
	assert_string_equal(text, "1 port, untimed");
	s = parse("hcas=8,ports=8,rate=999999999B/s,latency=9999999999ns,cap=999999999B/s,"
		  "bus=999999999B/s/999999998B/s:half");
	hca_spec_describe(&s, text, sizeof(text));
	assert_true(strlen(text) < sizeof(text));
	hca_spec_describe(&s, text, 20);
	assert_true(strlen(text) < 20);
}

/* The longest spec that can be written either fits or is refused, never cut. */
static void test_long(void **state)
{
	char why[320], text[2048];
	struct hca_spec s, again;

	if (hca_spec_parse("hcas=8,ports=8,rate=999999999999B/s,latency=9999999999ns,"
			   "bus=999999999999B/s/999999999998B/s:half,cap=999999999997B/s,"
			   "msg=999999999ns,pkt=999999998ns,mtu=4096,window=1048575,"
			   "outstanding=1048575,reads=128", &s, why, sizeof(why)) == 0) {
		assert_int_equal(hca_spec_parse(s.text, &again, why, sizeof(why)), 0);
		assert_string_equal(s.text, again.text);
	}
	memset(text, 'a', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(hca_spec_parse(text, &s, why, sizeof(why)), -EINVAL);
	assert_true(strlen(why) < sizeof(why));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults), cmocka_unit_test(test_every_key),
		cmocka_unit_test(test_canonical), cmocka_unit_test(test_refused),
		cmocka_unit_test(test_not_yet), cmocka_unit_test(test_describe),
		cmocka_unit_test(test_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
