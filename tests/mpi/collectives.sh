#!/bin/sh
# collectives.sh - every algorithm of collectives in its turn, where the number of
# ranks is a power of two and where it is not; and left to the library.
. "$srcdir/tests/run-lib.sh"
# MPICH's own collectives never yield: the more ranks than cores, the dearer.
# Sanitizers look at the code, which is the same for any number.
case $RG_MPI_FLAVOR:$RG_SANITIZE in
openmpi:no) counts="2 3 $(long 4 5) 8" few="2 $(long 3) 5 $(long 6)" most=16 ;;
mpich:no) counts="$(long 2) 3 4" few="$(long 2) 5" most=${RG_LONG:+1}6 ;;
*) counts=3 few=3 most=5 ;;
esac
# Rounds of a case: more ranks take longer, and meet more cases in each.
rounds() {
	echo $(($([ "$RG_SANITIZE" = no ] && echo 100 || echo 40) / $1))
}

passes() {
	[ "$rc" -eq 0 ] && grep -q 'cases passed$' "$out"
}

suites="coll_suite reduce_suite"
# each RANKS: the suites
each() {
	SUITE_ROUNDS=$(rounds "$1")
	export SUITE_ROUNDS
	for suite in $suites; do
		launch "$1" tests/mpi/$suite stripe
		expect "$suite with $1 ranks, ${RAILGAUGE_COLL-by the table}" passes
	done
}

# Sanitizers see one of the three sets at each change, by RG_SEED.
set=0
for algorithms in \
	bcast=binomial,allgather=bruck,alltoall=pairwise,alltoallv=pairwise,allreduce=doubling \
	bcast=scatter-ring,allgather=doubling,alltoall=bruck,alltoallv=linear,allreduce=rabenseifner \
	bcast=chain,allgather=ring,alltoall=linear,allreduce=ring; do
	set=$((set + 1))
	[ "$RG_SANITIZE" = no ] || [ -n "${RG_LONG-}" ] || [ $((${RG_SEED:-1} % 3 + 1)) -eq $set ] ||
		continue
	case $algorithms in
	*chain*) ;;
	*binomial*)
		algorithms=$algorithms,reduce=binomial,reduce_scatter=pairwise
		algorithms=$algorithms,gather=binomial,scatter=binomial,scan=doubling
		;;
	*)
		algorithms=$algorithms,reduce=rabenseifner,reduce_scatter=binomial
		algorithms=$algorithms,gather=linear,scatter=linear,scan=linear
		;;
	esac
	export RAILGAUGE_COLL=$algorithms
	for n in $counts; do
		each "$n"
	done
done
# Each partner and direction a rail of its own, on two rails and on three.
for ports in 2 3; do
	export RAILGAUGE_SOFT=ports=$ports
	export RAILGAUGE_COLL=allgather=ring-rails,alltoall=pairwise-rails,alltoallv=pairwise-rails
	suites=coll_suite
	for n in $few; do
		each "$n"
	done
done
unset RAILGAUGE_SOFT
suites="coll_suite reduce_suite"
# As the layer chooses, and the most ranks that are promised.  Open MPI's own Bruck, from 13
# ranks on, spoils what has another layout when sent than when received: linear, instead.
unset RAILGAUGE_COLL
export OMPI_MCA_coll_tuned_use_dynamic_rules=1 OMPI_MCA_coll_tuned_alltoall_algorithm=1
each 1
each $most
unset OMPI_MCA_coll_tuned_use_dynamic_rules OMPI_MCA_coll_tuned_alltoall_algorithm
# While costs choose among algorithms, and after they have; where ranks share cores, if asked.  What a
# refused call leaves behind is of eager size by any algorithm.
suites=learn_suite
export RAILGAUGE_COLL=measured RAILGAUGE_EAGER=64K RAILGAUGE_THRESHOLD=64K
for n in 2 3 $(more 4); do
	each "$n"
done
export RG_CASE=races
launch 3 tests/mpi/thread_suite stripe
expect "races of several communicators at once" passes
unset RAILGAUGE_COLL
export RG_CASE=refused
each 3
unset RAILGAUGE_EAGER RAILGAUGE_THRESHOLD RG_CASE
suites="coll_suite reduce_suite"
# What is left to the library passes as far as the library does.
export RAILGAUGE_COLL=native
each 2
unset RAILGAUGE_COLL SUITE_ROUNDS

# Programs refuse what --coll does not know.
refused collective/rg_bcast 2 "--coll bcast=pairwise: no bcast 'pairwise' (accepted: auto, native" \
	--coll bcast=pairwise
refused collective/rg_bcast 2 "--coll bcats=ring: no collective 'bcats' (accepted: NAME=ALGOR" \
	--coll bcats=ring
expect "nothing in /dev/shm" shm_is_clean
finish
