/*
 * topo.h - the places of rails in a machine, and the devices and cores near them.
 *
 * Uses hwloc, and src/util of Railgauge.  A topology is that of this machine or of a saved
 * file; it is read once and does not change.  Unknown values stay unknown: nothing is
 * guessed.
 *
 * Functions return 0 or -errno.  The function that detects an error prints one line
 * (util/err.h).  Outputs are set only on success.  One thread per topology at a time.
 */
#ifndef RG_TOPO_H
#define RG_TOPO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hwloc_topology;
struct hwloc_obj;
struct hwloc_bitmap_s;

enum {
	TOPO_NAME_BYTES = 64,
	TOPO_PCI_BYTES = 20,		/* "0000:17:00.0" */
	TOPO_LINKS_MAX = 16,		/* links between an adapter and its host bridge */
	TOPO_PORTS_MAX = 16,		/* ports of an adapter */
	TOPO_RAILS_MAX = 32,		/* rails: bits of a mask */
};

/* ---- Paths -------------------------------------------------------------- */

/*
 * The path between two places; each value is farther than the value before.  `nvidia-smi topo -m`
 * has the same names.  A *device* is a PCI function (an adapter, a GPU), its *host bridge* the
 * root of its PCI tree, its *locality* the cores of the object that hwloc attaches the host bridge
 * to.
 *
 *   SELF  The same place.
 *   PIX   Two devices below one PCI bridge, with at most one further bridge above
 *         either: functions or ports of one card, or two cards in one PCIe switch
 *         (the bridge is its upstream port, the further ones its downstream ports).
 *   PXB   Two devices below one PCI bridge, with more bridges between: several
 *         switches, but no host bridge is crossed.
 *   PHB   Two devices below one host bridge, but no common PCI bridge.
 *         A device and a core: the device's locality lies in the NUMA node of the core.
 *   NODE  Two devices below different host bridges, both localities in one package.
 *         A device and a core of one package, not of one NUMA node (or of an unknown
 *         one: the locality is larger than a NUMA node).
 *   SYS   Different packages (sockets): the path crosses the link between them.
 *         Older texts call it SOC.
 *   UNKNOWN  A device that is on no PCI bus (the software HCA, Soft-RoCE on a virtual
 *         interface), or a locality that spans packages: the firmware does not describe it.
 *
 * nvidia-smi prints SYS already between NUMA nodes of one package; here that is NODE,
 * since such traffic stays inside the package.  The NUMA node of a core is the
 * smallest that contains it.  A machine without a package object counts as one package.
 */
enum topo_path {
	TOPO_SELF, TOPO_PIX, TOPO_PXB, TOPO_PHB, TOPO_NODE, TOPO_SYS, TOPO_UNKNOWN,
	TOPO_PATHS
};
/* "X", "PIX", ..., "-" */
const char *topo_path_text(enum topo_path path);

/* A place in the machine. */
struct topo_spot {
	char name[TOPO_NAME_BYTES];	/* "mlx5_0", "cuda0", "node0" */
	char pci[TOPO_PCI_BYTES];	/* "": not on a PCI bus */
	int numa, package;		/* OS index; -1: unknown, or more than one */
	struct hwloc_obj *object;	/* NULL: unknown place */
};

/* Cores with equal paths to all devices: of one NUMA node and one package. */
struct topo_cores {
	struct topo_spot spot;		/* "node0"; "node0/package1" if a node spans packages */
	char *cores;			/* logical numbers, as used by launchers: "0-7" */
	char *cpus;			/* OS numbers, as used by taskset: "0-7,64-71" */
	struct hwloc_bitmap_s *set;	/* private */
};

struct topo {
	bool live;			/* the machine's own: sysfs may be read as well */
	char host[256];			/* "" if the file does not contain it */
	int package_count, numa_count;
	int core_count, usable_count;	/* all cores; cores allowed for this job (cgroups) */
	int adapter_count, gpu_count, cores_count;
	struct topo_spot *adapter;	/* RDMA devices: by PCI address, then name */
	struct topo_spot *gpu;		/* accelerators, not management controllers' displays */
	struct topo_cores *cores;
	struct hwloc_topology *hwloc;	/* private */
};

enum topo_want {
	TOPO_RAILS,			/* fast: enough to find the nearest rail of a process */
	TOPO_ALL,			/* also GPUs, under the names of their drivers */
};

/*
 * Open this machine's topology.  HWLOC_XMLFILE and the like have their usual effect (live is
 * false then).  0 or -errno after one line.
 */
int topo_open(enum topo_want want, struct topo **out);
/* Open a file of lstopo, hwloc or topo_save.  -EINVAL: damaged; -ENOENT...: unreadable. */
int topo_open_xml(const char *path, struct topo **out);
void topo_close(struct topo *t);

/*
 * Find the place of an RDMA device.  A device that the kernel made on a network interface
 * (Soft-RoCE) has the place of the interface.  false: unknown; *out is still set, to a spot
 * with that name.
 */
bool topo_find(const struct topo *t, const char *device, struct topo_spot *out);

enum topo_path topo_path(const struct topo *t, const struct topo_spot *a,
			 const struct topo_spot *b);

/* ---- Processes ---------------------------------------------------------- */

/*
 * `cpus` is a list of OS numbers ("0-7,64"), or NULL: the CPUs that the calling
 * thread may run on.  CPUs that the machine does not have are ignored.  -EINVAL
 * (silent) if none is left or the list is malformed.
 */

/* The path from a device to the farthest of the cores, since the process may run on any. */
int topo_path_cpus(const struct topo *t, const struct topo_spot *s, const char *cpus,
		   enum topo_path *out);

