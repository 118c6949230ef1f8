/*
 * test_clocks.c - synchronised clocks and rounds of a common start, on modelled clocks and
 * messages.
 *
 * Each rank is a thread with a time of its own, in ns of true time; a message carries its time of
 * arrival, and a receiver is not earlier than that (Lamport).  So true time is known everywhere and
 * depends on the seed alone.  A rank sees its clock only: shifted, and too fast or too slow.
 */
#include "cmocka_all.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "bench/clocks.h"
#include "bench/roundtime.h"
#include "random.h"

enum {
	RANKS_MAX = 8, QUEUE = 64, VALUES_MAX = RANKS_MAX,
	LATENCY_NS = 1000, READING_NS = 20, SEND_NS = 100,
	/*
	 * The promise for a sample: reading a clock, 20 ns at the start and at the end, and the part
	 * of the jitter in the quickest of 100 ping-pongs, on three levels of the tree.
	 */
	BOUND_NS = 250,
	ROUNDS = 200,
	JUMP_NS = 50000,
};

struct message { uint64_t arrival, value[VALUES_MAX]; };
struct queue { struct message m[QUEUE]; unsigned head, tail; };

struct world;
struct member {
	struct world *w;
	int rank;
	uint64_t true_ns, seed, key;
	int64_t shift_ns;
	double drift;			/* of the clock against true time */
	pthread_cond_t arrived;
	struct clocks clocks;
	struct roundtime round;
	/* Results. */
	struct roundtime_sample sample[ROUNDS];
	uint64_t own[ROUNDS];		/* by barrier */
	int samples;
	uint64_t residual[4];
};

struct world {
	int n;
	bool jitter;			/* messages of the synchronisation; never of the run */
	pthread_mutex_t lock;
	struct queue q[RANKS_MAX][RANKS_MAX];
	struct member m[RANKS_MAX];
	int delayed, delay_every;	/* the rank that is late, in one round of so many */
	uint64_t delay_ns;
};

static struct world world;

/* ---- A member's means ---------------------------------------------------------------------- */

static uint64_t member_clock(struct member *m)
{
	double passed = (double)(m->true_ns - UINT64_C(1000000000000));

	return m->true_ns + (uint64_t)(m->shift_ns + (int64_t)(m->drift * passed));
}

static uint64_t member_now(void *user)
{
	struct member *m = user;

	m->true_ns += READING_NS;
	return member_clock(m);
}

static void member_relax(void *user, uint64_t now_ns, uint64_t due_ns)
{
	struct member *m = user;
	uint64_t left = due_ns - now_ns;

	/* Not beyond the due time: clocks run at most 1e-4 too slowly. */
	m->true_ns += left > 1000 ? left - left / 1000 - 100 : 5;
}

/* Low to high ranks: up to 3 us late, the other way up to 0.3 us; one of ten 20 us. */
static uint64_t jitter(struct member *m, int to)
{
	uint64_t most = to > m->rank ? 3000 : 300;

	if (random_below(&m->seed, 10) == 0)
		most = 20000;
	return random_below(&m->seed, most);
}

static void post(struct member *m, int to, const uint64_t *value, int count, uint64_t late)
{
	struct queue *q = &m->w->q[m->rank][to];
	struct message *msg;

	m->true_ns += SEND_NS;
	pthread_mutex_lock(&m->w->lock);
	if (q->tail - q->head == QUEUE)
		abort();	/* no rank runs so far ahead */
	msg = &q->m[q->tail++ % QUEUE];
	msg->arrival = m->true_ns + LATENCY_NS + late;
	memcpy(msg->value, value, (size_t)count * sizeof(value[0]));
	pthread_cond_signal(&m->w->m[to].arrived);
	pthread_mutex_unlock(&m->w->lock);
}

static void member_send(void *user, int to, const uint64_t *value, int count)
{
	struct member *m = user;

	post(m, to, value, count, m->w->jitter ? jitter(m, to) : 0);
}

