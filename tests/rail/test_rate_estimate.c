/*
 * test_rate_estimate.c - estimated rates of rails, on rails of a few lines of arithmetic:
 * shares come to the right ones from any start, follow a rail that changes, and stay.
 */
#include "cmocka_all.h"

#include <math.h>
#include <string.h>

#include "rail/message/rate_estimate.h"

/* Rails of a latency and a rate each, and a clock. */
struct world {
	int rails;
	double latency_ns, bytes_per_ns[RAIL_MAX];
	uint64_t now_ns;
	double next_ns[RAIL_MAX];	/* streaming: when the chunk under way is there */
	struct rail_estimate estimate;
};

static struct world world_make(int rails, double latency_ns, const double *rate)
{
	struct world w = { .rails = rails, .latency_ns = latency_ns, .now_ns = 1000000 };

	memcpy(w.bytes_per_ns, rate, (size_t)rails * sizeof(*rate));
	return w;
}

static void start(struct world *w, const uint64_t *nominal)
{
	rail_estimate_init(&w->estimate, w->rails, nominal);
}

/* From 0 on, below 1. */
static double random_of(uint64_t *dice)
{
	*dice = *dice * 6364136223846793005u + 1442695040888963407u;
	return (double)(*dice >> 11) / (double)(UINT64_C(1) << 53);
}

static double share(const struct world *w, int r)
{
	double sum = 0;

	for (int k = 0; k < w->rails; k++)
		sum += w->estimate.rail[k].rate;
	return w->estimate.rail[r].rate / sum;
}

/* Single messages, each waited for: every rail carries its piece and waits. */
static void ping(struct world *w, uint64_t bytes, int messages)
{
	while (messages--) {
		uint8_t weight[RAIL_MAX];
		uint64_t sum = 0, end = w->now_ns;
		double at[RAIL_MAX];
		bool done[RAIL_MAX] = { false };

		rail_estimate_weights(&w->estimate, weight);
		rail_estimate_sent(&w->estimate);
		for (int r = 0; r < w->rails; r++)
			sum += weight[r];
		assert_true(sum > 0);
		for (int r = 0; r < w->rails; r++) {
			done[r] = weight[r] == 0;
			at[r] = (double)w->now_ns + w->latency_ns +
				(double)(bytes * weight[r] / sum) / w->bytes_per_ns[r];
			if (!done[r])
				rail_estimate_posted(&w->estimate, r, w->now_ns);
		}
		/* Completions in the order of time. */
		for (;;) {
			int next = -1;

			for (int r = 0; r < w->rails; r++)
				if (!done[r] && (next < 0 || at[r] < at[next]))
					next = r;
			if (next < 0)
				break;
			done[next] = true;
			end = (uint64_t)at[next];
			rail_estimate_done(&w->estimate, next, end, 100,
					   bytes * weight[next] / sum);
		}
		w->now_ns = end;
	}
}

/* Many messages in flight: every rail has always something to carry, chunk after chunk. */
static void stream(struct world *w, uint64_t chunk, double ns)
{
	double end = (double)w->now_ns + ns;

	for (int r = 0; r < w->rails; r++) {
		if (w->estimate.rail[r].in_flight)
			continue;
		rail_estimate_posted(&w->estimate, r, w->now_ns);
		rail_estimate_posted(&w->estimate, r, w->now_ns);
		w->next_ns[r] = (double)w->now_ns + (double)chunk / w->bytes_per_ns[r];
	}
	for (;;) {
		int next = 0;

		for (int r = 1; r < w->rails; r++)
			next = w->next_ns[r] < w->next_ns[next] ? r : next;
		if (w->next_ns[next] > end)
			break;
		w->now_ns = (uint64_t)w->next_ns[next];
		rail_estimate_done(&w->estimate, next, w->now_ns, 100, chunk);
		rail_estimate_posted(&w->estimate, next, w->now_ns);
		w->next_ns[next] += (double)chunk / w->bytes_per_ns[next];
	}
	w->now_ns = (uint64_t)end;
}

#define assert_share(w, r, want, off) \
	do { \
		double s_ = share(w, r); \
		if (fabs(s_ - (want)) > (off)) \
			fail_msg("rail %d has %.4f, should be %.4f", r, s_, (double)(want)); \
	} while (0)

static const double three_to_one[] = { 0.75, 0.25 };
static const uint64_t right[] = { 750000000, 250000000 }, even[] = { 1000000000, 1000000000 };
static const uint64_t wrong[] = { 1000000, 1000000000 };

