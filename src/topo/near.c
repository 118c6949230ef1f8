/* near.c - the rails nearest to a process, and their distribution among ranks. */
#include "config.h"

#include <errno.h>
#include <hwloc/linux.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/near.h"
#include "topo/list.h"

/* ---- CPUs --------------------------------------------------------------- */

/* Is it a list as Linux writes it?  hwloc accepts also "0-" and "banana". */
static bool list_is_sound(const char *list)
{
	const char *digits = "0123456789";

	for (;;) {
		size_t n = strspn(list, digits);

		if (!n || n > 6)
			return false;
		list += n;
		if (*list == '-') {
			n = strspn(++list, digits);
			if (!n || n > 6)
				return false;
			list += n;
		}
		if (*list != ',')
			return !*list;
		list++;
	}
}

int topo_cpus_get(const struct topo *t, const char *cpus, hwloc_bitmap_t set)
{
	if (cpus ? !list_is_sound(cpus) || hwloc_bitmap_list_sscanf(set, cpus) :
		   hwloc_linux_get_tid_cpubind(t->hwloc, 0, set))
		return -EINVAL;
	hwloc_bitmap_and(set, set, hwloc_topology_get_topology_cpuset(t->hwloc));
	return hwloc_bitmap_iszero(set) ? -EINVAL : 0;
}

/* The farthest path; UNKNOWN is the farthest. */
static enum topo_path path_farthest(const struct topo *t, const struct topo_spot *s,
			       hwloc_const_bitmap_t set)
{
	enum topo_path path = TOPO_SELF;

	for (int i = 0; i < t->cores_count; i++) {
		enum topo_path here;

		if (!hwloc_bitmap_intersects(t->cores[i].set, set))
			continue;
		here = topo_path(t, s, &t->cores[i].spot);
		if (here > path)
			path = here;
	}
	return path == TOPO_SELF ? TOPO_UNKNOWN : path;
}

int topo_path_cpus(const struct topo *t, const struct topo_spot *s, const char *cpus,
		   enum topo_path *out)
{
	hwloc_bitmap_t set = hwloc_bitmap_alloc();
	int rc = set ? topo_cpus_get(t, cpus, set) : -ENOMEM;

	if (!rc)
		*out = path_farthest(t, s, set);
	hwloc_bitmap_free(set);
	return rc;
}

int topo_near(const struct topo *t, const char *const *device, int count, const char *cpus,
	      uint32_t *mask)
{
	hwloc_bitmap_t set = hwloc_bitmap_alloc();
	enum topo_path best = TOPO_PATHS;
	uint32_t nearest = 0;
	int rc = -EINVAL;

	if (!set)
		return -ENOMEM;
	if (count >= 1 && count <= TOPO_RAILS_MAX)
		rc = topo_cpus_get(t, cpus, set);
	for (int i = 0; i < count && !rc; i++) {
		struct topo_spot spot;
		enum topo_path path;

		topo_find(t, device[i], &spot);
		path = path_farthest(t, &spot, set);
		if (path > TOPO_SYS)
			path = TOPO_SYS;
		if (path < best) {
			best = path;
			nearest = 0;
		}
		if (path == best)
			nearest |= UINT32_C(1) << i;
	}
	hwloc_bitmap_free(set);
	if (!rc)
		*mask = nearest;
	return rc;
}

/* ---- Ranks -------------------------------------------------------------- */

static int choices(uint32_t mask)
{
	return __builtin_popcount(mask);
}

/* The first of the rails with the fewest ranks. */
static int emptiest(uint32_t mask, const int used[TOPO_RAILS_MAX])
{
	int best = -1;

	for (int i = 0; i < TOPO_RAILS_MAX; i++)
		if (mask & UINT32_C(1) << i && (best < 0 || used[i] < used[best]))
			best = i;
	return best;
}

void topo_spread(const uint32_t *mask, int ranks, int *rail)
{
	int used[TOPO_RAILS_MAX] = { 0 };

	for (int r = 0; r < ranks; r++)
		rail[r] = -1;
	for (int n = 1; n <= TOPO_RAILS_MAX; n++)
		for (int r = 0; r < ranks; r++) {
			if (choices(mask[r]) != n)
				continue;
			rail[r] = emptiest(mask[r], used);
			used[rail[r]]++;
		}
}

/* Usable cores [first, end): their CPUs and their logical numbers. */
static void block_cores(const struct topo *t, unsigned first, unsigned end, hwloc_bitmap_t cpus,
			hwloc_bitmap_t cores)
{
	hwloc_obj_t core = NULL;
	unsigned i = 0;

	while ((core = topo_core_next(t, core)) && i < end)
		if (i++ >= first) {
			hwloc_bitmap_or(cpus, cpus, core->cpuset);
			hwloc_bitmap_set(cores, core->logical_index);
		}
	hwloc_bitmap_and(cpus, cpus, hwloc_topology_get_allowed_cpuset(t->hwloc));
}

int topo_block(const struct topo *t, unsigned rank, unsigned ranks, struct topo_block *out)
{
	unsigned count = (unsigned)t->usable_count, first, end;
	struct topo_block block = { .numa = -1, .package = -1 };
	hwloc_bitmap_t cpus, cores;
	struct topo_spot home;
	int rc = 0;

	if (rank >= ranks || !count)
		return -EINVAL;
	cpus = hwloc_bitmap_alloc();
	cores = hwloc_bitmap_alloc();
	if (!cpus || !cores) {
		rc = -ENOMEM;
		goto out;
	}
	first = (unsigned)((uint64_t)rank * count / ranks);
	end = (unsigned)(((uint64_t)rank + 1) * count / ranks);
	block_cores(t, first, end > first ? end : first + 1, cpus, cores);
	if (hwloc_bitmap_list_asprintf(&block.cpus, cpus) < 0 ||
	    hwloc_bitmap_list_asprintf(&block.cores, cores) < 0) {
		free(block.cpus);
		rc = -ENOMEM;
		goto out;
	}
	topo_spot_home(t, &home, cpus);
	block.numa = home.numa;
	block.package = home.package;
	*out = block;
out:
	hwloc_bitmap_free(cpus);
	hwloc_bitmap_free(cores);
	return rc;
}
