#!/bin/sh
# costs.sh - what is learned of costs within a host: told by --ledger and results, saved by rg_tune, taken
# from there by RAILGAUGE_COSTS, and refused if it is damaged or another processor's.
. "$srcdir/tests/run-lib.sh"
table=$work/table json=$work/run.jsonl

# One rank's learning takes as many messages as the machine wants, so cells may be missing here.
launch 2 collective/rg_tune --over single -m 1K:1K -i 4 -x 1 --out "$table"
expect "rg_tune ends well" [ $rc -eq 0 ]
expect "its table has costs, of a processor" grep -q '^costs 1 .' "$table"
expect "its table ends with their number" \
	[ "$(sed -n 's/^costs-end //p' "$table")" = "$(grep -c '^cell ' "$table")" ]
expect "it prints the same cells" \
	[ "$(grep '^cell ' "$table")" = "$(grep '^cell ' "$out")" ]
src/cli/railgauge tune --help >"$out"
for word in $(sed -n 's/^cell \([a-z]*\) \([a-z]*\) \([a-z-]*\) .*/\1 \2 \3/p' "$table" | tr ' ' '\n' | sort -u); do
	expect "the command's help explains $word" grep -qw -e "$word" "$out"
done
launch 2 collective/rg_bcast -m 8 -i 4 --coll "@$table"
expect "--coll takes the table, too" [ $rc -eq 0 ]
# All of it, by each rank.
export RAILGAUGE_COSTS="$table"
launch 2 pt2pt/rg_latency --over single -m 8:8 -i 20 -x 1 --ledger
expect "the table's costs are taken" [ $rc -eq 0 ]
expect "... each of its cells, by each rank" \
	[ "$(grep -c '^# learned by rank [01]: .*, given (' "$out")" -eq $((2 * $(grep -c '^cell ' "$table"))) ]
unset RAILGAUGE_COSTS

# The same with other cells.
costs() {
	{
		echo 'bcast 0 0 chain'
		grep '^costs 1' "$table"
		printf '%s\n' "$@"
		echo "costs-end $#"
	} >"$work/costs"
}
costs 'cell receive host alone 16K halves read=900 halves=700' \
	'cell receive host queued 16K turns read=900 halves=800 turns=600 # quickest' \
	'cell receive host alone 0 read read=4000000000 halves=0' 'cell others far off 1 x x=1'
export RAILGAUGE_COSTS="$work/costs"
launch 2 pt2pt/rg_bw --over single --soft ideal,ports=1 -m 16K:16K -i 20 -x 1 --ledger --json "$json"
expect "rg_bw takes costs" [ $rc -eq 0 ]
expect "it tells what each rank was given" eval \
	'[ "$(grep -c "^# learned by rank [01]: receive, [a-z]*, queued, to 16384 bytes: turns, given (read 900 ns, halves 800 ns, turns 600 ns)$" "$out")" -eq 2 ]'
expect "its run record has them" eval \
	'grep "\"type\": *\"run\"" "$json" | grep -q "\"learned\": *{\"[a-z]*\": *\[{\"table\": *\"receive\", *\"load\": *\"alone\", *\"bytes\": *16384, *\"scheme\": *\"halves\", *\"why\": *\"given\""'
expect "its end record has each rank's" eval \
	'[ "$(grep "\"type\": *\"end\"" "$json" | grep -o "\"places\"" | wc -l)" -eq 2 ]'
live=$(grep '^# learned: ' "$out")
src/cli/railgauge report --no-plot "$json" >"$out" 2>"$err"
rc=$?
expect "a report has rank 0's in a line" grep -q \
	'^# learned: [a-z]* receive alone halves to 16K (given).*; [a-z]* receive queued turns to 16K (given)' "$out"
expect "... as the program has" [ "$(grep '^# learned: ' "$out")" = "$live" ]
src/cli/railgauge compare "$json" "$json" >"$out" 2>"$err"
expect "a comparison has those of each side" [ "$(grep -c '^# [AB] learned, 1 of 1 launch alike: [a-z]' "$out")" -eq 2 ]
launch 2 src/cli/railgauge exec --over single --soft ideal,ports=1 --ledger -- tests/mpi/known_calls
expect "exec --ledger tells them of each rank" eval \
	'[ "$(grep -c "^  learned, rank [01]: receive [a-z]* queued 16K turns read=900 halves=800 turns=600 (given by --costs)$" "$err")" -eq 2 ]'
