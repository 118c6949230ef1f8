/*
 * softhca.h - libsofthca: the libibverbs API in user space, on any Linux machine.
 *
 * The API of the library is infiniband/verbs.h.  This header adds only calls that
 * verbs does not define: the list of devices, the arena of memory that every
 * process of a fabric can map, and the description of the timing model.
 *
 * Terms:  a *fabric* is one switch and everything attached to it, named, per
 * user, on one machine.  A *node* is a virtual host: it owns one set of
 * adapters soft0, soft1, ...; processes with the same node number share them.
 * A *spec* describes the adapters of a node and their timing:
 *
 *	[PROFILE][,key=value...]	e.g. "ports=2,rate=1GB/s,latency=2us"
 *
 * All processes of a fabric have the same spec; a process with another is
 * refused.
 *
 * With net= the ports are network interfaces, and a fabric joins hosts over TCP:
 *
 *	net=eth0+eth1			interfaces by name,
 *	net=10.0.1.0/24+fd00:0:0:2::/64	or by a subnet that holds one of their addresses
 *
 * Port n is the n-th interface.  Its GID is the interface's address (one, of index 0;
 * the first permanent IPv4 address, else an IPv6 one), its MTU, speed and state are
 * the interface's; an unknown speed is 0, unless rate= declares it.  There is no LID:
 * an address without GRH is refused.  Of the keys of a model only rate and reads are
 * accepted.  A host is one node: the network namespace of this process.  Names may
 * differ from host to host, their number may not; processes of one host name the same
 * interfaces.  Multicast and rdma_cm fail with EOPNOTSUPP.
 *
 * Environment, where a function takes no configuration: SOFTHCA_SPEC,
 * SOFTHCA_FABRIC, SOFTHCA_NODE; SOFTHCA_REMAP and SOFTHCA_COPY (below).  SOFTHCA_DIR
 * names the directory of files; the default is the first of /dev/shm, TMPDIR and /tmp
 * that takes files.  Files are member registries and, where the system denies
 * memfd_create or with SOFTHCA_MEMORY=file, shared memory as files without a name.
 * With net=: SOFTHCA_PORTS, the TCP ports to listen on, FIRST-LAST, "18600-18855" unless
 * set: processes of a user share ports when none is free, so that one is enough for each user
 * of a host (firewalls must let them pass); SOFTHCA_SECRET_FILE, a file that only its user may read,
 * with the secret that all processes of the fabric prove to each other (~/.softhca/secret, made at
 * first use); SOFTHCA_LINK=tcp, TCP between processes of one host, too.
 * ibv_get_device_list shows software devices only with SOFTHCA_EXPOSE=1 (the
 * softhca command sets it).
 */
#ifndef SOFTHCA_H
#define SOFTHCA_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * How peers reach registered memory outside of the arena.  Remapping moves the pages of such
 * memory, in place, onto memory that peers can map: data then moves by one copy. Without remapping
 * peers copy by process_vm_readv/writev, at 1 us and more per message.  Where the kernel denies
 * process_vm_readv (Yama from ptrace_scope 1 on, seccomp filters, other user or pid namespaces),
 * the copy service copies: a thread of the process that owns the memory, at about a fifth of the
 * kernel's bandwidth.  SOFTHCA_COPY chooses: "auto" is this order; "bounce" always uses the copy
 * service; "kernel" never uses it, and under ptrace_scope 1 declares that any process of the same
 * user may trace this one (PR_SET_PTRACER_ANY).  No other setting makes this declaration.
 *
 * A write by another thread to a page during its first registration can be lost.
 * Otherwise remapped memory behaves as before: pages are moved back ahead of calls
 * that would show a difference (mremap, madvise, fork...); patches of the C library's
 * functions intercept these calls.  Peers then reach the registrations as if they
 * had not been remapped.  Where these calls cannot be intercepted (under a sanitizer)
 * nothing is remapped.
 */
enum softhca_remap {
	SOFTHCA_REMAP_DEFAULT,	/* SOFTHCA_REMAP, else: never */
	SOFTHCA_REMAP_NEVER,
	SOFTHCA_REMAP_AUTO,	/* whole pages of private anonymous memory, except the main stack */
	SOFTHCA_REMAP_ALWAYS,	/* also the pages at its edges, with the rest of their contents */
};

struct softhca_config {
	const char *spec;	/* NULL: SOFTHCA_SPEC, else "ideal" */
	const char *fabric;	/* NULL: SOFTHCA_FABRIC, else one per user */
	int node;		/* -1: SOFTHCA_NODE, else 0 */
	enum softhca_remap remap;	/* the first call on a fabric decides; SOFTHCA_REMAP wins */
	const char *secret;	/* net=: 64 hexadecimal digits; NULL: SOFTHCA_SECRET_FILE's */
};

