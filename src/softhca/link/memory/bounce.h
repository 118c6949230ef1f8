/*
 * bounce.h - copying to and from memory of a peer that this process may not
 * access: the peer itself copies.
 *
 * process_vm_readv/writev need the right to trace the peer.  Yama (from ptrace_scope 1
 * on), some seccomp filters and other user namespaces deny this right.  Then the bytes
 * go through a buffer in the peer's process segment, 64 KiB at a time: the requester
 * claims a slot there and fills it; a thread of the peer, its copy service, checks that
 * the key still allows the copy, and copies.  Mapped memory never needs this method.
 *
 *	FREE -> CLAIMED -> ASKED -> SERVED -> DONE -> FREE
 *	    (claimer)      |  (copy service)  |  (claimer)
 *
 * A claimer that times out (the peer is stopped) turns ASKED into PROBE and
 * SERVED into LEFT.  The copy service frees both, and so shows that it runs again.
 * The slot of a dead claimer is taken over when no slot is free.
 *
 * A process starts its copy service when it registers memory that the kernel, as far as the process
 * can tell, does not copy for others; else when a peer asks for it (descriptors.h).
 *
 * SOFTHCA_COPY selects the method: "auto", the kernel if it permits, else the
 * peer; "kernel", the kernel only, and under ptrace_scope 1 this process declares
 * that every process of its user may trace it; "bounce", the peer only.
 */
#ifndef HCA_BOUNCE_H
#define HCA_BOUNCE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct hca_fabric;
struct hca_mr;
struct hca_peer;

enum hca_copy_method { HCA_COPY_AUTO, HCA_COPY_KERNEL, HCA_COPY_BOUNCE };

struct hca_copy_service {
	pthread_mutex_t lock;		/* held while a request is served; innermost */
	pthread_t thread;
	_Atomic bool started, stop;
};

/* SOFTHCA_COPY: 0, or -EINVAL with the line set. */
int hca_copy_method(enum hca_copy_method *method);

/* A registration that peers cannot map needs the copy service, if the kernel does not copy. */
void hca_copy_service_need(struct hca_fabric *f, const struct hca_mr *mr);
/* Start it because a peer asks for it: 0, or -EPERM: SOFTHCA_COPY=kernel, or no memory. */
int hca_copy_service_start(struct hca_fabric *f);
/* On return the copy service no longer uses memory that was withdrawn before this call. */
void hca_copy_service_quiesce(struct hca_fabric *f);
void hca_copy_service_stop(struct hca_fabric *f);

/*
 * Move bytes between `local` and the peer's memory at `remote`, under a key of
 * the peer's.  The last 8 become visible last.  0; -EPERM: the peer has no copy
 * service; -EFAULT: its registration does not allow it; -EBUSY: no answer now, and
 * the request will not be done; -EINPROGRESS: no answer, and the request may have
 * been done or may be done yet; -ESRCH: the peer is gone.
 */
int hca_bounce(struct hca_peer *p, bool to_peer, void *local, uint64_t remote, uint32_t key,
	       size_t bytes);

#endif
