/* test_model.c - the arithmetic of reservations: exact, without a clock. */
#include <stdlib.h>
#include <string.h>

#include "cmocka_all.h"
#include "softhca/model/model.h"
#include "softhca/object/fabric.h"

/* A fabric of words only. */
static struct hca_fabric *fabric(const char *spec)
{
	struct hca_fabric *f = calloc(1, sizeof(*f));
	char why[320];

	assert_non_null(f);
	if (hca_spec_parse(spec, &f->spec, why, sizeof(why)))
		fail_msg("%s", why);
	f->shm = aligned_alloc(HCA_PAGE, sizeof(*f->shm));
	assert_non_null(f->shm);
	memset(f->shm, 0, sizeof(*f->shm));
	return f;
}

static void drop(struct hca_fabric *f)
{
	free(f->shm);
	free(f);
}

static struct hca_path path(struct hca_fabric *f, unsigned from_node, unsigned from_port,
			    unsigned to_node, unsigned to_port)
{
	struct hca_path p;

	hca_path_make(f->shm, &f->spec, hca_address(&f->spec, from_node, 0, from_port),
		      hca_address(&f->spec, to_node, 0, to_port), (uint32_t)f->spec.mtu, &p);
	return p;
}

/* A queue pair: one quantum after the other, as pace.c asks for them. */
struct flow {
	struct hca_path path;
	uint64_t end;
};

static uint64_t next(struct flow *f, uint32_t bytes)
{
	uint64_t t = f->end > f->path.horizon_ns ? f->end - f->path.horizon_ns : 0;

	f->end = hca_path_reserve(&f->path, t, bytes, false, NULL);
	return f->end + f->path.latency_ns;
}

/* `count` quanta as early as possible; returns the arrival of the last. */
static uint64_t stream(struct hca_path *p, unsigned count, uint32_t bytes)
{
	struct flow f = { *p, 0 };
	uint64_t arrival = 0;
	unsigned i;

	for (i = 0; i < count; i++)
		arrival = next(&f, bytes);
	return arrival;
}

static void test_one_quantum(void **state)
{
	struct hca_fabric *f = fabric("rate=1GB/s,latency=2us");
	struct hca_path p = path(f, 0, 1, 1, 1);
	uint64_t span;

	assert_int_equal(hca_path_reserve(&p, 1000, 4096, true, &span), 1000 + 4096);
	assert_int_equal(span, 4096);
	/* The next waits for the port, not for the first's arrival. */
	assert_int_equal(hca_path_reserve(&p, 1000, 4096, true, NULL), 1000 + 2 * 4096);
	/* Nothing is lost by being late: the wire was free from 9192 on. */
	assert_int_equal(hca_path_reserve(&p, 20000, 8, true, NULL), 20000 + 8);
	assert_int_equal(hca_path_free(&p), 20008);
	drop(f);
}

static void test_ports_and_directions_are_apart(void **state)
{
	struct hca_fabric *f = fabric("rate=1GB/s");
	struct hca_path a = path(f, 0, 1, 1, 1), b = path(f, 0, 2, 1, 2);
	struct hca_path back = path(f, 1, 1, 0, 1);

	assert_int_equal(stream(&a, 10, 1000), 10000);
	assert_int_equal(stream(&b, 10, 1000), 10000);
	assert_int_equal(stream(&back, 10, 1000), 10000);
	drop(f);
}

/* Each port has a rate of its own; between two the slower one counts. */
static void test_ports_of_their_own(void **state)
{
	struct hca_fabric *f = fabric("rate=1GB/s+250MB/s");
	struct hca_path a = path(f, 0, 1, 1, 1), b = path(f, 0, 2, 1, 2);
	struct hca_path back = path(f, 1, 2, 0, 2), across = path(f, 2, 1, 3, 2);

	assert_int_equal(stream(&a, 10, 1000), 10000);
	assert_int_equal(stream(&b, 10, 1000), 40000);
	assert_int_equal(stream(&back, 10, 1000), 40000);
	assert_int_equal(stream(&across, 10, 1000), 40000);
	drop(f);
}

/* Two senders into one port share it. */
static void test_destination_port(void **state)
{
	struct hca_fabric *f = fabric("rate=1GB/s,latency=5us");
	struct flow a = { path(f, 0, 1, 2, 1), 0 }, b = { path(f, 1, 1, 2, 1), 0 };
	uint64_t last = 0;
	unsigned i;

	for (i = 0; i < 100; i++) {
		next(&a, 1000);
		last = next(&b, 1000);
	}
	assert_int_equal(last, 5000 + 200 * 1000);
	/* Every sender to this port feels the jam, in its own time. */
	assert_int_equal(hca_path_free(&a.path), 200 * 1000);
	drop(f);
}

