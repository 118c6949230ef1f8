#!/bin/sh
# suites.sh - the suites of messages and of collectives, and random programs, between two hosts with two
# ranks each: over two rails of TCP, and by memory between ranks of a host.
RG_ON_HOSTS="2 2"
. "$srcdir/tests/run-lib.sh"
export RAILGAUGE_SOFT=net=eth0+eth1

passes() {
	[ "$rc" -eq 0 ] && grep -q 'cases passed$' "$out"
}
for suite in p2p_suite type_suite comm_suite thread_suite coll_suite reduce_suite; do
	launch 4 tests/mpi/$suite stripe $(long single bind weighted pull)
	expect "$suite" passes
done
launch 2 tests/mpi/p2p_suite stripe,rendezvous=read stripe,completion=control single:1,threshold=1K,eager=1K
expect "p2p_suite by reading, with control messages, on a rail that is named" passes
finish
