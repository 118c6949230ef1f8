/* list.c - the adapters, accelerators and groups of cores of a machine. */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/list.h"

hwloc_obj_type_t topo_core_type(const struct topo *t)
{
	return hwloc_get_nbobjs_by_type(t->hwloc, HWLOC_OBJ_CORE) > 0 ? HWLOC_OBJ_CORE :
									 HWLOC_OBJ_PU;
}

hwloc_obj_t topo_core_next(const struct topo *t, hwloc_obj_t core)
{
	hwloc_const_cpuset_t allowed = hwloc_topology_get_allowed_cpuset(t->hwloc);

	do
		core = hwloc_get_next_obj_by_type(t->hwloc, topo_core_type(t), core);
	while (core && !hwloc_bitmap_intersects(core->cpuset, allowed));
	return core;
}

bool topo_is_bridge(hwloc_obj_t obj, hwloc_obj_bridge_type_t upstream)
{
	return obj->type == HWLOC_OBJ_BRIDGE && obj->attr->bridge.upstream_type == upstream;
}

hwloc_obj_t topo_pci_of(hwloc_obj_t obj)
{
	while (obj && obj->type == HWLOC_OBJ_OS_DEVICE)
		obj = obj->parent;
	return obj && obj->type == HWLOC_OBJ_PCI_DEVICE ? obj : NULL;
}

void topo_pci_text(hwloc_obj_t obj, char text[TOPO_PCI_BYTES])
{
	const struct hwloc_pcidev_attr_s *pci = NULL;

	*text = '\0';
	if (obj->type == HWLOC_OBJ_PCI_DEVICE)
		pci = &obj->attr->pcidev;
	else if (topo_is_bridge(obj, HWLOC_OBJ_BRIDGE_PCI))
		pci = &obj->attr->bridge.upstream.pci;
	if (pci)
		snprintf(text, TOPO_PCI_BYTES, "%04x:%02x:%02x.%x", (unsigned)pci->domain,
			 pci->bus, pci->dev, pci->func & 0xfu);
}

/* ---- Homes -------------------------------------------------------------- */

static hwloc_obj_t smallest_around(const struct topo *t, hwloc_obj_type_t type,
				   hwloc_const_cpuset_t set)
{
	hwloc_obj_t best = NULL, obj = NULL;

	while ((obj = hwloc_get_next_obj_by_type(t->hwloc, type, obj)))
		if (hwloc_bitmap_isincluded(set, obj->cpuset) &&
		    (!best || hwloc_bitmap_weight(obj->cpuset) < hwloc_bitmap_weight(best->cpuset)))
			best = obj;
	return best;
}

hwloc_obj_t topo_numa_of(const struct topo *t, hwloc_const_cpuset_t set)
{
	return smallest_around(t, HWLOC_OBJ_NUMANODE, set);
}

hwloc_obj_t topo_package_of(const struct topo *t, hwloc_const_cpuset_t set)
{
	if (!t->package_count)
		return hwloc_get_root_obj(t->hwloc);
	return smallest_around(t, HWLOC_OBJ_PACKAGE, set);
}

/* hwloc's index "unknown" is UINT_MAX. */
static int index_of(hwloc_obj_t obj)
{
	return obj && obj->os_index <= INT_MAX ? (int)obj->os_index : -1;
}

void topo_spot_home(const struct topo *t, struct topo_spot *s, hwloc_const_cpuset_t set)
{
	bool empty = hwloc_bitmap_iszero(set);

	s->numa = empty ? -1 : index_of(topo_numa_of(t, set));
	s->package = empty || !t->package_count ? -1 : index_of(topo_package_of(t, set));
}

/* Copy a name from a file without characters that harm a terminal. */
static void text_copy(char *out, size_t size, const char *text)
{
	snprintf(out, size, "%s", text);
	for (; *out; out++)
		if (*out < ' ' || *out > '~')
			*out = '?';
}

/* The spot of an I/O object.  An object on no bus has no home: hwloc hangs it on the root. */
static void spot_of(const struct topo *t, hwloc_obj_t obj, const char *name,
		    struct topo_spot *out)
{
	hwloc_obj_t pci = topo_pci_of(obj);

	*out = (struct topo_spot){ .numa = -1, .package = -1, .object = obj };
	text_copy(out->name, sizeof(out->name), name);
	if (!pci)
		return;
	topo_pci_text(pci, out->pci);
	topo_spot_home(t, out, hwloc_get_non_io_ancestor_obj(t->hwloc, pci)->cpuset);
}

/* ---- Adapters ----------------------------------------------------------- */

static int spot_compare(const void *left, const void *right)
{
	const struct topo_spot *a = left, *b = right;
	int rc = strcmp(a->pci, b->pci);

	return rc ? rc : strverscmp(a->name, b->name);
}