static void member_receive(void *user, int from, uint64_t *value, int count)
{
	struct member *m = user;
	struct queue *q = &m->w->q[from][m->rank];
	struct message *msg;

	pthread_mutex_lock(&m->w->lock);
	while (q->head == q->tail)
		pthread_cond_wait(&m->arrived, &m->w->lock);
	msg = &q->m[q->head++ % QUEUE];
	memcpy(value, msg->value, (size_t)count * sizeof(value[0]));
	if (msg->arrival > m->true_ns)
		m->true_ns = msg->arrival;
	pthread_mutex_unlock(&m->w->lock);
}

/* The values of rank 0, at all ranks. */
static void spread(struct member *m, uint64_t *value, int count)
{
	for (int i = 1; i < m->w->n && m->rank == 0; i++)
		member_send(m, i, value, count);
	if (m->rank)
		member_receive(m, 0, value, count);
}

static void member_most(void *user, uint64_t *value, int count)
{
	struct member *m = user;
	uint64_t other[VALUES_MAX];

	if (m->rank)
		member_send(m, 0, value, count);
	for (int i = 1; i < m->w->n && m->rank == 0; i++) {
		member_receive(m, i, other, count);
		for (int k = 0; k < count; k++)
			value[k] = other[k] > value[k] ? other[k] : value[k];
	}
	spread(m, value, count);
}

/* ---- The operation, whose time is known --------------------------------------------------- */

static int steps_of(int n)
{
	int steps = 0;

	while (1 << steps < n)
		steps++;
	return steps;
}

/* A dissemination: in each step a message there and one from elsewhere. */
static void operation(struct member *m)
{
	uint64_t value = 1;

	for (int k = 0; k < steps_of(m->w->n); k++) {
		int by = 1 << k, n = m->w->n;

		post(m, (m->rank + by) % n, &value, 1, 0);
		member_receive(m, (m->rank - by + n) % n, &value, 1);
	}
}

/* The time of a run whose ranks all start at the same time. */
static uint64_t operation_ns(int n)
{
	return (uint64_t)steps_of(n) * (SEND_NS + LATENCY_NS);
}

static void delay(struct member *m, int round)
{
	if (m->w->delay_every && m->rank == m->w->delayed && round % m->w->delay_every == 0)
		m->true_ns += m->w->delay_ns;
}

/* ---- Jobs ---------------------------------------------------------------------------------- */

static struct clocks_link link_of(struct member *m)
{
	return (struct clocks_link){
		.rank = m->rank, .size = m->w->n, .user = m, .now = member_now,
		.relax = member_relax, .send = member_send, .receive = member_receive,
		.most = member_most,
	};
}

static void member_open(struct member *m)
{
	struct clocks_link link = link_of(m);

	assert_int_equal(clocks_open(&m->clocks, &link, m->key), 0);
}

static void *open_only(void *user)
{
	member_open(user);
	return NULL;
}

static void *by_rounds(void *user)
{
	struct member *m = user;
	int batches = 0;

	member_open(m);
	roundtime_open(&m->round, &m->clocks, READING_NS);
	for (int i = 0; m->samples < ROUNDS && !roundtime_is_vain(&m->round); i++) {
		uint64_t begin, end;

		/* 20 batches: offsets are measured again after each. */
		if (m->samples == 10 * batches) {
			clocks_check(&m->clocks);
			roundtime_pause(&m->round);
			batches++;
		}
		delay(m, i);
		begin = roundtime_start(&m->round);
		operation(m);
		end = member_now(m);
		m->samples += roundtime_end(&m->round, begin, end, &m->sample[m->samples]);
	}
	return NULL;
}

/* The largest of the ranks' own times, after a barrier. */
static void *by_barrier(void *user)
{
	struct member *m = user;

	for (int i = 0; i < ROUNDS; i++) {
		uint64_t none = 0, begin;

		member_most(m, &none, 1);
		delay(m, i);
		begin = member_now(m);
		operation(m);
		m->own[i] = member_now(m) - begin - READING_NS;
		member_most(m, &m->own[i], 1);
	}
	return NULL;
}

