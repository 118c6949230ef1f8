/*
 * mr_table.h - a process's registrations, for its peers: a segment that they read
 * and only the process itself can write to.
 *
 * The kernel or the owner copies to the addresses in a row on a peer's behalf, so
 * no other process may write a row: no mapping but the owner's is writable
 * (F_SEAL_FUTURE_WRITE), and the kernel itself identifies the owner (by the lock
 * on the file; segment.h).  Peers do not accept a member that puts another
 * process's pid into its slot of the fabric segment, with a descriptor number that
 * this process happens to have.  A kernel may lack either guard: then a process
 * that writes into another's table misleads the peers of that process.
 *
 * A peer decides only one thing about a row: that a type 2 window is invalidated
 * (SEND with invalidate).  The peer records this in the owner's process segment
 * (hca_shm_process.invalidated).
 */
#ifndef HCA_MR_TABLE_H
#define HCA_MR_TABLE_H

#include "softhca/object/fabric.h"

/* The table of this process: f->table, f->table_fd.  0, or -errno with the line set. */
int hca_table_create(struct hca_fabric *f);
/* Write its owner into it, before a peer can read it. */
void hca_table_name(struct hca_fabric *f, pid_t pid, uint64_t start_time);
void hca_table_free(struct hca_fabric *f);

/*
 * The table of the process in a slot, opened through /proc; *s is a copy of the slot.
 * 0 or -errno (silent); -EPROTO: it is another process's.
 */
int hca_table_open(const struct hca_fabric *f, uint32_t slot, const struct hca_shm_slot *s,
		   const struct hca_shm_table **table);
/*
 * The table by a descriptor that the process has handed over; NULL: it is another process's.  The
 * descriptor's owner is not checked: the kernel copies nothing under a pid that the table names.
 */
const struct hca_shm_table *hca_table_take(const struct hca_fabric *f, uint32_t slot,
					   const struct hca_shm_slot *s, int fd);
void hca_table_close(const struct hca_shm_table *t);

#endif
