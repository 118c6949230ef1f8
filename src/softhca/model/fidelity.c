/* fidelity.c - can this machine keep to the model? */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "softhca/base/base.h"
#include "util/clock.h"
#include "softhca/model/fidelity.h"
#include "util/units.h"

/* ---- Cores --------------------------------------------------------------- */

unsigned hca_cpus_count(const char *text)
{
	unsigned count = 0;
	char *end;

	for (;;) {
		unsigned long first = strtoul(text, &end, 10), last = first;

		if (end == text)
			return count;
		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		if (last >= first)
			count += (unsigned)(last - first + 1);
		if (*end != ',')
			return count;
		text = end + 1;
	}
}

static bool read_line(const char *path, char *buf, int size)
{
	FILE *f = fopen(path, "re");
	bool good = f && fgets(buf, size, f);

	if (f)
		fclose(f);
	return good;
}

unsigned hca_cores(void)
{
	long online = sysconf(_SC_NPROCESSORS_ONLN);
	unsigned cores = online > 0 ? (unsigned)online : 1, some;
	unsigned long long quota, period;
	char text[4096];

	/* A container's share (cgroup v2, as seen from inside). */
	if (read_line("/sys/fs/cgroup/cpuset.cpus.effective", text, sizeof(text))) {
		some = hca_cpus_count(text);
		if (some && some < cores)
			cores = some;
	}
	if (read_line("/sys/fs/cgroup/cpu.max", text, sizeof(text)) &&
	    sscanf(text, "%llu %llu", &quota, &period) == 2 && period) {
		some = (unsigned)(quota / period);
		if (some < cores)
			cores = some ? some : 1;
	}
	return cores;
}

/* Runnable processes, this one included. */
static unsigned runnable(void)
{
	unsigned running = 0;
	char text[128];

	if (read_line("/proc/loadavg", text, sizeof(text)) &&
	    sscanf(text, "%*s %*s %*s %u/", &running) != 1)
		running = 0;
	return running;
}

/* ---- Copying ------------------------------------------------------------- */

static uint64_t copy_rate;

static void measure_copy(void)
{
	enum { BLOCK = 1 << 20, BLOCKS = 16, ROUNDS = 2 };
	char *from = malloc(BLOCK * BLOCKS), *to = malloc(BLOCK * BLOCKS);
	uint64_t best = UINT64_MAX, start, took;
	int i;

	if (from && to) {
		memset(from, 1, BLOCK * BLOCKS);
		memset(to, 2, BLOCK * BLOCKS);
		/* The shortest of some, since this process may lose its core in between. */
		for (i = 0; i < BLOCKS * ROUNDS; i++) {
			start = rg_now_ns();
			memcpy(to + (size_t)(i % BLOCKS) * BLOCK,
			       from + (size_t)(i % BLOCKS) * BLOCK, BLOCK);
			__asm__ __volatile__("" : : "r"(to) : "memory");
			took = rg_now_ns() - start;
			if (took < best)
				best = took;
		}
		copy_rate = BLOCK * 1000000000ull / (best ? best : 1);
	}
	free(from);
	free(to);
}

uint64_t hca_copy_rate(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, measure_copy);
	return copy_rate;
}

/* ---- Judging ------------------------------------------------------------- */

uint64_t hca_adapter_rate(const struct hca_spec *s)
{
	const uint64_t bus = s->bus_read < s->bus_write ? s->bus_read : s->bus_write;
	uint64_t rate = 0;

	for (uint64_t i = 0; i < s->ports; i++)
		rate += s->rate[i];
	if (s->cap && (!rate || s->cap < rate))
		rate = s->cap;
	if (bus && (!rate || bus < rate))
		rate = bus;
	return rate;
}

int hca_fidelity(const struct hca_spec *s, unsigned processes, char *buf, size_t size)
{
	const uint64_t rate = s->timed ? hca_adapter_rate(s) : 0;
	const unsigned cores = hca_cores(), running = runnable();
	char number[RG_UNIT_TEXT], other[RG_UNIT_TEXT];
	uint64_t copy;

	buf[0] = '\0';
	if (!s->timed)
		return 0;
	copy = rate ? hca_copy_rate() : 0;
	if (copy && rate > copy / 4) {
		snprintf(buf, size, "%s per adapter and direction cannot be kept here: this machine "
			 "copies %s, a quarter of which can", rg_format_rate(rate, number,
			 sizeof(number)), rg_format_rate(copy / 100000000 * 100000000, other,
			 sizeof(other)));
		return 1;
	}
	if (running > processes)
		processes = running;
	if (processes > cores) {
		snprintf(buf, size, "latencies cannot be kept now: %u processes share %u "
			 "core%s", processes, cores, cores > 1 ? "s" : "");
		return 1;
	}
	return 0;
}
