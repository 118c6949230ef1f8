#!/bin/sh
# run.sh - `make bench`: what Railgauge promises, measured, as a table.
#
# Every value is a ratio of two things measured side by side in one launch, or in
# launches that take turns; shown is its median over launches with its extremes.
# Nothing here is a test: a missed measure is printed as such and the exit code
# stays 0, because machines are noisy.  Run it on an idle machine.
#
#	MEASURE_LAUNCHES=N	launches per measure (default 5)
#	MEASURE_ONLY=WORD	only the groups whose name contains WORD
#	MEASURE_TRUTH_COUNT=N	samples per size in the group native_truth
#	RG_MPICH_BUILD=DIR	a build with MPICH, for rows that compare both libraries
#	RG_BEFORE_BUILD=DIR	another build of Railgauge, for rows of the groups memory, default_time, scheme_choice
#
# A group is a function below: launch, take ratios, say what is wanted.
. "$srcdir/tests/run-lib.sh"
measuring=yes
. "$srcdir/tests/listens.sh"
launches=${MEASURE_LAUNCHES:-5}
only=${MEASURE_ONLY-}
limit=300

stop() {
	echo "measures: $*" >&2
	cat "$err" >&2
	exit 4
}

# once FILE N PROGRAM ARG...: one launch, its output kept
once() {
	kept=$1
	shift
	launch "$@"
	[ "$rc" -eq 0 ] || stop "exit code $rc of: $*"
	cp "$out" "$work/$kept"
}

# run NAME N PROGRAM ARG...: all launches, in $work/NAME.1, NAME.2, ...
run() {
	name=$1
	shift
	for k in $(seq "$launches"); do
		once "$name.$k" "$@"
	done
}

# take_turns NAME "N PROGRAM ARG..." NAME "N PROGRAM ARG...": A B A B ...
take_turns() {
	for k in $(seq "$launches"); do
		once "$1.$k" $2
		once "$3.$k" $4
	done
}

# compare low|high "N PROGRAM ARG..." "N PROGRAM ARG...": ratios of the means of one row each.
# MPI libraries have good and bad launches: each ratio is one of the best of TURNS.
TURNS=7
compare() {
	[ "$1" = low ] && field=2 || field=3
	shift
	for k in $(seq "$launches"); do
		: >"$work/a" >"$work/b"
		for turn in $(seq $TURNS); do
			once kept $1 --json "$work/a.jsonl"
			mean_of "$work/a.jsonl" >>"$work/a"
			once kept $2 --json "$work/b.jsonl"
			mean_of "$work/b.jsonl" >>"$work/b"
		done
		echo "$(summary <"$work/a") $(summary <"$work/b")" |
			awk -v i=$field '{ print $i / $(i + 3) }'
	done
}

# The table has two decimals, which is too few for a tenth of a microsecond.
mean_of() {
	sed -n 's/.*"type":"row".*"mean":\([^,]*\),.*/\1/p' "$1"
	rm -f "$1"
}

# ratios NAME SIZE COLUMN NAME SIZE COLUMN: one per launch; columns count after the size
ratios() {
	for k in $(seq "$launches"); do
		cat "$work/$1.$k" "$work/$4.$k" | awk -v as="$2" -v ac="$3" -v bs="$5" -v bc="$6" \
			-v alines="$(wc -l <"$work/$1.$k")" '
			NR <= alines && $1 == as { a = $(ac + 1) }
			NR > alines && $1 == bs { b = $(bc + 1) }
			END { if (a == "" || !b) exit 1; print a / b }' || stop "no row of $2 or $5 bytes"
	done
}

# median of the numbers on stdin, then the lowest and the highest
summary() {
	sort -g | awk '{ v[NR] = $1 } END {
		print (NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2), v[1], v[NR] }'
}

