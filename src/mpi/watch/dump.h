/*
 * dump.h - --dump-signal: a signal that makes the progress thread print the queues.
 *
 * The signal's handler sets a flag and wakes the progress thread, nothing else.  The thread looks
 * at the flag whenever it wakes; a program that waits in a call looks at it in the rare round in
 * which it drives the MPI library too, and then gives way (progress.c).  The path of a message is
 * the same with and without it.
 */
#ifndef RAILMPI_DUMP_H
#define RAILMPI_DUMP_H

#include <stdatomic.h>
#include <stdbool.h>

/* The queues are to be printed. */
extern _Atomic bool dump_asked;

/* signal_number 0: none.  wake: called by the handler.  0 or -errno. */
int dump_start(int signal_number, void (*wake)(void));
void dump_stop(void);
/* Inside layer_enter: print them, one line for each peer that has any, and forget the request. */
void dump_print(void);

#endif