# Races of collectives stay when their communicators are freed.
for RG_CASE in world splits_in_a_loop; do
	export RG_CASE
	launch 2 src/cli/railgauge exec --over single --soft ideal,ports=1 --ledger -- tests/mpi/learn_suite single
	expect "it tells the races of collectives, once ($RG_CASE)" \
		[ "$(grep -c '^  learned, 2 ranks on 2 nodes over single: allreduce 128K [a-z]* [a-z]*=[0-9]* .*(measured)$' "$err")" -eq 1 ]
done
unset RG_CASE
launch 2 collective/rg_allreduce --soft ideal,ports=1 -m 64K:64K -i 200 -x 1 --ledger --json "$json" --overwrite \
	--over single,single,rendezvous=read
race='"collective": *"allreduce", *"ranks": *2, *"nodes": *2, *"over": *"single[a-z,=]*", *"places": *"[a-z]*", *"bytes": *65536'
expect "rg_allreduce ends well" [ $rc -eq 0 ]
expect "its end record has the races of each way" eval \
	'[ "$(grep "\"type\": *\"end\"" "$json" | grep -o "$race, *\"algorithm\": *\"[a-z]*\", *\"why\": *\"measured\", *\"algorithms\": *{\"[a-z]*\": *{\"cost_ns\": *[1-9]" | wc -l)" -eq 2 ]'
expect "it tells them" \
	[ "$(grep -c '^# learned by rank 0: allreduce of 2 ranks over single[a-z,=]*, to 65536 bytes: [a-z]*, measured (' "$out")" -eq 2 ]
src/cli/railgauge report --no-plot "$json" >"$out" 2>"$err"
expect "a report has them in its line" grep -q \
	'^# learned: .*allreduce of 2 ranks over single,rendezvous=read [a-z]* to 64K' "$out"
if [ "$(nproc)" -le 2 ]; then
	export RG_CASE=world
	launch 3 src/cli/railgauge exec --over single --soft ideal,ports=1 --ledger -- tests/mpi/learn_suite native
	unset RG_CASE
	expect "ranks that share cores keep the table's choice" grep -q \
		'^  learned, 3 ranks on 2 nodes over single: allgather 64K [a-z-]* (the table.s, since ranks share cores)$' "$err"
	expect "what the file has a rule for is not raced" eval '! grep -q "learned, 3 ranks.*: bcast" "$err"'
	unset RAILGAUGE_COSTS
	launch 3 collective/rg_tune --over single --soft ideal,ports=1 -m 1K:1K -i 4 -x 1 --out "$work/crowded"
	export RAILGAUGE_COSTS="$work/costs"
	expect "rg_tune saves no costs of such ranks" grep -q '^costs-end 0$' "$work/crowded"
	expect "... and says why" grep -q '^# Costs .*: none are measured, since ranks share cores$' "$out"
fi

# rg_tune mixes sizes for cells of mixed ones.  All others are given, so the trace is of these messages.
# mixes CELL BYTES: of a cell that is not given, and the lesser of its sizes
mixes() {
	set -- "$1" "$2" $(
		for load in alone queued crossing; do
			printf 'receive:%s:%s:read\n' $load 16K $load 32K $load 64K $load 128K $load 256K $load 512K \
				$load 1M $load 2M $load 0
		done
		for load in alone row crossing row-mixed crossing-mixed; do
			printf 'send:%s:%s:offer\n' $load 16K $load 32K $load 64K
		done
		for load in far near; do
			printf 'copy:%s:%s:whole\n' $load 2K $load 4K $load 8K $load 16K
		done
		printf 'receive:%s:0:read\n' queued-mixed crossing-mixed
	)
	mixed=$1 least=$2
	shift 2
	{
		grep '^costs 1' "$table"
		printf '%s\n' "$@" | grep -v "^$mixed:" | sed 's/\(.*\):\(.*\):\(.*\):\(.*\)/cell \1 host \2 \3 \4 \4=1/'
		echo "costs-end $(($# - 1))"
	} >"$work/costs"
	launch 2 collective/rg_tune --over single --soft ideal,ports=1 -m 1K:1K -i 4 -x 1 --trace "$work/tuned"
	expect "rg_tune ends well with $mixed to learn" [ $rc -eq 0 ]
	for size in "$least" $((2 * least)); do
		expect "it sends $size bytes for $mixed" grep -q " sent  .* p2p  .* $size " "$work/tuned.0" "$work/tuned.1"
	done
}
mixes receive:queued-mixed:0 131072
mixes receive:crossing-mixed:0 131072
mixes send:crossing-mixed:64K 32768

