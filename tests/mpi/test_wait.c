/*
 * test_wait.c - rounds of a wait (layer_poll): looks at the rails, turns of the MPI library, and what
 * gives the core away.  The calls are counted, no time is judged.
 */
#include "cmocka_all.h"

#include <string.h>

#include "mpi/abi/native.h"
#include "mpi/job/library.h"
#include "mpi/job/options.h"
#include "mpi/job/progress.h"
#include "mpi/job/start_coll.h"
#include "mpi/p2p/unexpected.h"
#include "mpi/watch/call_count.h"
#include "mpi/watch/dump.h"
#include "rail/programs.h"
#include "rail/rail.h"
#include "util/clock.h"

/*
 * What a wait did, in order: l a look at the rails, t a turn of the MPI library, y a yield, e the
 * lock taken again, w a wait of the library's.
 */
static char done[4096];
static size_t done_count;
static int events;			/* of each look */
static unsigned ends_after;		/* tests of the library's request; 0: never */
static bool yields;			/* Open MPI's progress, where ranks share cores */
static bool connects;			/* a message waits for a connection */

static void did(char what)
{
	assert_true(done_count < sizeof(done) - 1);
	done[done_count++] = what;
}

/* ---- What progress.c and library.c call ------------------------------------------------------- */

struct native native;
struct call_count calls[CALL_COUNT];
struct world_settings world_settings;
size_t unexpected_bytes;
_Atomic bool dump_asked;

int rail_progress(struct rail_ctx *ctx)
{
	(void)ctx;
	did('l');
	return events;
}

int rail_progress_whole(struct rail_ctx *ctx)
{
	return rail_progress(ctx);
}

bool rail_connects(const struct rail_ctx *ctx)
{
	(void)ctx;
	return connects;
}

void calls_resume(void)
{
	did('e');
}

int dump_start(int signal_number, void (*wake)(void))
{
	(void)signal_number;
	(void)wake;
	return 0;
}

void dump_stop(void)
{
}

void dump_print(void)
{
}

void rg_yield(void)
{
	did('y');
}

#if RG_OPENMPI
/*
 * As in Open MPI: its progress yields where ranks share cores, unless it is told not to.  The layer finds
 * these functions by name.
 */
#pragma GCC visibility push(default)
void opal_progress(void);
bool opal_progress_set_yield_when_idle(bool yield);
int opal_progress_register_lp(int (*callback)(void));
int opal_progress_unregister(int (*callback)(void));
#pragma GCC visibility pop

int opal_progress_register_lp(int (*callback)(void))
{
	(void)callback;
	return 0;
}

int opal_progress_unregister(int (*callback)(void))
{
	(void)callback;
	return 0;
}

void opal_progress(void)
{
	did('t');
	if (yields)
		did('y');
}

bool opal_progress_set_yield_when_idle(bool yield)
{
	const bool before = yields;

	yields = yield;
	return before;
}
#endif

/* MPICH's progress never yields. */
static int test_native(MPI_Request *request, int *flag, MPI_Status *status)
{
	(void)request;
	(void)status;
	did('t');
	*flag = ends_after && --ends_after == 0;
	return MPI_SUCCESS;
}

static int wait_native(MPI_Request *request, MPI_Status *status)
{
	(void)request;
	(void)status;
	did('w');
	return MPI_SUCCESS;
}

void rg_sleep_ns(uint64_t ns)
{
	(void)ns;
	fail_msg("a wait sleeps");
}

void rg_await(uint64_t due_ns)
{
	(void)due_ns;
}

uint64_t rg_now_ns(void)
{
	return 0;
}

void rg_wait_word(_Atomic uint32_t *word, uint32_t value, uint64_t most_ns, bool shared)
{
	(void)word, (void)value, (void)most_ns, (void)shared;
}

void rg_wake_word(_Atomic uint32_t *word, bool shared)
{
	(void)word, (void)shared;
}

int rg_thread_start(pthread_t *thread, void *(*run)(void *), void *arg)
{
	(void)thread, (void)run, (void)arg;
	return -1;
}

void rg_thread_join(pthread_t thread)
{
	(void)thread;
}

/* ---- Waits ------------------------------------------------------------------------------------- */

static int look(void)
{
	return 0;
}

static unsigned rounds_in(const char *acts)
{
	unsigned rounds = 0;

	for (; *acts; acts++)
		rounds += *acts == 'l';
	return rounds;
}