/* An adapter's cap below the sum of its ports, in any order of turns. */
static void test_cap(void **state)
{
	static const char *const orders[] = { "ab", "aabb", "aab", "abb", "aaabbb", "abbbaabab" };
	unsigned i, k;

	for (k = 0; k < sizeof(orders) / sizeof(*orders); k++) {
		struct hca_fabric *f = fabric("rate=1GB/s,cap=1.6GB/s");
		struct flow a = { path(f, 0, 1, 1, 1), 0 }, b = { path(f, 0, 2, 1, 2), 0 };
		unsigned left_a = 400, left_b = 400;
		uint64_t last = 0, arrival;

		for (i = 0; left_a || left_b; i++) {
			char who = orders[k][i % strlen(orders[k])];
			unsigned *left = who == 'a' ? &left_a : &left_b;

			/* Held back by the horizon, as pace.c does, both stay together. */
			if (!*left || *left + 4 < (who == 'a' ? left_b : left_a))
				continue;
			--*left;
			arrival = next(who == 'a' ? &a : &b, 8000);
			last = arrival > last ? arrival : last;
		}
		/* 6.4 MB at 1.6 GB/s */
		assert_in_range(last, 4000000, 4000000 * 101 / 100);
		drop(f);
	}
}

/* A cap that a port does not fill does not hold it up. */
static void test_cap_one_port(void **state)
{
	struct hca_fabric *f = fabric("rate=1GB/s,cap=1.6GB/s");
	struct hca_path a = path(f, 0, 1, 1, 1);

	assert_in_range(stream(&a, 100, 8000), 800000, 808000);
	drop(f);
}

/* P1's PCI-X: 781 MB/s one way, 946 MB/s both ways together. */
static void test_half_duplex_bus(void **state)
{
	struct hca_fabric *f = fabric("rate=1GB/s,bus=781MB/s/1199MB/s:half");
	struct flow there = { path(f, 0, 1, 1, 1), 0 }, back = { path(f, 1, 1, 0, 1), 0 };
	uint64_t last = 0;
	unsigned i;

	for (i = 0; i < 1000; i++)
		last = next(&there, 8000);
	assert_in_range(last, 8000000 / 0.781 * 0.999, 8000000 / 0.781 * 1.002);
	drop(f);
	f = fabric("rate=1GB/s,bus=781MB/s/1199MB/s:half");
	there = (struct flow){ path(f, 0, 1, 1, 1), 0 };
	back = (struct flow){ path(f, 1, 1, 0, 1), 0 };
	for (i = 0; i < 1000; i++) {
		next(&there, 8000);
		last = next(&back, 8000);
	}
	/* Each bus reads 8 MB at 781 and writes 8 MB at 1199. */
	assert_in_range(last, (8000000 / 0.781 + 8000000 / 1.199) * 0.998,
			(8000000 / 0.781 + 8000000 / 1.199) * 1.004);
	drop(f);
}

static void test_full_duplex_bus(void **state)
{
	struct hca_fabric *f = fabric("rate=1GB/s,bus=500MB/s/800MB/s:full");
	struct flow there = { path(f, 0, 1, 1, 1), 0 }, back = { path(f, 1, 1, 0, 1), 0 };
	uint64_t last = 0;
	unsigned i;

	for (i = 0; i < 100; i++) {
		next(&there, 8000);
		last = next(&back, 8000);
	}
	assert_in_range(last, 1600000, 1601000);
	drop(f);
}

/* Idle time is gone: a flow held up elsewhere does not make it up at the port. */
static void test_no_credit(void **state)
{
	struct hca_fabric *f = fabric("rate=1GB/s");
	struct flow a = { path(f, 0, 1, 1, 1), 0 }, b = { path(f, 2, 1, 1, 1), 0 };
	uint64_t first, last = 0;
	unsigned i;

	/* b fills the destination for 1 ms; then a, posted at 0, has it alone. */
	for (i = 0; i < 250; i++)
		next(&b, 4000);
	first = next(&a, 4000);
	for (i = 0; i < 250; i++)
		last = next(&a, 4000);
	assert_in_range(last - first, 1000000, 1000000);
	drop(f);
}

static void test_message_and_packet_costs(void **state)
{
	struct hca_fabric *f = fabric("rate=1GB/s,latency=1us,msg=300ns,pkt=50ns,mtu=1024");
	struct hca_path p = path(f, 0, 1, 1, 1);

	assert_int_equal(hca_path_reserve(&p, 0, 2049, true, NULL), 2049 + 300 + 3 * 50);
	assert_int_equal(hca_path_reserve(&p, 100000, 2049, false, NULL),
			 100000 + 2049 + 3 * 50);
	/* Nothing is one packet too. */
	assert_int_equal(hca_path_reserve(&p, 200000, 0, true, NULL), 200000 + 300 + 50);
	drop(f);
}

static void test_read_request(void **state)
{
	struct hca_fabric *f = fabric("rate=1GB/s,latency=1us,msg=300ns,pkt=50ns");
	struct hca_path p = path(f, 0, 1, 1, 1);

	assert_int_equal(hca_path_request(&p, 5000), 5000 + 350 + 1000);
	drop(f);
}

