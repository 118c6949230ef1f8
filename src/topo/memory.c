/* memory.c - the NUMA nodes near and far, and memory bound to one of them. */
#include "config.h"

#include <errno.h>
#include <hwloc/linux.h>

#include "topo/near.h"

/* The distance in the firmware's matrix; 0: the machine has no matrix. */
static uint64_t distance(hwloc_topology_t hwloc, hwloc_obj_t from, hwloc_obj_t to)
{
	struct hwloc_distances_s *matrix = NULL;
	hwloc_uint64_t there = 0, back = 0;
	unsigned count = 1;

	if (hwloc_distances_get_by_type(hwloc, HWLOC_OBJ_NUMANODE, &count, &matrix,
					HWLOC_DISTANCES_KIND_MEANS_LATENCY, 0) || !count)
		return 0;
	hwloc_distances_obj_pair_values(matrix, from, to, &there, &back);
	hwloc_distances_release(hwloc, matrix);
	return there;
}

/* The farthest node, the last among equals: without a matrix, the node with the last number. */
static hwloc_obj_t node_farthest(hwloc_topology_t hwloc, hwloc_obj_t from)
{
	hwloc_obj_t node = NULL, best = NULL;
	uint64_t most = 0;

	while ((node = hwloc_get_next_obj_by_type(hwloc, HWLOC_OBJ_NUMANODE, node))) {
		uint64_t d = node == from ? 0 : distance(hwloc, from, node);

		if (node == from || !node->attr->numanode.local_memory || d < most)
			continue;
		most = d;
		best = node;
	}
	return best;
}

static hwloc_obj_t node_of(const struct topo *t, const char *cpus, enum topo_side side)
{
	hwloc_bitmap_t set = hwloc_bitmap_alloc(), nodes = hwloc_bitmap_alloc();
	hwloc_obj_t near = NULL;

	if (set && nodes && !topo_cpus_get(t, cpus, set)) {
		hwloc_cpuset_to_nodeset(t->hwloc, set, nodes);
		near = hwloc_get_numanode_obj_by_os_index(t->hwloc,
							  (unsigned)hwloc_bitmap_first(nodes));
	}
	hwloc_bitmap_free(nodes);
	hwloc_bitmap_free(set);
	return near && side == TOPO_FAR ? node_farthest(t->hwloc, near) : near;
}

int topo_node(const struct topo *t, const char *cpus, enum topo_side side)
{
	hwloc_obj_t node = node_of(t, cpus, side);

	return node ? (int)node->os_index : -ENOENT;
}

int topo_bind(const struct topo *t, void *addr, size_t bytes, enum topo_side side)
{
	hwloc_obj_t node = t->live ? node_of(t, NULL, side) : NULL;

	if (!node)
		return -ENOENT;
	return hwloc_set_area_membind(t->hwloc, addr, bytes, node->nodeset, HWLOC_MEMBIND_BIND,
				      HWLOC_MEMBIND_BYNODESET | HWLOC_MEMBIND_STRICT) ? -errno : 0;
}
