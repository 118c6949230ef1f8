/* lost_waits.h - every way to wait for a rank, and what its loss is to look like: for lost.c. */
#ifndef LOST_WAITS_H
#define LOST_WAITS_H

#include "suite.h"

/* Tags: nothing is sent by TAG that is not received; what waits for NEVER and AMISS waits for ever. */
enum { LARGE = 300000, TAG = 5, NEVER = 99, AMISS = 98 };

extern int victim;			/* the rank that is lost */
extern unsigned char *out, *in;		/* LARGE bytes each */

void check_class(int error, const char *what);
void check_lost(int error, int which, const char *what);

/* Each rank has one of these; fewer ranks have the first ones. */
struct lost_wait {
	const char *name;
	int (*wait)(void);		/* returns the error */
};
extern const struct lost_wait waits[];
extern const int wait_count;

#endif
