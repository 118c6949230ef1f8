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
 * Environment, where a function takes no configuration: SOFTHCA_SPEC,
 * SOFTHCA_FABRIC, SOFTHCA_NODE; SOFTHCA_REMAP and SOFTHCA_COPY (below).  SOFTHCA_DIR
 * names the directory of files; the default is the first of /dev/shm, TMPDIR and /tmp
 * that takes files.  Files are member registries and, where the system denies
 * memfd_create or with SOFTHCA_MEMORY=file, shared memory as files without a name.
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
	/* net=: 64 hex digits, the same for all processes of the fabric; NULL: SOFTHCA_SECRET_FILE. */
	const char *secret;
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
 */
struct ibv_device **softhca_get_device_list(const struct softhca_config *cfg, int *count);

/* The last failure in this thread, in one line: "spec: rate=0: ... (accepted: ...)". */
const char *softhca_last_error(void);

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
	uint64_t port_rate[8];		/* port 1, 2, ... */
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
	SOFTHCA_CUT,		/* a port at either end is down, or 9 of 10 packets are lost */
	SOFTHCA_LEFT,		/* the process has left the fabric in good order, or none has this number */
	SOFTHCA_DEAD,		/* the process has ended without leaving */
};
int softhca_query_reach(const struct ibv_ah *ah, uint32_t qpn);

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

#ifdef __cplusplus
}
#endif

#endif
