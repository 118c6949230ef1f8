/*
 * fake_link.h - a second link for tests of the engine: it accepts requests and says what became of
 * them when the test tells it to.
 */
#ifndef FAKE_LINK_H
#define FAKE_LINK_H

#include "softhca/object/fabric.h"
#include "softhca/object/link.h"
#include "softhca/object/qp.h"

enum { FAKE_LOG = 8192, FAKE_ANSWERS = 16 };

enum fake_what { FAKE_ENDED, FAKE_FAILED, FAKE_REWOUND, FAKE_RESUME, FAKE_LOST };

struct fake_handed {
	uint64_t wr_id;
	enum ibv_wr_opcode opcode;
	uint32_t bytes;
	const struct ibv_send_wr *wr;	/* in its slot */
};

/* The only one of the process. */
extern struct fake_link {
	struct hca_fabric *fabric;
	/* Every request that was handed over, whatever the answer. */
	struct fake_handed handed[FAKE_LOG];
	_Atomic unsigned handed_count;
	/* Results of the next transfers, and of all after them. */
	int answer[FAKE_ANSWERS], usual;
	unsigned answers, answered;
	uint32_t rnr_timer;
	int connect_error;
	int fd;				/* wait_fd */
	uint64_t next_ns;
	/* Calls of the operations. */
	unsigned made, freed, connected, stopped, reset, quiesced, published, withdrawn, looked;
	_Atomic unsigned progressed, told, waits;	/* upcalls; askings for the descriptor */
	_Atomic unsigned sleepers;	/* for the descriptor, now */
} fake;

/* Make it the fabric's wire, before there are queue pairs. */
void fake_install(struct hca_fabric *f, bool always);
/* After the fabric has been left. */
void fake_remove(void);
/* Let the next transfers have these results. */
void fake_answer(unsigned count, int result);
/* The next progress makes this upcall.  Any thread. */
void fake_tell(struct ibv_qp *qp, enum fake_what what, int value);
/* The descriptor becomes readable, until the next progress. */
void fake_ring(void);

#endif
