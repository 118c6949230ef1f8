/*
 * parts.h - rendezvous messages that move part by part.
 *
 * One table of chunks moves a part as it moves a whole message: it is cleared to send, or read, and
 * lands; then the next one follows.  The receiver decides, and says with each CTS or FIN whether more
 * parts follow (RECORD_MORE).
 *
 *	memory that is not in one piece, or that adapters cannot have (RAIL_MEM_PARTS), at either
 *	end: each part goes through memory of librail's, which the caller fills or empties
 *	(on_part); both ends have parts of RAIL_PART_BYTES
 *	a message that is too long for one table: parts as long as one can be
 *
 * Only the sender moves the data of memory that it has in parts.  What is offered by both ends is
 * read, if the receiver wants it in parts.
 *
 * An operation has this state from the beginning if its message may move in parts: if it is
 * longer than one.
 */
#ifndef RAIL_PARTS_H
#define RAIL_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rail/rail.h"

struct rail_parts {
	uint64_t begin;			/* of the part that moves, in the message */
	uint64_t cleared;		/* the end of the last part that the receiver has asked for */
	uint64_t most;			/* receiver: bytes of a part */
	uint64_t next;			/* sender: of a part that is asked for while another moves */
	unsigned char *memory;		/* what parts go through; NULL: each is where it belongs */
	size_t memory_bytes;
	bool more;			/* behind what is cleared */
	bool tabled;			/* sender: its handle stands, so that more can be asked for */
};

/* For a message of so many bytes, if it may need it.  0, or -ENOMEM after a line. */
int rail_parts_make(struct rail_op *op, size_t bytes, bool staged);
void rail_parts_free(struct rail_op *op);
/* The memory that moves, of the part under way or of all: to be registered; the part's first byte. */
void rail_parts_memory(const struct rail_op *op, void **addr, size_t *bytes);
unsigned char *rail_parts_data(const struct rail_op *op);

/* ---- Sender ------------------------------------------------------------- */

/* May a peer ask for so many bytes next, and for more? */
bool rail_parts_fit(const struct rail_op *op, uint64_t bytes, bool more);
/* It has. */
void rail_parts_asked(struct rail_op *op, uint64_t bytes, bool more);
/* By a CTS that is to be obeyed; false: as soon as the part before it has gone. */
bool rail_parts_cleared(struct rail_op *op, uint64_t bytes);
/* All chunks of a part have gone.  False: it was the last one. */
bool rail_parts_sent(struct rail_op *op);

/* ---- Receiver ----------------------------------------------------------- */

/* The first part; theirs: the sender's memory is in parts. */
void rail_parts_begin(struct rail_op *op, bool theirs);
/* A part has come: it is put where it belongs. */
void rail_parts_landed(struct rail_op *op);
/* The next one begins; false: there is none. */
bool rail_parts_next(struct rail_op *op);

static inline bool op_has_more(const struct rail_op *op)
{
	return op->parts && op->parts->more;
}

/* The first byte of what moves. */
static inline unsigned char *op_data(const struct rail_op *op)
{
	return op->parts ? rail_parts_data(op) : op->buf.addr;
}

#endif