# A sender that is away from MPI answers late: the choice that was given changes, and the ledger has the reason.
costs 'cell receive host alone 1M halves read=1000 halves=900'
launch 2 src/cli/railgauge exec --over single --soft ideal,ports=1 --ledger -- tests/mpi/known_calls computes
expect "the ledger tells of late senders" grep -q \
	'^  learned, rank 1: [1-9][0-9]* messages read, since their senders answered late$' "$err"
expect "... of their receivers alone" eval '! grep -q "learned, rank 0: .* answered late" "$err"'
launch 2 tests/bench/rg_away --over single --soft ideal,ports=1 -m 1M:1M -i 50 -x 1 --ledger --json "$json" --overwrite
expect "so has a program of the suite" grep -q \
	'^# learned by rank 1: [1-9][0-9]* messages read, since their senders answered late$' "$out"
expect "... and its end record, for that rank" eval \
	'[ "$(grep "\"type\": *\"end\"" "$json" | grep -o "\"late_reads\": *[1-9]" | wc -l)" -eq 1 ]'

# What messages have cost, of at least two schemes that had their turns.
unset RAILGAUGE_COSTS
launch 2 pt2pt/rg_bw --over single --soft ideal,ports=1 -m 256K:256K -i 200 -x 1 --ledger --json "$json" --overwrite
cost='[a-z]* [1-9][0-9]* ns'
expect "costs of messages are told" grep -q \
	"^# learned by rank 1: receive, [a-z]*, queued, to 262144 bytes: [a-z]*, [rm][ace][a-z]* (.*$cost.*, $cost.*)\$" "$out"
cell="\"load\": *\"queued\", *\"bytes\": *262144, *\"scheme\": *\"[a-z]*\", *\"why\": *\"[rm][ace][a-z]*\", *\"schemes\": *"
grep '"type": *"end"' "$json" | grep -o "$cell{[^]]*" >"$work/cell"
expect "the end record has them" [ "$(grep -o '"cost_ns": *[1-9]' "$work/cell" | wc -l)" -ge 2 ]
expect "... and their samples" grep -q '"samples": *[1-9]' "$work/cell"
export RAILGAUGE_COSTS="$work/costs"

# Processes that may run anywhere have a place of their own.  MPICH binds none.
costs 'cell receive host alone 16K halves read=900 halves=700'
export OMPI_MCA_hwloc_base_binding_policy=none
launch 2 pt2pt/rg_bw --over single --soft ideal,ports=1 -m 16K:16K -i 20 -x 1 --ledger --json "$json" --overwrite
unset OMPI_MCA_hwloc_base_binding_policy
expect "the place of processes that are not bound: in the ledger" \
	[ "$(grep -c '^# learned by rank [01]: receive, unbound, alone, to 16384 bytes: halves, given' "$out")" -eq 2 ]
expect "... in the run record" eval \
	'grep "\"type\": *\"run\"" "$json" | grep -q "\"learned\": *{\"unbound\": *\[{\"table\": *\"receive\""'

# Mapped receive buffers, of --map-buffers alone.
costs 'cell map host all 64K written plain=900 written=800 halves=850 move=5000'
launch 2 pt2pt/rg_bw --over single --soft ideal,ports=1 -m 64K:64K -i 20 -x 1 --ledger --map-buffers
expect "rg_bw takes costs of mapped buffers" [ $rc -eq 0 ]
expect "it tells them" eval \
	'[ "$(grep -c "^# learned by rank [01]: map, [a-z]*, all, to 65536 bytes: written, given (plain 900 ns, written 800 ns, halves 850 ns, move 5000 ns)$" "$out")" -eq 2 ]'
launch 2 pt2pt/rg_bw --over single --soft ideal,ports=1 -m 64K:64K -i 20 -x 1 --ledger
expect "without the option they have no effect" eval '[ $rc -eq 0 ] && ! grep "learned by rank .: map" "$out"'

# The sender's choice, from a file whose lines end with CR LF.
# eager SCHEME: eager messages of a bandwidth run of 16 KiB
eager() {
	scheme=$1
	costs "cell send host row 16K $1 offer=900 eager=800" "cell send host alone 16K $1 offer=900 eager=800"
	sed 's/$/\r/' "$work/costs" >"$work/cut" && mv "$work/cut" "$work/costs"
	launch 2 pt2pt/rg_bw --over single --soft ideal,ports=1 -m 16K:16K -i 20 -x 1 --ledger
	expect "rg_bw takes costs with CR LF" [ $rc -eq 0 ]
	expect "it tells the sender's" eval \
		'[ "$(grep -c "^# learned by rank [01]: send, [a-z]*, row, to 16384 bytes: $scheme, given" "$out")" -eq 2 ]'
	count=$(sed -n 's/^# ledger single .* \([0-9]*\) eager messages.*/\1/p' "$out")
}
eager offer
offered=$count
eager eager
expect "messages are eager as given ($offered, $count)" [ "$count" -gt $((offered + 1000)) ]

