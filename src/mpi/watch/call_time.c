/* call_time.c - see call_time.h. */
#include "mpi/watch/call_time.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "mpi/abi/loaded.h"
#include "mpi/abi/native.h"
#include "util/clock.h"
#include "util/compiler.h"

static struct loaded_entry entries[TIMED_COUNT];
static _Atomic uint64_t spent_ns[TIMED_COUNT];
static uint64_t started_ns;
static struct call_times total;
static FAST_THREAD_LOCAL bool inside;

/* ---- The functions before MPI's ------------------------------------------------------------ */

static bool time_enter(uint64_t *from_ns)
{
	if (inside)
		return false;
	inside = true;
	*from_ns = rg_now_ns();
	return true;
}

static void time_leave(enum timed call, uint64_t from_ns)
{
	inside = false;
	atomic_fetch_add_explicit(&spent_ns[call], rg_now_ns() - from_ns, memory_order_relaxed);
}

/*
 * Whatever the arguments are: integers and pointers, each in a word of its own, passed on as they
 * are.  Of words beyond a function's own nothing is read but to be passed on.
 */
#define SHORT_WORDS intptr_t a, intptr_t b, intptr_t c, intptr_t d, intptr_t e, intptr_t f
#define SHORT_ARGS a, b, c, d, e, f
#define LONG_WORDS SHORT_WORDS, intptr_t g, intptr_t h, intptr_t i, intptr_t j, intptr_t k, \
	intptr_t l, intptr_t m, intptr_t n
#define LONG_ARGS SHORT_ARGS, g, h, i, j, k, l, m, n

#define GEN_TIMED(NAME, WORDS, ARGS)                                                               \
	static intptr_t timed_##NAME(WORDS)                                                        \
	{                                                                                          \
		intptr_t (*before)(WORDS), result;                                                 \
		uint64_t from_ns = 0;                                                              \
		const bool outer = time_enter(&from_ns);                                           \
                                                                                                   \
		*(const void **)&before = entries[TIMED_##NAME].before;                            \
		result = before(ARGS);                                                             \
		if (outer)                                                                         \
			time_leave(TIMED_##NAME, from_ns);                                         \
		return result;                                                                     \
	}
#define X(NAME) GEN_TIMED(NAME, SHORT_WORDS, SHORT_ARGS)
#define Y(NAME) GEN_TIMED(NAME, LONG_WORDS, LONG_ARGS)
TIMED_CALLS(X, Y)
#undef X
#undef Y

static struct loaded_entry entries[TIMED_COUNT] = {
#define X(NAME) { #NAME, (const void *)timed_##NAME, NULL },
	TIMED_CALLS(X, X)
#undef X
};

/* ---- Begin and end ----------------------------------------------------------------------- */

const char *call_time_start(void)
{
	const char *why = loaded_replace((const void *)native.Init, entries, TIMED_COUNT);

	started_ns = why ? 0 : rg_now_ns();
	return why;
}

void call_time_stop(void)
{
	if (!started_ns)
		return;
	total.whole = rg_now_ns() - started_ns;
	for (int i = 0; i < TIMED_COUNT; i++)
		total.in[i] = atomic_load(&spent_ns[i]);
	started_ns = 0;
}

void call_time_read(struct call_times *out)
{
	*out = total;
}

/* ---- The table ----------------------------------------------------------------------------- */

static uint64_t sum_of(const struct call_times *t)
{
	uint64_t sum = 0;

	for (int i = 0; i < TIMED_COUNT; i++)
		sum += t->in[i];
	return sum;
}

uint64_t call_time_part(const struct call_times *t)
{
	return t->whole ? (uint64_t)(1000.0 * (double)sum_of(t) / (double)t->whole) : 0;
}

static int longest(const struct call_times *t)
{
	int most = 0;

	for (int i = 1; i < TIMED_COUNT; i++)
		if (t->in[i] > t->in[most])
			most = i;
	return most;
}

void call_time_print(FILE *f, const struct call_times *sum, int ranks, uint64_t least, uint64_t most)
{
	const double whole = (double)sum->whole / 100;
	struct call_times rest = *sum;

	if (!sum_of(sum)) {
		fprintf(f, "  time in MPI: none seen: calls by pointers that were looked up before MPI_Init "
			"are not timed\n");
		return;
	}
	fprintf(f, "  time in MPI: %.1f %% of %.3f s from MPI_Init to MPI_Finalize, by rank %.1f to %.1f %%\n",
		(double)sum_of(sum) / whole, (double)sum->whole / ranks / 1e9, (double)least / 10,
		(double)most / 10);
	for (int i = longest(&rest); rest.in[i]; i = longest(&rest)) {
		fprintf(f, "  %6.1f %%  MPI_%s\n", (double)rest.in[i] / whole, entries[i].name);
		rest.in[i] = 0;
	}
}
