#!/bin/sh
# make check-threads: several threads in calls of MPI, librailmpi and what is below it built with a
# thread sanitizer in tsan/.  The MPI library is not, and what only it does is not looked at.  Only
# in what MPI forbids do threads share variables; the layer looks at these by atomics.
case $RG_MPI_FLAVOR in
openmpi) launcher="$MPIRUN --oversubscribe -np" ;;
mpich) launcher="$MPIRUN -n" ;;
*) echo "no MPI library"; exit 77 ;;
esac
. "$srcdir/tests/tsan-lib.sh"
build tests/mpi/thread_suite
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1
export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM OMPI_MCA_mpi_yield_when_idle
# UCX's hooks take locks in threads that have ended for the sanitizer.
UCX_MEM_MMAP_HOOK_MODE=none
export UCX_MEM_MMAP_HOOK_MODE
# PMIx of Open MPI 5 maps a segment of the launcher's at the same address in each rank, where the
# sanitizer may have its own memory; "hash" copies instead.
PMIX_MCA_gds=hash
export PMIX_MCA_gds
# shellcheck disable=SC2086 # words are meant
check $launcher 2 tests/mpi/thread_suite stripe
exit $failed
