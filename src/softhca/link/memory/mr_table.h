/*
 * mr_table.h - a process's registrations, where its peers find them: a segment that
 * they read and only the process itself can write to.
 *
 * What a peer has the kernel or the owner copy goes to the addresses in a row, so
 * nobody else may say what stands there: no mapping but the owner's is writable
 * (F_SEAL_FUTURE_WRITE), and the kernel itself tells who the owner is (by the
 * lock on it; segment.h).  A member that puts somebody else's pid into its slot
 * of the fabric segment, with the number of a descriptor that this one happens to
 * have, finds nobody who believes it.  A kernel that knows neither has its
 * processes go on without: then who writes into another's table misleads that
 * one's peers.
 *
 * The one thing that a peer decides about a row is that a type 2 window is taken
 * away (SEND with invalidate); it says so in the owner's process segment
 * (hca_shm_process.taken).
 */
#ifndef HCA_MR_TABLE_H
#define HCA_MR_TABLE_H

#include "object/fabric.h"

/* Ours: f->table, f->table_fd.  0, or -errno with the line set. */
int hca_table_create(struct hca_fabric *f);
/* Say whose it is, before anybody can look. */
void hca_table_name(struct hca_fabric *f, pid_t pid, uint64_t start_time);
void hca_table_free(struct hca_fabric *f);

/*
 * That of the process in a slot, which says that it is this one, by its
 * descriptor `fd`.  NULL: it is not that, or cannot be read (silent).
 */
const struct hca_shm_table *hca_table_open(const struct hca_fabric *f, uint32_t slot,
					   uint32_t generation, pid_t pid, uint64_t start_time,
					   int fd);
void hca_table_close(const struct hca_shm_table *t);

#endif
