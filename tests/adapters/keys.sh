#!/bin/sh
# keys.sh - single properties of adapters: striped messages, validated, pass, or one line gives the
# reason.  None hangs.
. "$srcdir/tests/adapters/adapters.sh"
limit=120

run() {
	on "$1" 2 ./pt2pt/rg_bw --validate --over stripe --sizes 64:256K --window 8 \
		--time-cap 20ms --iterations 100 --warmup 10 ${named-}
	row "$1" rg_bw
}

for spec in order=rts place=late place=late/order srq=0,maxsge=2 srqwr=64 srq=1,srqwr=64,order=never inline=0 inline=16 qps=6 \
	cqmem=8MiB cqmem=512KiB cqmem=300KiB maxcqe=160 maxcqe=200,order=never rdatom=1 reads=1 link=ib,lid=100+7 link=ib,prefix=1+2 \
	link=ib,lid=0,grh=required link=ib,lid=0/5 link=ib,grh=required/optional pkeys=7fff:8001 pkeys=8001/0001 \
	link=eth,gids=ll.v1:ll.v2:gap:alt4.v1:ip4.v2 link=eth,gids=ll.v2 \
	link=eth,gids=alt4.v1:ip4.v2/ip4.v2 link=eth,gids=ip6.v2 event=sm:0/soft0:1@1ms
do
	drawn 4 "$spec" || continue
	run "$spec"
	expect "$spec" passes
	expect "$spec: by the adapter" grep -q 'in place of libibverbs, .* 2 rails' "$out"
done

# The first adapters leave locked memory for the others: of few ranks queues are as small as all peers allow.
if drawn 4 "four adapters"; then
	run hcas=4,ports=1,cqmem=1MiB
	expect "four adapters in 1 MiB" passes
	expect "... by four rails" grep -q 'in place of libibverbs, .* 4 rails' "$out"
fi

# reason SPEC WORDS
reason() {
	drawn 4 "$1" || return 0
	run "$1"
	expect "$1: $2" refuses "$2"
}
# early SPEC WORDS: before the job starts, from one rank.
early() {
	drawn 4 "$1" || return 0
	reason "$@"
	expect "$1: before the job starts" [ ! -s "$out" ]
	expect "$1: one line" [ "$(ours rg_bw)" -eq 1 ]
}
early ud=no 'cannot make a queue pair for datagrams.*none of type UD'
early maxwr=64 'soft0:1: cannot make a queue pair for datagrams.*128 receive requests needed, the device has 64$'
early maxwr=256/128 'soft0:1: cannot make .*: 129 send requests needed, the device has 128 (host host1)$'
early maxcqe=200/100 'for datagrams.*160 entries needed, the device has 100 (host host1)$'
early ud=no/yes 'the device has none of type UD (Operation not supported) (host host0)$'
early maxsge=1 '2 pieces of a request needed, the device has 1'
early qps=2 'the device has 2 queue pairs'
early maxcqe=100 'for datagrams.*160 entries needed, the device has 100'
early cqmem=256KiB,hcas=2,ports=2,maxwr=256/128 ': cannot make .*: 129 send requests needed, the device has 128 (host host1)$'
early cqmem=20KiB 'nor of fewer: .* entries of 64 bytes are [0-9]* KiB of locked memory'
early mtu=512 'an MTU of 512 bytes is too small'
reason link=ib,prefix=1/2 'is on another subnet'
named="--rails soft0:1,soft0:2"
lost='connection lost over soft0:2 (transport retry counter exceeded'
reason reach=0/soft0:2-1/soft0:2 "$lost; LID [24], GID ::ffff:10.1.0.[12]; there LID [24], GID ::ffff:10.1.0.[12]); check the link and the ports at both ends, or"
reason reach=0/soft0:2-1/soft0:2,link=ib "$lost; LID [24], GID fe80::.*; there LID [24], GID fe80::"
reason reach=0/soft0:2-1/soft0:2,link=eth,gids=same4.v2 "$lost; LID 0, .*10.64.0.[24]; there .*10.64.0.[24]); .*, arp_ignore and rp_filter"
named=
# A rail whose GIDs differ by pair is not tried before, either.
if drawn 4 "lost, by pair"; then
	on link=eth,gids=ip4.v1:alt4.v1/ip6.v1:gap:ip4.v1/alt4.v1:ip6.v1,reach=0/soft0:2-2/soft0:2 4 \
		./collective/rg_alltoall --over stripe --sizes 64K --time-cap 20ms --iterations 20
	row "lost, by pair" rg_alltoall
	expect "lost, by pair" refuses 'lost over soft0:2 (.*; LID 0, GID ::ffff:10.129.0.[13]; there LID 0, GID ::ffff:10.129.0.[13])'