# Refused in one line, which names the variable.
refuses() {
	refused pt2pt/rg_bw 2 "RAILGAUGE_COSTS.*$1" --over single -m 8
}
costs 'cell receive host alone 17K read read=1'
refused pt2pt/rg_bw 2 "RAILGAUGE_COSTS.*line 3: no cell of this version" --over single -m 8
costs 'cell send host queued 16K offer offer=1'
refused pt2pt/rg_bw 2 "RAILGAUGE_COSTS.*line 3: no cell of this version" --over single -m 8
costs 'cell map host all 64K move plain=1 move=1'
refused pt2pt/rg_bw 2 "RAILGAUGE_COSTS.*line 3: no cell of this version" --over single -m 8
costs 'cell receive host alone 16K turns read=1'
refuses "line 3: scheme 'turns' has no cost"
costs 'cell receive host alone 16K read read=1x'
refuses "line 3: '.*' is no SCHEME=NANOSECONDS"
costs 'cell receive host alone 16K read read=1'
sed '$d' "$work/costs" >"$work/cut" && mv "$work/cut" "$work/costs"
refuses "its end is missing, damaged"
costs
sed 's/^costs 1 /&another /' "$work/costs" >"$work/cut" && mv "$work/cut" "$work/costs"
refuses "line 2: costs of another processor"
sed 's/^costs 1/costs 2/' "$work/costs" >"$work/cut" && mv "$work/cut" "$work/costs"
refuses "line 2: another version"
echo 'bcast 0 0 chain' >"$work/costs"
refuses "it has no costs"
rm "$work/costs"
refuses "cannot be read: No such file"
launch 2 src/cli/railgauge exec --over single -- tests/mpi/known_calls
judge_refusal known_calls 3 3 'RAILGAUGE_COSTS.*cannot be read' "exec"

# The file of rank 1's host is missing, or another processor's.
costs 'cell receive host alone 16K read read=1'
mkdir "$work/host0" "$work/host1"
cp "$work/costs" "$work/host0/costs"
# elsewhere PROGRAM WORDS COMMAND...: ranks on hosts of their own
elsewhere() {
	program=$1 words=$2
	shift 2
	# shellcheck disable=SC2016 # of the rank
	limit=60 launch 2 sh -c 'cd "'"$work"'/host${OMPI_COMM_WORLD_RANK-$PMI_RANK}" && exec "$@"' sh "$@"
	judge_refusal "$program" 3 3 "$words" "elsewhere, $*"
}
export RAILGAUGE_COSTS=costs
elsewhere rg_bw 'rank 1: .*RAILGAUGE_COSTS.*cannot be read: No such file' "$PWD/pt2pt/rg_bw" --over single -m 8
elsewhere known_calls 'rank 1: .*RAILGAUGE_COSTS.*cannot be read: No such file' \
	"$PWD/src/cli/railgauge" exec --over single -- "$PWD/tests/mpi/known_calls"
sed 's/^costs 1 /&another /' "$work/costs" >"$work/host1/costs"
elsewhere rg_bw 'rank 1: .*RAILGAUGE_COSTS.*line 2: costs of another processor' "$PWD/pt2pt/rg_bw" \
	--over single -m 8 --coll table
unset RAILGAUGE_COSTS

# Schemes that are asked for, as ways of one launch.
launch 2 pt2pt/rg_bw --soft ideal,ports=1 -m 16K:16K -i 4 -x 1 -c --json "$json" --overwrite \
	--over single,single,rendezvous=read,single,rendezvous=both,single,rendezvous=turns
expect "each scheme is a way of one launch" [ $rc -eq 0 ]
expect "... four rows" [ "$(grep -c '"type": *"row"' "$json")" -eq 4 ]
expect "... with names" grep -q '"way": *"single,rendezvous=turns"' "$json"
refused pt2pt/rg_bw 2 '--over rendezvous neither: unknown' -m 8 --over single,rendezvous=neither
refused pt2pt/rg_bw 2 'the MPI library has no such options' -m 8 --over native,rendezvous=read