/*
 * The software devices of one node; attaches this process to the fabric.
 * A NULL-terminated array for ibv_free_device_list; *count may be NULL.
 * cfg may be NULL.  Calling again with the same fabric returns the same
 * devices; a process may be on several fabrics at once.
 *
 * NULL with errno on error, with the reason in softhca_last_error():
 *   EINVAL   the spec, the name or the node is invalid
 *   EEXIST   the fabric exists with another spec
 *   ENOSPC, EACCES, EROFS...   the member registry cannot be created, or no descriptor
 *            of a member can be had, although it lives
 *   EMEDIUMTYPE   memfd_create is denied to this process, or to the others alone
 *   EUSERS   more processes than a fabric holds
 *   ENODEV, ENETDOWN, EADDRNOTAVAIL, ENOTUNIQ   net=: an interface does not exist, is
 *            down, has no usable address; several interfaces are in the subnet
 */
struct ibv_device **softhca_get_device_list(const struct softhca_config *cfg, int *count);

/* The last failure in this thread, in one line: "spec: rate=0: ... (accepted: ...)". */
const char *softhca_last_error(void);

/*
 * The node of the devices that ibv_get_device_list shows (SOFTHCA_EXPOSE=1; SOFTHCA_NODE); -1: it
 * shows none.
 */
int softhca_exposed_node(void);

/*
 * Closes the fabric to further processes: the member registry is removed now, so
 * that no file remains however the members end.  0 or -errno.
 */
int softhca_fabric_close(const struct softhca_config *cfg);

/* Check a spec without using it.  0, or -EINVAL with the reason in why. */
int softhca_spec_check(const char *spec, char *why, size_t why_size);

/* The spec with every key and its effective value, in canonical order. */
int softhca_spec_canonical(const char *spec, char *buf, size_t size);

/*
 * Memory that objects occupy, in bytes: a queue pair 7 KiB and, per request it
 * has room for, 144 + 16 per SGE (send) or 72 and more from 4 SGEs on (receive),
 * in all about 25 KiB with 64 and 64 and its share of memory touched at its
 * peer; a completion queue 120 per entry once used; a process 2.5 MiB.  Memory is
 * allocated when touched; with vm.overcommit_memory=2 or SOFTHCA_RESERVE=1 at
 * creation, so that a shortage is an error (ENOMEM) and no SIGBUS.
 * Address space: 8 GiB for each peer process, so RLIMIT_AS (ulimit -v) must be
 * unlimited.  File descriptors: two per peer process and one for each of its
 * channels that receives wake-ups (64 at most), three per open device, two per
 * completion channel, one of /proc.  Each fabric has a thread that sleeps, and hands
 * descriptors over to peers that cannot open them.
 */

bool softhca_is_device(const struct ibv_device *device);

/* A device's model; rates in bytes per second and direction, 0 = unlimited. */
struct softhca_model {
	bool timed;
	unsigned ports;			/* per adapter */
	uint64_t port_rate[8];		/* port 1, 2, ...; with net the declared or known one */
	uint64_t latency_ns;		/* the wire and both adapters, in one direction */
	/* Limits of an adapter with all its ports: of the adapter; of its host bus. */
	uint64_t cap;
	uint64_t bus_read, bus_write;	/* data sent; received */
	bool bus_half;			/* both directions share it, each at its own rate */
	char text[256];		/* for people: "2 ports, 1 GB/s per port and direction, 2 us" */
	char spec[896];			/* canonical spec */
	uint64_t fabric;	/* a random number: other fabrics, also of this name, have others */
	/* Ports are network interfaces, nothing is modelled; a rate of 0 is unknown. */
	bool net;		/* text: "2 ports over TCP: eth0 10.0.1.1, eth1 10.0.2.1" */
	/* The end of a write lands last: a program may poll memory for it. */
	bool ends_last;
	bool ordered;		/* what ibv_query_qp_data_in_order says, in RTS */
};
int softhca_query_model(const struct ibv_device *device, struct softhca_model *model);

/*
 * Retries by queue pairs that were created in this context, on this port: for
 * packets that were lost, requests without an answer in time, receivers that were
 * not ready.  (Under rnr_retry 7 and timeout 0, "for ever", only the first retry
 * of each request counts.)  0, -EINVAL or -ENODEV.
 */
int softhca_query_retries(const struct ibv_context *context, unsigned port, uint64_t *retries);