static void test_starts(void **state)
{
	static const uint64_t none[] = { 0, 0 }, some[] = { 5, 0 };
	struct world w = world_make(2, 0, three_to_one);
	uint8_t weight[RAIL_MAX];

	(void)state;
	start(&w, right);
	rail_estimate_weights(&w.estimate, weight);
	assert_int_equal(weight[0], 255);
	assert_int_equal(weight[1], 85);
	/* A rail of unknown rate: even.  All without limit: even for ever. */
	start(&w, some);
	rail_estimate_weights(&w.estimate, weight);
	assert_int_equal(weight[0], weight[1]);
	assert_true(!w.estimate.unlimited);
	start(&w, none);
	assert_true(w.estimate.unlimited);
	ping(&w, 1 << 20, 100);
	rail_estimate_weights(&w.estimate, weight);
	assert_int_equal(weight[0], weight[1]);
}

static void test_converges(void **state)
{
	static const uint64_t *const starts[] = { right, even, wrong };

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct world w = world_make(2, 2000, three_to_one);

		start(&w, starts[i]);
		ping(&w, 1 << 20, 300);
		assert_share(&w, 0, 0.75, 0.01);
		start(&w, starts[i]);
		stream(&w, 65536, 100e6);
		assert_share(&w, 0, 0.75, 0.01);
	}
}

/* Right shares stay: every message is cut nearly so. */
static void test_stays(void **state)
{
	struct world w = world_make(2, 2000, three_to_one);

	(void)state;
	start(&w, even);
	ping(&w, 1 << 20, 300);
	for (int i = 0; i < 1000; i++) {
		ping(&w, 1 << 20, 1);
		assert_share(&w, 0, 0.75, 0.01);
	}
	for (int i = 0; i < 1000; i++) {
		stream(&w, 65536, 1e6);
		assert_share(&w, 0, 0.75, 0.02);
	}
}

/* A rail that becomes slow, nearly nothing, and fast again is followed both ways. */
static void test_follows(void **state)
{
	static const double speeds[] = { 0.25, 0.001, 2.0, 0.25 };
	struct world w = world_make(2, 2000, three_to_one);

	(void)state;
	start(&w, right);
	for (int i = 0; i < 4; i++) {
		w.bytes_per_ns[1] = speeds[i];
		ping(&w, 4 << 20, 600);
		assert_share(&w, 1, speeds[i] / (0.75 + speeds[i]), 0.01);
	}
}

/* A process without a core finds completions late and together, which must not change rates. */
static void test_lateness_says_nothing(void **state)
{
	struct world w = world_make(2, 2000, three_to_one);
	uint64_t dice = 1, late;

	(void)state;
	start(&w, right);
	ping(&w, 1 << 20, 300);
	for (int i = 0; i < 10000; i++) {
		late = (uint64_t)(random_of(&dice) * 10000000);
		for (int r = 0; r < 2; r++)
			rail_estimate_posted(&w.estimate, r, w.now_ns);
		w.now_ns += 50000;
		rail_estimate_done(&w.estimate, 1, w.now_ns, 100, 1000);
		w.now_ns += late;
		rail_estimate_done(&w.estimate, 0, w.now_ns, late, 37500);
		/* A poll finds two. */
		if (i % 2)
			continue;
		rail_estimate_posted(&w.estimate, 0, w.now_ns);
		rail_estimate_posted(&w.estimate, 0, w.now_ns);
		w.now_ns += 10 + late;
		rail_estimate_done(&w.estimate, 0, w.now_ns, late, 37500);
		rail_estimate_done(&w.estimate, 0, w.now_ns, late, 37500);
	}
	assert_true(w.estimate.rail[0].rate < 0.76 && w.estimate.rail[0].rate > 0.7);
}

/* Polls are rarer than completions; each finds all that came since the last one. */
static void test_rare_looks(void **state)
{
	enum { LOOK_NS = 1000000, CHUNK = 65536 };
	struct world w = world_make(2, 0, three_to_one);

	(void)state;
	start(&w, even);
	for (int r = 0; r < 2; r++) {
		w.next_ns[r] = (double)w.now_ns + CHUNK / w.bytes_per_ns[r];
		for (int i = 0; i < 16; i++)
			rail_estimate_posted(&w.estimate, r, w.now_ns);
	}
	for (int i = 0; i < 1000; i++) {
		w.now_ns += LOOK_NS;
		for (int r = 0; r < 2; r++)
			for (; w.next_ns[r] <= (double)w.now_ns; w.next_ns[r] += CHUNK / w.bytes_per_ns[r]) {
				rail_estimate_posted(&w.estimate, r, w.now_ns);
				rail_estimate_done(&w.estimate, r, w.now_ns, LOOK_NS, CHUNK);
			}
	}
	assert_share(&w, 0, 0.75, 0.03);
}

static void test_eight(void **state)
{
	static const double rate[] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	static const uint64_t nominal[] = { 1, 1, 1, 1, 1, 1, 1, 1 };
	struct world w = world_make(8, 1000, rate);

	(void)state;
	start(&w, nominal);
	ping(&w, 8 << 20, 300);
	for (int r = 0; r < 8; r++)
		assert_share(&w, r, rate[r] / 36, 0.01);
}

