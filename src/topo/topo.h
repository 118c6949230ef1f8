/*
 * topo.h - where the rails are in a machine, and what is near them.
 *
 * On hwloc and nothing else of ours but src/util.  A topology is that of this
 * machine or of a saved file; it is read once and does not change.  What is not
 * known stays unknown here: nothing is guessed.
 *
 * Returns 0 or -errno; who detects an error says so in one line (util/err.h);
 * outputs are set only on success.  One thread per topology at a time.
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
 * What lies between two places; each is farther than the one before.  The words
 * are those of `nvidia-smi topo -m`.  A *device* is a PCI function (an adapter,
 * a GPU), its *host bridge* the root of its PCI tree, its *locality* the cores of
 * the object that hwloc attaches the host bridge to.
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
 *         A device and a core of one package, not of one NUMA node (or it is not
 *         known of which: the locality is larger than a NUMA node).
 *   SYS   Different packages (sockets): the path crosses the link between them.
 *         Older texts call it SOC.
 *   UNKNOWN  A device that is on no PCI bus (the software HCA, Soft-RoCE on a virtual
 *         interface), or a locality that spans packages: firmware that does not say.
 *
 * nvidia-smi says SYS already between NUMA nodes of one package; here that is NODE,
 * since such traffic stays inside the package.  The NUMA node of a core is the
 * smallest that contains it; a machine that names no package counts as one.
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
	int numa, package;		/* OS index; -1: not known, or more than one */
	struct hwloc_obj *object;	/* NULL: place not known */
};

/* Cores that are equally far from everything: of one NUMA node and one package. */
struct topo_cores {
	struct topo_spot spot;		/* "node0"; "node0/package1" if a node spans packages */
	char *cores;			/* logical numbers, as launchers count: "0-7" */
	char *cpus;			/* OS numbers, as taskset and Linux count: "0-7,64-71" */
	struct hwloc_bitmap_s *set;	/* topo's own */
};

struct topo {
	bool live;			/* of this machine: sysfs may be asked as well */
	char host[256];			/* "" if the file does not say */
	int package_count, numa_count;
	int core_count, usable_count;	/* all; those that a job here may run on (cgroups) */
	int adapter_count, gpu_count, cores_count;
	struct topo_spot *adapter;	/* RDMA devices: by PCI address, then name */
	struct topo_spot *gpu;		/* accelerators, no displays of management controllers */
	struct topo_cores *cores;
	struct hwloc_topology *hwloc;	/* topo's own */
};

enum topo_want {
	TOPO_RAILS,			/* fast: for a process that wants its nearest rail */
	TOPO_ALL,			/* GPUs under the names of their drivers as well */
};

/*
 * This machine; HWLOC_XMLFILE and the like are obeyed (live is false then).
 * 0 or -errno after one line.
 */
int topo_open(enum topo_want want, struct topo **out);
/* A file of lstopo, hwloc or topo_save.  -EINVAL: damaged; -ENOENT...: cannot be read. */
int topo_open_xml(const char *path, struct topo **out);
void topo_close(struct topo *t);

/*
 * Where the RDMA device of that name is.  A device that the kernel made on a network
 * interface (Soft-RoCE) is where the interface is.  false: not known; out is
 * a spot of that name nevertheless.
 */
bool topo_find(const struct topo *t, const char *device, struct topo_spot *out);

enum topo_path topo_path(const struct topo *t, const struct topo_spot *a,
			 const struct topo_spot *b);

/* ---- Processes ---------------------------------------------------------- */

/*
 * `cpus` is a list of OS numbers ("0-7,64"), or NULL: the CPUs that the calling
 * thread may run on.  CPUs that the machine does not have do not count; -EINVAL
 * (silent) if none is left or the list makes no sense.
 */

/* The path from a device to the farthest of the cores: the process may run on any. */
int topo_path_cpus(const struct topo *t, const struct topo_spot *s, const char *cpus,
		   enum topo_path *out);

/*
 * Which of `count` rails are nearest to these CPUs (`--bind near`): bit i of *mask
 * stands for device[i] ("mlx5_0").  Nearest is what topo_path_cpus says; a rail whose
 * place is not known is not known to be nearer than SYS.  So all rails are, for
 * a process that may run anywhere, or where no place is known.  count is 1 to
 * TOPO_RAILS_MAX; *mask is never 0.
 */
