#!/bin/sh
# The ledger of the programs: what rails carried adds up with what was sent, by an
# arithmetic of its own; idle rails are seen; retries are those of the adapter.
. "$srcdir/tests/run-lib.sh"
. "$srcdir/tests/bench/ledger-lib.sh"

# A window and a reply of 4 bytes; sizes on both sides of the eager limit; every rank's
# validation and warm-up stay out of it.
launch 2 pt2pt/rg_bw --over single,bind,stripe --soft ports=2 -c -m 1:1M -W 8 -i 6 -x 3 --ledger \
	--json "$work/a.jsonl"
expect "it ends well" [ $rc -eq 0 ]
for way in single bind stripe; do
	expect "rg_bw, $way: bytes add up" sum "$work/a.jsonl" $way 8 1 4
done
expect "21 sizes, three ways" [ "$(grep -c '"ledger":\[' "$work/a.jsonl")" -eq 63 ]
expect "two equal rails under stripe: half each ($(share "$work/a.jsonl" stripe 1) %)" \
	holds "$(share "$work/a.jsonl" stripe 1) >= 48 && $(share "$work/a.jsonl" stripe 1) <= 52"
expect "the rail that single leaves idle is there" \
	sh -c "grep -q '^# ledger single soft0:2: 0 bytes (0.0 %), 0 eager messages, 0 chunks' '$out'"
expect "retries are counted, and there are none" [ "$(grep -c ' 0 retries$' "$out")" -eq 6 ]
expect "ports are as they are" [ "$(grep -c '"state":"ACTIVE"' "$work/a.jsonl")" -ge 64 ]
expect "the summary is in the end record" \
	grep -q '"type":"end".*"ledger":{"ways":{"single":\[{"rail":"soft0:1"' "$work/a.jsonl"
expect "no counters of ports that the kernel does not know" \
	grep -q '"type":"end".*"ports":\[{"node":0,.*"retries":null,"counters":{}}' "$work/a.jsonl"

launch 4 pt2pt/rg_bibw --over stripe --soft ports=3 -m 64K:256K -W 4 -i 5 -x 0 --ledger \
	--json "$work/b.jsonl"
expect "rg_bibw, two pairs: bytes add up" sum "$work/b.jsonl" stripe 4 4 0
launch 2 pt2pt/rg_latency --over stripe --soft ports=2 -m 8:64K -i 20 --ledger --json "$work/c.jsonl"
expect "rg_latency: bytes add up" sum "$work/c.jsonl" stripe 2 1 0
launch 2 pt2pt/rg_latency --over single --soft ports=1 -m 64K -i 20 --ledger --eager 64K
expect "--eager above its default: nothing goes by rendezvous" \
	grep -q '^# ledger single soft0:1: .* 0 chunks' "$out"
launch 2 pt2pt/rg_latency --over native,stripe --soft ports=2 -m 8 -i 20 --ledger \
	--json "$work/d.jsonl"
expect "native messages are on no rail" sum "$work/d.jsonl" native 0 1 0

# Rails of 3:1.  Which shares weighted and pull come to is tests/rail/test_unequal.c's, and of
# `make bench`; whatever they are, they add up.
launch 2 pt2pt/rg_bw --over stripe,weighted,pull --soft ports=2,rate=60MB/s+20MB/s -m 1M -W 8 \
	-i 2 -x 1 --ledger --json "$work/w.jsonl"
expect "3:1: ends well" [ $rc -eq 0 ]
expect "3:1: each rail alone is told" \
	grep -q '^# each rail alone,.*soft0:1 [0-9.]*, soft0:2 [0-9.]* MB' "$out"
for way in stripe weighted pull; do
	expect "3:1, $way: bytes add up" sum "$work/w.jsonl" $way 8 1 4
done
expect "3:1, stripe: half each all the same" \
	holds "$(share "$work/w.jsonl" stripe 1) > 49.9 && $(share "$work/w.jsonl" stripe 1) < 50.1"

# Ports with counters: differences; null where a counter has stopped, was reset or is beyond JSON.
launch 2 tests/bench/rg_counted --over stripe --soft ports=2 -m 8 -i 2 --ledger --json "$work/p.jsonl"
expect "counters: it ends well" [ $rc -eq 0 ]
# counted RAIL TEXT: so on both nodes
counted() {
	sed -n '/"type":"end"/s/{"node":/\n&/gp' "$work/p.jsonl" |
		grep "^{\"node\".*\"rail\":\"$1\"" >"$work/ports"
	[ "$(grep -c . "$work/ports")" -eq 2 ] && [ "$(grep -c "$2" "$work/ports")" -eq 2 ]
}
expect "counters: differences" counted soft0:1 '"port_xmit_data":500,.*"out_of_sequence":100'
expect "counters: bytes by units of four" counted soft0:1 '"tx_bytes":2000,"rx_bytes":null'
expect "counters: those of retries" counted soft0:1 '"retries":5,'
expect "counters: stopped" counted soft0:1 '"port_rcv_data":null'
expect "counters: reset" counted soft0:1 '"port_xmit_wait":null'
expect "counters: beyond JSON" counted soft0:1 '"beyond_json":null'
expect "counters: of retries, one stopped" counted soft0:2 '"retries":null,'
expect "counters: no bytes" counted soft0:2 '"tx_bytes":null,"rx_bytes":null'