fi
# Below MPI, too: the rank that alone has an error tells.
on maxwr=160/129 2 ./pt2pt/rg_verbs_bw --sizes 4K --time-cap 20ms
expect "rg_verbs_bw: a limit of one host" refuses 'soft0:1 grants a queue pair 129 requests (accepted: 1 to 62) (host host1)$'
expect "... one line" [ "$(ours rg_verbs_bw)" -eq 1 ]
on cqmem=4KiB 2 ./pt2pt/rg_verbs_bw --sizes 4K --time-cap 20ms
expect "rg_verbs_bw: locked memory" refuses 'entries of 64 bytes are [0-9]* KiB of locked memory'
on ports=4,cqmem=64KiB 2 ./pt2pt/rg_verbs_bibw --sizes 4K --window 16 --over stripe --time-cap 20ms
expect "rg_verbs_bibw: the arithmetic" refuses 'soft0:[1-4]: cannot make a completion queue: .* entries of 64 bytes are [1-9][0-9]* KiB'
on maxcqe=161 2 ./pt2pt/rg_verbs_bw --sizes 4K --window 120 --time-cap 20ms
expect "rg_verbs_bw: entries" refuses '^rg_verbs_bw: soft0: cannot make a .*: 248 entries needed, the device has 161$'
expect "... one line of all ranks" [ "$(ours rg_verbs_bw)" -eq 1 ]
# A process that cannot learn of its devices says so, and takes no other way: a wrong spec, no descriptor left.
if drawn 4 "unknown devices"; then
	run rate=1GB/s+2GB/s,ports=1
	expect "a wrong spec" refuses '^rg_bw: the RDMA devices cannot be listed: Invalid argument'
	expect "... no other way" [ "$(ours rg_bw)" -eq 1 ]
	# With the fewest the MPI library has too few for itself.
	descriptors=14
	until grep -qs '^rg_bw: .* cannot be [a-z]*: Too many open files (ulimit -n: ' "$err" || [ $descriptors -ge 80 ]; do
		descriptors=$((descriptors + 2))
		on like=mlx5-ib 2 sh -c 'ulimit -n "$0" && exec "$@"' "$descriptors" ./pt2pt/rg_bw --sizes 8 --time-cap 20ms
		expect "$descriptors descriptors: no other reason" [ "$(grep -c 'no ACTIVE RDMA port\|over TCP' "$err")" -eq 0 ]
	done
	expect "too few descriptors: the reason" [ $descriptors -lt 80 ]
	# Up to the first number that is enough: that reason, and no other, of a port or of the network, after it.
	told() { [ "$rc" -eq 0 ] || { refuses '^rg_bw: .*Too many open files' && [ "$(ours rg_bw)" -eq 1 ]; }; }
	until [ "$rc" -eq 0 ] || [ $descriptors -ge 80 ]; do
		descriptors=$((descriptors + ${RG_LONG:+-1} + 2))
		on like=mlx5-ib 2 sh -c 'ulimit -n "$0" && exec "$@"' "$descriptors" ./pt2pt/rg_bw --sizes 8 --time-cap 20ms
		expect "$descriptors descriptors: passes, or one line" told
	done
	expect "enough descriptors" [ "$rc" -eq 0 ]
fi
# A port is accused of what the fabric does, and of nothing that its adapter lacks; a key of no partition is none.
pairs() {
	spec=$1
	shift
	on "$spec" 2 ./pt2pt/rg_pairs --time-cap 20ms "$@"
	row "$spec" rg_pairs
}
if drawn 4 "rg_pairs"; then
	pairs maxwr=129 --window 200
	expect "rg_pairs: a limit" refuses '201 send requests needed, the device has 129'
	pairs link=ib,rate=8GB/s+1GB/s,pkeys=8000:8001
	expect "rg_pairs: both ports" grep -q ' single:1 .*soft0:2' "$out"
	expect "rg_pairs: neither is down" [ "$(grep -c 'DOWN\|^routing' "$out")" -eq 0 ]
	pairs link=ib+eth/eth+ib
	expect "rg_pairs: no line of a cell" [ "$(ours rg_pairs)" -eq 1 ]
	expect "rg_pairs: no message is left" sh -c '! grep -q "was not matched" "$1"' sh "$out"
