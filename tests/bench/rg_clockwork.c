/*
 * clockwork - windows that take a known time: 4 ms in the first pair, 12 ms in
 * the second; every tenth takes three times as long.  So every number of a row
 * is known beforehand.  With --shared FILE all pairs share one resource: a
 * window takes 4 ms and a lock that only one pair can hold.
 */
#include <fcntl.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

static struct clockwork_values { const char *shared; } values;

static const struct opt rows[] = {
	{ .name = "shared", .type = OPT_TEXT, .offset = offsetof(struct clockwork_values, shared),
	  .arg = "FILE", .help = "a lock that each window needs" },
	{ .name = NULL },
};

static void window_shared(void)
{
	static int fd = -1;
	struct timespec t = { .tv_nsec = 4000000 };

	if (fd < 0)
		fd = open(values.shared, O_RDWR | O_CREAT, 0600);
	flock(fd, LOCK_EX);
	nanosleep(&t, NULL);
	flock(fd, LOCK_UN);
}

static void clockwork_run(struct bench *b)
{
	static int runs;
	long ms = b->pair == 0 ? 4 : 12;
	struct timespec t = { .tv_nsec = (runs++ % 10 == 9 ? 3 : 1) * ms * 1000000 };

	if (b->side == 0 && values.shared)
		window_shared();
	else if (b->side == 0)
		nanosleep(&t, NULL);
}

const struct bench_def bench_def = {
	.name = "clockwork",
	.summary = "Known times",
#ifdef CLOCKWORK_RATE
	.metric = BENCH_BANDWIDTH,
#else
	.metric = BENCH_LATENCY,
#endif
	.layout = BENCH_PAIRS,
	.min_ranks = 2,
	.messages = bench_window,
	.run = clockwork_run,
	.options = rows,
	.values = &values,
};
