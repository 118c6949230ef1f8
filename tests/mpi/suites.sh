#!/bin/sh
# suites.sh - the suites of messages and of collectives over every way, natively
# first, on the untimed and on a modelled software fabric; with one, two and more
# ranks.
. "$srcdir/tests/run-lib.sh"
suites="p2p_suite type_suite comm_suite thread_suite coll_suite reduce_suite"
# MPICH never yields and pays dearly for more ranks than cores.  What a way does to a message does
# not depend on the MPI library, and sanitizers look at no library's own way.
case $RG_MPI_FLAVOR:$RG_SANITIZE in
openmpi:no) counts="1 3 $(long 2 4)" each="native single bind stripe" ;;
openmpi:*) counts="$(more 1) 3 $(long 2 4)" each="stripe $(long native single bind)" ;;
*) counts="$(long 1 2) 3" each="native stripe $(long single bind)" ;;
esac

passes() {
	[ "$rc" -eq 0 ] && grep -q 'cases passed$' "$out"
}

# Random programs and those of collectives show the code to sanitizers as well (random.sh).
for suite in $suites; do
	[ "$RG_SANITIZE" = no ] || drawn 2 "$suite" || continue
	for n in $counts; do
		# shellcheck disable=SC2086 # words are meant
		launch "$n" tests/mpi/$suite $each
		expect "$suite with $n ranks" passes
	done
done

# An algorithm that looks at the type once more behind its messages; memory that is freed is changed.
export RAILGAUGE_COLL=scatter=binomial MALLOC_PERTURB_=165 RG_CASE=freed_beside_scatter
launch 3 tests/mpi/thread_suite stripe
expect "a type that another thread frees" passes
unset RAILGAUGE_COLL MALLOC_PERTURB_ RG_CASE

# Messages go on while the program waits in the library's own collectives.
export RAILGAUGE_COLL=native
for suite in p2p_suite type_suite; do
	[ "$RG_SANITIZE" = no ] || drawn 2 "$suite beside the library" || continue
	launch 2 tests/mpi/$suite single stripe
	expect "$suite beside the library's collectives" passes
done
unset RAILGAUGE_COLL

# The other eager lane (SEND, completion by CQ), pacing, three rails, other limits.  Which way a
# message takes does not depend on the MPI library; to sanitizers one suite shows the code.
case $RG_MPI_FLAVOR:$RG_SANITIZE:${RG_LONG-} in
openmpi:no:* | *:*:?*) modelled="p2p_suite type_suite coll_suite" ways=p2p_suite ;;
openmpi:*) modelled=coll_suite ways= ;;
*) modelled=p2p_suite ways= ;;
esac
export RAILGAUGE_SOFT=ports=3,rate=1GB/s,latency=2us
for suite in $modelled; do
	launch 2 tests/mpi/$suite stripe bind,eager=1000 stripe,threshold=2K
	expect "$suite on a modelled fabric" passes
done
# Random programs have more of these (random.sh).
for suite in $ways; do
	launch 2 tests/mpi/$suite weighted pull stripe,rendezvous=read pull,rendezvous=read
	expect "$suite by measured rate, by who is free, by reading" passes
	launch 2 tests/mpi/$suite stripe,completion=control weighted,completion=control \
		single:2,threshold=1K,eager=1K
	expect "$suite with control messages, on a rail that is named" passes
done
export RAILGAUGE_SOFT=ideal,ports=1
launch 2 tests/mpi/p2p_suite single,rendezvous=ring,eager=64
expect "p2p_suite with slices through the ring" passes
export RAILGAUGE_SOFT=ports=1
launch 2 tests/mpi/p2p_suite stripe,threshold=1,eager=0 single,eager=64
expect "p2p_suite with everything by rendezvous" passes
unset RAILGAUGE_SOFT

# Messages of 2 and 4 GiB.  What is the same with both MPI libraries is done with one of them.
case $RG_MPI_FLAVOR:$RG_SANITIZE:${RG_LONG-} in
*:*:?*) sized= ways="stripe stripe,rendezvous=read" ;;
openmpi:no:*) sized= ways=stripe ;;
openmpi:*) sized="structure_2g partial too_long displacements" ways=stripe ;;
*) sized="structure_2g gaps_2g too_long requests large_counts large_too_long" ways=stripe ;;
esac
if [ -n "${RG_LONG-}" ]; then
	launch 2 tests/mpi/size_suite native
	expect "sizes beyond 31 and 32 bits, natively" passes
	export SIZE_LONG=1
fi
[ -z "$sized" ] || export RG_CASE="$sized"
# shellcheck disable=SC2086 # words are meant
launch 2 tests/mpi/size_suite $ways
expect "sizes beyond 31 and 32 bits" passes
expect "sizes beyond 63 bits: one line each" \
	[ "$(grep -c '^size_suite: rank 0: a message of more than' "$err")" -ge 2 ]
if [ "$RG_MPI_FLAVOR" = openmpi ] || [ -n "${RG_LONG-}" ]; then
	RG_CASE="bcast displacements in_place" launch 3 tests/mpi/size_suite stripe
	expect "large types in pieces between three ranks" passes
fi
unset RG_CASE SIZE_LONG

alike() {
	[ "$rc" -eq 0 ] && grep -q 'all packed alike$' "$out"
}
seed=${RG_SEED:-1}
launch 1 tests/mpi/strides "$seed" 5000
expect "types of every constructor, seed $seed: where their bytes are" alike
expect "nothing in /dev/shm" shm_is_clean
finish