# So are algorithms of collectives, on top of those that the job forces.
# carried WAY: bytes over rails of that way in "$out"
carried() {
	sed -n "s/^# ledger $1 soft0:1: \([0-9]*\) bytes.*/\1/p" "$out"
}
launch 2 collective/rg_alltoall --soft ideal,ports=1 -m 16K:16K -i 20 -x 1 -c --ledger --json "$json" --overwrite \
	--over single,single,coll=alltoall=native,single,eager=8K,coll=alltoall=linear,coll=bcast=chain
expect "each algorithm is a way of one launch" [ $rc -eq 0 ]
expect "... with names" grep -q '"way": *"single,eager=8K,coll=alltoall=linear,coll=bcast=chain"' "$json"
expect "... native by itself" [ "$(carried single,coll=alltoall=native)" -eq 0 ]
expect "... others over rails" [ "$(carried single)" -gt 0 ]
expect "... with further options" [ "$(carried single,eager=8K,coll=alltoall=linear,coll=bcast=chain)" -gt 0 ]
launch 2 collective/rg_alltoall --soft ideal,ports=1 -m 16K:16K -i 20 -x 1 --ledger --coll alltoall=native,bcast=chain \
	--over single,single,coll=alltoall=linear
expect "an item without one has the job's" [ "$(carried single)" -eq 0 ]
expect "... and one with it its own" [ "$(carried single,coll=alltoall=linear)" -gt 0 ]
refused collective/rg_alltoall 2 "--over single,coll=alltoall=chain: no alltoall 'chain' (accepted: auto, native, bruck" \
	-m 8 --over single,coll=alltoall=chain
refused collective/rg_alltoall 2 "--over single,coll=all: no collective 'all' (accepted: " -m 8 --over single,coll=all
refused collective/rg_alltoall 2 "--over single,coll=@table: " -m 8 --over single,coll=@table
refused collective/rg_alltoall 2 'the MPI library has no such options' -m 8 --over native,coll=alltoall=linear
refused collective/rg_tune 2 'each algorithm is forced in its turn here' -m 8 --over single,coll=alltoall=linear

# So are eager limits: messages up to it are eager, larger ones offered, whatever the job's buffers.
# There are 20 windows of 64 messages at least, and more where the first ones last longer.
for size in 16 32 64; do
	launch 2 pt2pt/rg_bw --soft ideal,ports=1 -m ${size}K -i 20 -x 1 --ledger \
		--over single,eager=8K,single,eager=16K,single,eager=32K,single,eager=64K
	expect "each limit is a way of one launch" [ $rc -eq 0 ]
	for limit in 8 16 32 64; do
		# shellcheck disable=SC2046 # two words
		set -- $(sed -n "s/^# ledger single,eager=${limit}K .* \([0-9]*\) eager messages, \([0-9]*\) chunks.*/\1 \2/p" "$out")
		if [ $limit -ge $size ]; then
			expect "eager=${limit}K: messages of ${size}K are eager ($*)" [ "$1" -ge 1280 -a "$2" -eq 0 ]
		else
			expect "eager=${limit}K: messages of ${size}K are offered ($*)" [ "$1" -lt 1280 -a "$2" -ge 1280 ]
		fi
	done
done
refused pt2pt/rg_bw 2 '--over eager 65K: .*(accepted: 0 to 64K, or auto)' -m 8 --over single,eager=65K
refused pt2pt/rg_bw 2 '--over eager soon: .*(accepted: 0 to 64K, or auto)' -m 8 --over single,eager=soon
refused pt2pt/rg_bw 2 "--over eager=32768: .*accepted: 0 to 16384, the job's --eager" -m 8 --eager 16K \
	--over single,eager=32K
refused pt2pt/rg_bw 2 "--over eager=32768: .*accepted: 0 to 8192, the job's --eager" -m 8 --soft ports=1,rate=1GB/s,latency=1us \
	--over single,eager=32K
refused pt2pt/rg_bw 2 'the MPI library has no such options' -m 8 --over native,eager=8K

# railgauge tune is the same command.
in_turn env $([ "$RG_MPI_FLAVOR" != openmpi ] || echo OMPI_MCA_rmaps_base_oversubscribe=1) \
	src/cli/railgauge tune --launcher "$MPIRUN -n {n}" --output "$work/tuned" -- --over single -m 1K:1K -i 4 \
	-x 1 >"$out" 2>"$err"
rc=$?
expect "railgauge tune ends well" [ $rc -eq 0 ]
expect "it saves the table" grep -q '^costs-end ' "$work/tuned"
expect "nothing in /dev/shm" shm_is_clean
finish
