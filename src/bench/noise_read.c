/*
 * noise_read.c - the kernel's counters of this process.
 *
 * A reading is one pread of an open file, which takes about a microsecond; /proc/stat takes longer
 * on a machine with many cores.
 */
#include "config.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "bench/noise_read.h"

static int file_open(const char *root, const char *name)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", root, name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

void noise_files_open(struct noise_files *f, const char *root)
{
	f->schedstat = file_open(root, "self/schedstat");
	f->stat = file_open(root, "stat");
}

void noise_files_close(struct noise_files *f)
{
	if (f->schedstat >= 0)
		close(f->schedstat);
	if (f->stat >= 0)
		close(f->stat);
	*f = (struct noise_files){ -1, -1 };
}

/* The beginning of a file as text; false: not readable. */
static bool file_text(int fd, char *text, size_t size)
{
	ssize_t got = fd < 0 ? -1 : pread(fd, text, size - 1, 0);

	if (got <= 0)
		return false;
	text[got] = '\0';
	return true;
}

struct noise_waits noise_waits(const struct noise_files *f)
{
	struct noise_waits w;
	uint64_t run_ns;
	char text[128];

	/* A kernel without this accounting says "0 0 0", but a process that runs has a slice. */
	if (!file_text(f->schedstat, text, sizeof(text)) ||
	    sscanf(text, "%" SCNu64 " %" SCNu64 " %" SCNu64, &run_ns, &w.ns, &w.slices) != 3 ||
	    w.slices == 0)
		return (struct noise_waits){ NOISE_UNKNOWN, NOISE_UNKNOWN };
	return w;
}

uint64_t noise_switches(void)
{
	struct rusage use;

	return getrusage(RUSAGE_THREAD, &use) ? NOISE_UNKNOWN : (uint64_t)use.ru_nivcsw;
}

uint64_t noise_steal_ticks(const struct noise_files *f)
{
	uint64_t ticks;
	char text[512];

	/* user, nice, system, idle, iowait, irq, softirq, steal */
	if (!file_text(f->stat, text, sizeof(text)) ||
	    sscanf(text, "cpu %*u %*u %*u %*u %*u %*u %*u %" SCNu64, &ticks) != 1)
		return NOISE_UNKNOWN;
	return ticks;
}

uint64_t noise_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}
