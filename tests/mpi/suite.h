/*
 * suite.h - point-to-point cases that must behave alike over every way.
 *
 * A case is a function on a communicator.  suite_main runs all cases over the
 * communicators of each way named on the command line (native too: a case
 * that the MPI library itself does not pass is a wrong case).  RG_CASE in the environment: these
 * cases alone.
 */
#ifndef SUITE_H
#define SUITE_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct suite_case {
	const char *name;
	void (*run)(MPI_Comm comm);
	int min_ranks;
	bool changes_errors;	/* wants MPI_ERRORS_RETURN */
	const char *native_defect;	/* why the libraries themselves fail it: not run natively */
	bool collective;		/* --coll native makes it native, whatever the way */
};

int suite_main(int argc, char **argv, int thread_level, const struct suite_case *cases);

extern int suite_rank, suite_size;	/* rank and size in the case's communicator */
extern const char *suite_where;		/* "stripe: derived_types" */

#define CHECK(condition, ...)                                                                      \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s: rank %d: %s:%d: %s:", suite_where, suite_rank,       \
				__FILE__, __LINE__, #condition);                                   \
			fprintf(stderr, " " __VA_ARGS__);                                           \
			fputc('\n', stderr);                                                       \
			MPI_Abort(MPI_COMM_WORLD, 1);                                              \
		}                                                                                  \
	} while (0)

/* Byte i of a message is a function of who sent it, which message it is, and i. */
static inline unsigned char suite_byte(int source, unsigned message, size_t i)
{
	uint64_t x = (uint64_t)(unsigned)source * 0x9e3779b97f4a7c15u + message * 0xff51afd7ed558ccdu + i;

	x ^= x >> 29;
	x *= 0xbf58476d1ce4e5b9u;
	return (unsigned char)(x >> 56);
}

static inline void suite_fill(void *buf, size_t bytes, int source, unsigned message)
{
	unsigned char *p = buf;
	size_t i;

	for (i = 0; i < bytes; i++)
		p[i] = suite_byte(source, message, i);
}

/* The message, and not a byte after it (kept at 0xee by suite_blank). */
static inline void suite_blank(void *buf, size_t bytes)
{
	memset(buf, 0xee, bytes);
}

void suite_verify(const void *buf, size_t bytes, size_t room, int source, unsigned message);
void suite_status(const MPI_Status *status, int source, int tag, size_t bytes);

extern const size_t suite_sizes[];	/* around every limit of the transport; ends with 0 twice */
extern const int suite_size_count;

#endif
