/*
 * noise_read.h - the kernel's counters of this process: time without a core, involuntary switches,
 * and time that a hypervisor took from the machine.
 */
#ifndef BENCH_NOISE_READ_H
#define BENCH_NOISE_READ_H

#include <stdbool.h>
#include <stdint.h>

/* A counter that this kernel does not have. */
#define NOISE_UNKNOWN UINT64_MAX

/* Files that are open for the whole job; -1: not readable. */
struct noise_files { int schedstat, stat; };

/* root: "/proc". */
void noise_files_open(struct noise_files *f, const char *root);
void noise_files_close(struct noise_files *f);

/*
 * Figures of the main thread, which measures: nanoseconds that it has waited for a core while it was ready
 * to run, and how often it got one, after a wait or a sleep.  Other threads of the process, such as the
 * progress thread, are not counted.
 */
struct noise_waits { uint64_t ns, slices; };
struct noise_waits noise_waits(const struct noise_files *f);
/* Times that a core was taken from the calling thread. */
uint64_t noise_switches(void);
/* Ticks of 10 ms, of all cores of the machine together, that a hypervisor gave to other guests. */
uint64_t noise_steal_ticks(const struct noise_files *f);
/* Real time, as the kernel's counters have it. */
uint64_t noise_now_ns(void);

/* The difference of two readings; NOISE_UNKNOWN if one is unknown. */
static inline uint64_t noise_since(uint64_t before, uint64_t after)
{
	if (before == NOISE_UNKNOWN || after == NOISE_UNKNOWN)
		return NOISE_UNKNOWN;
	return after > before ? after - before : 0;
}

#endif
