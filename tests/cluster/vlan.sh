#!/bin/sh
# vlan.sh - a rail in a VLAN, one whose packets a filter drops, and one that the other node is not in; devices
# in another network namespace.
. "$srcdir/tests/run-lib.sh"
limit=240

. "$srcdir/tests/cluster/two-rails.sh"
# left out WORDS: one line, about the second rail
line() {
	[ "$(ours rg_bw)" -eq 1 ] && grep -q "^rg_bw: --rails all: rxe1:1 of node. .*left out: .*$1" "$err"
}

# The second rail's addresses are those of the VLAN: GIDs of the same port.
# shellcheck disable=SC2016 # the nodes' shells expand it
bw 'ip addr del 10.0.2.$((1 + node))/24 dev eth1; ip link add link eth1 name eth1.5 type vlan id 5
	ip link set eth1.5 up; ip addr add 10.0.5.$((1 + node))/24 dev eth1.5'
expect "a VLAN: two rails" well 2
expect "... and no line" [ "$(ours rg_bw)" -eq 0 ]
src/cli/railgauge topo >"$out" 2>"$err"
expect "... by its address" grep -q 'rxe1:1 .* RoCE v2 ::ffff:10.0.5.1' "$out"

bw 'tc qdisc add dev eth1.5 handle ffff: ingress
	tc filter add dev eth1.5 parent ffff: protocol ip u32 match ip protocol 17 0xff match ip dport 4791 0xffff action drop'
expect "a VLAN that is filtered: the other rail carries the job" well 1
expect "... and a line" line "nothing passes between rxe1:1 (LID 0, GID ::ffff:10.0.5.1) and rxe1:1 (LID 0, \
GID ::ffff:10.0.5.2) of node1: check cables, partition, VLAN, UDP port 4791"

# shellcheck disable=SC2016
bw 'tc qdisc del dev eth1.5 ingress; [ $node = 0 ] || { ip link del eth1.5; ip link add link eth1 name eth1.6 type vlan id 6
	ip link set eth1.6 up; ip addr add 10.0.5.2/24 dev eth1.6; }'
expect "another VLAN: the other rail carries the job" well 1
expect "... and a line" line "no address handle can be made from its GIDs (.*) but from link-local ones"
# shellcheck disable=SC2016
on_nodes 'ip link del eth1.$((5 + node)); ip addr add 10.0.2.$((1 + node))/24 dev eth1'

# Devices of the first network namespace, seen from another one.
rdma system set netns exclusive && ip netns add far
expect "another network namespace can be made" [ $? -eq 0 ]
ip netns exec far src/cli/railgauge topo >"$out" 2>"$err"
expect "another network namespace: the reason" grep -q \
	'rxe0 and 1 more: it is in another network namespace than this process (rdma system: netns exclusive)' "$out" "$err"
ip netns del far
for try in 1 2 3 4 5; do
	! rdma system set netns shared 2>"$err" || break
	sleep 1
done
expect "the namespaces share devices again" grep -q 'netns shared' <<S
$(rdma system)
S
finish
