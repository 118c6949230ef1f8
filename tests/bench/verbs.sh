#!/bin/sh
# Programs below MPI: what they refuse, each operation by each service with every byte validated, losses,
# the ledger, and rows of known samples.
. "$srcdir/tests/run-lib.sh"
lat=pt2pt/rg_verbs_lat bw=pt2pt/rg_verbs_bw bibw=pt2pt/rg_verbs_bibw

# told WORDS PROGRAM ARG...: refused by what the options say, before any rank is asked
told() {
	words=$1 program=$2
	shift 2
	"$program" "$@" >"$out" 2>"$err"
	rc=$?
	judge_refusal "${program##*/}" 3 3 "$words" "$*"
}
told '--op read: not by --transport UC (accepted: send, write)' $lat --op read --transport UC
told '--op cswap: not by --transport UD (accepted: send)' $lat --op cswap --transport UD
told '--op write: not by --transport UD (accepted: send)' $bw --transport UD
told '--op fadd: unknown (accepted: send, write or read)' $bw --op fadd
told '--arrival memory: only a write is seen in memory (accepted: auto, cq, event)' $lat --arrival memory
told '--arrival memory: a write that is lost would be waited for' $lat --op write --transport UC \
	--arrival memory
told '--completion control: only with --op write (accepted: window)' $bw --op send --completion control
told '--completion event: unknown (accepted: window, immediate or control)' $bibw --completion event
told '--qps 65: out of range (accepted: 1 to 64)' $bw --qps 65
told '--sizes: rows at several values of queue are of one message size' $bw --sweep queue
told '--sizes 0: out of range' pt2pt/rg_verbs_notify -m 0
told '--over native: unknown item (accepted: a list of single.*stripe)' $lat --over native
for option in eager coll rendezvous bind; do
	told "--$option: unknown option" $bw --$option 1
done

# bad WORDS PROGRAM ARG...: refused by what the devices grant
bad() {
	words=$1 program=$2
	shift 2
	refused $program 2 "$words" --soft ports=2 "$@"
}
told '--buffer-count 1: all messages use one buffer (accepted: 2 to 16384)' $lat --sweep reuse -m 4K
told '--transport UC: not with --buffer-count (accepted: RC)' $lat --transport UC --buffer-count 4
told '--arrival memory: not with --buffer-count' $lat --op write --arrival memory --buffer-count 4

bad '--sizes 4K:8K: a datagram is no longer than the MTU (accepted: 1 to 4K)' $bw --op send \
	--transport UD -m 4K:8K
bad '--sizes 16:16: an atomic operation has 8 bytes (accepted: 8)' $lat --op fadd -m 16
bad '--sizes 0:0: the last byte of a message is polled for (accepted: 1 to 1G)' $lat --op write -m 0
bad '--queue 65536: soft0:1 grants a queue pair 32768 requests (accepted: 1 to 32764)' $bw --queue 65536
bad '--window 30000: soft0:1 grants a queue pair 32768 requests (accepted: 1 to 16382)' $bw -W 30000
bad '--window 9000: soft0:1 grants a queue pair 32768 requests (accepted: 1 to 8191)' $bw -W 9000 \
	--completion control
bad '--over: columns are no ways here (accepted: one way' pt2pt/rg_verbs_notify --over single,stripe
bad '--over stripe: only by --transport RC (accepted: single' $bw --transport UC --over single,stripe
bad '--over single:2: there is no such rail' $lat --over single:2
launch 2 sh "$srcdir/tests/hw/rank1.sh" RAILGAUGE_TRANSPORT=UC $lat -m 8 --soft ideal
judge_refusal rg_verbs_lat 3 3 "--transport: rank 1 has 'UC', rank 0 'RC' (accepted: the same" \
	"another service on rank 1"

# passes ROWS PROGRAM ARG...: so many rows, each of them right, and nothing lost
passes() {
	rows=$1
	shift
	launch 2 "$@" -c -i 3 -x 1 --time-cap 60
	expect "$*: ends well" [ $rc -eq 0 ]
	expect "$*: $rows rows pass" [ "$(grep -c '^[0-9].*Pass' "$out")" -eq "$rows" ]
	expect "$*: nothing lost" [ "$(grep -c '^# lost' "$out")" -eq 0 ]
}
# sum FILE MEMBER: of the row's ledger, over all rails
sum() {
	grep '"type":"row"' "$1" | tail -n 1 | grep -o "\"$2\":[0-9]*" | cut -d: -f2 |
		awk '{ n += $1 } END { print n + 0 }'
}
runs() {
	grep '"type":"row"' "$1" | tail -n 1 | sed 's/.*"runs":\([0-9]*\).*/\1/'
}
some='--soft ports=2 -m 1:64K'
few='--soft ports=2 -W 8'
passes 18 $lat --soft ports=2 -m 0:64K
for options in '--op write' $(more --op=read --bidir --arrival=event --transport=UC) \
	$(more --op=write,--bidir --op=write,--arrival=cq --op=write,--transport=UC \
	--op=read,--arrival=event --inline=0); do
	passes 17 $lat $(echo "$options" | tr , ' ') $some
