/* state.h - what the memory link keeps per fabric. */
#ifndef HCA_LINK_STATE_H
#define HCA_LINK_STATE_H

#include "base/layout.h"
#include "link/memory/bounce.h"

struct hca_peer;

struct hca_link_state {
	uint64_t nonce;			/* of the fabric segment */
	int shm_fd;
	unsigned table_guards;		/* enum hca_guards that this kernel has */
	enum hca_copy_method copy;
	_Atomic bool kernel_asked, kernel_copies;	/* bounce.c */
	_Atomic bool left;		/* the departure has been announced */
	struct hca_copy_service copy_service;
	struct hca_peer *peer[HCA_PROCS_MAX];	/* by slot; under fabric.slow */
};

#endif
