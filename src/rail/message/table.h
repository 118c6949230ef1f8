/*
 * table.h - handles: numbers that cross the wire in place of pointers.
 *
 * A handle names an operation or an RTS that waits for an answer: an operation whose RTS is out,
 * or an RTS that has not been accepted yet.  The handle is an index into the table and the
 * generation of that entry, so a stale or invented handle is detected.  The table grows with the
 * number of messages in flight and never shrinks.
 */
#ifndef RAIL_TABLE_H
#define RAIL_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "rail/rail.h"

struct op;
struct rail_peer;

/* The memory of a message to be read: from the record before its RTS. */
struct rail_keys {
	uint64_t handle, address;
	uint32_t rkey[RAIL_MAX];	/* index: rail */
};

/* An RTS that has come. */
/* The sender's memory: in one piece, in parts (parts.h), or gathered as slices (slices.h), and in no other way. */
enum rail_rts_parts { RTS_WHOLE, RTS_PARTS, RTS_SLICES };

struct rail_rts {
	uint64_t handle;		/* at the sender */
	uint64_t bytes, threshold;
	struct rail_keys keys;		/* if it is to be read */
	uint8_t policy, bound, lane, rndv_flags, crossing, shared, found;
	uint8_t weight[RAIL_MAX];
	uint8_t parts;			/* enum rail_rts_parts */
};

struct rail_entry {
	struct rail_peer *peer;		/* NULL: free */
	struct op *op;		/* sender; NULL at the receiver */
	struct rail_rts rts;		/* receiver */
	uint32_t generation, next_free;
};

struct rail_table {
	struct rail_entry *entry;
	uint32_t count, first_free;
};

int rail_table_init(struct rail_table *t);
void rail_table_fini(struct rail_table *t);
/* A new entry of that peer; its handle is never 0.  0 or -ENOMEM. */
int rail_table_add(struct rail_table *t, struct rail_peer *peer, uint64_t *handle);
/* NULL: that peer has no such entry.  Valid until the next rail_table_add. */
struct rail_entry *rail_table_find(struct rail_table *t, const struct rail_peer *peer,
				   uint64_t handle);
/* Our handle of the RTS that has handle `theirs` at that peer; 0: none waits to be accepted. */
uint64_t rail_table_find_rts(const struct rail_table *t, const struct rail_peer *peer,
			     uint64_t theirs);
void rail_table_remove(struct rail_table *t, uint64_t handle);

#endif
