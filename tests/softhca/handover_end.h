/*
 * handover_end.h - ends that share a TCP port (meet_end.h): the caller on a host of its own, the others on one.
 */
#ifndef HANDOVER_END_H
#define HANDOVER_END_H

#include "meet_end.h"

/* So many calls do not all reach their owner by chance. */
enum { CALLER = 1, THERE = 2, THIRD = 3, QPN = 0x4711, CALLS = 40 };
#define SECOND_NS 1000000000u

extern struct meet_end caller, a, b, c;
extern char token;

/* Those that are open, for meet_settle and its like. */
extern struct meet_end *all[4];
unsigned open_ends(void);
#define ALL all, open_ends()

/* fabric NULL: that of this process.  All on one port; the caller's range may end at another. */
void start_there(struct meet_end *e, const char *fabric);
void start_caller_with(const char *fabric, uint16_t last);
void start_caller(const char *fabric);
/* The answer of `e`: `owner` has the queue pair, and shares its port. */
void owner_is(struct meet_end *e, const struct meet_end *owner);
void call(void);
/* Each of CALLS calls reaches this owner. */
void calls_reach(struct meet_end *owner);
void close_end(struct meet_end *e);
/* This process, a child. */
void be_another_user(void);

int begin(void **state);
int end(void **state);

#endif