/*
 * The state of a queue pair that datagrams go to: number `qpn` at the address of `ah`.  The sender
 * of a datagram learns nothing of a loss.  -ENODEV: `ah` is not a software device's.
 */
enum softhca_reach {
	SOFTHCA_REACHED,	/* the process exists, and runs or is stopped */
	SOFTHCA_CUT,		/* a port at either end is down, 9 of 10 packets are lost, or TCP finds no process */
	SOFTHCA_LEFT,		/* the process has left the fabric in good order, or none has this number */
	SOFTHCA_DEAD,		/* the process has ended without leaving */
	SOFTHCA_RESET,		/* a connection to it was reset: it has ended, or has lost the path */
};
int softhca_query_reach(const struct ibv_ah *ah, uint32_t qpn);
/*
 * Does the software HCA see by itself that the other end of this queue pair is there?  True: over TCP, where the
 * other host's kernel has answered lately; a request that only asks for a sign of life is needless.  False: it may
 * not be there; the connection has ended; or nothing but a request tells, as in memory and on other devices.
 */
bool softhca_hears_peer(struct ibv_qp *qp);

/*
 * Fidelity: whether this machine can keep to the model now.  0: as far as can be
 * determined; 1: no, and a line in buf gives the reason: rates near the speed at
 * which memory is copied, more processes than cores.  Takes some milliseconds the
 * first time.
 */
int softhca_model_doubt(const struct ibv_device *device, char *buf, size_t size);

/*
 * The arena: memory of this process that every peer can map, so that data
 * moves by one copy and registration costs nothing.  Page-aligned, zeroed,
 * MAP_SHARED (a child of fork shares it), never moved.  Independent of any
 * fabric.  NULL with errno ENOMEM.  softhca_arena_free returns the pages to the
 * system; registrations over them must have been removed.
 */
void *softhca_arena_alloc(size_t bytes);
void softhca_arena_free(void *addr);
bool softhca_arena_contains(const void *addr, size_t bytes);

/*
 * Mapping on request: peers map the registration instead of copying through the kernel.  The whole
 * pages of the registration are moved, in place, onto memory that can be mapped; a first or last
 * page that it shares with other data stays.  Until softhca_map returns, only the caller may write
 * to these bytes, and no peer: softhca_map is for receive buffers of operations that peers do not
 * know yet.
 *
 * `frame` is an address in the frame of the function that owns the buffer, for the question
 * whether it is on the stack of that thread or fiber.
 *
 * -EPERM, with the reason in softhca_last_error(), and nothing has changed: the memory holds no
 * whole page; is not private anonymous memory; is on a stack, or bound to NUMA nodes, or kept
 * (below); is pinned by a real device; the process has locked memory, or a GPU, VFIO, KVM or verbs
 * device, io_uring or userfaultfd open; calls that change mappings cannot be watched; there is no
 * memory for the copy.  -ENODEV.
 *
 * The registration remains valid whatever the program does with the memory: see enum softhca_remap.
 * softhca_is_mapped returns whether any part is still mapped. softhca_unmap moves the memory back,
 * while the program and peers may go on using it.
 */
int softhca_map(struct ibv_mr *mr, const void *frame);
/* 0: the process may map memory; -EPERM, with the reason, as above. */
int softhca_may_map(void);
bool softhca_is_mapped(const struct ibv_mr *mr);
void softhca_unmap(struct ibv_mr *mr);

/*
 * Move memory back that others know by its pages, and keep it in place until softhca_unkeep of the
 * same address.  0 or -ENOMEM.
 */
int softhca_keep(const void *addr, size_t bytes);
void softhca_unkeep(const void *addr, size_t bytes);	/* 0: the kept memory that begins there */

/* ---- Interfaces that can be ports ---- */

/* Why an interface is left out; softhca_net_why has the words. */
enum softhca_net_why {
	SOFTHCA_NET_USABLE,
	SOFTHCA_NET_LOOPBACK,
	SOFTHCA_NET_DOWN,	/* or without carrier */
	SOFTHCA_NET_TUNNEL,	/* VXLAN, WireGuard, tun, GRE, ...: its packets go over another one */
	SOFTHCA_NET_DUMMY,	/* sends nothing */
	SOFTHCA_NET_MEMBER,	/* of a bond or a bridge, which has the traffic */
	SOFTHCA_NET_PUBLIC,	/* a public IPv4 address: only if it is named */
	SOFTHCA_NET_BUSY,	/* all ports of SOFTHCA_PORTS have other listeners (softhca_probe_open) */
};

