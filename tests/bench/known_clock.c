/* known_clock.c - see known_clock.h. */
#include "known_clock.h"

#include <mpi.h>
#include <time.h>

int __real_clock_gettime(clockid_t which, struct timespec *out);
int __wrap_clock_gettime(clockid_t which, struct timespec *out);

/* Not 0, which may mean "never". */
static uint64_t now_ns = 1000000000;

int __wrap_clock_gettime(clockid_t which, struct timespec *out)
{
	if (which != CLOCK_MONOTONIC)
		return __real_clock_gettime(which, out);
	out->tv_sec = (time_t)(now_ns / 1000000000);
	out->tv_nsec = (long)(now_ns % 1000000000);
	return 0;
}

void known_clock_pass(uint64_t ns)
{
	now_ns += ns;
}

void known_clock_meet(void)
{
	MPI_Allreduce(MPI_IN_PLACE, &now_ns, 1, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
}