/* Rails whose rates vary from message to message: shares are what they are on average. */
static void noise_on(const double *rate, double noise, double most)
{
	struct world w = world_make(2, 2000, rate);
	double far = 0;
	uint64_t dice = 1;

	start(&w, even);
	for (int i = 0; i < 1000; i++) {
		uint8_t weight[RAIL_MAX];

		for (int r = 0; r < 2; r++)
			w.bytes_per_ns[r] = rate[r] * (1 - noise + 2 * noise * random_of(&dice));
		ping(&w, 1 << 20, 1);
		rail_estimate_weights(&w.estimate, weight);
		if (i >= 10)
			far += fabs((double)weight[0] / (weight[0] + weight[1]) -
				    rate[0] / (rate[0] + rate[1])) / 990;
	}
	if (far > most)
		fail_msg("rails %g:%g, noise %g: shares are off by %g", rate[0], rate[1], noise, far);
}

static void test_noise(void **state)
{
	static const double one_to_one[] = { 0.5, 0.5 };

	(void)state;
	noise_on(one_to_one, 0.2, 0.01);
	noise_on(one_to_one, 0.6, 0.03);
	noise_on(three_to_one, 0.2, 0.015);
	noise_on(three_to_one, 0.6, 0.04);
}

/*
 * Both directions of rails of 1000 and 250 Mbit/s: now and then a period of the slow rail shows any
 * rate, since its acknowledgements waited.  Shares never return to even ones.
 */
static void test_wild_periods(void **state)
{
	enum { BYTES = 4 << 20 };
	struct world w = world_make(2, 0, (const double[]){ 0.12, 0.03 });
	uint64_t dice = 1;

	(void)state;
	start(&w, even);
	for (int i = 0; i < 1000; i++) {
		static const double rate[] = { 0.12, 0.03 };
		double at[2];
		uint8_t weight[RAIL_MAX];

		for (int r = 0; r < 2; r++) {
			double times = i % 7 ? 1 : 0.2 + 19 * random_of(&dice);

			at[r] = (double)w.now_ns + BYTES / (rate[r] * times);
			rail_estimate_posted(&w.estimate, r, w.now_ns);
		}
		for (int k = 0; k < 2; k++) {
			int r = k ^ (at[1] < at[0]);

			rail_estimate_done(&w.estimate, r, (uint64_t)at[r], 100, BYTES);
			w.now_ns = (uint64_t)at[r];
		}
		rail_estimate_weights(&w.estimate, weight);
		if (i >= 10 && weight[1] > RAIL_SHARE_MAX / 2)
			fail_msg("shares are %u:%u after message %d", weight[0], weight[1], i);
	}
}

/*
 * Acknowledgements that wait for the other direction's data come in bunches, with no poll
 * late: shares stay near the right ones all the time, not on average only.
 */
static void test_bunches(void **state)
{
	enum { CHUNK = 65536, AHEAD = 64, MS = 1000000 };
	static const double rate[] = { 0.0046, 0.0046 / 3 };	/* 37 and 12 Mbit/s */
	struct world w = world_make(2, 0, rate);
	double carried[2] = { 0 }, next_bunch[2] = { 0 }, most = 0;
	uint64_t dice = 1;

	(void)state;
	start(&w, even);
	for (int r = 0; r < 2; r++)
		for (int i = 0; i < AHEAD; i++)
			rail_estimate_posted(&w.estimate, r, w.now_ns);
	for (int ms = 0; ms < 300000; ms++) {
		w.now_ns += MS;
		for (int r = 0; r < 2; r++) {
			carried[r] += rate[r] * MS;
			if (ms < next_bunch[r])
				continue;
			next_bunch[r] = ms + 50 + 300 * random_of(&dice);
			for (; carried[r] >= CHUNK; carried[r] -= CHUNK) {
				rail_estimate_posted(&w.estimate, r, w.now_ns);
				rail_estimate_done(&w.estimate, r, w.now_ns, 100, CHUNK);
			}
		}
		if (ms > 100000 && fabs(share(&w, 0) - 0.75) > most)
			most = fabs(share(&w, 0) - 0.75);
	}
	if (most > 0.01)
		fail_msg("shares are off by up to %g", most);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_starts),
		cmocka_unit_test(test_converges),
		cmocka_unit_test(test_stays),
		cmocka_unit_test(test_follows),
		cmocka_unit_test(test_lateness_says_nothing),
		cmocka_unit_test(test_rare_looks),
		cmocka_unit_test(test_eight),
		cmocka_unit_test(test_noise),
		cmocka_unit_test(test_wild_periods),
		cmocka_unit_test(test_bunches),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
