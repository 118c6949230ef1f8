#!/bin/sh
# What is told of a program's messages, against the calls that known_calls.c makes: --ledger by
# function and rail, --trace by message, --dump-signal by queue.
. "$srcdir/tests/run-lib.sh"

plain="src/cli/railgauge exec --soft ports=2"
exec="$plain --over stripe"

# ---- The ledger ----------------------------------------------------------------------------

# told FUNCTION ROUTED BYTES NATIVE: that line is there.
told() {
	awk -v name="MPI_$1" -v wanted="$2 $3 $4" '
		$1 == name { seen++; right = $2 " " $3 " " $4 == wanted }
		END { exit !(seen == 1 && right) }' "$err"
}

# The sums over functions and rails, each its own way: "BYTES SENT GOT CHUNKS MESSAGES".
sums() {
	awk '/^  all functions/ { bytes = $3 }
	     $1 ~ /^soft0:|^local$/ { m += $2; c += $3; s += $4; g += $7 }
	     END { print bytes, s, g, c, m }' "$err"
}

# rail_chunks RAIL: those that it sent; 0 without a line of its own
rail_chunks() {
	awk -v rail="$1" '$1 == rail { c += $3 } END { print c + 0 }' "$err"
}

# sized: messages of the program by size, and their bytes with those of collectives, which differ by algorithm.
sized() {
	awk '/^  messages of/ { on = 1; next }
	     !on || /^  time in MPI/ { on = 0; next }
	     { size = $(NF - 3); bytes += $NF; if ($(NF - 2)) text = text size ":" $(NF - 2) " " }
	     END { print text bytes }' "$err"
}

# timed FUNCTION...: some of the time in MPI is theirs.
timed() {
	grep -q '^  time in MPI: [0-9.]* % of [0-9.]* s from MPI_Init to MPI_Finalize, by rank [0-9.]* to [0-9.]* %$' "$err" ||
		return 1
	for function in "$@"; do
		grep -q "^  *[0-9.]* %  $function\$" "$err" || return 1
	done
}

known_ledger() {
	expect "$1: ends well" [ "$rc" -eq 0 ]
	expect "$1: one table" [ "$(grep -c 'ledger of 2 ranks together' "$err")" -eq 1 ]
	expect "$1: stdout is the program's" [ "$(cat "$out")" = done ]
	expect "$1: MPI_Send" told Send 5 330 5
	expect "$1: MPI_Recv" told Recv 9 0 5
	expect "$1: MPI_Isend" told Isend 2 2097152 0
	expect "$1: MPI_Irecv" told Irecv 2 0 0
	expect "$1: MPI_Ssend" told Ssend 1 8 0
	expect "$1: MPI_Bsend" told Bsend 1 50 0
	expect "$1: MPI_Send_init" told Send_init 1 0 0
	expect "$1: MPI_Start" told Start 4 80 0
	expect "$1: MPI_Mprobe" told Mprobe 1 0 0
	expect "$1: MPI_Mrecv" told Mrecv 1 0 0
	expect "$1: MPI_Sendrecv" told Sendrecv 2 128 0
	expect "$1: MPI_Allreduce" told Allreduce 2 8 2
	expect "$1: MPI_Bcast" told Bcast 2 1000 0
	expect "$1: no other function" [ "$(grep -c '^  MPI_' "$err")" -eq "$2" ]
	expect "$1: what is not counted" grep -q 'nonblocking, persistent and neighbourhood coll' "$err"
	expect "$1: time in MPI" timed MPI_Send MPI_Recv MPI_Sendrecv MPI_Mprobe MPI_Waitall MPI_Bcast
	expect "$1: sizes: $(sized)" [ "$(sized)" = "8:1 32:5 64:3 128:3 1M:2 2098756" ]
	# By both ends, 2 x 2 chunks of 1 MiB over two rails; the synchronous message has one.
	expect "$1: functions, rails and both ends have the same sums: $(sums)" \
		[ "$(sums)" = "2098756 2098756 2098756 5 $3" ]
}