/*
 * Find which of `count` rails are nearest to these CPUs (`--bind near`): bit i of *mask is
 * device[i] ("mlx5_0").  Distance is defined by topo_path_cpus; a rail of unknown place counts as
 * SYS.  So all rails are nearest for a process that may run anywhere, or if no place is known.
 * count is 1 to TOPO_RAILS_MAX; *mask is never 0.
 */
int topo_near(const struct topo *t, const char *const *device, int count, const char *cpus,
	      uint32_t *mask);

/*
 * Compute the rail of each rank of a node from the masks of all, in the order of local
 * ranks: one of its mask, so that ranks are spread evenly.  Ranks with fewer choices come
 * first, then lower ranks.  Each gets the rail that has the fewest ranks so far, of equals
 * the first.  So the same masks give the same rails in every process.  A mask of 0 gives -1.
 */
void topo_spread(const uint32_t *mask, int ranks, int *rail);

/*
 * The place of rank `rank` of `ranks` when ranks are bound in blocks: of the C usable cores,
 * in logical order, it has those from rank * C / ranks up to the next rank's, at least one.
 */
struct topo_block {
	char *cores;			/* "4-7", logical numbers; free() it */
	char *cpus;			/* OS numbers; free() it */
	int numa, package;		/* see struct topo_spot */
};
int topo_block(const struct topo *t, unsigned rank, unsigned ranks, struct topo_block *out);

/* ---- Memory ------------------------------------------------------------- */

/*
 * The NUMA node of the first of these CPUs, or the one farthest from it by the firmware's
 * distances.  Its OS index; -ENOENT: unknown, or (TOPO_FAR) the machine has one node alone.
 */
enum topo_side { TOPO_NEAR, TOPO_FAR };
int topo_node(const struct topo *t, const char *cpus, enum topo_side side);

/*
 * Bind [addr, addr + bytes), which begins and ends at page borders, to that node of the calling
 * thread's: the first touch takes pages from it.  0, -ENOENT as above, or another -errno.
 */
int topo_bind(const struct topo *t, void *addr, size_t bytes, enum topo_side side);

/* ---- PCIe links --------------------------------------------------------- */

/* Rates of data in one direction: the line rate after its encoding, before headers. */
struct topo_link {
	char at[TOPO_PCI_BYTES];	/* the adapter's slot "0000:17:00", then bridges */
	uint64_t bytes_per_s;		/* current; 0: unknown */
	uint64_t max_bytes_per_s;	/* possible at this end; 0: unknown */
	/* MT/s per lane and lanes; 0: unknown.  hwloc keeps bytes_per_s only. */
	unsigned mt_per_s, lanes, max_mt_per_s, max_lanes;
};

/*
 * The links that all data of a device pass: its own first, then those of each bridge up to
 * the host bridge.  Both ends of a link report its speed, so neighbouring entries may be one
 * link.  For the narrowest link that several devices share this makes no difference: devices
 * share exactly the links with equal `at`.  The values come from sysfs, for files from
 * hwloc's attributes.  Returns their number.
 */
int topo_links(const struct topo *t, const struct topo_spot *s,
	       struct topo_link out[TOPO_LINKS_MAX]);

/*
 * The links that limit several rails together; bits of `rails` are indices of spot.  Only the
 * narrowest known of links with the same rails is included (the first, if no speed is known).  Sets
 * are nested or disjoint, smaller ones first.  count is at most TOPO_RAILS_MAX.  Returns their
 * number.
 */
enum { TOPO_SHARES_MAX = 2 * TOPO_RAILS_MAX };
struct topo_share {
	uint32_t rails;
	struct topo_link link;
};
int topo_shares(const struct topo *t, const struct topo_spot *const *spot, int count,
		struct topo_share out[TOPO_SHARES_MAX]);

/* 16000 MT/s, 16 lanes -> 31507692307 (128/130 from 8 GT/s on, 8/10 below, PCIe 6: 242/256). */
uint64_t topo_link_bytes(unsigned mt_per_s, unsigned lanes);

/*
 * Read {current,max}_link_{speed,width} of a directory in /sys/bus/pci/devices.  A missing or
 * malformed value is unknown.  `at` is not changed.
 */
void topo_link_read(const char *dir, struct topo_link *link);

/* ---- Ports -------------------------------------------------------------- */

/* A port.  Empty texts, 0 and -1: unknown, except where stated. */
struct topo_port {
	unsigned number;		/* from 1 */
	char kind[24];			/* "hardware", "kernel software", "software HCA", "software HCA over TCP" */
	char link_layer[24];		/* "InfiniBand", "Ethernet" */
	char state[24];			/* "ACTIVE" */
	char firmware[64];
	char gid[48];			/* in the format of inet_ntop */
	char gid_type[16];		/* "IB", "RoCE v1", "RoCE v2", "iWARP" */
	int gid_index, lid;
	int rail;			/* librail's number of the port */
	uint32_t mtu_bytes;
	bool rate_known;
	bool gid_link_local;
	uint64_t rate_bytes_per_s;	/* per direction; known and 0: unlimited */
};

/*
 * The ports of t->adapter[adapter] in the file.  hwloc keeps states, LIDs and GIDs (without
 * their type, so one GID only); topo_save adds the rest.  A malformed value is unknown, after
 * a warning.  Returns the number of ports in the file, in the order of their numbers.
 */
int topo_ports(const struct topo *t, int adapter, struct topo_port out[TOPO_PORTS_MAX]);

/*
 * Write the topology of this machine to a file that topo_open_xml reads, with its links and,
 * after topo_port_note, its ports.  The file appears whole or not at all.
 */
bool topo_is_saved(const struct topo *t, const char *device);	/* hwloc has such a device */
int topo_port_note(struct topo *t, const char *device, const struct topo_port *port);
int topo_save(struct topo *t, const char *path);

#endif
