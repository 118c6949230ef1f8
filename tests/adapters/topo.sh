#!/bin/sh
# topo.sh - railgauge topo numbers the ports of a host as the rails of a job that --rails all has on hosts like it,
# and says why others are none.
. "$srcdir/tests/adapters/adapters.sh"

# as_job SPEC RAILS [WORDS]: these, in this order; a warning has the words.
as_job() {
	drawn 2 "$1" || return 0
	on "$1" 1 ./src/cli/railgauge topo
	row "$1" topo
	expect "$1: passes" passes
	shown=$(awk '$1 ~ /^[0-7]$/ && $2 ~ /^soft[0-9]*:[0-9]*$/ { print $1 ":" $2 }' "$out" | sort | cut -d: -f2- | tr '\n' ' ')
	expect "$1: topo shows $shown" [ "$shown" = "$2 " ]
	[ -z "${3-}" ] || expect "$1: says $3" grep -q "^$3" "$out"
	rm -f "$work/j"
	on "$1" 2 ./pt2pt/rg_latency --over stripe --sizes 8 --time-cap 20ms --iterations 50 --json "$work/j"
	used=$(sed -n 's/.*"rails":\[\([^]]*\)\].*/\1/p' "$work/j" | head -n 1 | grep -o '"name":"[^"]*"' | cut -d'"' -f4 | tr '\n' ' ')
	expect "$1: a job takes $used" [ "$used" = "$2 " ]
}

as_job like=mlx5-ib,hcas=1,ports=2 'soft0:1 soft0:2'
as_job like=mlx5-roce,hcas=2,ports=1 'soft0:1 soft1:1'
# 8 + 4 ports of two rates.
as_job like=mlx5-ib,hcas=4,ports=3,rate=25GB/s+50GB/s+50GB/s \
	'soft0:2 soft0:3 soft1:2 soft1:3 soft2:2 soft2:3 soft3:2 soft3:3' \
	'soft0:1 is left out: 25GB/s, the rails are of another rate'
as_job like=mlx5-ib,hcas=1,ports=2,rate=8GB/s+1GB/s soft0:1 'soft0:2 is left out: 1GB/s, below a quarter of soft0:1'
as_job hcas=1,ports=3,link=ib+eth+eth 'soft0:2 soft0:3' 'soft0:1 is left out: the rails are of RoCE'
as_job hcas=1,ports=3,link=ib,prefix=1+2+1 'soft0:1 soft0:3' 'soft0:2 is left out: another InfiniBand prefix has more ports'
as_job hcas=2,ports=2,link=ib,pkeys=7fff+ffff 'soft0:2 soft1:2' 'soft0:1 is left out: no partition key in common with hosts like'
# Of the memory of a process, too, it says what a job does.
on cqmem=128KiB 1 ./src/cli/railgauge topo --ranks 2 --job 6
row cqmem=128KiB topo
expect "topo, locked memory" grep -q '^a process may lock 128 KiB for completion queues (ulimit -l); all take 528, narrow 112: narrow$' "$out"
on cqmem=1MiB 1 ./src/cli/railgauge topo --ranks 2 --job 6
expect "topo, enough memory" grep -q 'all take 528, narrow 144: all rails$' "$out"
# The functions of one card are one adapter.
as_job hcas=5,ports=2,link=ib 'soft0:1 soft0:2 soft1:1 soft1:2 soft2:1 soft2:2 soft3:1 soft4:1' \
	'soft3:2 is left out: 8 rails are in use'
as_job hcas=5,ports=2,link=ib,card=one 'soft0:1 soft0:2 soft1:1 soft1:2 soft2:1 soft2:2 soft3:1 soft3:2' 'soft4:1 is left out'
finish