launch 2 $exec --ledger -- tests/mpi/known_calls
known_ledger "exec --ledger" 14 18
expect "MPI_Barrier" told Barrier 4 0 0
# A linked program; and collectives that stay the library's.
RAILGAUGE_LEDGER=1 RAILGAUGE_SOFT=ports=2 RAILGAUGE_OVER=stripe RAILGAUGE_COLL=barrier=native
export RAILGAUGE_LEDGER RAILGAUGE_SOFT RAILGAUGE_OVER RAILGAUGE_COLL
launch 2 tests/mpi/known_calls
known_ledger "RAILGAUGE_LEDGER=1" 14 14
expect "MPI_Barrier, the library's" told Barrier 0 0 4
KNOWN_MULTIPLE=1 launch 2 tests/mpi/known_calls
known_ledger "with threads" 14 14
unset RAILGAUGE_COLL
launch 2 tests/mpi/known_calls abort
expect "aborted: it ends so" [ "$rc" -ne 0 -a "$rc" -ne 124 ]
expect "aborted: no table" [ "$(grep -c 'ledger of' "$err")" -eq 0 ]
RAILGAUGE_OVER=native launch 2 tests/mpi/known_calls
expect "native: ends well" [ "$rc" -eq 0 ]
expect "native: one line" [ "$(grep -c 'ledger: no rails in use' "$err")" -eq 1 ]
unset RAILGAUGE_LEDGER RAILGAUGE_SOFT RAILGAUGE_OVER
# Reductions of every type that the library reduces, and why others are the library's.
launch 2 $exec --ledger -- tests/mpi/known_calls reductions
right=$(sed -n 's/^\([0-9]*\) of \1 right$/\1/p' "$out")
expect "reductions: as the library's own" [ "${right:-0}" -ge 25 ]
# On both ranks: those that are right once over rails, and but the user's once on a native communicator.
native=$((2 * right - 2 + 12))
expect "reductions: over rails $((2 * right)), $native are the library's" \
	awk -v routed=$((2 * right)) -v native=$native '$1 == "MPI_Allreduce" {
		seen = $2 == routed && $4 == native } END { exit !seen }' "$err"
because="native: 2 on MPI_COMM_SELF, 2 on intercommunicators, $((2 * right - 2)) on communicators that are not"
because="$because routed, 6 with an operation that the MPI library does not reduce the type by,"
expect "reductions: why" grep -q "^    $because 2 with arguments that the MPI library refuses\$" "$err"
RAILGAUGE_COLL=allreduce=native launch 2 $exec --ledger -- tests/mpi/known_calls
expect "reductions by --coll: why" grep -q '^    native: 2 on communicators .*, 2 by --coll$' "$err"
# Without --over: one rail where rails are one memory, all where they have wires.
launch 2 $plain --ledger -- tests/mpi/known_calls
expect "two rails of one memory: the first carries all" \
	[ "$(grep -c '^  soft0:' "$err")" -ge 1 -a "$(rail_chunks soft0:2)" = 0 ]
launch 2 src/cli/railgauge exec --soft ports=2,rate=1GB/s --intranode hca --ledger -- tests/mpi/known_calls
expect "two rails of a model: the second carries chunks" [ "$(rail_chunks soft0:2)" -gt 0 ]
launch 2 $exec -- tests/mpi/known_calls
expect "off: nothing is told" [ "$rc" -eq 0 -a "$(grep -c 'ledger' "$err")" -eq 0 ]

# Who drives whom.  A wait over rails gives the library its turns, which one-sided calls need.
progress() {
	awk '$1 == "progress:" { rounds = $2; turns = $8 } $1 == "looks" { looks = $4 }
		END { exit !('"$1"') }' "$err"
}
launch 2 $exec --ledger -- measures/waits -n 300 -s 1 create-recv
expect "a wait over rails: its time is in MPI" timed MPI_Recv
expect "a wait over rails: a turn of the library in most rounds" progress "rounds > 0 && turns > rounds / 2"
launch 2 $exec --ledger -- measures/waits -n 300 -s 1 fence
expect "a wait in the library: its time is in MPI" timed MPI_Win_fence
expect "a wait in the library: looks at rails" progress "looks > 0"

# ---- The trace -----------------------------------------------------------------------------

# traced FILE WAY USE: "MESSAGES BYTES"
traced() {
	awk -v way="$2" -v use="$3" '/^ *[0-9]/ && $3 == way && $6 == use { n++; b += $8 }
		END { print n + 0, b + 0 }' "$1"
}

launch 2 $exec --trace "$work/t.%r.txt" -- tests/mpi/known_calls
expect "trace: ends well" [ "$rc" -eq 0 ]
expect "trace: sent by 0" [ "$(traced "$work/t.0.txt" sent p2p)" = "13 2097684" ]
expect "trace: got by 1" [ "$(traced "$work/t.1.txt" got p2p)" = "13 2097684" ]
expect "trace: sent by 1" [ "$(traced "$work/t.1.txt" sent p2p)" = "1 64" ]
expect "trace: collectives of 0" [ "$(traced "$work/t.0.txt" sent coll)" = "4 1004" ]
expect "trace: collectives of 1" [ "$(traced "$work/t.1.txt" sent coll)" = "3 4" ]
for end in 0.txt 1.txt; do
	expect "trace $end: 1 MiB in pieces over both rails" \
		[ "$(awk '$8 == 1048576 && $9 == "both" && $10 == "0:1,1:1"' "$work/t.$end" |
			wc -l)" -eq 2 ]
	expect "trace $end: complete" grep -q '^# complete: 21 messages' "$work/t.$end"
done
expect "trace: a small one has its rail" \
	grep -q ' sent  *1 .* p2p  *1  *100 eager  *[01] *$' "$work/t.0.txt"
# Where a model moves the data, the sender alone writes.
launch 2 src/cli/railgauge exec --over stripe --soft ports=2,rate=20GB/s --trace "$work/w" -- tests/mpi/known_calls
expect "modelled, trace: written over both rails" \
	[ "$(awk '$8 == 1048576 && $9 == "write" && $10 == "0:8,1:8"' "$work/w.0" | wc -l)" -eq 2 ]
