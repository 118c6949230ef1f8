#!/bin/sh
# ports.sh - which ports of unlike hosts are rails, and the line about those that are not.
. "$srcdir/tests/adapters/adapters.sh"
limit=60

run() {
	rm -f "$work/j"
	on "$1" "${ranks:-2}" ./pt2pt/rg_bw --validate --over stripe --sizes 64:64K --window 4 \
		--time-cap 20ms --iterations 50 --warmup 5 --json "$work/j" $options
	row "$1" rg_bw
}

# Cases whose output is looked at further are no draw.
is_drawn() {
	[ -n "${SYSFS-}${RANKS_PER_HOST-}" ] || drawn 3 "$*"
}

# rails N SPEC [WORDS]: so many, validated; a line of rank 0 has the words, without them none is there.
rails() {
	is_drawn "$options $*" || return 0
	run "$2"
	expect "$2: passes" passes
	expect "$2: $1" grep -q "in place of libibverbs, .* $1 rails* on" "$out"
	if [ -n "${3-}" ]; then
		expect "$2: a line: $3" grep -q "^rg_bw: .*$3" "$err"
	else
		expect "$2: no line" [ "$(ours rg_bw)" -eq 0 ]
	fi
}

# none SPEC WORDS: one line says why.
none() {
	is_drawn "$options $*" || return 0
	run "$1"
	judge_refusal rg_bw 3 4 "$2" "$1"
}

# Hosts with unlike ports, of one link layer.
rails 1 link=ib/ib+eth 'soft0:2 of host0 is left out: soft0:2 of host1 is of RoCE'
rails 1 link=ib/eth+ib 'soft0:1 of host0 is left out: soft0:1 of host1 is of RoCE'
ranks=4
rails 1 link=ib/ib/ib+eth 'soft0:2 of host0 and another port are left out: soft0:2 of host2 is of RoCE'
ranks=
rails 1 link=ib+eth 'soft0:2 of host0 and another port are left out: the rails are of InfiniBand'
rails 2 link=ib+ib+eth,ports=3 'soft0:3 of host0 and another port are left out: the rails are of Inf'
rails 2 link=ib+eth+eth,ports=3 'soft0:1 of host0 and another port are left out: the rails are of RoCE'
none link=ib/eth 'soft0:1 of host0: soft0:1 of host1 is of RoCE'
# One rate, and none below a quarter of the best.
rails 1 link=ib,rate=8GB/s+1GB/s 'soft0:2 of host0 .* below a quarter of soft0:1'
rails 2 link=ib,ports=3,rate=5GB/s+10GB/s+10GB/s 'soft0:1 of host0 .* the rails are of another rate'
rails 8 link=ib,hcas=2,ports=5 'left out: 8 rails are in use'
# Prefixes: equal fabrics are rails, a smaller one is left out.
rails 2 link=ib,prefix=1+2
rails 2 link=ib,ports=3,prefix=1+2+1 'soft0:2 of host0 .* another InfiniBand prefix has more ports'
rails 1 link=ib,prefix=1/1+2 'soft0:2 of host0 and another port are left out: soft0:2 of host1 is on another subnet'
rails 1 link=ib,prefix=1+2/2+3 'soft0:1 of host0 and another port are left out'
rails 1 link=ib,rate=50GB/s+25GB/s,prefix=1+2/3+2 'soft0:1 of host0 and another port are left out: soft0:1 of host1 is on another subnet'
none link=ib,prefix=1/2 "on another subnet, to whose prefix only a router's LID leads"

# GIDs: a common network before others, an address handle from each; routers in between.
rails 2 link=eth,gids=ip4.v2!:ip6.v2
rails 2 link=eth,gids=alt4.v2:ip4.v2/ip4.v2
rails 2 link=eth,gids=ll.v1:ip6.v2/ip6.v2:ip4.v1
rails 2 link=eth,gids=ip4.v2/ip4.v2!:alt4.v2 'RoCE v2 is routed between IP networks, such as ::ffff:10.0.0.1 '
rails 2 link=eth,gids=ip4.v2/alt4.v2 'RoCE v2 is routed between IP networks'
rails 1 link=eth,gids=ip4.v2+ll.v2 'soft0:2 of host0 .* link-local addresses alone'
rails 1 link=eth,gids=ip4.v2/ip4.v2+ip4.v1 'soft0:2 of host1 has no GID of its kind'
rails 1 link=eth,gids=ll.v2:ip4.v2!+ip4.v2 'soft0:1 of host0 .* no address handle can be made from its GIDs (No route to host) but'
rails 2 link=eth,gids=ll.v2 'rail 0 .* has link-local GIDs alone'
none link=eth,gids=ip4.v2! 'no address handle can be made from its GIDs (No route to host)'
none link=eth,gids=ip4.v1/ip4.v2 'soft0:1 of host1 has no GID of its kind'

