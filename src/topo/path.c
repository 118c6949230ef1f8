/* path.c - the path between two places: see enum topo_path. */
#include "config.h"

#include <string.h>

#include "topo/list.h"

const char *topo_path_text(enum topo_path path)
{
	static const char *const text[TOPO_PATHS] = {
		[TOPO_SELF] = "X", [TOPO_PIX] = "PIX", [TOPO_PXB] = "PXB", [TOPO_PHB] = "PHB",
		[TOPO_NODE] = "NODE", [TOPO_SYS] = "SYS", [TOPO_UNKNOWN] = "-",
	};

	return text[path];
}

/* The nearest common ancestor; an object is its own ancestor. */
static hwloc_obj_t common_ancestor(hwloc_obj_t a, hwloc_obj_t b)
{
	for (; a->parent; a = a->parent)
		for (hwloc_obj_t i = b; i; i = i->parent)
			if (i == a)
				return a;
	return a;
}

static int bridges_below(hwloc_obj_t top, hwloc_obj_t device)
{
	int count = 0;

	for (hwloc_obj_t i = device->parent; i != top; i = i->parent)
		count++;
	return count;
}

/* The cores that a function, or a core, belongs to. */
static hwloc_const_cpuset_t locality(const struct topo *t, hwloc_obj_t obj)
{
	return hwloc_get_non_io_ancestor_obj(t->hwloc, obj)->cpuset;
}

/* SYS, UNKNOWN, or NODE if one package has both. */
static enum topo_path across(const struct topo *t, hwloc_const_cpuset_t a, hwloc_const_cpuset_t b)
{
	hwloc_obj_t pa = topo_package_of(t, a), pb = topo_package_of(t, b);

	if (!pa || !pb || hwloc_bitmap_iszero(a) || hwloc_bitmap_iszero(b))
		return TOPO_UNKNOWN;
	return pa == pb ? TOPO_NODE : TOPO_SYS;
}

static enum topo_path between_devices(const struct topo *t, hwloc_obj_t a, hwloc_obj_t b)
{
	hwloc_obj_t top = common_ancestor(a, b);

	if (top->type == HWLOC_OBJ_PCI_DEVICE)
		return TOPO_PIX;
	if (topo_is_bridge(top, HWLOC_OBJ_BRIDGE_PCI))
		return bridges_below(top, a) <= 1 && bridges_below(top, b) <= 1 ? TOPO_PIX :
										   TOPO_PXB;
	if (topo_is_bridge(top, HWLOC_OBJ_BRIDGE_HOST))
		return TOPO_PHB;
	return across(t, locality(t, a), locality(t, b));
}

/* Is it the same node?  Nodes with the same cores (two kinds of memory) are. */
static bool same_node(const struct topo *t, hwloc_const_cpuset_t a, hwloc_const_cpuset_t b)
{
	hwloc_obj_t na = topo_numa_of(t, a), nb = topo_numa_of(t, b);

	return na && nb && hwloc_bitmap_isequal(na->cpuset, nb->cpuset);
}

static enum topo_path to_core(const struct topo *t, hwloc_const_cpuset_t device,
			      hwloc_const_cpuset_t core)
{
	enum topo_path path = across(t, device, core);

	return path == TOPO_NODE && same_node(t, device, core) ? TOPO_PHB : path;
}

static bool is_io(hwloc_obj_t obj)
{
	return hwloc_obj_type_is_io(obj->type);
}

enum topo_path topo_path(const struct topo *t, const struct topo_spot *a,
			 const struct topo_spot *b)
{
	hwloc_obj_t from = a->object, to = b->object;

	if (a == b || (from == to && !strcmp(a->name, b->name)))
		return TOPO_SELF;
	if (!from || !to)
		return TOPO_UNKNOWN;
	if (is_io(from))
		from = topo_pci_of(from);
	if (is_io(to))
		to = topo_pci_of(to);
	if (!from || !to)
		return TOPO_UNKNOWN;
	if (is_io(from) && is_io(to))
		return between_devices(t, from, to);
	return to_core(t, locality(t, from), locality(t, to));
}