/* Offsets after a second, after a jump of rank 1's clock, again, and with new models. */
static void *by_jump(void *user)
{
	struct member *m = user;

	member_open(m);
	for (int i = 0; i < 4; i++) {
		if (i == 3)
			clocks_renew(&m->clocks);
		m->true_ns += 1000000000;
		if (i == 1 && m->rank == 1)
			m->shift_ns += JUMP_NS;
		m->residual[i] = clocks_check(&m->clocks);
	}
	return NULL;
}

static void world_set(int n, uint64_t seed)
{
	memset(&world, 0, sizeof(world));
	world.n = n;
	world.jitter = true;
	pthread_mutex_init(&world.lock, NULL);
	for (int i = 0; i < n; i++) {
		struct member *m = &world.m[i];

		*m = (struct member){ .w = &world, .rank = i, .seed = seed * 100 + (uint64_t)i,
				      .key = 1 + (uint64_t)i };
		m->true_ns = UINT64_C(1000000000000) + random_below(&m->seed, 50000);
		/* Up to an hour apart, and 50 us a second. */
		m->shift_ns = (int64_t)random_below(&m->seed, UINT64_C(3600000000000));
		m->drift = ((double)random_below(&m->seed, 101) - 50) * 1e-6;
		pthread_cond_init(&m->arrived, NULL);
	}
}

static void world_run(void *(*run)(void *))
{
	pthread_t thread[RANKS_MAX];

	for (int i = 0; i < world.n; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, run, &world.m[i]), 0);
	for (int i = 0; i < world.n; i++)
		pthread_join(thread[i], NULL);
}

static void world_close(void)
{
	for (int i = 0; i < world.n; i++)
		clocks_close(&world.m[i].clocks);
}

/* ---- Arithmetic ------------------------------------------------------------------------------ */

static void test_reading(void **state)
{
	struct clocks_reading r = clocks_reading_of(1000, 501200, 1400);

	(void)state;
	assert_int_equal(r.at_ns, 1200);
	assert_int_equal(r.offset_ns, 500000);
	assert_int_equal(r.trip_ns, 400);
	assert_false(clocks_reading_is_same(&r));
	r = clocks_reading_of(1000, 1000, 1401);	/* at the ends of the trip, */
	assert_true(clocks_reading_is_same(&r));
	r = clocks_reading_of(1000, 1401, 1401);
	assert_true(clocks_reading_is_same(&r));
	r = clocks_reading_of(1000, 998, 1401);		/* and outside */
	assert_false(clocks_reading_is_same(&r));
	r = clocks_reading_of(1000000, 200, 1000100);	/* the other clock is behind */
	assert_int_equal(r.offset_ns, 200 - 1000050);
}

static void test_fit(void **state)
{
	/* A clock that gains 10 us a second on the other one. */
	struct clocks_reading a = { .at_ns = 5000000000, .offset_ns = 700 },
		b = { .at_ns = 6000000000, .offset_ns = 700 - 10000 };
	struct clocks_model m = clocks_fit(&a, &b);

	(void)state;
	assert_int_equal(clocks_to_global(&m, 6000000000), 6000000000 - 9300);
	assert_int_equal(clocks_to_global(&m, 8000000000), 8000000000 - 29300);
	assert_int_equal(clocks_to_global(&m, 5000000000), 5000000700);
	for (uint64_t local = 1; local < UINT64_C(100000000000); local = local * 3 + 1) {
		uint64_t back = clocks_to_local(&m, clocks_to_global(&m, local));

		assert_in_range(back + 1, local, local + 2);
	}
	/* Readings at one time have no drift; one of more than 1e-3 is none. */
	b.at_ns = a.at_ns + 1000;
	m = clocks_fit(&a, &b);
	assert_int_equal(clocks_to_global(&m, 9000000000), 9000000000 - 9300);
	b = (struct clocks_reading){ .at_ns = 5002000000, .offset_ns = 3000000 };
	m = clocks_fit(&a, &b);
	assert_int_equal(clocks_to_global(&m, 9000000000), 9003000000);
}