# No GID that all hosts meet, but one for each pair of them.
ranks=4
rails 2 link=eth,gids=ip4.v1:alt4.v1/ip6.v1:gap:ip4.v1/alt4.v1:ip6.v1
none link=eth,gids=ip4.v1:alt4.v1/ip4.v1/alt4.v1 'soft0:1 of host0: soft0:1 of host1 has no GIDs by which it reaches host2$'
ranks=

# Cables of one network that are crossed, and what stays when nothing passes.
rails 2 reach=0/soft0:1-1/soft0:1+0/soft0:2-1/soft0:2,link=ib 'soft0:1 (LID 1, .* of host0 meets soft0:2 of host1'
rails 2 reach=0/soft0:1-1/soft0:1,link=eth,gids=ip4.v2 'to soft0:1 (LID 0, GID ::ffff:10.0.0.2) there: are cables crossed'
rails 2 link=ib,maxwr=129,maxcqe=300,reach=0/soft0:1-1/soft0:1 'soft0:1 (LID 1, .* of host0 meets soft0:2 of host1'
rails 3 link=ib,ports=3,reach=0/soft0:1-1/soft0:1+0/soft0:1-1/soft0:2 'soft0:1 .* of host0 meets soft0:3 of host1'
rails 1 link=ib,reach=0/soft0:2-1/soft0:1+0/soft0:2-1/soft0:2 \
	'soft0:2 of host0 and another port are left out: nothing passes between soft0:2 (LID 2, GID fe80::'
none link=ib,reach=0/soft0:1-1/soft0:1+0/soft0:1-1/soft0:2+0/soft0:2-1/soft0:1+0/soft0:2-1/soft0:2 \
	'soft0:1 of host0: nothing passes between soft0:1 (LID 1, .* UDP port 4791 in filters$'
# Linux's answers for the addresses of one IP network may be in the way, where two ports are in it.
none link=eth,gids=same4.v2,reach=0/soft0:1-1/soft0:1+0/soft0:1-1/soft0:2+0/soft0:2-1/soft0:1+0/soft0:2-1/soft0:2 \
	'soft0:1 of host0: nothing passes between soft0:1 (LID 0, .*arp_ignore and rp_filter (two ports of a host'
none link=eth,gids=ip4.v2,reach=0/soft0:1-1/soft0:1+0/soft0:1-1/soft0:2+0/soft0:2-1/soft0:1+0/soft0:2-1/soft0:2 \
	'soft0:1 of host0: nothing passes between soft0:1 (LID 0, .* UDP port 4791 in filters$'
rails 1 link=ib,rate=10GB/s+5GB/s,reach=0/soft0:1-1/soft0:1 'soft0:1 of host0 and another port are left out: nothing'
# More ports than rails: each choice of them is tried, and none is taken untried.
[ -z "${RG_LONG-}" ] || none link=eth,hcas=2,ports=5,loss=1 'soft0:1 of host0: nothing passes between soft0:1 (LID 0, GID ::ffff:10.0.0.1)'
rails 2 link=eth/model
# A host that is late in a round, and has heard all at once, sends no less.
on link=ib 2 ./tests/adapters/late
row link=ib late
expect "a host that is late: nothing is lost" passes
ranks=4
rails 2 link=ib,reach=0/soft0:1-2/soft0:1+0/soft0:2-2/soft0:2+1/soft0:1-2/soft0:1+1/soft0:2-2/soft0:2+3/soft0:1-2/soft0:1+3/soft0:2-2/soft0:2 \
	'soft0:1 .* of host0 meets soft0:2 of host2'
# Host 0, by whose ports the rails are counted, reaches all; two others do not reach each other.
rails 2 link=ib,reach=1/soft0:1-3/soft0:1 'soft0:1 (LID 3, .* of host1 meets soft0:2 of host3, since nothing passes'
rails 1 link=ib,reach=1/soft0:1-3/soft0:1+1/soft0:1-3/soft0:2 \
	'soft0:1 of host0 and 3 more ports are left out: nothing passes between soft0:1 (LID 3, .* of host1 and soft0:1'