int topo_near(const struct topo *t, const char *const *device, int count, const char *cpus,
	      uint32_t *mask);

/*
 * From the masks of all ranks of a node, in the order of their local ranks, the
 * rail of each: one of its mask, so that ranks are spread evenly.  Ranks with
 * fewer choices choose first, then lower ranks; each takes the rail with the fewest
 * ranks so far, of equals the first.  So the same masks give the same rails in every
 * process.  A mask of 0 gives -1.
 */
void topo_spread(const uint32_t *mask, int ranks, int *rail);

/*
 * Where rank `rank` of `ranks` is when they are bound in blocks: of the C cores that may
 * be used, in logical order, it has those from rank * C / ranks up to the next rank's, at
 * least one.
 */
struct topo_block {
	char *cores;			/* "4-7", logical numbers; free() it */
	char *cpus;			/* OS numbers; free() it */
	int numa, package;		/* as in a spot */
};
int topo_block(const struct topo *t, unsigned rank, unsigned ranks, struct topo_block *out);

/* ---- PCIe links --------------------------------------------------------- */

/* One direction, data: what is left of the line rate after its encoding, before headers. */
struct topo_link {
	char at[TOPO_PCI_BYTES];	/* the adapter's slot "0000:17:00", then bridges */
	uint64_t bytes_per_s;		/* as it runs now; 0: not known */
	uint64_t max_bytes_per_s;	/* what this end of it could do; 0: not known */
	/* MT/s per lane and lanes; 0: not known.  hwloc keeps bytes_per_s only. */
	unsigned mt_per_s, lanes, max_mt_per_s, max_lanes;
};

/*
 * The links that all data of a device must pass, its own first, then what
 * each bridge up to the host bridge says.  Both ends of a link tell its speed, so
 * neighbours may be one link; that does not matter to who asks which is the
 * narrowest that several devices share: devices share exactly the links with equal `at`.
 * From sysfs, for files from hwloc's attributes.  Returns their number.
 */
int topo_links(const struct topo *t, const struct topo_spot *s,
	       struct topo_link out[TOPO_LINKS_MAX]);

/*
 * The links that bound rails together: bits of rails are indices of spot.  Of links with
 * the same rails only the narrowest known one is told (the first, if no speed is
 * known).  Sets are nested or disjoint, smaller ones come first.  count is at most
 * TOPO_RAILS_MAX.  Returns how many there are.
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
 * The files {current,max}_link_{speed,width} of a directory in /sys/bus/pci/devices.
 * What is missing or makes no sense is not known.  `at` is not touched.
 */
void topo_link_read(const char *dir, struct topo_link *link);

/* ---- Ports -------------------------------------------------------------- */

/* What is known of a port.  Empty texts, 0 and -1: not known, except where said. */
struct topo_port {
	unsigned number;		/* from 1 */
	char kind[24];			/* "hardware", "kernel software", "software HCA" */
	char link_layer[24];		/* "InfiniBand", "Ethernet" */
	char state[24];			/* "ACTIVE" */
	char firmware[64];
	char gid[48];			/* as inet_ntop writes it */
	char gid_type[16];		/* "IB", "RoCE v1", "RoCE v2" */
	int gid_index, lid;
	int rail;			/* as librail would number it */
	uint32_t mtu_bytes;
	bool rate_known;
	bool gid_link_local;
	uint64_t rate_bytes_per_s;	/* one direction; known and 0: unlimited */
};

/*
 * What the file says about the ports of t->adapter[adapter]: hwloc keeps states, LIDs
 * and GIDs (of no known type, so of one only); topo_save adds the rest.  A value that
 * makes no sense is warned about and not known.  Returns how many ports are
 * mentioned, by number; 0: none is.
 */
int topo_ports(const struct topo *t, int adapter, struct topo_port out[TOPO_PORTS_MAX]);

/*
 * Write the topology of this machine to a file that topo_open_xml reads, with what is
 * known of its links and, after topo_port_note, of its ports.  The file appears
 * whole or not at all.
 */
bool topo_is_saved(const struct topo *t, const char *device);	/* hwloc has such a device */
int topo_port_note(struct topo *t, const char *device, const struct topo_port *port);
int topo_save(struct topo *t, const char *path);

#endif