done
passes 1 $lat --op fadd $few
passes 1 $lat --op cswap --bidir $few
expect "an operation of 8 bytes" grep -q '^8 ' "$out"
passes 14 $lat --transport UD $few
for program in $bw $bibw; do
	passes 17 $program $few -m 1:64K --over single,single:1,stripe --qps 3 --threshold 4K
	passes 3 $program $few -m 4K:16K --op send --queue 16 --qps 2
done
for options in '--op read' '--transport UC' '--op send --transport UD --queue 8'; do
	for program in $bw $(long $bibw); do
		passes 1 $program $few -m 4K $options
	done
done
# Striped writes, above 4K, and what is not striped, with each announcement; also by a queue.
for options in '--completion control --qps 3' '--completion immediate --queue 8' \
	$(more --completion=control,--queue=8 --completion=control,--inline=0 \
	--completion=immediate,--qps=3); do
	for program in $bw $bibw; do
		passes 4 $program $few -m 4K:32K --over single,stripe --threshold 4K \
			$(echo "$options" | tr , ' ')
	done
done
expect "the announcement is told" grep -q '^# verbs: write by RC, .*, pieces of stripes announced by' "$out"
passes 3 pt2pt/rg_verbs_rate --soft ports=2 -m 8 --sweep qps --qps 4
expect "rows by queue pairs" grep -q '^# qps .*Messages/s' "$out"
passes 4 pt2pt/rg_verbs_rate --soft ports=2 -m 1:8 --op send --qps 64
passes 7 pt2pt/rg_verbs_reuse --soft ports=2 -m 16K
expect "rows by buffers" grep -q '^# buffers  *Bandwidth' "$out"
passes 11 pt2pt/rg_verbs_reuse --soft ports=2 -m 16K --sweep reuse --op send --queue 8
passes 11 $lat --soft ports=2 -m 4K --sweep reuse --buffer-count 100
expect "rows by reuse" grep -q '^# reuse  *Avg Latency' "$out"
# Nothing that is posted from is registered before: a wrong key would be refused.
for when in cache each; do
	for op in write $(long send read); do
		passes 4 pt2pt/rg_verbs_reuse --soft ports=2 -m 16K --buffer-count 8 --op $op --registration $when \
			--sweep buffers --over single,stripe
	done
done
passes 2 pt2pt/rg_verbs_reuse --soft ports=2 -m 4K:8K --sweep size --spread 40 --register kept --queue 8
expect "what is measured is told" grep -q '^# verbs: write by RC, .*, registered through the cache, ' "$out"
passes 3 pt2pt/rg_verbs_notify --soft ports=2 -m 8:32
expect "columns are variants" grep -Eq '^# Size +memory +cq +event ' "$out"
for op in send $(more write); do
	passes 3 pt2pt/rg_verbs_host --soft ports=2 -m 8:32 --op $op
done
passes 13 pt2pt/rg_verbs_overhead --soft ports=2 -m 4K -W 8
expect "rows by share" grep -q '^# share  *Bandwidth' "$out"
expect "... on processors that do the adapter's work" \
	grep -q "^# verbs: .*; processors that compute do the adapter's work, too$" "$out"
passes 1 $bw --op send --soft ports=2 -m 4K --transport UD --queue 8
expect "what is measured is told" grep -q '^# verbs: send by UD, .*, 4 to 8 messages outstanding$' "$out"
# A master and three slaves: a row for 1, 2 and 3 of them.
hotspot=pt2pt/rg_verbs_hotspot
told '--op read: unknown (accepted: send or write)' $hotspot --op read
told '--sizes: rows at several values of slaves are of one message size' $hotspot -m 4K:8K
told '--transport: unknown option' $hotspot --transport UD
refused $hotspot 2 '--pairs 1: rows differ by the number of slaves (accepted: auto)' --soft ports=2 -p 1
bad '--over bind: a master and its slaves are no pairs (accepted: single' $hotspot --over bind
refused $hotspot 1 '1 rank: too few (accepted: 2 or more' --soft ports=2
# A queue pair that fails ends the job.
launch 2 $lat -m 8 -i 10 --soft rate=1GB/s,loss=1
expect "all messages are lost: the job fails" [ $rc -ne 0 ]
expect "... and a line says which rank's queue pair and why" \
	grep -Eq '^rg_verbs_lat: rank [01]: a queue pair has failed: ' "$err"