ranks=

# P_Keys: the first that all have, one end of each pair a full member.
rails 2 pkeys=7fff:8001/ffff:8002:8001
rails 2 pkeys=8002:8001/8003:8001
rails 1 pkeys=8001/8001+8002 'soft0:2 of host0 .* no partition key in common with host1'
rails 2 link=ib,pkeys=8001+8002/8002+8001
rails 1 link=ib,rate=50GB/s+25GB/s,pkeys=7fff+ffff 'soft0:1 of host0 .* no partition key in common'
rails 8 link=ib,hcas=2,ports=5,pkeys=7fff+ffff 'soft0:1 of host0 .* no partition key in common'
none pkeys=8001/8002 'no partition key in common'
none pkeys=0001 'no partition key in common with host1, with a full member at one end'
ranks=4
rails 2 pkeys=0001/8001
none pkeys=8001/0001 'soft0:1 of host1 has no partition key in common with host2, with a full member at one end'
none pkeys=0001:0002:8003/0002:8001:0003/8002:0003:0001 'no partition key that all hosts have, with a full member'
rails 2 pkeys=8001:8002/0001:8002
ranks=

# Ranks of one host are a pair, too, if they use its ports.
ranks=4 options="--intranode rails" RANKS_PER_HOST=2
export RANKS_PER_HOST
none pkeys=0001/8001 'no partition key in common with host0, .* one host (--intranode memory)'
none pkeys=8001/0001 'no partition key in common with host1, .* one host (--intranode memory)'
rails 2 pkeys=0001:8002/8001:8002
RANKS_PER_HOST=4
rails 2 pkeys=0001:8002
none pkeys=0001 'no partition key in common with host0, .* one host (--intranode memory)'
options=
rails 2 pkeys=0001
unset RANKS_PER_HOST
ranks=

# Named ports are rails in the order of their names.
options="--rails soft0:2;host1=soft0:1"
rails 1 link=eth 'RoCE v2 is routed'
none link=ib,prefix=1+2 'rail 0 (soft0:2 of host0) is on another subnet than host host1'
options="--rails soft0:1,soft0:2;host1=soft0:1"
none link=ib '.*names 2 ports on host0, 1 on host1 (accepted: as many'
options="--rails soft0:1,soft0:2;host1=soft0:2,soft0:1"
none link=eth 'order the ports by --rails so that rail i meets rail i'
options="--pkey 8"
none pkeys=8001 'soft0:1 is in no such partition (accepted: 0x8001)'
options="--gid-index 3"
none link=eth,gids=ip4.v2 'soft0:1 has no such GID (accepted: 0)'
rails 1 link=ib+eth,gids=ip4.v2:ip4.v1:gap:ip6.v2 'soft0:1 of host0'
options="--gid-index auto;host1=soft0:1=3,1"
rails 2 link=eth,gids=ip4.v2:ip4.v1:gap:ip6.v2/ip4.v2:alt4.v2:gap:alt4.v2 'RoCE v2 is routed'
options="--gid-index 1,soft0:2=0;host1=0"
rails 2 link=eth,gids=ip4.v2:alt4.v2 '1 of 2 rails: RoCE v2 is routed'
options=

# Containers of one host, whatever they are called, have its memory; of IPC namespaces, they have not.
export RANKS_PER_HOST=2 CONTAINERS=
rails 2 link=ib
expect "containers: one node" grep -q 'ranks of one node by memory' "$out"
CONTAINERS=-i
rails 2 link=ib
expect "containers with memory of their own: two nodes" sh -c '! grep -q "ranks of one node" "$1"' sh "$out"
unset RANKS_PER_HOST CONTAINERS

