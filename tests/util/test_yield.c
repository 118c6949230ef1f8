/* test_yield.c - rg_yield where a thread that computes has the core. */
#include "cmocka_all.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/resource.h>

#include "util/clock.h"

static _Atomic bool stop;

static void *compute(void *arg)
{
	(void)arg;
	while (!atomic_load_explicit(&stop, memory_order_relaxed))
		;
	return NULL;
}

/* How often this thread slept; yields are counted as involuntary. */
static long slept(void)
{
	struct rusage r;

	assert_int_equal(getrusage(RUSAGE_THREAD, &r), 0);
	return r.ru_nvcsw;
}

/*
 * After some yields it sleeps instead of giving time slices away: no time is judged, a minute is a
 * hang.
 */
static void test_beside_one_that_computes(void **state)
{
	const uint64_t until = rg_now_ns() + 60000000000u;
	cpu_set_t set;
	pthread_t thread;
	long before;
	int cpu;

	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	for (cpu = 0; !CPU_ISSET(cpu, &set); cpu++)
		;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	assert_int_equal(sched_setaffinity(0, sizeof(set), &set), 0);
	assert_int_equal(pthread_create(&thread, NULL, compute, NULL), 0);
	before = slept();
	while (slept() < before + 8 && rg_now_ns() < until)
		rg_yield();
	assert_true(slept() >= before + 8);
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_beside_one_that_computes) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
