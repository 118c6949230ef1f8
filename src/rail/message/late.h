/*
 * late.h - senders that answer late, between two processes of one host.
 *
 * Halves, turns and slices need the sender after its offer: it acts on the receiver's record when its
 * program is in a call of the library.  A program that computes between MPI_Isend and MPI_Wait leaves the
 * record there, and the receiver would wait for as long as the program computes.  A read needs the receiver
 * alone.  So a receiver that waits watches one record to each peer.  The record is late when it has waited
 * for data LATE_NS and the time that a read of the message would have taken, as measured (scheme.h): to
 * wait costs at most twice the better choice.  A message whose read has not been measured counts 8 bytes per
 * nanosecond.
 *
 * From then on until data comes the receiver reads the peer's messages, and for some time after that: as
 * long as the data was late, four times as long after the second such record in a row, then 16 and 64 times.
 * So waits are a 64th of the time at most, and a sender that was preempted once changes a few messages.
 * Data in time ends the row.
 *
 * Pure: no clock, no verbs.
 */
#ifndef RAIL_LATE_H
#define RAIL_LATE_H

#include <stdbool.h>
#include <stdint.h>

enum {
	LATE_NS = 50000,
	LATE_BYTES_PER_NS = 8,
	LATE_ROW = 3,			/* times four, so often at most */
};

struct rail_late {
	uint64_t limit_ns;		/* of the record that is watched */
	uint64_t seen_ns;		/* the first look at it; 0: none */
	uint64_t until_ns;		/* messages are read until then; 0: no such time */
	uint32_t answers;		/* records of this end that have been answered by data */
	uint32_t before;		/* answers when the watch began */
	uint8_t row;			/* late records in a row */
	bool watched, late;
};

/* A record that asks for data is out, and none is watched; to read the data takes so long. */
void rail_late_ask(struct rail_late *late, uint64_t read_ns);
/* The receiver polls, and there is nothing.  False: the watch is over. */
bool rail_late_look(struct rail_late *late, uint64_t now_ns);

/* Must a message of the peer be decided with the clock, by rail_late_reads? */
static inline bool rail_late_suspects(const struct rail_late *late)
{
	return late->late || late->until_ns;
}

/* Is a message that is taken now to be read? */
bool rail_late_reads(struct rail_late *late, uint64_t now_ns);

#endif
