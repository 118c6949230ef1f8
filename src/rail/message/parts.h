/*
 * parts.h - rendezvous messages that move part by part.
 *
 * A table of chunks moves a part as it moves a whole message: it is cleared to send, or read, and
 * lands; then the next part follows.  The receiver decides, and each of its CTSs or FINs says
 * whether more parts follow (RECORD_MORE).
 *
 *	memory in several pieces, or memory that adapters cannot have (RAIL_MEM_PARTS), at either
 *	end: each part goes through memory of librail's, which the caller fills or empties
 *	(on_part); both ends have parts of RAIL_PART_BYTES
 *	a message that is too long for one table: parts as long as one can be
 *
 * The sender of memory in parts always moves the data itself.  A message offered by both ends is
 * read, if the receiver wants it in parts.
 *
 * An operation has this state from the beginning if its message may move in parts: if the message
 * is longer than one part.  A message that is gathered as slices has it for its memory.
 */
#ifndef RAIL_PARTS_H
#define RAIL_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rail/message/rail_op.h"

struct rail_parts {
	uint64_t begin;			/* the moving part's first byte, in the message */
	uint64_t cleared;		/* end of the last part that the receiver has requested */
	uint64_t most;			/* receiver: bytes of a part */
	uint64_t next;			/* sender: bytes of a part requested while another moves; of the slice in memory */
	unsigned char *memory;		/* parts, or slices, go through it; NULL: each is in the buffer */
	size_t memory_bytes;
	bool more;			/* bytes follow after `cleared` */
	bool tabled;			/* sender: the handle is valid, more can be requested */
};

/*
 * Make the state of a message of so many bytes that may need it.  staged: its parts, or its slices, go through
 * memory.  0, or -ENOMEM after a line.
 */
int rail_parts_make(struct op *op, size_t bytes, bool staged);
void rail_parts_free(struct op *op);
/* The memory to be registered, for the part under way or all; the first byte of the part. */
void rail_parts_memory(const struct op *op, void **addr, size_t *bytes);
unsigned char *rail_parts_data(const struct op *op);

/* ---- Sender ------------------------------------------------------------- */

/* May a peer ask for so many bytes next, and for more? */
bool rail_parts_fit(const struct op *op, uint64_t bytes, bool more);
/* The peer has asked. */
void rail_parts_asked(struct op *op, uint64_t bytes, bool more);
/* The request was a CTS.  True: obey it now; false: once the part before it has gone. */
bool rail_parts_cleared(struct op *op, uint64_t bytes);
/* All chunks of a part have gone.  False: this was the last part. */
bool rail_parts_sent(struct op *op);

/* ---- Receiver ----------------------------------------------------------- */

/* Begin with the first part; theirs: the sender's memory is in parts. */
void rail_parts_begin(struct op *op, bool theirs);
/* A part has come: scatter it into the buffer. */
void rail_parts_landed(struct op *op);
/* Begin the next part; false: this was the last part. */
bool rail_parts_next(struct op *op);

static inline bool op_has_more(const struct op *op)
{
	return op->parts && op->parts->more;
}

/* The first byte that moves. */
static inline unsigned char *op_data(const struct op *op)
{
	return op->parts ? rail_parts_data(op) : op->buf.addr;
}

#endif