static void test_quanta(void **state)
{
	static const struct {
		const char *spec;
		uint32_t bytes;
		uint64_t horizon_ns;
	} cases[] = {
		{ "rate=1GB/s", 4096, 8192 },	/* 8 us would be 8000 bytes: whole packets */
		{ "rate=4GB/s", 28672, 14336 }, { "rate=100GB/s", 65536, 8000 },
		{ "rate=1GB/s,mtu=256", 7936, 15872 }, { "latency=1us", 65536, 8000 },
		{ "rate=10GB/s,window=8", 8192, 8000 }, { "rate=10GB/s,window=1", 4096, 8000 },
		/* A long packet: a message across waits for it and a half. */
		{ "rate=200MB/s", 4096, 16000 }, { "rate=100MB/s", 4096, 20480 },
		{ "rate=10MB/s,mtu=1024", 1024, 51200 }, { "rate=1MB/s", 4096, 2048000 },
	};
	unsigned i;

	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct hca_fabric *f = fabric(cases[i].spec);
		struct hca_path p = path(f, 0, 1, 1, 1);

		assert_int_equal(p.quantum_bytes, cases[i].bytes);
		assert_int_equal(p.horizon_ns, cases[i].horizon_ns);
		drop(f);
	}
}

/* W packets per round trip: the rate that a window allows. */
static void test_window_rate(void **state)
{
	enum { W = 16, PACKETS = 1600 };
	struct hca_fabric *f = fabric("rate=1GB/s,latency=100us,window=16");
	struct hca_path p = path(f, 0, 1, 1, 1);
	struct hca_window w;
	uint64_t end = 0, span, expected;
	unsigned sent = 0;

	assert_int_equal(hca_window_init(&w, W), 0);
	while (sent < PACKETS) {
		uint64_t open = hca_window_open(&w);
		uint32_t packets = hca_packets(p.quantum_bytes, p.mtu);

		end = hca_path_reserve(&p, open, p.quantum_bytes, false, &span);
		hca_window_add(&w, packets, end + 2 * p.latency_ns, span);
		sent += packets;
	}
	/* A window of packets leaves per 200 us and one packet's time. */
	expected = (uint64_t)PACKETS / W * (200000 + 4096);
	assert_in_range(end, expected * 96 / 100, expected * 104 / 100);
	hca_window_destroy(&w);
	drop(f);
}

/* A window wider than the path holds back nothing. */
static void test_window_wide(void **state)
{
	struct hca_fabric *f = fabric("rate=1GB/s,latency=10us,window=1000");
	struct hca_path p = path(f, 0, 1, 1, 1);
	struct hca_window w;
	uint64_t end = 0, span;
	unsigned i;

	assert_int_equal(hca_window_init(&w, 1000), 0);
	for (i = 0; i < 5000; i++) {
		end = hca_path_reserve(&p, hca_window_open(&w), 4096, false, &span);
		hca_window_add(&w, 1, end + 20000, span);
	}
	assert_int_equal(end, 5000 * 4096);
	hca_window_destroy(&w);
	drop(f);
}

static void test_window_exact(void **state)
{
	struct hca_window w;
	unsigned i;

	assert_int_equal(hca_window_init(&w, 4), 0);
	for (i = 0; i < 4; i++) {
		assert_int_equal(hca_window_open(&w), 0);
		hca_window_add(&w, 1, 1000 + i, 0);
	}
	for (i = 0; i < 100; i++) {
		assert_int_equal(hca_window_open(&w), 1000 + i);
		hca_window_add(&w, 1, 1004 + i, 0);
	}
	/* Inside a quantum of 4 packets, 10 ns apart, the acks come one by one. */
	hca_window_destroy(&w);
	assert_int_equal(hca_window_init(&w, 4), 0);
	hca_window_add(&w, 4, 140, 40);
	assert_int_equal(hca_window_open(&w), 110);
	hca_window_add(&w, 1, 200, 10);
	assert_int_equal(hca_window_open(&w), 120);
	hca_window_destroy(&w);
}

static void test_times(void **state)
{
	struct hca_times t;

	assert_int_equal(hca_times_init(&t, 2), 0);
	assert_int_equal(hca_times_open(&t), 0);
	hca_times_add(&t, 10);
	assert_int_equal(hca_times_open(&t), 0);
	hca_times_add(&t, 20);
	assert_int_equal(hca_times_open(&t), 10);
	hca_times_add(&t, 30);
	assert_int_equal(hca_times_open(&t), 20);
	hca_times_destroy(&t);
	assert_int_equal(hca_times_init(&t, 0), 0);
	hca_times_add(&t, 10);
	assert_int_equal(hca_times_open(&t), 0);
	hca_times_destroy(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_quantum),
		cmocka_unit_test(test_ports_and_directions_are_apart),
		cmocka_unit_test(test_ports_of_their_own),
		cmocka_unit_test(test_destination_port),
		cmocka_unit_test(test_cap), cmocka_unit_test(test_cap_one_port),
		cmocka_unit_test(test_half_duplex_bus), cmocka_unit_test(test_full_duplex_bus),
		cmocka_unit_test(test_no_credit),
		cmocka_unit_test(test_message_and_packet_costs),
		cmocka_unit_test(test_read_request), cmocka_unit_test(test_quanta),
		cmocka_unit_test(test_window_rate), cmocka_unit_test(test_window_wide),
		cmocka_unit_test(test_window_exact), cmocka_unit_test(test_times),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