static struct topo_spot *spot_add(struct topo_spot **array, int *count)
{
	struct topo_spot *grown = realloc(*array, (size_t)(*count + 1) * sizeof(*grown));

	if (!grown)
		return NULL;
	*array = grown;
	return &grown[(*count)++];
}

static bool is_osdev(hwloc_obj_t obj, hwloc_obj_osdev_type_t type)
{
	return obj->type == HWLOC_OBJ_OS_DEVICE && obj->attr->osdev.type == type;
}

/* hwloc counts these to OpenFabrics as well: Atos BXI, HPE Slingshot, which have no verbs. */
static bool has_verbs(hwloc_obj_t obj)
{
	return strncmp(obj->name, "bxi", 3) && strncmp(obj->name, "cxi", 3);
}

static int adapters_list(struct topo *t)
{
	hwloc_obj_t obj = NULL;

	while ((obj = hwloc_get_next_osdev(t->hwloc, obj))) {
		struct topo_spot *s;

		if (!is_osdev(obj, HWLOC_OBJ_OSDEV_OPENFABRICS) || !obj->name || !has_verbs(obj))
			continue;
		s = spot_add(&t->adapter, &t->adapter_count);
		if (!s)
			return -ENOMEM;
		spot_of(t, obj, obj->name, s);
	}
	if (t->adapter_count)
		qsort(t->adapter, (size_t)t->adapter_count, sizeof(*t->adapter), spot_compare);
	return 0;
}

/* ---- Accelerators ------------------------------------------------------- */

/* Is it the display of a management controller or of an emulator, which computes nothing? */
static bool is_plain_display(const struct hwloc_pcidev_attr_s *pci)
{
	static const uint16_t vendors[] = {
		0x1a03,		/* ASPEED */
		0x102b,		/* Matrox */
		0x1013,		/* Cirrus Logic */
		0x1234,		/* QEMU, Bochs */
	};

	for (size_t i = 0; i < sizeof(vendors) / sizeof(vendors[0]); i++)
		if (pci->vendor_id == vendors[i])
			return true;
	return false;
}

/* Rank of a name by which users know a GPU; 0: no GPU's name. */
static int osdev_fame(hwloc_obj_t obj)
{
	static const char *const names[] = { "card", "opencl", "nvml", "rsmi", "ze", "cuda" };
	int fame = 1;

	if (!obj->name || (!is_osdev(obj, HWLOC_OBJ_OSDEV_GPU) &&
			   !is_osdev(obj, HWLOC_OBJ_OSDEV_COPROC)))
		return 0;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strncmp(obj->name, names[i], strlen(names[i])))
			fame = (int)i + 2;
	return fame;
}

static hwloc_obj_t best_osdev(hwloc_obj_t pci)
{
	hwloc_obj_t best = NULL;

	for (hwloc_obj_t c = pci->io_first_child; c; c = c->next_sibling)
		if (osdev_fame(c) > (best ? osdev_fame(best) : 0))
			best = c;
	return best;
}

/*
 * List display controllers (class 03xx), processing accelerators (12xx) and devices that a driver
 * calls a GPU or a coprocessor: one spot per PCI function.
 */
static int gpus_list(struct topo *t)
{
	hwloc_obj_t pci = NULL;

	while ((pci = hwloc_get_next_pcidev(t->hwloc, pci))) {
		unsigned base = pci->attr->pcidev.class_id >> 8;
		hwloc_obj_t osdev = best_osdev(pci);
		char name[TOPO_NAME_BYTES];
		struct topo_spot *s;

		if ((base != 0x03 && base != 0x12 && !osdev) ||
		    is_plain_display(&pci->attr->pcidev))
			continue;
		s = spot_add(&t->gpu, &t->gpu_count);
		if (!s)
			return -ENOMEM;
		snprintf(name, sizeof(name), "gpu%d", t->gpu_count - 1);
		spot_of(t, osdev ? osdev : pci, osdev ? osdev->name : name, s);
	}
	return 0;
}

/* ---- Groups of cores ---------------------------------------------------- */

static int cores_add(struct topo *t, hwloc_obj_t core)
{
	struct topo_cores *grown = realloc(t->cores,
					   (size_t)(t->cores_count + 1) * sizeof(*grown));
	struct topo_cores *c;

	if (!grown)
		return -ENOMEM;
	t->cores = grown;
	c = &grown[t->cores_count];
	*c = (struct topo_cores){ .spot.object = core, .set = hwloc_bitmap_alloc() };
	topo_spot_home(t, &c->spot, core->cpuset);
	if (!c->set)
		return -ENOMEM;
	t->cores_count++;
	return 0;
}

