#!/bin/sh
# probe.sh - what lies between the ports of two nodes, as a job finds it before it begins: all well, several
# addresses, a router's other network; by datagrams, a filter in front of one rail's RoCE packets, cables that
# are crossed, filters in front of both, and in one IP network.
. "$srcdir/tests/run-lib.sh"
limit=240

. "$srcdir/tests/cluster/two-rails.sh"
# The rules of before go; `came RAIL FROM TO [OTHER]`: RoCE packets that this rail receives are dropped, or go
# to the other one.
# shellcheck disable=SC2016,SC2034 # the nodes' shells expand them; two-rails.sh has them sent
rules='came() {
		where="action drop"
		[ -z "${4-}" ] || where="action mirred ingress redirect dev eth$4"
		tc filter add dev eth$1 parent ffff: protocol ip u32 match ip protocol 17 0xff \
			match ip dport 4791 0xffff match ip src $2 match ip dst $3 $where
	}
	for rail in 0 1; do
		! tc qdisc show dev eth$rail | grep -q ingress || tc qdisc del dev eth$rail ingress
		tc qdisc add dev eth$rail handle ffff: ingress
	done'
line() {
	[ "$(ours rg_bw)" -eq 1 ] && grep -q "^rg_bw: --rails all: $1" "$err"
}

bw :
expect "all well: two rails" well 2
expect "... and no line" [ "$(ours rg_bw)" -eq 0 ]

# One node has an address before the one of the other's network; a network of its own is routed.
# shellcheck disable=SC2016 # the nodes' shells expand it
bw '[ $node = 1 ] || { ip addr del 10.0.2.1/24 dev eth1; ip addr add 10.0.9.1/24 dev eth1; ip addr add 10.0.2.1/24 dev eth1; }'
expect "several addresses: two rails" well 2
expect "... and no line" [ "$(ours rg_bw)" -eq 0 ]
# shellcheck disable=SC2016
bw 'if [ $node = 0 ]; then ip addr del 10.0.9.1/24 dev eth1; ip route add 10.0.3.0/24 dev eth1
	else ip addr del 10.0.2.2/24 dev eth1; ip addr add 10.0.3.2/24 dev eth1; ip route add 10.0.2.0/24 dev eth1; fi'
expect "layer 3: two rails" well 2
expect "... and a line" grep -q '^rg_bw: 1 of 2 rails: RoCE v2 is routed between IP networks, such as ::ffff:10.0.2.1 of node0' "$err"
# shellcheck disable=SC2016
on_nodes 'if [ $node = 0 ]; then ip route del 10.0.3.0/24 dev eth1
	else ip route del 10.0.2.0/24 dev eth1; ip addr del 10.0.3.2/24 dev eth1; ip addr add 10.0.2.2/24 dev eth1; fi'

bw 'came 1 10.0.2.0/24 10.0.2.0/24'
expect "a filter in front of one rail: the other one carries the job" well 1
expect "... and a line" line "rxe1:1 of node0 and another port are left out: nothing passes between \
rxe1:1 (LID 0, GID ::ffff:10.0.2.1) and rxe1:1 (LID 0, GID ::ffff:10.0.2.2) of node1: .* UDP port 4791"

bw 'came 0 10.0.1.0/24 10.0.1.0/24; came 1 10.0.2.0/24 10.0.2.0/24'
judge_refusal rg_bw 3 4 'nothing passes between rxe0:1 (LID 0.* 4791 in filters$' "filters in front of both"

# Both rails are one IP network, and each node answers for the addresses of both, since not the questions are
# crossed but the packets.
# shellcheck disable=SC2016 # the nodes' shells expand it
bw 'ip addr del 10.0.2.$((1 + node))/24 dev eth1; ip addr add 10.0.1.$((11 + node))/24 dev eth1
	sysctl -qw net.ipv4.conf.all.arp_ignore=0
	for to in 0 1; do
		own=10.0.1.$((to * 10 + 1 + node)) same=10.0.1.$((to * 10 + 2 - node))
		came $to $same $own
		came $((1 - to)) 10.0.1.0/24 $own $to
	done'
expect "crossed cables: two rails" well 2
expect "... and a line" line 'rxe0:1 (LID 0, .*) of node0 meets rxe1:1 of node1, .*: are cables crossed'
bw 'came 0 10.0.1.0/24 10.0.1.0/24; came 1 10.0.1.0/24 10.0.1.0/24'
judge_refusal rg_bw 3 4 'nothing passes between rxe0:1 (LID 0.*, arp_ignore and rp_filter (two ports of a host' "one IP network, and filters"
# shellcheck disable=SC2016
on_nodes 'ip addr del 10.0.1.$((11 + node))/24 dev eth1; ip addr add 10.0.2.$((1 + node))/24 dev eth1
	sysctl -qw net.ipv4.conf.all.arp_ignore=1
	for rail in 0 1; do tc qdisc del dev eth$rail ingress; done'
finish