for options in '--direction out' '--direction in --op write --qps 3' \
	$(more --direction=out,--op=write,--qps=3 --direction=in); do
	launch 4 $hotspot --soft ports=2 --over single,single:1,stripe -m 16K -W 8 -c -i 3 -x 1 --ledger \
		--json "$work/h.jsonl" $(echo "$options" | tr , ' ')
	expect "hotspot $options: a row for each number of slaves" \
		[ "$(echo $(sed -n 's/^\([0-9]*\) .*Pass$/\1/p' "$out"))" = '1 2 3' ]
	for member in tx_bytes rx_bytes expected; do
		[ $member = expected ] && unit=1 || unit=16384
		expect "hotspot $options: $member of all slaves" [ "$(sum "$work/h.jsonl" $member)" -eq \
			$(($(runs "$work/h.jsonl") * 3 * 8 * unit)) ]
	done
done
expect "each rank is a node" grep -q \
	'^# ranks: 4 ranks on one host, standing for 4 virtual nodes; rank 0 is the master of 1 to 3 slaves$' "$out"
launch 4 $bw --soft ports=2 -m 8K -c -i 3 --op send
expect "two pairs" grep -q '^8192 .*Pass' "$out"
launch 3 $bw --soft ports=2 -m 8K
expect "three ranks are no pairs" [ $rc -eq 3 ]

# Half of the queue more than the runs of each batch goes over the rails, and all of it is told.
launch 2 $bw --over stripe --soft ports=2 -m 64K -W 8 -i 5 -x 1 --ledger --json "$work/w.jsonl"
for member in tx_bytes rx_bytes; do
	expect "windows: $member" [ "$(sum "$work/w.jsonl" $member)" -eq \
		$(($(runs "$work/w.jsonl") * 8 * 65536)) ]
done
launch 2 $bw --over stripe --soft ports=2 -m 64K -W 8 -i 5 -x 1 --ledger --json "$work/c.jsonl" \
	--completion control
expect "a control message is no data" [ "$(sum "$work/c.jsonl" rx_bytes)" -eq \
	$(($(runs "$work/c.jsonl") * 8 * 65536)) ]
# by_rail FILE: tx/rx bytes of each rail of the row, in the windows of all runs
by_rail() {
	grep '"type":"row"' "$1" | tail -n 1 | grep -o '"[tr]x_bytes":[0-9]*' | cut -d: -f2 |
		awk -v window="$(($(runs "$1") * 8 * 4096))" 'NR <= 4 { printf "%s%g", n++ ? " " : "",
			$1 / window }'
}
# bound RANKS PROGRAM BYTES: what each rail sends and receives, when messages are bound
bound() {
	launch $1 $2 --over bind --soft ports=2 -m 4K -W 8 -c -i 5 -x 1 --ledger \
		--json "$work/b.jsonl" $4
	expect "$2, $1 ranks, bind: right" grep -q '^4096 .*Pass' "$out"
	expect "$2, $1 ranks, bind: each rail's share" [ "$(by_rail "$work/b.jsonl")" = "$3" ]
}
bound 2 $bw '1 1 0 0'
bound 2 $bibw '1 1 1 1' '--op send'
bound 4 $bw '1 1 1 1' '--transport UC'
bound 2 $bw '1 1 0 0' '--op read'
bound 4 $bibw '2 2 2 2'
passes 1 $lat --soft ports=2 -m 4K --over bind --op write
launch 2 $bw --op read --soft ports=2 -m 4K -W 8 -i 5 -x 1 --ledger --json "$work/r.jsonl"
expect "a read is sent by its target" [ "$(sum "$work/r.jsonl" tx_bytes)" -eq \
	$(($(runs "$work/r.jsonl") * 8 * 4096)) ]
launch 2 $bw --op send --queue 8 --soft ports=2 -m 4K -i 5 -x 1 --ledger --json "$work/q.jsonl"
expect "a queue: all that was sent has come" [ "$(sum "$work/q.jsonl" tx_bytes)" -eq \
	"$(sum "$work/q.jsonl" rx_bytes)" ]
expect "... and was expected" [ "$(sum "$work/q.jsonl" tx_bytes)" -eq \
	$(($(sum "$work/q.jsonl" expected) * 4096)) ]

# Under loss: right, or counted as missing.
launch 2 $bw --op send --transport UD --queue 8 --soft loss=0.04,seed=3 -m 1K -c -i 20 -x 1 --ledger \
	--json "$work/l.jsonl"