static struct topo_cores *cores_of(struct topo *t, hwloc_obj_t core)
{
	struct topo_spot home;

	topo_spot_home(t, &home, core->cpuset);
	for (int i = 0; i < t->cores_count; i++)
		if (t->cores[i].spot.numa == home.numa && t->cores[i].spot.package == home.package)
			return &t->cores[i];
	return cores_add(t, core) ? NULL : &t->cores[t->cores_count - 1];
}

static bool node_spans_packages(const struct topo *t, int which)
{
	for (int i = 0; i < t->cores_count; i++)
		if (i != which && t->cores[i].spot.numa == t->cores[which].spot.numa)
			return true;
	return false;
}

static int cores_name(struct topo *t)
{
	hwloc_bitmap_t logical = hwloc_bitmap_alloc();
	int rc = logical ? 0 : -ENOMEM;

	for (int i = 0; i < t->cores_count && !rc; i++) {
		struct topo_cores *c = &t->cores[i];
		hwloc_obj_t core = NULL;

		hwloc_bitmap_zero(logical);
		while ((core = hwloc_get_next_obj_by_type(t->hwloc, topo_core_type(t), core)))
			if (hwloc_bitmap_isincluded(core->cpuset, c->set))
				hwloc_bitmap_set(logical, core->logical_index);
		if (hwloc_bitmap_list_asprintf(&c->cores, logical) < 0 ||
		    hwloc_bitmap_list_asprintf(&c->cpus, c->set) < 0)
			rc = -ENOMEM;
		if (node_spans_packages(t, i))
			snprintf(c->spot.name, sizeof(c->spot.name), "node%d/package%d",
				 c->spot.numa, c->spot.package);
		else
			snprintf(c->spot.name, sizeof(c->spot.name), "node%d", c->spot.numa);
	}
	hwloc_bitmap_free(logical);
	return rc;
}

static int cores_list(struct topo *t)
{
	hwloc_obj_t core = NULL;

	while ((core = hwloc_get_next_obj_by_type(t->hwloc, topo_core_type(t), core))) {
		struct topo_cores *c = cores_of(t, core);

		if (!c || hwloc_bitmap_or(c->set, c->set, core->cpuset))
			return -ENOMEM;
	}
	return cores_name(t);
}

/* ---- All of it ---------------------------------------------------------- */

/* hwloc returns -1 for several levels of a type, which these types never have. */
static int count_of(const struct topo *t, hwloc_obj_type_t type)
{
	int count = hwloc_get_nbobjs_by_type(t->hwloc, type);

	return count > 0 ? count : 0;
}

int topo_list(struct topo *t)
{
	const char *host = hwloc_obj_get_info_by_name(hwloc_get_root_obj(t->hwloc), "HostName");
	hwloc_obj_t core = NULL;
	int rc;

	text_copy(t->host, sizeof(t->host), host ? host : "");
	t->package_count = count_of(t, HWLOC_OBJ_PACKAGE);
	t->numa_count = count_of(t, HWLOC_OBJ_NUMANODE);
	t->core_count = count_of(t, topo_core_type(t));
	while ((core = topo_core_next(t, core)))
		t->usable_count++;
	rc = adapters_list(t);
	if (!rc)
		rc = gpus_list(t);
	if (!rc)
		rc = cores_list(t);
	return rc;
}

/* The network interface below a device of the kernel's software. */
static hwloc_obj_t interface_below(const struct topo *t, const char *device)
{
	char path[PATH_MAX], name[TOPO_NAME_BYTES] = "";
	hwloc_obj_t obj = NULL;
	FILE *f;

	if (!t->live || strchr(device, '/'))
		return NULL;
	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/parent", device);
	f = fopen(path, "re");
	if (!f)
		return NULL;
	if (fscanf(f, "%63s", name) != 1)
		*name = '\0';
	fclose(f);
	while ((obj = hwloc_get_next_osdev(t->hwloc, obj)))
		if (is_osdev(obj, HWLOC_OBJ_OSDEV_NETWORK) && obj->name &&
		    !strcmp(obj->name, name))
			return obj;
	return NULL;
}

bool topo_find(const struct topo *t, const char *device, struct topo_spot *out)
{
	hwloc_obj_t below;

	for (int i = 0; i < t->adapter_count; i++)
		if (!strcmp(t->adapter[i].name, device)) {
			*out = t->adapter[i];
			return true;
		}
	below = interface_below(t, device);
	if (below) {
		spot_of(t, below, device, out);
		return true;
	}
	*out = (struct topo_spot){ .numa = -1, .package = -1 };
	snprintf(out->name, sizeof(out->name), "%s", device);
	return false;
}
