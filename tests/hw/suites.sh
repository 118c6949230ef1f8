#!/bin/sh
# suites.sh - the MPI layer's suites over real ports: all rails, then one;
# several ranks on a node, who reach each other through memory or over the rails.
. "$srcdir/tests/run-lib.sh"
. "$srcdir/tests/hw/rails.sh"
# Real adapters have time for all.
[ "${RG_HW_SOFTWARE-}" = 1 ] || RG_LONG=1

# passes RANKS SUITE WAY...
passes() {
	n=$1 suite=$2
	shift 2
	launch "$n" tests/mpi/$suite "$@"
	expect "$suite, $n ranks, $*" eval '[ "$rc" -eq 0 ] && grep -q "cases passed\$" "$out"'
}

# programs RANKS COUNT WAY...: random ones (tests/mpi/random/programs.h)
programs() {
	n=$1 count=$2
	shift 2
	[ -z "${RG_LONG-}" ] || count=$((count * 10))
	launch "$n" tests/mpi/random_programs --seed "${RG_SEED:-1}" --programs "$count" "$@"
	ways=$#
	expect "$count random programs, $n ranks, $*" \
		eval '[ "$rc" -eq 0 ] && grep -q "programs passed, each over $ways ways\$" "$out"'
}

# Which way a message takes does not depend on the MPI library.
all=
[ "${RG_HW_FEW-}" = 1 ] || all=yes
# shellcheck disable=SC2046 # words are meant
[ -z "$all" ] && ! drawn 2 "p2p_suite $RG_MPI_FLAVOR" ||
	passes 2 p2p_suite stripe ${all:+pull,rendezvous=read} $(long weighted,completion=control)
programs 2 6 stripe pull,rendezvous=read weighted,completion=control
for suite in type_suite comm_suite thread_suite; do
	drawn 2 "$suite $RG_MPI_FLAVOR" || continue
	passes 2 $suite ${all:+single} stripe
done
if [ -n "$all" ]; then
	export RAILGAUGE_RAILS="$first_rail"
	[ -z "$(long yes)" ] || passes 2 p2p_suite single
	programs 2 4 bind
	unset RAILGAUGE_RAILS
fi
export RAILGAUGE_QPS=4 RAILGAUGE_BIND=near RAILGAUGE_MTU=1024
programs 4 "$([ -n "$all" ] && echo 4 || echo 2)" stripe
export RAILGAUGE_INTRANODE=rails
[ -z "$all" ] || programs 4 4 pull,rendezvous=read
# Calls that MPICH itself does not survive (src/mpi/job/init.c).
for over in $([ "$RG_MPI_FLAVOR" != mpich ] || echo native stripe); do
	export RAILGAUGE_OVER=$over
	launch 4 tests/mpi/late_end
	expect "a rank that ends late, $over" eval '[ "$rc" -eq 0 ] && grep -q ended "$out"'
done
finish
