#!/bin/sh
# run.sh - `make bench-net`: the software HCA over TCP, beside Open MPI's TCP, UCX's and a bare stream.
#
# Two hosts as namespaces, pairs of virtual interfaces, each end on a core of its own unless a group
# says otherwise; sockets' limits as Debian has them.  What is compared takes turns; shown are medians
# over launches.  Nothing here is a test: a missed measure is printed as such and the exit code stays 0.
# Run it as root on an idle machine.
#
#	NET_LAUNCHES=N	launches per row (7)
#	NET_SECONDS=S	of each measurement of the stream (0.3)
#	NET_ONLY=WORDS	of the groups
#			latency bw		one interface, both with offload-yes and offload-no (single.sh)
#			offload-yes offload-no	one interface, both latency and bw
#			one-way both-ways	two rails of 1 Gbit/s (rails.sh)
#			collectives		their collectives
#			unequal			rails of 1000 and 250 Mbit/s
#			perftest mixed		below MPI (verbs.sh)
#			start idle peers	of ranks (ranks.sh)
. "$srcdir/tests/run-lib.sh"
. "$srcdir/tests/net/hosts.sh"
measuring=yes limit=100
. "$srcdir/measures/net/lib.sh"
for part in single rails verbs ranks; do
	. "$srcdir/measures/net/$part.sh"
done

[ "$(nproc)" -ge 2 ] || { echo "bench-net: one processor: each end wants its own"; exit 77; }
echo "Railgauge measures over TCP: $launches launches each; $(date -u +%Y-%m-%dT%H:%MZ), $(uname -m)," \
	"$(nproc) CPUs, load $(cut -d' ' -f1 /proc/loadavg), $RG_MPI_FLAVOR"
single_groups
rails_groups
verbs_groups
ranks_groups
exit 0
