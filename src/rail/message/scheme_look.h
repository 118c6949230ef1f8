/*
 * scheme_look.h - looks: first short measurements of schemes whose messages queue, for scheme.c.
 *
 * A receiver takes all offers that are there, and the other end does its parts later.  So the time between two takes shows
 * this end's part alone, and the time between two ends the slower one of both.  A look is of a few messages that
 * follow each other: its cost is the larger one of the two times, per piece.  Its messages end after
 * others have been taken, and so several looks, each of another scheme, are under way at once.
 */
#ifndef RAIL_SCHEME_LOOK_H
#define RAIL_SCHEME_LOOK_H

#include "rail/message/scheme.h"

enum { LOOK_MESSAGES = 2, LOOK_RING = 4, LOOK_ENDS = 3 };

/* A message of the present scheme is taken: of a batch that has the number of the cell's. */
void rail_look_take(struct rail_scheme_cell *cell, uint32_t pieces, uint64_t now_ns);
/* Is a look of the present scheme open, and has it enough messages? */
bool rail_look_is_open(const struct rail_scheme_cell *cell);
bool rail_look_is_full(const struct rail_scheme_cell *cell);
/* No more messages of the present scheme; the next one is taken at now_ns, 0: the burst is over. */
void rail_look_close(struct rail_scheme_cell *cell, uint64_t now_ns);
/* A message has ended; true: a look has, which may change what is best. */
bool rail_look_done(struct rail_scheme_cell *cell, uint8_t batch, uint32_t pieces, uint64_t now_ns);
/* Looks under way are given up. */
void rail_look_forget(struct rail_scheme_cell *cell);

#endif