fi
# Enough queue pairs for each process, not for those of an adapter.
RANKS_PER_HOST=2
export RANKS_PER_HOST
on qps=9 4 ./pt2pt/rg_bw --validate --over stripe --sizes 64:256K --time-cap 20ms --iterations 100
row "qps=9, 4 ranks" rg_bw
expect "qps=9, 4 ranks" passes
expect "... the arithmetic, from each host" [ "$(grep -c 'soft0 of host[01] has 9 queue pairs; 2 ranks there, each with 2 peers x 2 and 1 for datagrams, would take 10: ' "$err")" -eq 2 ]
unset RANKS_PER_HOST
# An Alltoall that has too few for all lanes: one rail a peer, with smaller shares, and each byte right.
narrow() {
	on "$2" "$1" ./collective/rg_alltoall --validate --over stripe --sizes 8:128K --time-cap 20ms --iterations 20
	row "$2, $1 ranks" rg_alltoall
	expect "$2, $1 ranks" passes
	expect "... a line" grep -q "^rg_alltoall: $3: each peer has one rail and smaller shares, which are $4\$" "$err"
	expect "... and no other" [ "$(ours rg_alltoall)" -eq 1 ]
}
narrow 4 cqmem=256KiB 'a process of host0 may lock 256 KiB for completion queues (ulimit -l); those of connections with 3 peers and itself take 528' 144
narrow 4 qps=9 'soft0 of host0 has 9 queue pairs; 1 rank there, each connected with 3 peers and itself, takes 17' 9
if [ -n "${RG_LONG-}" ]; then
	narrow 4 hcas=2,ports=1,qps=5,order=never \
		'soft0 of host0 has 5 queue pairs; 1 rank there, each connected with 3 peers and itself, takes 9' 5
	narrow 12 qps=25 'soft0 of host0 has 25 queue pairs; 1 rank there, each connected with 11 peers and itself, takes 49' 25
fi
# A control group counts other objects, too.
CGROUP=$work/cgroup
mkdir -p "$CGROUP/rdma"
if grep -q '::\|:rdma:' /proc/self/cgroup && unshare -m mount --bind "$CGROUP" /sys/fs/cgroup 2>/dev/null; then
	export CGROUP
	group() {
		echo "soft0 hca_handle=max hca_object=$1" | tee "$CGROUP/rdma.max" >"$CGROUP/rdma/rdma.max"
	}
	group 48
	narrow 4 '' 'the control group of host0 has 48 objects of soft0 (rdma.max); 1 rank there, each connected with 3 peers and itself, takes 49, of which 17 are queue pairs' 37
	group 36
	on '' 4 ./collective/rg_alltoall --over stripe --sizes 8 --time-cap 20ms --iterations 20
	expect "... fewer than narrow: a line from each host" \
		[ "$(grep -c 'the control group of host[0-3] has 36 objects of soft0 (rdma.max); 1 rank there would take 37 ' "$err")" -eq 4 ]
else
	echo "no tree can be mounted over /sys/fs/cgroup"
fi
unset CGROUP
# Each peer has one rail: rows of one rail and of another would be of the same.
if drawn 4 "narrow, by rail"; then
	on hcas=2,ports=1,qps=3 2 ./pt2pt/rg_bw --over single:0,single:1 --sizes 4K --time-cap 20ms
	expect "narrow: rails are not compared" refuses "over single:1: a peer has one of the rails in this job"
fi
# The arithmetic is exact: so many are enough for a rank that sends to all and to itself, and one fewer is not.
all() {
	on "$1" 2 ./src/cli/railgauge exec --over stripe -- ./tests/adapters/ring all
	row "$1" ring
}
if drawn 4 "limited, to itself"; then
	all pkeys=7fff/ffff
	expect "a limited member sends to itself" passes
	expect "... by memory" grep -q 'a rank to itself by memory' "$err"
fi
if drawn 4 "exact"; then
	all qps=9
	expect "qps=9: passes" passes
	expect "... no line" [ "$(ours railgauge)" -eq 0 ]
	all qps=8
	expect "qps=8: passes" passes
	expect "... a line" grep -q 'with 1 peer and itself, takes 9: each peer has one rail and smaller shares, which are 5$' "$err"
	all hcas=2,ports=1,qps=5
	expect "hcas=2, qps=5: passes" passes
	expect "... no line" [ "$(ours railgauge)" -eq 0 ]
	all qps=4
	expect "qps=4: ends" refuses 'cannot make a queue pair'
	expect "... one line for each peer" [ "$(grep -c 'cannot make a queue pair' "$err")" -eq "$(grep -c '^ring: peer . is lost: no connection: .*cannot make a queue pair' "$err")" -a \
		"$(grep -c '^ring: .*no connection: Cannot' "$err")" -eq 0 ]
	expect "... said before" grep -q 'each with 1 peer and itself x 2 and 1 for datagrams, would take 5: ' "$err"
fi
drawn 4 pkeys=0001 || finish
# Nothing answers: a line after 5 s, and the end after a minute, for which RG_LONG=1 waits.
[ -n "${RG_LONG-}" ] || limit=20
named="--rails soft0:1"
run reach=0/soft0:1-1/soft0:1
expect "reach: a line" grep -q \
	'does not answer over soft0:1 (LID 1, GID ::ffff:10.0.0.1; there LID 3, .*partition.* in filters, and that both' "$err"
[ -z "${RG_LONG-}" ] || expect "and the end" refuses 'no answer over soft0:1 (LID 1, GID .*; there LID 3, GID .*) for a minute'
limit=20
drawn 4 "reach, one network" || finish
run reach=0/soft0:1-1/soft0:1,link=eth,gids=same4.v2
expect "reach, one network: a line" grep -q 'does not answer over soft0:1 (.*arp_ignore and rp_filter' "$err"
finish
