/*
 * map_choice.h - do peers map the receive buffers of a class of sizes?  Learned while messages flow.
 *
 * A message into mapped memory costs no copy by the kernel at the end that writes; the pages of the buffer
 * have to be moved for it, and memory that is mapped has other pages, and other bytes in caches.  Which
 * costs less differs between processors, so it is measured as the schemes of scheme.h are, in a
 * cell of its own for each place of peers and class of sizes: plain memory, with the schemes that
 * scheme.h finds meanwhile; mapped memory that the sender writes; mapped memory of which each end
 * copies a half.  The receiver measures.  A process without --map-buffers has no such cell.
 *
 * A sample is the time of a batch of messages, by their number, without the pauses in which none is under
 * way.  It begins where none is under way, since those of another scheme would be part of it.  The
 * first messages of all are plain, until scheme.h has found out about them.
 *
 * Moves.  The pages of a buffer move once, and then all its messages gain.  How often a buffer will be used is not
 * known; one that was used n times is assumed to be used n times more.  So a buffer is mapped when the cost of a
 * move, spread over the uses so far, is less than what each of them would have gained.  While
 * schemes take turns, pages move at each change between plain and mapped memory: such a change waits
 * until the moves so far are a small part of the time of all messages.
 *
 * Plain again.  A buffer that is mapped while its class is plain moves back at its next use.  Plain schemes on
 * mapped memory would be a third kind, whose cost no cell has, and move the same pages for the next trial.
 *
 * Pure: no clock, no verbs.  A process has one table; its caller serializes.
 */
#ifndef RAIL_MAP_CHOICE_H
#define RAIL_MAP_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

#include "rail/message/scheme.h"

enum rail_map_scheme {
	MAP_PLAIN,
	MAP_WRITTEN,			/* the sender writes all through the mapping */
	MAP_HALVES,			/* the sender writes a half, the receiver copies the other */
	MAP_SCHEMES,
};

enum {
	MAP_MOVES = 8,			/* samples of a move */
	MAP_SEEN = 64,			/* plain messages before learning, at first */
	MAP_OWN_MOVE = 0,		/* in place of the number of a batch: the message moves pages, */
	MAP_NO_BATCH = 255,		/* or is of none */
};

_Static_assert((int)MAP_SCHEMES <= (int)RAIL_SCHEMES, "a cell of scheme.h holds the schemes");

struct rail_map_cell {
	struct rail_scheme_cell race;	/* of enum rail_map_scheme */
	uint32_t move_ns[MAP_MOVES];	/* of a buffer's pages, in order */
	uint8_t moves;
	uint32_t seen, wait;		/* plain messages before learning; how many */
	uint16_t missed;		/* of the visit: into memory that is not what the scheme wants */
	uint8_t batch;			/* a number, which wraps */
	bool streams;			/* the batch begins with the end of its first message */
	uint32_t under_way;		/* the batch's */
	uint64_t paused_ns;		/* of the batch, without any message */
	uint64_t moved_ns, all_ns;	/* that all moves took; all batches */
};

struct rail_map_choice {
	struct rail_map_cell cell[RAIL_PLACES][SCHEME_CLASSES];
	struct rail_map_cell *last;	/* of the last message that was measured */
	uint32_t under_way;		/* messages that were taken and are not done */
	uint32_t unbroken;		/* messages since none was under way */
	uint64_t move_begun_ns;		/* the last message that moves pages */
};

void rail_map_choice_init(struct rail_map_choice *choice);

static inline struct rail_map_cell *rail_map_cell(struct rail_map_choice *choice, unsigned place, uint64_t bytes)
{
	return &choice->cell[place][rail_scheme_class(bytes)];
}

/* The scheme that the next message of the cell wants. */
static inline enum rail_map_scheme rail_map_wanted(const struct rail_map_cell *cell)
{
	return (enum rail_map_scheme)cell->race.scheme;
}

/* The scheme of a message whose buffer is mapped: the wanted one, or the better of both by a mapping. */
enum rail_map_scheme rail_map_mapped(const struct rail_map_cell *cell);

/* Is there something to learn from messages of the cell? */
static inline bool rail_map_learns(const struct rail_map_cell *cell)
{
	return !cell->race.settled;
}

/* The use of a buffer, from 1 on, at which it is mapped, in a cell that wants it mapped. */
uint32_t rail_map_due(const struct rail_map_cell *cell);

/*
 * A message begins at now_ns, of a cell that learns; as: its memory and how it moves, MAP_SCHEMES: otherwise.
 * True: its end is told by rail_map_done, with *batch.
 */
bool rail_map_take(struct rail_map_choice *choice, struct rail_map_cell *cell, enum rail_map_scheme as,
		   uint64_t now_ns, uint8_t *batch);
/* The same of a message whose buffer is moved for it; begun_ns: before the move. */
void rail_map_take_move(struct rail_map_choice *choice, struct rail_map_cell *cell, uint64_t begun_ns, uint8_t *batch);
void rail_map_done(struct rail_map_choice *choice, struct rail_map_cell *cell, uint8_t batch, uint64_t now_ns);
/* A buffer has moved back. */
void rail_map_moved_back(struct rail_map_cell *cell, uint64_t took_ns);
/* Messages under way are lost: they are not measured. */
void rail_map_forget(struct rail_map_choice *choice);

/* The cost of a move, nanoseconds; 0: none is known. */
uint32_t rail_map_move_cost(const struct rail_map_cell *cell);
/* Settle a cell by costs that were measured before. */
void rail_map_give(struct rail_map_cell *cell, enum rail_map_scheme scheme, const uint32_t cost_ns[MAP_SCHEMES],
		   uint32_t move_ns);

#endif