# measure TEXT CONDITION: of the ratios on stdin; the condition is on x
measure() {
	read -r median low high <<-END
		$(summary)
	END
	if [ -z "$median" ]; then
		echo "  $1: not measured"
		return
	fi
	verdict=missed
	holds "($(echo "$2" | sed "s/x/$median/g"))" && verdict=met
	printf '  %-64s %7.3f  %.3f..%-7.3f %-24s %s\n' "$1" "$median" "$low" "$high" "$2" "$verdict"
}

# The size, of several, whose median over launches is farthest from 1:
# measure_worst TEXT CONDITION NAME COLUMN NAME COLUMN SIZE...
measure_worst() {
	text=$1 condition=$2 an=$3 ac=$4 bn=$5 bc=$6
	shift 6
	worst=$(for size do
		echo "$(ratios "$an" "$size" "$ac" "$bn" "$size" "$bc" | summary) $size"
	done | awk '
		{ far = $1 > 1 ? $1 : 1 / $1 }
		far > most { most = far; size = $4 }
		END { print size }')
	ratios "$an" "$worst" "$ac" "$bn" "$worst" "$bc" | measure "$text, worst size: $worst" "$condition"
}

# group NAME TEXT
group() {
	case $1 in
	*"$only"*) echo "$2" ;;
	*) return 1 ;;
	esac
}

model=rate=1GB/s,latency=2us
small="1 2 4 8 16 32 64 128 256 512 1024 2048 4096 8192"
many="-i 2000"	# the windows of small messages take microseconds
pt2pt=pt2pt

one_pair() {
	for p in bw bibw; do
		run one_$p 2 $pt2pt/rg_$p --over single,stripe --soft $model -m 1M:1M
		ratios one_$p 1048576 2 one_$p 1048576 1 |
			measure "rg_$p: striped / single, 1 MiB" "x >= 1.9"
		run few_$p 2 $pt2pt/rg_$p --over single,stripe --soft $model -m 1:8K $many
		measure_worst "rg_$p: striped / single up to 8192" "x >= 0.95 && x <= 1.05" \
			few_$p 2 few_$p 1 $small
	done
	run one_latency 2 $pt2pt/rg_latency --over single,stripe --soft $model -m 1:8K
	measure_worst "rg_latency: striped / single up to 8192" "x >= 0.95 && x <= 1.05" \
		one_latency 2 one_latency 1 $small
}

no_dip() {
	take_turns below "2 $pt2pt/rg_bw --over stripe --soft $model -m 8K:8K" \
		above "2 $pt2pt/rg_bw --over stripe --soft $model -m 8193:2M"
	for size in 8193 16386 32772 65544 131088 262176 524352 1048704; do
		ratios above $size 1 below 8192 1 | summary
	done | awk 'NR == 1 || $1 < low { low = $1 } END { print low }' |
		measure "rg_bw: striped, slowest size above the threshold / 8192" "x >= 1.0"
}

# lowest NAME COLUMN SIZE...: over column 1, medians of the launches; the lowest of the sizes
lowest() {
	name=$1 column=$2
	shift 2
	for size do
		ratios "$name" "$size" "$column" "$name" "$size" 1 | summary
	done | sort -g | awk 'NR == 1 { print $1 }'
}

# Ports slow enough that memory is not the limit with eight of them.  The program's own window, and
# one of 16 messages, which at 256 KiB lasts 2 ms on eight rails: there its begin and end count.
many_rails() {
	for n in 2 3 4 8; do
		for window in 64 16; do
			run many 2 $pt2pt/rg_bw --over single,stripe,weighted,pull -m 256K:4M -W $window \
				-i 20 --time-cap 2 --soft "ports=$n,rate=250MB/s,latency=2us"
			column=2
			for way in striped weighted pulled; do
				lowest many $column 262144 524288 1048576 2097152 4194304 |
					awk -v n="$n" '{ print $1 / n }' |
					measure "rg_bw, $n rails, -W $window, $way / their sum, lowest from 256K on" \
						"x >= 0.98"
				column=$((column + 1))
			done
		done
		# Launches of one program differ by more than what is looked for, and are short.
		few=$launches launches=$((3 * launches))
		take_turns lat1 "2 $pt2pt/rg_latency --soft ports=1,$model -m 8:8" \
			latn "2 $pt2pt/rg_latency --soft ports=$n,$model -m 8:8"
		ratios latn 8 1 lat1 8 1 | measure "rg_latency, 8 bytes: $n rails / one" "x <= 1.02"
		launches=$few
	done
}

