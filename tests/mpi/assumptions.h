/*
 * assumptions.h - acts of MPI programs other than calls of MPI, which the layer must bear.
 *
 * A case is a function that two ranks run in step; main runs the cases of a group with a checked
 * exchange after each case, by the MPI library alone (control) or over rails: the program cannot
 * tell and does not ask.
 */
#ifndef ASSUMPTIONS_H
#define ASSUMPTIONS_H

#include "suite.h"

struct assumption {
	const char *group, *name;
	void (*run)(void);
};

/* Each ends with an empty row. */
extern const struct assumption signal_cases[], process_cases[], thread_cases[], call_cases[],
	error_cases[], place_cases[], finalize_cases[];

enum { SMALL = 64, MIDDLE = 9000, LARGE = 300000 };

/* Both ways, checked; a message of each size and an MPI_Allreduce. */
void traffic(void);
void exchange(int tag, size_t bytes);
/* The same, of which open leaves a receive and a send of each size to shut. */
struct pair {
	unsigned char *out[2], *in[2];
	MPI_Request request[4];
	unsigned message;
};
void pair_open(struct pair *p);
void pair_shut(struct pair *p);

/* Before MPI_Init: what the group wants (assumptions_place.c). */
void prepare(const char *group, char **argv);
void process_prepare(void);
/* After MPI_Init, before the first message. */
void change_place(const char *group);
/* After MPI_Finalize: all of its callbacks have been called. */
bool finalize_well(void);

#endif
