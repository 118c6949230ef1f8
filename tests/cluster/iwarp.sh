#!/bin/sh
# iwarp.sh - ports of iWARP, beside those of RoCE and alone: they are no rails, and a line says why.  The kernel's
# siw is from VC_SIW (siw.sh), for RG_LONG=1.
. "$srcdir/tests/run-lib.sh"
limit=240

. "$srcdir/tests/cluster/two-rails.sh"
[ ! -f "${VC_SIW:-/none}/absent" ] || {
	cat "$VC_SIW/absent"
	exit 77
}
[ -f "${VC_SIW:-/none}/siw.ko" ] || {
	echo "no siw: RG_LONG=1 and CLUSTER_ONLY=iwarp build it"
	exit 77
}
# shellcheck disable=SC2016 # the nodes' shells expand it
on_nodes 'for module in crc32c_generic libcrc32c iw_cm siw; do
		/run/busybox insmod '"$VC_SIW"'/$module.ko 2>/dev/null
	done
	rdma link add siw0 type siw netdev eth0 && rdma link add siw1 type siw netdev eth1'

no_rails() {
	for port in siw0:1 siw1:1; do
		expect "$1: $port" grep -q "^- *$port .* iWARP" "$out"
		expect "$1: $port: the reason" grep -q "^$port is no rail: its transport carries no RDMA immediates" "$out"
	done
}
src/cli/railgauge topo >"$out" 2>"$err"
no_rails "beside RoCE"
bw :
expect "beside RoCE: the other ports" well 2
expect "... and no line" [ "$(ours rg_bw)" -eq 0 ]
refused ./pt2pt/rg_verbs_lat 2 "siw0:1: its transport carries no RDMA immediates" --rails siw0:1

on_nodes 'rdma link del rxe0 && rdma link del rxe1'
src/cli/railgauge topo >"$out" 2>"$err"
no_rails alone
launch 2 pt2pt/rg_bw --over stripe -m 64K -i 2 -x 1 -W 4 -c
expect "alone: passes" [ "$rc" -eq 0 ]
expect "alone: by the software HCA" grep -q '^# fabric: software HCA over TCP' "$out"
expect "alone: a line of each host" [ "$(grep -c 'has no ACTIVE RDMA port, .*: siw0:1 and 1 more: iWARP, which carries no immediates$' "$err")" -eq 2 ]
on_nodes 'rdma link del siw0; rdma link del siw1; rdma link add rxe0 type rxe netdev eth0; rdma link add rxe1 type rxe netdev eth1'
finish