/* An address that a port could have.  Text is NUL-terminated; "": unknown. */
struct softhca_net {
	char name[16];		/* of the interface */
	char kind[16];		/* in the kernel's words: "vlan", "bridge", "veth"; "": an adapter's */
	char driver[16];
	union ibv_gid gid;	/* the address, IPv4 mapped into IPv6 */
	uint64_t rate;		/* bytes per second and direction; 0: unknown */
	uint32_t index;		/* of the interface */
	uint32_t wire;		/* equal: over the same adapter, as a VLAN and its lower interface */
	uint32_t mtu;		/* bytes of an IP packet */
	uint16_t port;		/* where a probe listens; 0: nowhere */
	uint8_t prefix;		/* bits of gid that are the subnet's, 96 and more with IPv4 */
	uint8_t layers;		/* interfaces below it: 1 for a VLAN of an adapter */
	uint8_t why;		/* enum softhca_net_why */
	/* Effective settings below net.ipv4.conf. */
	uint8_t arp_ignore, arp_announce, rp_filter;
};
enum { SOFTHCA_NETS_MAX = 32 };		/* of a host; usable ones come first */

/*
 * The addresses of this host's interfaces in the kernel's order, at most `most`; an interface that
 * is left out has one.  *more (or NULL): interfaces for which there was no room.  The count, or
 * -errno with the reason in softhca_last_error().
 */
int softhca_net_list(struct softhca_net *list, unsigned most, unsigned *more);
const char *softhca_net_why(enum softhca_net_why why);
/* Boot and network namespace, hashed: equal for processes of one host only.  0 or -errno. */
int softhca_net_host(uint8_t host[16]);

/* How the kernel treats TCP streams over an interface; "" or 0: unknown. */
struct softhca_net_detail {
	char driver[16];
	uint32_t mtu;			/* bytes of an IP packet */
	char offloads[32];		/* those in use, of "tso gso gro" */
	char congestion_control[16];
	/* Bytes of a socket's buffer: least, first, most. */
	uint64_t receive_buffer[3], send_buffer[3];
};
/* 0 or -ENODEV. */
int softhca_net_detail(const char *interface, struct softhca_net_detail *out);

/*
 * A probe: do hosts reach each other over two of their interfaces?  One process a host opens one and
 * serves it until all hosts have their results.  It listens at the usable addresses of the list, on
 * ports of SOFTHCA_PORTS, and calls those of other hosts, each call over one interface alone.  Both
 * ends of a call prove `job`, a number that only processes of the job know, and name their hosts;
 * then two full packets go each way.  Nothing blocks; one thread at a time.
 */
enum softhca_probe_code {
	SOFTHCA_PROBE_NONE,	/* not called, or under way */
	SOFTHCA_PROBE_PASSED,
	SOFTHCA_PROBE_SILENT,	/* no answer within the limit: no path, or a firewall */
	SOFTHCA_PROBE_REFUSED,	/* the host refuses the connection, or ends it */
	SOFTHCA_PROBE_NO_ROUTE,	/* this host has no path over this interface, or is told so */
	SOFTHCA_PROBE_SELF,	/* the address is this host's own, too */
	SOFTHCA_PROBE_OTHER,	/* another host, or another job, has the address */
	SOFTHCA_PROBE_CROSSED,	/* packets arrive on another interface: `through` */
	SOFTHCA_PROBE_MTU,	/* small packets pass, full ones do not */
	SOFTHCA_PROBE_ASTRAY,	/* packets leave over another interface, and the kernel binds for root alone */
	SOFTHCA_PROBE_FAILED,	/* this process lacks descriptors or memory */
};
struct softhca_probed {
	uint8_t code;		/* enum softhca_probe_code */
	uint8_t through;	/* in the list of the host that was called; UINT8_MAX: unknown */
};
struct softhca_probe;

/*
 * Sets `port` of each address that it listens at, and `why` where no port is free.  0 or -errno, also if
 * none is free at all; softhca_last_error().
 */
int softhca_probe_open(struct softhca_probe **p, struct softhca_net *list, unsigned count,
		       uint64_t job);
/*
 * Call `to` of the host `host`, over list[from]; *result is written by softhca_probe_progress, 3 s
 * later at the latest.  `list` of softhca_probe_open, `result` remain the caller's, until the end.
 */
void softhca_probe_call(struct softhca_probe *p, unsigned from, const struct softhca_net *to,
			const uint8_t host[16], struct softhca_probed *result);
/* Serve both directions; returns the number of own calls under way. */
unsigned softhca_probe_progress(struct softhca_probe *p);
void softhca_probe_close(struct softhca_probe *p);

#ifdef __cplusplus
}
#endif

#endif