/* The rounds after the first `before`, in which nothing comes, do `acts` over and over. */
static void expect_rounds(unsigned before, unsigned rounds, const char *acts)
{
	const char *at = done;
	unsigned idle = 0, n;

	/* The turn that comes whatever happens is none of these rounds'. */
	atomic_store(&layer.polls, 0);
	while (idle < before)
		layer_poll(&idle);
	done_count = 0;
	while (idle < before + rounds)
		layer_poll(&idle);
	did('\0');
	for (n = 1; n <= rounds; n += rounds_in(acts), at += strlen(acts))
		if (strncmp(at, acts, strlen(acts)))
			fail_msg("empty round %u: %.16s, not %s", before + n, at, acts);
	assert_string_equal(at, "");
}

static int setup(void **state)
{
	(void)state;
	native.Test = test_native;
	native.Wait = wait_native;
	library_start(look);
	return 0;
}

static int restore(void **state)
{
	(void)state;
	if (layer.multiple)
		layer_leave();
	layer.oversubscribed = layer.multiple = connects = false;
	yields = false;
	done_count = 0;
	return 0;
}

static void crowd(unsigned rounds)
{
	layer.oversubscribed = true;
	layer.crowded_rounds = rounds;
	yields = true;
}

static void enter_as_one_of_several(void)
{
	layer.multiple = true;
	layer_enter();
}

/* A core of its own is kept; the library's turns come after 64 rounds. */
static void test_alone(void **state)
{
	expect_rounds(0, 63, "l");
	expect_rounds(63, 100, "lt");
}

/* A peer that is to answer may need this core. */
static void test_connects(void **state)
{
	connects = true;
	expect_rounds(63, 1, "lty");
	expect_rounds(64, 63, "lt");
	expect_rounds(127, 1, "lty");
}

/*
 * Between two time slices there is a look at the rails, whatever the library's turn does.  A message that
 * comes through memory is waited for by two looks, and the library's turns begin with the eighth.
 */
static void test_crowded(void **state)
{
	crowd(LAYER_CROWDED_ROUNDS_MEMORY);
	expect_rounds(0, 1, "l");
	expect_rounds(1, 6, "ly");
	expect_rounds(7, 100, "lty");
}

static void test_crowded_wire(void **state)
{
	crowd(LAYER_CROWDED_ROUNDS_WIRE);
	expect_rounds(0, 7, "l");
	expect_rounds(7, 100, "lty");
}

/* Other threads get the lock each eighth round, and the core only where nothing has come for long. */
static void test_threads(void **state)
{
	enter_as_one_of_several();
	expect_rounds(0, 7, "l");
	expect_rounds(7, 56, "lelllllll");
	expect_rounds(63, 64, "ltyelteltelteltelteltelte");
}

static void test_threads_crowded(void **state)
{
	crowd(LAYER_CROWDED_ROUNDS_MEMORY);
	enter_as_one_of_several();
	expect_rounds(0, 1, "l");
	expect_rounds(1, 6, "lye");
	expect_rounds(7, 100, "ltye");
}

static void test_threads_crowded_wire(void **state)
{
	crowd(LAYER_CROWDED_ROUNDS_WIRE);
	enter_as_one_of_several();
	expect_rounds(0, 7, "l");
	expect_rounds(7, 100, "ltye");
}

/* A collective of the library's, in which other ranks take part. */
static void expect_collective(const char *acts)
{
	MPI_Request request = {0};

	done_count = 0;
	ends_after = 4;
	assert_true(start_await(&request, UINT64_MAX));
	did('\0');
	assert_string_equal(done, acts);
}

static void test_collective(void **state)
{
	expect_collective("tytytyt");
}

/* No other thread begins a call before this one has had its chance. */
static void test_collective_of_threads(void **state)
{
	enter_as_one_of_several();
	expect_collective("w");
}

static void test_collective_of_threads_crowded(void **state)
{
	crowd(LAYER_CROWDED_ROUNDS_MEMORY);
	enter_as_one_of_several();
	expect_collective("tytytyt");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, restore)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_alone), CASE(test_connects), CASE(test_crowded), CASE(test_crowded_wire), CASE(test_threads),
		CASE(test_threads_crowded), CASE(test_threads_crowded_wire), CASE(test_collective), CASE(test_collective_of_threads),
		CASE(test_collective_of_threads_crowded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