expect "datagrams under loss are right" grep -q '^1024 .*Pass' "$out"
expect "the share lost is told" grep -Eq '^# lost: single, 1024 bytes: [1-9][0-9]* of [0-9]+ messages' "$out"
expect "what came and what did not is what was sent" [ $(($(sum "$work/l.jsonl" rx_messages) + \
	$(sum "$work/l.jsonl" lost))) -eq "$(sum "$work/l.jsonl" expected)" ]
launch 2 $bibw --transport UC -W 4 --soft loss=0.02,seed=3 -m 16K -c -i 4 -x 0 --time-cap 60
expect "writes under loss are right" grep -q '^16384 .*Pass' "$out"
launch 2 $bw --op send --soft loss=0.1,seed=3 -m 16K -c -i 4 -x 0 --time-cap 60
expect "RC sends again" grep -q '^16384 .*Pass' "$out"
expect "... and loses nothing" [ "$(grep -c '^# lost' "$out")" -eq 0 ]

# 4 ms pass with each group, by a clock of the program's own: W messages, or half of the queue.
known=tests/bench/rg_verbs_known known_ranks=2
# All columns, but of one way without --full size and mean.
columns() {
	awk '/^# .* Median / { one = !/ SD / } /^[0-9]/ { print one ? $1 " " $2 : $0 }' "$out"
}
known() {
	program=$1 expected=$2
	shift 2
	launch $known_ranks ${known}_$program --soft ports=2 -i 20 -x 2 "$@"
	expect "$program $*: $expected" [ "$(echo $(columns))" = "$expected" ]
}
known lat '8 2000.00' -m 8
known lat '8 4000.00' -m 8 --bidir
known lat '8 4000.00' --op fadd
known bw '1048576 1048.58' -m 1M -W 4
known bw '1048576 1048.58' -m 1M --queue 8
known bw '1048576 1048.58' -m 1M --op read -W 4
known bibw '1048576 2097.15' -m 1M -W 4
known_ranks=4
known hotspot '1 1048.58 2 2097.15 3 3145.73' -m 1M -W 4
known hotspot '1 1048.58 2 2097.15 3 3145.73' -m 1M -W 4 --direction in
known_ranks=2
known bw '1 262.14 2 262.14 4 524.29 8 1048.58' -m 1M --queue 8 --sweep queue --json "$work/s.jsonl"
expect "a row has its coordinate" grep -q \
	'"x":{"name":"queue","value":8.0,"unit":"messages"}' "$work/s.jsonl"
expect "the table names it" grep -q '^# queue  ' "$out"
sed 1,/^#.queue/d "$out" >"$work/s.txt"
src/cli/railgauge report "$work/s.jsonl" -o "$work" >"$work/report" 2>&1
[ ! -s "$work/s.gp" ] || expect "the figure, too" grep -q "set xlabel 'Queue length (messages)'" "$work/s.gp"
same=1048.5760
known bw "1048576 1048.58 $same $same $same 20 $same $same - - - - - - - 0.0000 0.0000 0 - 0.0000 20" \
	-m 1M -W 4 -f
$bw --help >"$out"
expect "peak and average are defined" grep -q 'The peak bandwidth, Max of --full' "$out"
known notify '8 4000.0000 6000.0000 8000.0000' -m 8
expect "what each way to find a message adds" grep -q \
	'^# added to memory, 8 bytes: cq 2000.0000 us, event 4000.0000 us$' "$out"
# Posting, finding and completing take 6 ms together; what passes in between is no work.
launch 2 tests/bench/rg_verbs_known_host --soft ports=2 -m 8:16 -i 5 -x 1
expect "host overhead: what calls take" [ "$(grep -cE '^(8|16) +6000\.00 ' "$out")" -eq 2 ]
expect "... is no latency" grep -q '^# Size  *Avg CPU time(us) ' "$out"
# A computation of x % of 4 ms overlaps each window of 4 ms; looks at the clock take a thousandth.
launch 2 ${known}_overhead --soft ports=2 -m 1M -W 4 -i 20 -x 2
expect "13 shares" [ "$(grep -c '^[0-9]' "$out")" -eq 13 ]
expect "computation takes the share of the time that the row says" awk '
	/^[0-9]/ { off = $2 * (1 + $1 / 100) / 1048.576 - 1; if (off * off > 0.002 ^ 2) wrong = 1 }
	END { exit wrong }' "$out"
# A window of 4 ms that 10000 + 1000 iterations do not fit into.
launch 2 ${known}_lat -m 8 --soft ports=2 --time-cap 1 -f
expect "a time cap: fewer iterations, and the row says so" \
	grep -q '^8 .* 2000.00 .*cut$' "$out"
expect "nothing of ours in /dev/shm" shm_is_clean
finish
