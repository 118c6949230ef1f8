/* state.h - the memory link's state of a fabric. */
#ifndef HCA_LINK_STATE_H
#define HCA_LINK_STATE_H

#include "softhca/base/layout.h"
#include "softhca/link/memory/bounce.h"
#include "softhca/link/memory/descriptors.h"
#include "softhca/link/memory/service.h"

struct hca_peer;

struct hca_link_state {
	uint64_t nonce;			/* the fabric segment's */
	struct hca_identity me;
	struct hca_service service;
	bool holds_spares;
	char registry[256];		/* path of the member registry; empty: there is none */
	int shm_fd;
	unsigned table_guards;		/* enum hca_guards that this kernel has */
	enum hca_copy_method copy;
	_Atomic bool kernel_asked, kernel_copies;	/* bounce.c */
	_Atomic bool left;		/* the departure has been announced */
	struct hca_copy_service copy_service;
	_Atomic uint64_t silent_until_ns[HCA_PROCS_MAX];	/* index: slot; no answer came */
	struct hca_peer *peer[HCA_PROCS_MAX];	/* index: slot; under fabric.slow */
};

#endif