# A wire that loses packets.
launch 2 pt2pt/rg_bw --over stripe --soft ports=2,loss=0.02 -m 1M -W 8 -i 4 --ledger \
	--json "$work/e.jsonl"
expect "loss: it ends well" [ $rc -eq 0 ]
expect "loss: bytes add up, each counted once" sum "$work/e.jsonl" stripe 8 1 4
expect "loss: either rail had to send something again" [ "$(grep -c ' [1-9][0-9]* retries$' "$out")" \
	-eq 2 ]
expect "loss: in the row" [ "$(rows "$work/e.jsonl" stripe | awk '{ print ($5 > 0 && $9 > 0) }')" = 1 ]

# Ranks on one node have a rail of their own in addition to a modelled one, or use the modelled one.
launch 4 pt2pt/rg_bw --over stripe --soft ports=2,rate=2GB/s --nodes 1 -m 1K:256K -W 4 -i 3 --ledger \
	--json "$work/h.jsonl"
expect "one node: bytes add up, those of the local rail included" sum "$work/h.jsonl" stripe 4 2 8
expect "one node: the local rail carries all of them" \
	grep -q '^# ledger stripe local: [0-9]* bytes (100.0 %)' "$out"
launch 4 pt2pt/rg_bw --over stripe --soft ports=2,rate=2GB/s --nodes 1 -m 64K -W 4 -i 3 --ledger \
	--intranode rails --json "$work/i.jsonl"
expect "--intranode rails: none" [ "$(grep -c '^# ledger stripe local' "$out")" -eq 0 ]
expect "--intranode rails: bytes add up" sum "$work/i.jsonl" stripe 4 2 8

# Each rail alone and the ways that use all, with the bounds of the spec and of memory.
# (Which of them is the least: tests/bench/test_bound.c; how near the ways come: `make bench`.)
launch 2 pt2pt/rg_bw --over single,stripe --soft ports=2,rate=80MB/s,bus=120MB/s/120MB/s -m 128K:256K \
	-W 8 -i 4 --ledger --json "$work/k.jsonl"
expect "alone: a line for the way that uses all" \
	grep -q '^# stripe: aggregate .* of the sum of single rails (.*); bound: [0-9.]* MB/s (' "$out"
bound() {
	grep -q "\"type\":\"end\".*\"aggregate\":{\"bytes\":262144,\"alone\":\[{\"rail\":\"soft0:1\",.*$1" \
		"$work/k.jsonl"
}
expect "alone: the bus is a bound" bound '"name":"bus of soft0, nominal","mb_per_s":120.0,'
expect "alone: the links are" bound '"name":"links, the sum of all ports","mb_per_s":160.0,'
expect "alone: memory is" bound '"name":"memory, as copied at best by the sender alone",'
launch 2 pt2pt/rg_bibw --over stripe --soft ports=2,rate=80MB/s+40MB/s -m 256K -W 8 -i 4 --ledger \
	--json "$work/k.jsonl"
expect "alone: both ways, the ports" bound '"name":"links, the sum of all ports","mb_per_s":240.0,'
launch 2 pt2pt/rg_bw --over stripe --soft ports=2 -m 256K -W 8 -i 8 --ledger
expect "alone: untimed, memory is the bound" \
	grep -q '^# stripe: aggregate .*; bound: [0-9.]* MB/s (memory, as copied at best by the sender' "$out"
launch 2 pt2pt/rg_bw --over stripe --soft ports=2 -m 4K -W 8 -i 8 --ledger
expect "alone: small messages: says why not" grep -q '^# no comparison with each rail alone: ' "$out"
launch 2 pt2pt/rg_latency --over stripe --soft ports=2 -m 64K -i 8 --ledger
expect "alone: rg_latency ends well" [ $rc -eq 0 ]
expect "alone: its rails are told" grep -q '^# ledger stripe' "$out"
expect "alone: of bandwidth only" [ "$(grep -c 'rail.* alone' "$out")" -eq 0 ]

# Nothing to tell.
launch 2 pt2pt/rg_bw --over native -m 8 -i 4 --ledger --json "$work/f.jsonl"
expect "no rails: said so" grep -q '^# ledger: no rails in use' "$out"
launch 2 pt2pt/rg_bw --over stripe --soft ports=2 -m 8 -i 4 --json "$work/g.jsonl"
expect "not asked for: ends well" [ $rc -eq 0 ]
expect "not asked for: rows all the same" grep -q '"type":"row"' "$work/g.jsonl"
expect "not asked for, not there" [ "$(cat "$out" "$work/g.jsonl" | grep -cE '^# ledger|"ledger":\[')" \
	-eq 0 ]
finish