two_pairs() {
	run two 4 $pt2pt/rg_bw --over single,bind,stripe --soft $model -m 1M:1M
	ratios two 1048576 2 two 1048576 1 | measure "rg_bw, 4 ranks: bound / single, 1 MiB" "x >= 1.9"
	ratios two 1048576 3 two 1048576 1 | measure "rg_bw, 4 ranks: striped / single, 1 MiB" "x >= 1.9"
	run two 4 $pt2pt/rg_bw --over single,bind,stripe --soft $model -m 1:8K $many
	measure_worst "rg_bw, 4 ranks: striped / bound up to 8192" "x >= 0.95 && x <= 1.05" \
		two 3 two 2 $small
	for size in 8 128 1024 4096 8192; do
		ratios two $size 2 two $size 1 | measure "rg_bw, 4 ranks: bound / single, $size" "x > 1"
		ratios two $size 3 two $size 1 | measure "rg_bw, 4 ranks: striped / single, $size" "x > 1"
	done
}

# Rails of 3:1 on the model, what weighted and pull send over the fast one; what the ledger and the
# matrix say of ports that share a bus, and of a rail of a third of the rate.
unequal() {
	. "$srcdir/tests/bench/ledger-lib.sh"
	for k in $(seq "$launches"); do
		once shares.$k 2 $pt2pt/rg_bw --over weighted,pull --soft ports=2,rate=60MB/s+20MB/s \
			-m 1M -W 8 -i 4 --ledger --json "$work/shares.$k.jsonl"
		once bus.$k 2 $pt2pt/rg_bw --over stripe --soft ports=2,rate=80MB/s,bus=120MB/s/120MB/s \
			-m 256K -W 8 -i 8 --ledger
		once matrix.$k 4 $pt2pt/rg_pairs --soft ports=2,rate=90MB/s+30MB/s,latency=2us --nodes 4 \
			-m 64K -W 4 -i 3 -x 0
	done
	for way in weighted pull; do
		for k in $(seq "$launches"); do
			share "$work/shares.$k.jsonl" $way 1 | awk '{ print $1 / 100 }'
		done | measure "rg_bw, rails of 60 and 20 MB/s, $way: of all over the first" \
			"x >= 0.72 && x <= 0.78"
	done
	sed -n 's/^# stripe: aggregate .* = \([0-9.]*\) of the sum.*/\1/p' "$work"/bus.* |
		measure "rg_bw, 80 + 80 MB/s behind a bus of 120: striped / their sum" "x >= 0.72"
	sed -n 's/^# slow: single:1 (soft0:2) as a whole: median [0-9.]*, \([0-9.]*\) of.*/\1/p' \
		"$work"/matrix.* | measure "rg_pairs, rails of 90 and 30 MB/s: named, the second / first" \
		"x >= 0.30 && x <= 0.36"
}

untimed() {
	run latency 2 $pt2pt/rg_latency --over native,single,stripe --soft ideal -m 8:8
	ratios latency 8 2 latency 8 1 | measure "rg_latency: one rail / native, 8 bytes" "x <= 1.5"
	ratios latency 8 3 latency 8 1 | measure "rg_latency: two rails / native, 8 bytes" "x <= 1.5"
	run ideal 2 $pt2pt/rg_bw --over native,single,stripe --soft ideal -m 1M:1M
	ratios ideal 1048576 2 ideal 1048576 1 | measure "rg_bw: one rail / native, 1 MiB" "x >= 1.0"
	ratios ideal 1048576 3 ideal 1048576 1 | measure "rg_bw: two rails / native, 1 MiB" "x >= 1.0"
}

