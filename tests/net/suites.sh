#!/bin/sh
# suites.sh - the suites of messages and of collectives, and random programs (tests/mpi/random/programs.h),
# between two and four hosts, over two rails of TCP and one, and by memory between ranks of a host.
RG_ON_HOSTS="2 2"
. "$srcdir/tests/run-lib.sh"
suites="p2p_suite type_suite comm_suite thread_suite coll_suite reduce_suite"
first=0

# passes RANKS SUITE WAY...
passes() {
	n=$1 suite=$2
	shift 2
	launch "$n" tests/mpi/$suite "$@"
	expect "$suite, $n ranks on $hosts_count hosts, $*" eval \
		'[ "$rc" -eq 0 ] && grep -q "cases passed\$" "$out"'
}

# programs RANKS COUNT WAY...: so many over each way, others each time
programs() {
	n=$1 count=$2
	shift 2
	[ -z "${RG_LONG-}" ] || count=$((count * 10))
	launch "$n" tests/mpi/random_programs --seed "${RG_SEED:-1}" --first $first --programs "$count" "$@"
	ways=$#
	expect "$count programs from $first, $n ranks on $hosts_count hosts, $*" eval \
		'[ "$rc" -eq 0 ] && grep -q "^$count programs passed, each over $ways ways\$" "$out"'
	first=$((first + count))
}

export RAILGAUGE_SOFT=net=eth0+eth1
# shellcheck disable=SC2046 # words are meant, here and below
for suite in $suites; do
	passes 4 $suite stripe $(long single bind weighted pull)
done
# Rank 0 draws the secret of a job, and the MPI library deals it: no rank makes that of a user.
expect "no secret in the home directory" [ ! -e "$hosts_dir/home/.softhca" ]
passes 2 p2p_suite stripe,rendezvous=read stripe,completion=control single:1,threshold=1K,eager=1K
programs 2 10 stripe pull,rendezvous=read weighted,completion=control
# Two ranks of three share memory.
programs 3 6 bind stripe,threshold=2K

# Addresses of IPv6 alone lead there, too.
RAILGAUGE_SOFT=net=fd00:0:0:1::/64+fd00:0:0:2::/64
passes 4 p2p_suite stripe
programs 3 4 stripe bind
RAILGAUGE_SOFT=net=eth0+eth1

# A rank on each of four hosts; five on three of them.
hosts_end
hosts 4 2
for suite in $suites; do
	drawn 3 "$suite on four hosts, $RG_MPI_FLAVOR" || continue
	passes 4 $suite stripe
	[ -z "${RG_LONG-}" ] || passes 5 $suite pull,rendezvous=read
done
programs 4 8 stripe weighted
programs 5 4 stripe,rendezvous=read

# One interface.
export RAILGAUGE_SOFT=net=eth1
for suite in $suites; do
	drawn 4 "$suite over one interface, $RG_MPI_FLAVOR" || continue
	passes "$(drawn 2 "two of $suite" && echo 2 || echo 4)" $suite $(drawn 2 "the way of $suite" && echo single || echo bind)
done
programs 2 6 single stripe,rendezvous=read
programs 4 5 bind
finish
