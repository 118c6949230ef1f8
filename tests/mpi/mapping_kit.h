/*
 * mapping_kit.h - messages from rank 0 to rank 1, and what of their memory peers map, for programs of cases
 * under --map-buffers.
 *
 * Rank 0 sends, rank 1 receives, looks at every byte, and finds in /proc/self/maps what was mapped.
 * Both run the same calls.  "CASE: skipped: why" or "CASE: well" a line, "failed" in what is wrong.
 */
#ifndef TESTS_MPI_MAPPING_KIT_H
#define TESTS_MPI_MAPPING_KIT_H

#include <stdbool.h>
#include <stddef.h>

extern int rank, wrong;
extern const char *now;			/* the case */
extern unsigned turn;			/* number of the last message, and its pattern */

void check_at(int line, bool right, const char *what);
#define check(right) check_at(__LINE__, right, #right)

/* ---- Messages ------------------------------------------------------------ */

unsigned char value(unsigned seed, size_t i);
void fill(unsigned char *at, size_t bytes, unsigned seed);
bool is_filled(const unsigned char *at, size_t bytes, unsigned seed);
/* The next message, into buf; its seed. */
unsigned message(void *buf, size_t bytes);
unsigned messages(void *buf, size_t bytes, int count);

/* ---- Memory -------------------------------------------------------------- */

/* Pages of the range that are the memory which peers map. */
size_t mapped(const void *at, size_t bytes);
bool is_mapped(const void *at, size_t bytes);
bool is_not(const void *at, size_t bytes);
/* An address without earlier mappings: an address that came and went often is mapped late. */
unsigned char *pages(size_t bytes);

/* ---- Cases --------------------------------------------------------------- */

struct mapping_case {
	const char *name;
	const char *(*run)(void);	/* NULL, or why it was skipped */
};

/* The cases that argv names, or all: main's exit code. */
int mapping_run(const struct mapping_case *cases, size_t count, int argc, char **argv);

#endif