# in_mpich COMMAND...: a launch with the build of RG_MPICH_BUILD, in its directory
in_mpich() {
	(
		launcher="$(sed -n 's/^MPIRUN = //p' "$RG_MPICH_BUILD/Makefile") -n" RG_MPI_FLAVOR=mpich
		cd "$RG_MPICH_BUILD" && "$@"
	) || exit
}

# better low|high FILE...: the better native value (column 2) of these tables' only row
better() {
	[ "$1" = low ] && order=-g || order=-gr
	shift
	for table do
		awk '/^[0-9]/ { print $2 }' "$table"
	done | sort $order | head -n 1
}

# Programs as users have them: buffers of malloc, against the better of both MPI libraries by itself.
# Open MPI's launches and MPICH's take turns; each has its native way and ours in turns, too.
beside_native() {
	for row in latency:low:8:x\<=0.95 latency:low:4096:x\<=1.0 latency:low:16384:x\<=1.0 \
		bw:high:8:x\>=1.1 bw:high:16384:x\>=1.1 bw:high:65536:x\>=1.1 \
		bw:high:1048576:x\>=1.1 bw:high:4194304:x\>=1.1 \
		bw:high:65536:x\>=1.1:--map-buffers bw:high:1048576:x\>=2.5:--map-buffers \
		bw:high:4194304:x\>=1.1:--map-buffers; do
		IFS=: read -r name best size wanted more <<-END
			$row
		END
		# shellcheck disable=SC2086 # one word or none
		set -- 2 $pt2pt/rg_$name --over native,single --soft ideal --buffers malloc \
			-m "$size:$size" $more
		for k in $(seq "$launches"); do
			once "own.$k" "$@"
			[ -z "${RG_MPICH_BUILD-}" ] || in_mpich once "mpich.$k" "$@"
		done
		for build in own mpich; do
			[ -e "$work/$build.1" ] || continue
			for k in $(seq "$launches"); do
				ours=$(awk '/^[0-9]/ { print $3 }' "$work/$build.$k")
				echo "$ours $(better $best $(ls "$work"/own.$k "$work"/mpich.$k 2>/dev/null))"
			done | awk '{ print $1 / $2 }' | measure \
				"rg_$name${more:+ $more}, $size bytes, $([ $build = own ] && echo "$RG_MPI_FLAVOR" || echo mpich): one rail / the better library" \
				"$(echo "$wanted" | sed 's/\([<>]=\)/ \1 /')"
		done
		rm -f "$work"/own.* "$work"/mpich.*
	done
	[ -n "${RG_MPICH_BUILD-}" ] || echo "  MPICH: not measured (RG_MPICH_BUILD=DIR: a build with it)"
}

# A program of measures/truth.c: in one process its native column (of --json: the table has two
# decimals, which is too few) and a plain loop's, in ours.K and plain.K as "BYTES VALUE": truth K
# PROGRAM ARG...
truth() {
	kept=$1
	shift
	launch 2 "$@" --json "$work/a.jsonl"
	[ "$rc" -eq 0 ] || stop "exit code $rc of: $*"
	sed -n 's/.*"way":"native".*"bytes":\([0-9]*\),.*"mean":\([^,]*\),.*/\1 \2/p' \
		"$work/a.jsonl" >"$work/ours.$kept"
	sed -n 's/^plain //p' "$err" >"$work/plain.$kept"
	rm -f "$work/a.jsonl"
}

