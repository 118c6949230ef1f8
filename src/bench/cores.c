/* cores.c - the cores of a set of CPUs, by the kernel's list of each CPU's siblings. */
#include "config.h"

#include <stdio.h>

#include "bench/cores.h"

/* The lowest CPU of the core of `cpu`; -1: not known. */
static int core_of(const char *root, int cpu)
{
	char path[512];
	int lowest = -1;
	FILE *in;

	snprintf(path, sizeof(path), "%s/cpu%d/topology/thread_siblings_list", root, cpu);
	in = fopen(path, "re");
	/* "0,64" or "0-1": the first is the lowest. */
	if (in && (fscanf(in, "%d", &lowest) != 1 || lowest < 0 || lowest >= CPU_SETSIZE))
		lowest = -1;
	if (in)
		fclose(in);
	return lowest;
}

bool cores_of(const char *root, const cpu_set_t *cpus, cpu_set_t *cores)
{
	CPU_ZERO(cores);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		int core = CPU_ISSET(cpu, cpus) ? core_of(root, cpu) : cpu;

		if (core < 0) {
			CPU_ZERO(cores);
			return false;
		}
		if (CPU_ISSET(cpu, cpus))
			CPU_SET(core, cores);
	}
	return true;
}