# What sysfs says: PCI order, rates beyond verbs' codes, a LAG with two queue pairs a rail.
tree=$work/class
sysfs() {
	mkdir -p "$tree/infiniband/$1/ports/1/gid_attrs/ndevs" "$tree/net/bond0/bonding"
	ln -s "../../../$2" "$tree/infiniband/$1/device"
}
sysfs soft0 0000:81:00.0
sysfs soft1 0000:01:00.0
export SYSFS="$tree"
if unshare -m mount --bind "$tree" /sys/class 2>/dev/null; then
	echo "800 Gb/sec (4X XDR)" >"$tree/infiniband/soft1/ports/1/rate"
	rails 1 link=ib,hcas=2,ports=1,rate=50GB/s 'soft0:1 of host0 .*: 50GB/s, the rails are of another rate'
	expect "XDR: its rate" grep -q '100GB/s per port' "$out"
	echo "800 Gb/sec (4X XDR)" >"$tree/infiniband/soft0/ports/1/rate"
	rails 2 link=ib,hcas=2,ports=1,rate=50GB/s
	expect "in PCI order" grep -q '"rails":\[{"name":"soft1:1".*{"name":"soft0:1"' "$work/j"
	echo bond0 >"$tree/infiniband/soft1/ports/1/gid_attrs/ndevs/0"
	rails 2 link=eth,hcas=2,ports=1
	expect "a LAG is named" grep -q '; soft1:1 is a LAG' "$out"
	# A peer and itself: one for small messages, two of a LAG; one for datagrams.
	rails 2 link=eth,hcas=2,ports=1,qps=5 'has 5 queue pairs; .* takes 7: each peer has one rail'
	on link=eth,hcas=2,ports=1,qps=5 1 ./src/cli/railgauge topo --ranks 1 --job 2
	expect "topo, a LAG" grep -q '^soft1 has 5 queue pairs; all take 7, narrow 3: narrow$' "$out"
	# What is connected, and by which class, which is the host's.
	mkdir "$work/spied"
	cp "$place/libibverbs.so.1" "$work/spied/libsofthca.so.0"
	cp tests/adapters/.libs/spy.so "$work/spied/libibverbs.so.1"
	unspied=$place place=$work/spied
	spied() {
		on link=eth,hcas=2,ports=1 2 ./pt2pt/rg_bw --over stripe --sizes 64K --iterations 20 --time-cap 20ms "$@"
		row "spied $*" rg_bw
		expect "spied $*: passes" passes
		connected=$(grep -c '^spy: RC to another' "$err")
	}
	spied --qps 1
	one=$connected
	spied
	expect "a LAG: $connected queue pairs, not $one" [ "$connected" -eq $((one + 4)) ]
	expect "no class of the host" [ "$connected" -gt 0 -a "$(grep -c '^spy: .* class [1-9]' "$err")" -eq 0 ]
	mkdir -p "$tree/infiniband/soft0/tc/1" "$tree/infiniband/soft1/tc/1"
	echo "Global tclass=106" | tee "$tree/infiniband/soft0/tc/1/traffic_class" >"$tree/infiniband/soft1/tc/1/traffic_class"
	spied
	expect "the host's class: of all connections" \
		[ "$connected" -gt 0 -a "$(grep -c '^spy: RC to another, class 106$' "$err")" -eq "$connected" ]
	expect "... and of datagrams" grep -q '^spy: UD, class 106$' "$err"
	spied --tclass 32
	expect "--tclass is the user's" [ "$connected" -gt 0 -a "$(grep -c '^spy: RC to another, class 32$' "$err")" -eq "$connected" ]
	# A device that may not be opened: a line from each host.
	export SPY_CLOSED=soft1 RANKS_PER_HOST=2
	on link=eth,hcas=2,ports=1 4 ./pt2pt/rg_bw --over single --sizes 64K --iterations 20 --time-cap 20ms
	unset SPY_CLOSED RANKS_PER_HOST ranks
	expect "a device that may not be opened" passes
	expect "... a line from each host" [ "$(grep -c 'soft1: cannot be opened (Permission denied), left out$' "$err")" -eq 2 ]
	place=$unspied
	options=
	rails 2 card=one,link=ib,hcas=2,ports=1
	expect "Socket Direct is named" grep -q \
		'2 rails on 1 adapter, .*; soft0:1 is Socket Direct with soft1:1 ' "$out"
	rails 2 link=ib,hcas=2,ports=1
	expect "... but no two cards" sh -c '! grep -q "Socket Direct" "$1"' sh "$out"
	ln -sfn ../../../0000:01:00.1 "$tree/infiniband/soft0/device"
	rails 2 card=one,link=ib,hcas=2,ports=1
	expect "... nor two functions of one bus" sh -c '! grep -q "Socket Direct" "$1"' sh "$out"
	options="--qps 1"
	rails 2 link=eth,hcas=2,ports=1,qps=5
else
	echo "no tree can be mounted over /sys/class"
fi
finish