# Our native column against a plain loop of the kind that benchmark suites have.
native_truth() {
	for row in latency:8:8192:10000:200 latency:16384:4194304:1000:10 \
		bw:8:8192:1000:100 bw:16384:4194304:20:2 \
		bibw:8:8192:1000:100 bibw:16384:4194304:20:2; do
		IFS=: read -r name low high count warmup <<-END
			$row
		END
		count=${MEASURE_TRUTH_COUNT:-$count}
		for build in own mpich; do
			[ $build = own ] || [ -x "${RG_MPICH_BUILD-}/measures/rg_bw_truth" ] || continue
			[ $build = own ] && by= flavor=$RG_MPI_FLAVOR || by=in_mpich flavor=mpich
			for k in $(seq "$launches"); do
				$by truth "$k" measures/rg_${name}_truth --over native \
					-m "$low:$high" -i "$count" -x "$warmup"
			done
			for size in 8 32 128 512 2048 4096 8192 32768 131072 524288 1048576 4194304; do
				[ $size -ge $low ] && [ $size -le $high ] || continue
				ratios ours $size 1 plain $size 1 | measure \
					"rg_$name, $size bytes, $flavor: native / a plain loop" \
					"x >= 0.97 && x <= 1.03"
			done
		done
	done
	[ -x "${RG_MPICH_BUILD-}/measures/rg_bw_truth" ] ||
		echo "  MPICH: not measured (RG_MPICH_BUILD=DIR: a build with it, and make check TESTS= there)"
}

# An unmodified program under railgauge exec against itself: types with gaps, memory that no cache
# holds, buffers that are used once; and what its start costs.
unmodified() {
	exec="src/cli/railgauge exec --over single --soft ideal --"
	for row in 64:4000 1024:4000 8192:2000 65536:300 1048576:20; do
		for k in $(seq "$launches"); do
			buffers native.$k "" -b "${row%:*}" -n "${row#*:}" strided
			buffers ours.$k "$exec" -b "${row%:*}" -n "${row#*:}" strided
		done
		buffers_ratio strided ours native | measure "every second double, ${row%:*} bytes: one rail / native" \
			"x >= 0.909"
	done
	for k in $(seq "$launches"); do
		buffers native.$k "" -b 67108864 -n 8 -s 3 reused
		buffers ours.$k "$exec" -b 67108864 -n 8 -s 3 reused
		buffers once_native.$k "" -n 1000 -s 1 once
		buffers once_ours.$k "$exec" -n 1000 -s 1 once
		for way in native ours; do
			[ $way = native ] && by= || by=$exec
			before=$(date +%s%N)
			# shellcheck disable=SC2086 # words are meant
			once start 4 $by tests/cli/mpi_plain
			echo $((($(date +%s%N) - before) / 1000000)) >"$work/start.$way.$k"
		done
	done
	buffers_ratio reused ours native |
		measure "256 MiB of buffers in turns, 64 MiB each: one rail / native" "x >= 1.0"
	buffers_ratio once once_ours once_native |
		measure "1,000 buffers of 1 MiB, each used once: one rail / native" "x >= 1.0"
	for k in $(seq "$launches"); do
		echo $(($(cat "$work/start.ours.$k") - $(cat "$work/start.native.$k")))
	done | measure "4 ranks that start, send once and end: ms more than natively" "x <= 50"
}

native_is_free() {
	for p in low:latency:8:20000 high:bw:8:5000 high:bw:1048576:50; do
		IFS=: read -r best name size iterations <<-END
			$p
		END
		compare $best "2 $pt2pt/rg_$name --over native -m $size -i $iterations" \
			"2 measures/rg_${name}_bare --over native -m $size -i $iterations" |
			measure "rg_$name: native with the layer / without it, $size bytes" \
				"x >= 0.98 && x <= 1.02"
	done
}

