/*
 * bounce.h - copying to and from memory of a peer that this process may not
 * touch, by the peer's own hands.
 *
 * process_vm_readv/writev need the right to trace the peer, which Yama (from
 * ptrace_scope 1 on) and some seccomp filters deny.  Then the bytes go through
 * a buffer in the peer's process segment, 64 KiB at a time: whoever wants them
 * moved claims a slot there and fills it; a thread of the peer, its porter,
 * checks that the key still allows it and copies.  Mapped memory never comes
 * this way.
 *
 *	FREE -> CLAIMED -> ASKED -> SERVED -> DONE -> FREE
 *	(by the claimer)	(porter)   (porter) (claimer)
 *
 * A claimer that has lost its patience (the peer is stopped) turns ASKED into
 * PROBE and SERVED into LEFT, both of which the porter frees: by its next sign
 * of life it is known to be back.  What the dead have claimed is taken over when
 * no slot is free.
 *
 * SOFTHCA_COPY chooses: "auto", the kernel if it lets us, else the peer;
 * "kernel", the kernel only, and under ptrace_scope 1 this process declares
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
int hca_copy_method(enum hca_copy_method *way);

/* A registration that peers cannot map will need a porter, if the kernel does not copy. */
void hca_copy_service_need(struct hca_fabric *f, const struct hca_mr *mr);
/* Nobody is at what was withdrawn before this call. */
void hca_copy_service_pass(struct hca_fabric *f);
void hca_copy_service_stop(struct hca_fabric *f);

/*
 * Move bytes between `local` and the peer's memory at `remote`, under a key of
 * the peer's.  The last 8 become visible last.  0; -EPERM: it has no porter;
 * -EFAULT: its registration does not allow it; -EBUSY: it does not answer just
 * now, and will not do it; -EINPROGRESS: nor that, but it may have done it or do it
 * yet; -ESRCH: it is gone.
 */
int hca_bounce(struct hca_peer *p, bool to_peer, void *local, uint64_t remote, uint32_t key,
	       size_t bytes);

#endif
