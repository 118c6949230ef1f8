/*
 * inspect.h - the fabrics of this user, seen from outside, for the softhca command.
 *
 * A fabric is found through its member registry.  A closed fabric (after the start of
 * an MPI job) has none and is found through a process that holds its segment.
 */
#ifndef HCA_INSPECT_H
#define HCA_INSPECT_H

#include "softhca/link/memory/registry.h"
#include "softhca/model/spec.h"

struct hca_seen {
	char name[HCA_NAME_MAX + 1];
	struct hca_shm_fabric *shm;	/* mapped; NULL: all members are dead */
	struct hca_spec spec;		/* all zero if shm is NULL */
	struct hca_registry_image *image;	/* NULL: the file is gone */
	unsigned char state[HCA_PROCS_MAX];	/* enum hca_member_state, of the image */
	bool damaged;			/* the file is; the rest is invalid */
	uint64_t nonce;
};

struct hca_sight {
	struct hca_seen *fabric;
	unsigned count;
	struct hca_identity me;
};

/* 0 or -ENOMEM with the line set. */
int hca_inspect(struct hca_sight *sight);
void hca_inspect_end(struct hca_sight *sight);

#endif