RAILGAUGE_RENDEZVOUS=read launch 2 $exec --trace "$work/r" -- tests/mpi/known_calls
for end in 0 1; do
	expect "read, trace $end: which rails" \
		[ "$(awk '$8 == 1048576 && $9 == "read" && $10 == "0:8,1:8"' "$work/r.$end" |
			wc -l)" -eq 2 ]
done
# More messages than the ring has lines.
launch 2 $exec --trace "$work/m" -- tests/mpi/known_calls many 66000
expect "many: ends well" [ "$rc" -eq 0 ]
for end in 0 1; do
	expect "many: rank $end's lines are bounded" [ "$(grep -c '^ *[0-9]' "$work/m.$end")" -eq 65536 ]
	expect "many: rank $end's file says so" grep -q '^# cut: 66021 messages' "$work/m.$end"
	expect "many: rank $end has the last" \
		[ "$(sort -n "$work/m.$end" | tail -n 1 | awk '{ print $1, $8 }')" = "66021 8" ]
done
# A message that is withdrawn has a peer and a tag, and no bytes.
launch 2 $exec --trace "$work/c" -- tests/mpi/known_calls cancel
expect "cancelled: ends well" [ "$rc" -eq 0 ]
expect "cancelled: in the trace" \
	[ "$(awk '$7 == 200 { print $3, $4, $6, $8, $9 }' "$work/c.0")" = "sent 1 p2p 0 cancelled" ]
# A rank that is killed leaves what it has written.
launch 2 $exec --trace "$work/k" -- tests/mpi/known_calls kill
! loses_exit_codes || [ "$rc" -ne 0 ] || rc=9
expect "killed: it ends" [ "$rc" -ne 0 -a "$rc" -ne 124 ]
expect "killed: the trace is whole" [ "$(traced "$work/k.0" sent p2p)" = "13 2097684" ]
expect "killed: the trace says so" grep -q '^# not cut so far' "$work/k.0"

# ---- The queues ----------------------------------------------------------------------------

# Go on when both have said it, rank 0 twice.
watch() {
	until [ "$(grep -c 'rank 0: queues of peer 1' "$err")" -ge 2 ] &&
		grep -q 'rank 1: queues of peer 0' "$err"; do
		sleep 0.1
	done
	: >"$work/go"
}

dump() {
	rm -f "$work/go"
	: >"$err"
	watch &
	watcher=$!
	limit=60
	launch 2 $exec --dump-signal USR2 -- tests/mpi/known_calls dump "$work/go"
	kill $watcher 2>/dev/null
	wait $watcher 2>/dev/null
	queues='posted 4, unexpected 3 (1048592 bytes), in flight 0, waiting for credit 0'
	expect "$1: ends well" [ "$rc" -eq 0 ]
	expect "$1: rank 0, at work and waiting" \
		[ "$(grep -c "known_calls: rank 0: queues of peer 1: $queues\$" "$err")" -eq 2 ]
	expect "$1: receives from any" \
		[ "$(grep -c 'rank 0: queues of any source: posted 1;' "$err")" -eq 2 ]
	queues='posted 0, unexpected 0 (0 bytes), in flight 1, waiting for credit 0'
	expect "$1: rank 1" \
		[ "$(grep -c "known_calls: rank 1: queues of peer 0: $queues\$" "$err")" -eq 1 ]
}

dump dump
export KNOWN_MULTIPLE=1
dump "dump with threads"
unset KNOWN_MULTIPLE

# ---- Bad input -----------------------------------------------------------------------------

# wrong WORDS NAME=VALUE: of a linked program, one line of ours.
wrong() {
	words=$1
	shift
	launch 2 env "$@" RAILGAUGE_SOFT=ports=2 tests/mpi/known_calls
	judge_refusal known_calls 3 3 "$words" "$*"
}

wrong '--trace /nowhere/t.0: No such file or directory (accepted: a file that can be written' \
	RAILGAUGE_TRACE=/nowhere/t
wrong 'DUMP_SIGNAL.*accepted: none, HUP, USR1 or USR2' RAILGAUGE_DUMP_SIGNAL=KILL
wrong 'LEDGER.*accepted: 1, 0, yes or no' RAILGAUGE_LEDGER=maybe
launch 2 pt2pt/rg_bw --soft ports=2 --trace /nowhere/t
judge_refusal rg_bw 3 4 '--trace /nowhere/t.0: No such file' "rg_bw --trace /nowhere/t"
launch 2 $exec --dump-signal 9 -- tests/mpi/known_calls
judge_refusal railgauge 3 3 'dump-signal 9: .*accepted: none, HUP' "exec --dump-signal 9"
launch 2 sh "$srcdir/tests/hw/rank1.sh" RAILGAUGE_LEDGER=1 $exec -- tests/mpi/known_calls
judge_refusal known_calls 3 3 '--ledger .*rank 1 has another value' "--ledger on one rank"
expect "nothing in /dev/shm" shm_is_clean
finish