# perftest PROGRAM ARG...: one run on the software HCA, untimed or as $spec says, server and client
# on a core each, as mpirun binds two ranks; the row of its table on stdout
spec=ideal
perftest() {
	port=$((${port:-$((20000 + $$ % 20000))} + 1))
	taskset -c 0 ./softhca --soft "$spec" --fabric "measures.$$" --node 0 -- "$@" -p $port \
		>"$work/server" 2>&1 &
	server=$!
	listens $port $server
	taskset -c 1 ./softhca --soft "$spec" --fabric "measures.$$" --node 1 -- "$@" -p $port localhost \
		>"$work/client" 2>"$err" || stop "exit code $? of: $*"
	wait $server || stop "the server of: $*"
	grep -E '^ *[0-9]+ +[0-9]+ ' "$work/client" | tail -1
}

# against NAME SIZE COLUMN SCALE PROGRAM...: perftest's figure x SCALE over Open MPI's own, in turns
against() {
	name=$1 size=$2 column=$3 scale=$4
	shift 4
	for k in $(seq "$launches"); do
		once "$name.$k" 2 $pt2pt/rg_$name --over native -m "$size:$size"
		theirs=$(awk -v s="$size" '$1 == s { print $2 }' "$work/$name.$k")
		perftest "$@" | awk -v c="$column" -v f="$scale" -v t="$theirs" '{ print $c * f / t }'
	done
}

# Verbs programs of others, against the MPI library's shared memory.
verbs() {
	for program in ib_write_lat ib_send_lat ib_write_bw; do
		command -v $program >/dev/null || { echo "  not measured: no $program (perftest)"; return; }
	done
	against latency 8 6 1 ib_write_lat -s 8 -n 200000 |
		measure "ib_write_lat / rg_latency native, 8 bytes" "x <= 1.0"
	against latency 8 6 1 ib_send_lat -s 8 -n 200000 |
		measure "ib_send_lat / rg_latency native, 8 bytes" "x <= 2.0"
	against bw 4194304 4 1.048576 ib_write_bw -s 4194304 -n 2000 |
		measure "ib_write_bw / rg_bw native, 4 MiB" "x >= 2.0"
	for k in $(seq "$launches"); do
		perftest ib_write_bw -s 8 -n 2000000 | awk '{ print $5 }'
	done | measure "ib_write_bw, 8 bytes: million messages per second" "x >= 20"
}

# beside "PROGRAM ARG..." FIGURE PERFTEST ARG...: ours over perftest's, in turns; awk makes FIGURE of
# its row
beside() {
	ours=$1 figure=$2
	shift 2
	for k in $(seq "$launches"); do
		# shellcheck disable=SC2086 # words are meant
		once kept 2 $pt2pt/$ours --soft "$spec" --nodes 2 --json "$work/ours.jsonl"
		mine=$(mean_of "$work/ours.jsonl")
		perftest "$@" | awk -v m="$mine" "{ print m / ($figure) }"
	done
}

# The harness below MPI against perftest on the same device: queues of equal length, of which a
# completion is asked for at the half.  perftest uses one buffer for all messages: so does a share of
# 100 %.  Its MB are 2^20 bytes.
beside_perftest() {
	for program in ib_write_lat ib_send_lat ib_read_lat ib_write_bw ib_read_bw; do
		command -v $program >/dev/null || { echo "  not measured: no $program (perftest)"; return; }
	done
	queue="--queue 64 --sweep size --buffer-count 2 --reuse-percent 100"
	for size in 4096 65536 1048576; do
		count=$((size < 65536 ? 20000 : 2000000000 / size))
		spec=$model
		for op in write read; do
			beside "rg_verbs_reuse --op $op $queue -m $size -i $((count / 32)) -x 10" '$4 * 1.048576' \
				ib_${op}_bw -s $size -t 64 -Q 32 -n $count |
				measure "$model: $op, $size bytes / perftest" "x >= 0.98 && x <= 1.02"
		done
		spec=ideal
		[ $size -lt 65536 ] ||
			beside "rg_verbs_reuse --op write $queue -m $size -i $((count / 4)) -x 10" '$4 * 1.048576' \
				ib_write_bw -s $size -t 64 -Q 32 -n $((count * 8)) |
				measure "untimed: write, $size bytes / perftest" "x >= 0.9 && x <= 1.1"
	done
	for op in write send; do
		arrival=cq
		[ $op != write ] || arrival=memory
		beside "rg_verbs_lat --op $op --arrival $arrival -m 8 -i 100000 -x 1000" '$6' \
			ib_${op}_lat -s 8 -n 200000 |
			measure "untimed: latency of a $op, 8 bytes / perftest" "x >= 0.85 && x <= 1.15"
	done
	# A read takes some 65 ns, of which perftest's table has two decimals: by their number
	# in two seconds.
	beside "rg_verbs_lat --op read -m 8 -i 1000000 -x 1000" '1e6 / $4' ib_read_lat -s 8 -D 2 |
		measure "untimed: latency of a read, 8 bytes / perftest" "x >= 0.85 && x <= 1.15"
}