static void test_suffice(void **state)
{
	(void)state;
	assert_true(clocks_suffice(50, 1000));
	assert_false(clocks_suffice(51, 1000));
	assert_true(clocks_suffice(0, 0));
	assert_false(clocks_suffice(1, 19.5));
}

/* ---- Clocks of a job --------------------------------------------------------------------- */

static void clocks_are(int count, const int *leader)
{
	for (int i = 0; i < world.n; i++) {
		assert_int_equal(world.m[i].clocks.count, count);
		assert_int_equal(world.m[i].clocks.leader, leader[i]);
	}
}

static void test_shared(void **state)
{
	static const int two[] = { 0, 0, 0, 0, 4, 4, 4, 4 },
		shifted[] = { 0, 0, 0, 0, 4, 5, 4, 4 }, unknown[] = { 0, 1, 0, 0, 4, 4, 4, 4 };

	(void)state;
	for (int with = 0; with < 3; with++) {
		world_set(8, 7);
		for (int i = 0; i < 8; i++) {
			world.m[i].key = i < 4 ? 77 : 88;
			world.m[i].shift_ns = world.m[i / 4 * 4].shift_ns;
			world.m[i].drift = world.m[i / 4 * 4].drift;
		}
		/* A time namespace; a kernel without a name. */
		if (with == 1)
			world.m[5].shift_ns += 3600000000000;
		if (with == 2)
			world.m[1].key = 0;
		world_run(open_only);
		clocks_are(with ? 3 : 2, with == 0 ? two : with == 1 ? shifted : unknown);
		/* All have rank 0's time. */
		for (int i = 0; i < 8; i++) {
			struct member *m = &world.m[i];
			int64_t off;

			m->true_ns = world.m[0].true_ns;
			off = (int64_t)(clocks_to_global(&m->clocks.model, member_clock(m)) -
					member_clock(&world.m[0]));
			assert_in_range(off + BOUND_NS, 0, 2 * BOUND_NS);
		}
		world_close();
	}
}

static void test_residual(void **state)
{
	(void)state;
	world_set(5, 3);
	world_run(by_jump);
	for (int i = 0; i < 5; i++) {
		const uint64_t *r = world.m[i].residual;

		/*
		 * Drift of 100 ms, over a second; the jump; the jump as a drift over 2 s, the offset
		 * being right again; drift of 100 ms anew.
		 */
		assert_true(r[0] < 10 * BOUND_NS);
		assert_in_range(r[1], JUMP_NS - 10 * BOUND_NS, JUMP_NS + 10 * BOUND_NS);
		assert_in_range(r[2], JUMP_NS / 2 - 5 * BOUND_NS, JUMP_NS / 2 + 5 * BOUND_NS);
		assert_true(r[3] < 10 * BOUND_NS);
		assert_memory_equal(r, world.m[0].residual, sizeof(world.m[0].residual));
	}
	world_close();
}

/* ---- Rounds ------------------------------------------------------------------------------ */

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

static int compare_times(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static uint64_t median_of(const uint64_t *times)
{
	uint64_t sorted[ROUNDS];

	memcpy(sorted, times, sizeof(sorted));
	qsort(sorted, ROUNDS, sizeof(sorted[0]), compare_times);
	return sorted[ROUNDS / 2];
}

/* Starts 400 ns apart, ends 100 ns. */
static void *end_only(void *user)
{
	struct member *m = user;
	uint64_t begin = 5000000 + 400 * (uint64_t)m->rank;

	m->clocks.link = link_of(m);
	m->round.clocks = &m->clocks;
	assert_true(roundtime_end(&m->round, begin, 5001000 + 100 * (uint64_t)m->rank,
				  &m->sample[0]));
	return NULL;
}

static void test_end(void **state)
{
	(void)state;
	world_set(2, 1);
	world_run(end_only);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(world.m[i].sample[0].duration_ns, 1100);
		assert_int_equal(world.m[i].sample[0].local_ns, 1000);
		assert_int_equal(world.m[i].sample[0].skew_ns, 400);
	}
}

