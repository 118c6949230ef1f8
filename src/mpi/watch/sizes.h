/*
 * sizes.h - the histogram of --ledger: messages sent over rails, by size.
 *
 * As with --trace, functions of sizes.c come before librail's and before send_done while the ledger
 * is kept.  Without it the path of a message is the same as ever.
 */
#ifndef RAILMPI_SIZES_H
#define RAILMPI_SIZES_H

#include <stdint.h>
#include <stdio.h>

#include "rail/rail.h"

#pragma GCC visibility push(hidden)

/* Class 0: no bytes; class i: more than 2^(i-2) and at most 2^(i-1) bytes; class 1: one byte. */
enum { SIZES_CLASSES = 50 };

struct sizes {
	struct {
		uint64_t program, collective;	/* messages of the program, of collectives */
		uint64_t bytes;			/* of both */
	} of[SIZES_CLASSES];
};

/* Set the functions of cfg that count; after trace_open. */
void sizes_open(struct rail_config *cfg);
/* The rails are closed, or there are none; before trace_close. */
void sizes_close(void);
/* This rank's so far. */
void sizes_read(struct sizes *out);
void sizes_print(FILE *f, const struct sizes *s);

#pragma GCC visibility pop

#endif