# The cost of a registration, against the bases in reg_speed.c.
registration() {
	for k in $(seq "$launches"); do
		SOFTHCA_FABRIC="measures.$$" measures/reg_speed 2>"$err" >"$work/reg.$k" ||
			stop "reg_speed"
	done
	sed -n 's/^reg first //p' "$work"/reg.* |
		measure "first registration of 64 MiB / copy into a memfd" "x <= 1.5"
	sed -n 's/^reg arena //p' "$work"/reg.* | measure "64 MiB of the arena, ms" "x < 1"
	sed -n 's/^reg again //p' "$work"/reg.* | measure "64 MiB once more, ms" "x < 1"
}

# The reason for `--rendezvous both`; copies.c explains the ways.
copies() {
	for k in $(seq "$launches"); do
		measures/copies 2>"$err" >"$work/copies.$k" || stop "copies"
	done
	for size in 16384 65536 262144 1048576 4194304; do
		sed -n "s/^copies $size two //p" "$work"/copies.* |
			measure "$size bytes: copied by two processes / by one" "x >= 1.1"
		sed -n "s/^copies $size shared //p" "$work"/copies.* |
			measure "$size bytes: through shared memory / by one" "x < 1"
	done
}

# buffers NAME "COMMAND..." MODE...: the medians of a program that knows nothing of the layer
buffers() {
	kept=$1 by=$2
	shift 2
	# shellcheck disable=SC2086 # words are meant
	launch 2 $by measures/buffers --json "$work/b.jsonl" "$@"
	[ "$rc" -eq 0 ] || stop "exit code $rc of: $by measures/buffers $*"
	sed -n 's/.*"way":"native-\([^"]*\)",.*"median":\([0-9.]*\),.*/\1 \2/p' "$work/b.jsonl" >"$work/$kept"
	rm -f "$work/b.jsonl"
}

# buffers_ratio MODE NAME NAME: one per launch
buffers_ratio() {
	for k in $(seq "$launches"); do
		awk -v m="$1" '$1 == m { v[FILENAME] = $2 } END { print v[ARGV[1]] / v[ARGV[2]] }' \
			"$work/$2.$k" "$work/$3.$k"
	done
}

# The cost of watching memory for a program that allocates; and large messages from memory that
# stays and memory that does not.  SOFTHCA_REMAP=auto: registrations that must be dropped in time, as
# those of adapters must.  RG_BEFORE_BUILD=DIR: another build to compare with this one.
memory() {
	exec="src/cli/railgauge exec --over single --soft ideal --"
	watched="env SOFTHCA_REMAP=auto $exec"
	for k in $(seq "$launches"); do
		buffers native.$k "" calls threads reused malloc mmap
		buffers watched.$k "$watched" calls threads
		buffers plain.$k "$exec" reused malloc mmap
		[ -z "${RG_BEFORE_BUILD-}" ] ||
			buffers before.$k "env SOFTHCA_REMAP=auto $RG_BEFORE_BUILD/$exec" calls threads
	done
	buffers_ratio calls watched native |
		measure "mmap and munmap of 64 KiB, per second: watched / native" "x >= 0.9"
	buffers_ratio threads watched native |
		measure "malloc and free of 256 KiB, 4 threads: watched / native" "x >= 0.9"
	[ -z "${RG_BEFORE_BUILD-}" ] || {
		buffers_ratio calls watched before | measure "... the first: watched / before" "x >= 0.9"
		buffers_ratio threads watched before | measure "... the second: watched / before" "x >= 0.9"
	}
	for mode in reused malloc mmap; do
		buffers_ratio $mode plain native |
			measure "1 MiB, buffer $mode: one rail / native" "x >= 1.0"
	done
}