/* Every sample is the operation's time, on all ranks. */
static void samples_are_true(uint64_t *worst)
{
	for (int i = 0; i < world.n; i++) {
		struct member *m = &world.m[i];

		assert_int_equal(m->samples, ROUNDS);
		assert_int_equal(m->round.voided, world.m[0].round.voided);
		assert_memory_equal(m->sample, world.m[0].sample, sizeof(m->sample));
		for (int k = 0; k < ROUNDS; k++) {
			uint64_t off = distance(m->sample[k].duration_ns, operation_ns(world.n));

			*worst = off > *worst ? off : *worst;
			assert_true(off <= BOUND_NS);
			assert_true(m->sample[k].skew_ns <= BOUND_NS);
			assert_true(m->sample[k].local_ns <= m->sample[k].duration_ns + 2);
		}
	}
}

static void test_recovered(void **state)
{
	uint64_t worst = 0, nearest = UINT64_MAX;

	(void)state;
	for (uint64_t seed = 1; seed <= 3; seed++)
		for (int n = 2; n <= RANKS_MAX; n += n < 5 ? 1 : 3) {
			uint64_t off;

			world_set(n, seed);
			world_run(by_rounds);
			samples_are_true(&worst);
			world_close();
			/* The same ranks and messages, by a barrier. */
			world_set(n, seed);
			world_run(by_barrier);
			off = distance(median_of(world.m[0].own), operation_ns(n));
			assert_true(off > 4 * BOUND_NS);
			nearest = off < nearest ? off : nearest;
		}
	printf("common start: off by at most %d ns; the median after a barrier by %d or more\n",
	       (int)worst, (int)nearest);
}

static void test_delayed(void **state)
{
	uint64_t worst = 0, most = 0;

	(void)state;
	world_set(8, 2);
	world.delayed = 3;
	world.delay_every = 7;
	world.delay_ns = 400000;
	world_run(by_rounds);
	samples_are_true(&worst);
	assert_true(world.m[0].round.voided >= ROUNDS / 7);
	world_close();
	world_set(8, 2);
	world.delayed = 3;
	world.delay_every = 7;
	world.delay_ns = 400000;
	world_run(by_barrier);
	for (int k = 0; k < ROUNDS; k++)
		most = world.m[0].own[k] > most ? world.m[0].own[k] : most;
	/* The other ranks waited, and their own times say so. */
	assert_true(most > 300000);
}

/* A rank that is always late: an end, the same on all ranks. */
static void test_vain(void **state)
{
	(void)state;
	world_set(3, 4);
	world.delayed = 2;
	world.delay_every = 1;
	world.delay_ns = 1000000000;
	world_run(by_rounds);
	for (int i = 0; i < 3; i++) {
		/* The first start is agreed on after the delay. */
		assert_in_range(world.m[i].samples, 0, 1);
		assert_true(roundtime_is_vain(&world.m[i].round));
		assert_int_equal(world.m[i].round.voided, world.m[0].round.voided);
		assert_true(world.m[i].round.voided < 200);
	}
	world_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reading),
		cmocka_unit_test(test_fit),
		cmocka_unit_test(test_suffice),
		cmocka_unit_test(test_shared),
		cmocka_unit_test(test_residual),
		cmocka_unit_test(test_end),
		cmocka_unit_test(test_recovered),
		cmocka_unit_test(test_delayed),
		cmocka_unit_test(test_vain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
