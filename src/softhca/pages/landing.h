/*
 * landing.h - landings: accesses of this library to the program's memory on behalf of peers.
 *
 * A landing is one recv or memcpy of at most HCA_LANDING_BYTES, or one send of 1 MiB at most.  Pages
 * are not moved (remap.h) while a landing is in progress, so no byte of it is lost; a landing that
 * begins during a move waits.  Memory that is withdrawn (a registration) is not used by any landing after
 * hca_landings_wait.
 *
 * Within a landing a thread takes no lock, does not allocate and does not sleep, since threads that
 * wait for its end may hold any lock but hca_remap_lock.  (The lock of atomics.h is waited for 0.2 ms
 * at most.)  A signal handler that interrupts it may take hca_remap_lock.
 */
#ifndef HCA_LANDING_H
#define HCA_LANDING_H

enum { HCA_LANDING_BYTES = 256 << 10 };

/* Landings of one thread may be nested. */
void hca_landing_enter(void);
void hca_landing_leave(void);

/*
 * Wait until no landing that began before this call is in progress in another thread.  What was
 * withdrawn before it is found by no later landing.
 */
void hca_landings_wait(void);

/* Exclude landings of other threads, from this until hca_landings_admit.  All signals are blocked. */
void hca_landings_exclude(void);
void hca_landings_admit(void);

/* In a child of fork: other threads of the parent may have been in a landing or a move. */
void hca_landings_in_child(void);

#endif