# The model against the clock; make check judges only what is better than it allows.
paced() {
	tests/softhca/paced --strict | sed 's/^/  /'
}

# Each paper's experiments on its profiles; what was not calibrated is the test of the model.
figures() {
	for paper in p1 p4 p5; do
		src/cli/railgauge reproduce $paper --launcher "$MPIRUN" --out "$work/$paper" \
			2>&1 | sed 's/^/  /'
	done
}

. "$srcdir/measures/collectives.sh"
. "$srcdir/measures/schemes.sh"
. "$srcdir/measures/waits.sh"
. "$srcdir/measures/times.sh"
. "$srcdir/measures/patterns.sh"

echo "Railgauge measures: $launches launches each; $(date -u +%Y-%m-%dT%H:%MZ), $(uname -m)," \
	"$(nproc) CPUs, load $(cut -d' ' -f1 /proc/loadavg), $RG_MPI_FLAVOR"
echo "  ratio                                                             median  lowest..highest wanted"
group one_pair "One pair, two modelled ports ($model):" && one_pair
group no_dip "The same, around the threshold:" && no_dip
group many_rails "More rails (ports of 250 MB/s; latency: of 1 GB/s, 2 us):" && many_rails
group two_pairs "Two pairs on the same model (ranks: 4):" && two_pairs
group unequal "Rails that are not alike:" && unequal
group untimed "Software HCA without a model, beside the MPI library's shared memory:" && untimed
group beside_native "Buffers of malloc, software HCA without a model, beside the MPI libraries by themselves:" &&
	beside_native
group native_truth "The native way, beside a plain loop of the kind that benchmark suites have:" &&
	native_truth
group unmodified "An MPI program under railgauge exec, beside itself without:" && unmodified
group verbs "Verbs programs on the software HCA, untimed:" && verbs
group beside_perftest "Queue pairs measured by Railgauge, beside perftest on the same device:" &&
	beside_perftest
group registration "Registering memory on the software HCA:" && registration
group copies "Messages between two processes, by the kernel and through shared memory:" && copies
group scheme_choice "The automatic choice between two processes of one host, beside forced schemes, plain copies and the libraries:" &&
	scheme_choice
group memory "Buffers that come and go, an MPI program under railgauge exec, beside itself without:" && memory
group serving "Waits in one transport that serve the other; time / what is allowed (1.5 times the better library's, or 2 ms more):" &&
	serving
group patterns "Usual exchanges of MPI programs under railgauge exec, beside the libraries by themselves:" && patterns
group native_is_free "The native way, beside launches without the layer:" && native_is_free
group default_time "The time of default runs, 2 ranks:" && default_time
group paced "The timing model, each case against its spec (best of a few attempts):" && paced
group figures "The profiles of old adapters, beside what their papers report:" && figures
group collectives_ideal "Collectives, 2 ranks, software HCA without a model, beside the libraries':" &&
	collectives_ideal
group collectives_rails "Collectives, 4 nodes, two modelled ports of 10 MB/s:" && collectives_rails
group nas_rails "IS and FT, 4 nodes, two modelled ports of 100 MB/s:" && nas_rails
group nas_b "IS and FT, class B, verified:" && nas_b
exit 0
