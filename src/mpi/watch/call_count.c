/* call_count.c - calls and bytes by function, while --ledger wants them. */
#include "mpi/watch/call_count.h"

#include <string.h>

#include "mpi/abi/native.h"
#include "mpi/comm/comm_table.h"
#include "mpi/job/progress.h"
#include "util/compiler.h"

struct call_count calls[CALL_COUNT];
bool calls_counted;

static FAST_THREAD_LOCAL struct call_count *current = &calls[CALL_NONE];

static void count_native(enum native_reason why)
{
	atomic_fetch_add_explicit(&current->native, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&current->why[why], 1, memory_order_relaxed);
}

/* MPI_COMM_NULL: the call has none, of a request or a message that is the library's. */
static enum native_reason reason_of(MPI_Comm comm)
{
	int inter = 0;

	if (comm == MPI_COMM_SELF)
		return NATIVE_SELF;
	if (comm != MPI_COMM_NULL)
		native.Comm_test_inter(comm, &inter);
	return inter ? NATIVE_INTER : NATIVE_COMM;
}

void calls_count(enum call call, bool routed, MPI_Comm comm)
{
	if (call == CALL_NONE)
		return;
	current = &calls[call];
	if (routed)
		atomic_fetch_add_explicit(&current->routed, 1, memory_order_relaxed);
	else
		count_native(reason_of(comm));
	/* With several threads the thread that gets the lock says so then. */
	if (!layer.multiple)
		layer.call = current;
}

void calls_leave_rails(enum native_reason why)
{
	if (!calls_counted)
		return;
	atomic_fetch_sub_explicit(&current->routed, 1, memory_order_relaxed);
	count_native(why);
}

void calls_resume(void)
{
	layer.call = current;
}

void calls_start(void)
{
	memset(calls, 0, sizeof(calls));
	calls_counted = true;
	atomic_fetch_add(&comm_epoch, 1);	/* calls found in caches would not be counted */
}
