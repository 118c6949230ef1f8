/*
 * against.h - a collective twice, over a way and natively, on the same random input.
 *
 * All ranks draw the same plan from one seed.  Both runs begin with the same bytes in
 * the receive buffer; what is sent must not change.
 *
 * SUITE_SEED starts elsewhere, SUITE_ROUNDS runs longer; a failure prints both.
 * RAILGAUGE_COLL forces algorithms.
 */
#ifndef AGAINST_H
#define AGAINST_H

#include "suite.h"

enum {
	AGAINST_RANKS = 16,
	AGAINST_ROUNDS = 150,		/* unless SUITE_ROUNDS says otherwise */
	AGAINST_ROOM = 24 << 20,	/* bytes of each buffer */
	AGAINST_MARGIN = 256,		/* bytes in front of the part that MPI gets, and after it */
};

extern MPI_Comm against_ours, against_native;
extern int against_rank, against_size;
/* Send buffer and a copy of it; receive buffers of both runs. */
extern unsigned char *against_given, *against_kept, *against_mine, *against_theirs;
extern unsigned long against_round;

/* Collective over comm. */
void against_begin(MPI_Comm comm);
void against_end(void);
/* A plan of its own for each case (salt) and round; how many rounds. */
void against_round_begin(unsigned long round, unsigned salt);
unsigned long against_rounds(unsigned long standard);
/* 0 to n - 1, the same on all ranks. */
unsigned against_draw(unsigned n);
/* Random bytes, different on each rank, in all four. */
void against_fill(size_t room);
void against_check_kept(const char *what, size_t room);
/* The receive buffers hold the same, byte by byte. */
void against_compare(const char *what, size_t room);

#define CHECK_ROUND(condition, what)                                                               \
	CHECK(condition, "%s (round %lu, see against.h)", what, against_round)

#endif
