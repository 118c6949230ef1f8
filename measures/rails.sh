#!/bin/sh
# rails.sh - rails of the kernel's Soft-RoCE on shaped links, measured on node 0 of a virtual
# cluster (measures/cluster.sh boots it): Railgauge against perftest on both rails at once, Open
# MPI over UCX and MPICH over UCX with two rails each.  No test: the exit code is 0 unless a
# launch fails, which is said where it does.
#
#	RAILS_REPEAT=N		repetitions, each of everything in turn (default 3)
#	RAILS_MBIT=N		rate of each of two equal links (25): what emulation carries easily,
#				so slow that the processor's pauses weigh little in a window of 64 KiB
#	RAILS_SECONDS=N		of each run of perftest (20); RAILS_TIMEOUT=N: of the whole boot (10800)
#	RAILS_ONLY=WORDS	of: equal unequal queues pairs delay wan memory; RAILS_PROGRAMS=WORDS: of: rg_bw rg_bibw
#	RG_MPICH_BUILD=DIR	a build with MPICH, for its rows
#	RG_BEFORE_BUILD=DIR	another build of Railgauge, for rows of `memory`
#
# A value is the median of the samples of one launch; a ratio is one of two values of the same
# repetition, shown is its median over repetitions with its extremes.  One way all are at the links'
# limit, so that ratios to UCX are near 1: the digits show by how little a row meets or misses.
# Windows are the programs' own, 64 messages: of 16 they would last 2.7 s both ways, and an
# acknowledgement at their end may wait for 512 KiB before it, 0.17 s.
# perftest's sum is of one ib_write_bw per rail, both at the same time, which send what they can
# for some seconds, in messages of 64 KiB, 8 MiB under way: it counts what is acknowledged between
# its margins, and both ways that comes in bunches of up to 512 KiB: 4 % of what 25 Mbit/s carry
# in 4 s.  "of what the links carry" is perftest's sum over the links' nominal rates: packets'
# headers cost it 2 %; if it is far below, emulation is the limit and the ratios say nothing
# (another machine, or a smaller RAILS_MBIT).
# The links are shaped where a node receives, by tbf with a queue of 32 MB (netem: 20,000
# packets); what they dropped is printed, and should be 0.
. "$srcdir/tests/run-lib.sh"
measuring=yes
. "$srcdir/tests/cluster/env.sh"
. "$srcdir/tests/bench/ledger-lib.sh"
repeat=${RAILS_REPEAT:-3} mbit=${RAILS_MBIT:-25} only=${RAILS_ONLY-"equal unequal queues pairs delay wan memory"}
seconds=${RAILS_SECONDS:-20} programs=${RAILS_PROGRAMS-"rg_bw rg_bibw"}
values=$work/values
limit=600
plain=$RG_HW_MPIRUN_ARGS

on_all() {
	for node in 0 1; do
		ssh node$node "$@"
	done
}

# ---- One value each: lines "SECTION REPETITION WAY BYTES VALUE" in $values

# program NAME COMMAND...: the medians of a launch; NAME replaces "native"
program() {
	prefix=$1
	shift
	launch 2 "$@" --json "$work/r.jsonl"
	if [ "$rc" -eq 0 ]; then
		sed -n 's/.*"type":"row","way":"\([^"]*\)","bytes":\([0-9]*\),.*"median":\([0-9.]*\),.*/\1 \2 \3/p' \
			"$work/r.jsonl" | sed "s/^native /$prefix /; s/^/$section $k /" | tee -a "$values"
	else
		failed=1
		echo "# exit code $rc of: $*"
		head -n 5 "$err" | sed 's/^/#   /'
	fi
	rm -f "$work/r.jsonl"
}

settings="UCX_TLS=rc_verbs,ud_verbs,self UCX_IB_GID_INDEX=1 UCX_UD_VERBS_ETH_DGID_CHECK=n
	UCX_IB_ROCE_LOCAL_SUBNET=y UCX_NET_DEVICES=rxe0:1,rxe1:1 UCX_MAX_RNDV_RAILS=2
	UCX_RC_VERBS_RETRY_COUNT=6 UCX_RC_VERBS_TIMEOUT=4s UCX_WARN_UNUSED_ENV_VARS=n"

ours() {
	RG_HW_MPIRUN_ARGS=$plain
	program ours pt2pt/$1 --over "$2" -m "$3" -i "$4" -x 1 --time-cap 120
}

openmpi_ucx_args="--mca plm_rsh_agent /usr/local/bin/ssh --mca oob_tcp_if_include eth0
	--mca pml ucx --mca pml_ucx_tls any --mca pml_ucx_devices any --mca btl ^openib
	$(for s in $settings; do echo "-x $s"; done)"

openmpi_ucx() {
	[ "$RG_MPI_FLAVOR" = openmpi ] || return
	RG_HW_MPIRUN_ARGS=$openmpi_ucx_args
	program openmpi-ucx pt2pt/$1 --over native -m "$2" -i "$3" -x 1 --time-cap 120
	RG_HW_MPIRUN_ARGS=$plain
}

mpich_ucx() {
	[ -x "${RG_MPICH_BUILD-}/pt2pt/$1" ] || return
	theirs=$launcher
	launcher="env RG_MPI_FLAVOR=mpich RG_HW_MPIRUN=$VC_MPICH_MPIRUN $MPIRUN -n"
	RG_HW_MPIRUN_ARGS="-launcher-exec /usr/local/bin/ssh -iface eth0
		$(for s in $settings; do echo "-genv ${s%%=*} ${s#*=}"; done)"
	program mpich-ucx "$RG_MPICH_BUILD/pt2pt/$1" --over native -m "$2" -i "$3" -x 1 --time-cap 120
	RG_HW_MPIRUN_ARGS=$plain launcher=$theirs
}

# listen N: so many servers of perftest do
listen() {
	for try in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
		[ "$(ssh node1 "ss -ltn" </dev/null | grep -c ':1900[01] ')" -lt "$1" ] || break
		sleep 0.5
	done
}

# perftest [-b]: both rails at once; MB/s
perftest() {
	options="-x 1 -s 65536 -t 128 -D $seconds -f 1 -u 18 -F $*"
	for rail in 0 1; do
		ssh node1 "timeout 120 ib_write_bw -d rxe$rail -p 1900$rail $options" >/dev/null 2>&1 </dev/null &
	done
	listen 2
	for rail in 0 1; do
		timeout 120 ib_write_bw -d rxe$rail -p 1900$rail $options node1 >"$work/p.$rail" 2>&1 </dev/null &
		clients="${clients-} $!"
	done
	# shellcheck disable=SC2086 # words are meant
	wait $clients
	clients=
	for rail in 0 1; do
		awk -v rail=$rail -v s="$section" -v k="$k" '/^ *65536 / {
			printf "%s %d perftest:%d 1048576 %.4f\n", s, k, rail, $4 * 1.048576 }' "$work/p.$rail"
	done >"$work/p"
	nominal=$(awk -v m="$mbit" -v b="$*" 'BEGIN { print 2 * m / 8 * (b == "" ? 1 : 2) }')
	echo "$section $k nominal 1048576 $nominal" >>"$values"
	[ "$(wc -l <"$work/p")" -eq 2 ] || { failed=1; echo "# perftest failed:"; tail -n 3 "$work"/p.[01]; }
	awk 'NF == 5 { s += $5 } END { if (NR == 2) { $3 = "perftest"; $5 = sprintf("%.4f", s); print } }' \
		"$work/p" | cat "$work/p" - | tee -a "$values"
}

# ---- What has been measured

# per WAY BYTES: by repetition
per() {
	awk -v s="$section" -v w="$1" -v b="$2" '$1 == s && $3 == w && $4 == b { print $2, $5 }' "$values"
}

# ratio TEXT BAR WAY BYTES WAY BYTES: BAR - shows only
ratio() {
	per "$3" "$4" >"$work/a"
	per "$5" "$6" >"$work/b"
	awk -v text="$1" -v bar="$2" 'NR == FNR { a[$1] = $2; next }
		$1 in a && $2 > 0 { v[++n] = a[$1] / $2 }
		END {
			for (i = 2; i <= n; i++)
				for (j = i; j > 1 && v[j] < v[j - 1]; j--) { t = v[j]; v[j] = v[j - 1]; v[j - 1] = t }
			if (!n) { printf "  %-58s not measured\n", text; exit }
			m = n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
			printf "  %-58s %7.4f  %.4f..%.4f  n=%d  %s\n", text, m, v[1], v[n], n,
				bar == "-" ? "" : ">= " bar (m >= bar ? "  met" : "  missed")
		}' "$work/a" "$work/b"
}

dropped() {
	on_all 'tc -s qdisc show' 2>/dev/null | awk -v text="$1" '
		/^qdisc (tbf|netem) / { mine = 1; next }
		/^qdisc/ { mine = 0 }
		mine && /dropped/ { sub(/,/, "", $7); n += $7; seen++ }
		END { printf "  %s: %d links, %d packets dropped\n", text, seen, n }'
}

# everything PROGRAM SIZE SAMPLES: all that compares, once
everything() {
	ours $1 "$ways" "$2" "$3"
	openmpi_ucx $1 "$2" "$3"
	mpich_ucx $1 "$2" "$3"
}

# direction PROGRAM NAME: its section, perftest's option
direction() {
	section=$2-$1 both=
	[ "$1" = rg_bw ] || both=-b
}

equal() {
	for text in $programs; do
		direction $text equal
		on_all vc-shape tbf rate ${mbit}mbit burst 64kb limit 32mb
		for k in $(seq "$repeat"); do
			perftest $both
			[ -n "$both" ] || ours $text single 1M 2
			ways=stripe,weighted,pull
			everything $text 1M 2
			everything $text 256K 5
			everything $text 64K 15
		done
		echo "Two equal rails of $mbit Mbit/s, $text:"
		dropped "links"
		ratio "perftest on both at once, of what the links carry" - perftest 1048576 nominal 1048576
		for way in stripe weighted pull; do
			ratio "$text $way / perftest on both at once, 1 MiB" 0.97 $way 1048576 perftest 1048576
		done
		[ -n "$both" ] || ratio "$text stripe / single, 1 MiB" 1.9 stripe 1048576 single 1048576
		for size in 65536 262144 1048576; do
			for way in stripe weighted pull; do
				for other in openmpi-ucx mpich-ucx; do
					ratio "$text $way / $other, $size" 1 $way $size $other $size
				done
			done
		done
	done
	on_all vc-shape off
}

# shares PROGRAM: of what weighted and pull send, the part of the first rail
shares() {
	launch 2 pt2pt/$1 --over weighted,pull -m 1M -i 5 -x 2 -W 4 --ledger --time-cap 120 \
		--json "$work/s.jsonl"
	[ "$rc" -eq 0 ] || failed=1
	for way in weighted pull; do
		echo "$section $k share-$way 1048576 $(share "$work/s.jsonl" $way 1)"
	done | tee -a "$values"
	echo "$section $k percent 1048576 100" >>"$values"
	rm -f "$work/s.jsonl"
}

unequal() {
	ways=stripe,weighted,pull
	for text in $programs; do
		direction $text unequal
		on_all vc-shape -r 0 tbf rate $((mbit * 1500))kbit burst 64kb limit 32mb
		on_all vc-shape -r 1 tbf rate $((mbit * 500))kbit burst 64kb limit 32mb
		for k in $(seq "$repeat"); do
			perftest $both
			everything $text 1M 2
			shares $text
		done
		echo "Rails of $((mbit * 1500)) and $((mbit * 500)) kbit/s, $text:"
		dropped "links"
		ratio "perftest on both at once, of what the links carry" - perftest 1048576 nominal 1048576
		ratio "$text: perftest's first rail / second" - perftest:0 1048576 perftest:1 1048576
		for way in weighted pull; do
			ratio "$text $way / perftest on both at once, 1 MiB" 0.95 $way 1048576 perftest 1048576
		done
		for way in weighted pull; do
			ratio "$text $way: of all over the first rail (0.75)" - share-$way 1048576 percent 1048576
		done
		for way in stripe openmpi-ucx mpich-ucx; do
			ratio "$text $way / perftest on both at once, 1 MiB" - $way 1048576 perftest 1048576
		done
	done
	on_all vc-shape off
}

# queue_pair OP BYTES: perftest on the first rail, 64 requests under way, of which it looks after 32
queue_pair() {
	options="-d rxe0 -x 1 -s $2 -t 64 -Q 32 -D $seconds -f 1 -u 18 -F -p 19000"
	ssh node1 "timeout 120 ib_$1_bw $options" >/dev/null 2>&1 </dev/null &
	listen 1
	timeout 120 ib_$1_bw $options node1 >"$work/p.0" 2>&1 </dev/null || {
		failed=1
		echo "# perftest failed:"
		tail -n 3 "$work/p.0"
	}
	wait $!
	awk -v s="$section" -v k="$k" -v b="$2" '$1 == b {
		printf "%s %d perftest %d %.4f\n", s, k, b, $4 * 1.048576 }' "$work/p.0" | tee -a "$values"
}

# Queue pairs at equal depth, one rail; windows of 32 messages for the time that perftest has.
queues() {
	on_all vc-shape tbf rate ${mbit}mbit burst 64kb limit 32mb
	for op in write read; do
		section=queues-$op
		for k in $(seq "$repeat"); do
			for size in 4096 65536; do
				queue_pair $op $size
				program ours pt2pt/rg_verbs_bw --op $op --over single --queue 64 -m $size \
					-i $((seconds * mbit * 125000 / 32 / size)) -x 2 --time-cap 120
			done
		done
		echo "A queue pair, $mbit Mbit/s, RDMA $op:"
		dropped "links"
		for size in 4096 65536; do
			ratio "$size bytes, 64 requests under way / perftest (0.98..1.02)" - single $size perftest $size
		done
	done
	on_all vc-shape off
}

# A cable that is slow towards one port: rg_pairs names it, and nothing else.
pairs() {
	section=pairs
	on_all vc-shape tbf rate ${mbit}mbit burst 64kb limit 32mb
	ssh node1 vc-shape -r 1 tbf rate $((mbit * 200))kbit burst 64kb limit 32mb
	for k in $(seq "$repeat"); do
		launch 2 pt2pt/rg_pairs -m 64K -W 2 -i 3 -x 1 -c --patience 1000000 --json "$work/r.jsonl"
		[ "$rc" -eq 0 ] || failed=1
		sed -n 's/.*"type":"row","way":"\([^"]*\)","bytes":\([0-9]*\),.*"median":\([0-9.]*\),.*"from":\([01]\),.*/\1-from-\4 \2 \3/p' \
			"$work/r.jsonl" | sed "s/^/$section $k /" | tee -a "$values"
		rm -f "$work/r.jsonl"
		grep '^# slow' "$out"
	done
	echo "rg_pairs, $mbit Mbit/s, the second rail to node1 a fifth of it:"
	ratio "single:1, to node1 / from node1 (0.2)" - single:1-from-0 65536 single:1-from-1 65536
	ratio "single:0, the same" - single:0-from-0 65536 single:0-from-1 65536
	on_all vc-shape off
}

# Over long distances: what --eager, --qps and -W bring.  What is sent at once goes over the bound
# rail, what is larger is striped: so the threshold moves with --eager.
delay() {
	k=1
	for ms in 10 40; do
		on_all vc-shape netem delay ${ms}ms rate ${mbit}mbit limit 20000
		for eager in 8K 64K; do
			for qps in 1 2 4; do
				for window in 16 64 256; do
					section=delay-$ms-$eager-$qps-$window
					program - pt2pt/rg_bw --over stripe -m 8K:64K -W $window \
						--eager $eager --threshold $eager --qps $qps -i 3 -x 1 --time-cap 20
				done
			done
		done
		dropped "netem $ms ms one way"
	done
	echo "netem, $mbit Mbit/s per rail; two rails, MB/s (median of 3 windows):"
	echo "    ms  --eager  --qps    -W       8 KiB      16 KiB      32 KiB      64 KiB"
	awk '$1 ~ /^delay-/ {
		split($1, d, "-"); key = sprintf("  %4s  %7s  %5s  %4s", d[2], d[3], d[4], d[5])
		if (!(key in row)) order[++n] = key
		row[key] = row[key] sprintf("  %10.2f", $5)
	} END { for (i = 1; i <= n; i++) print order[i] row[order[i]] }' "$values"
	on_all vc-shape off
}

# The distances of p4's experiments, below MPI.  UC and UD: messages of a packet, of which netem
# loses none.
wan() {
	k=1
	for ms in 13 81.5; do
		on_all vc-shape netem delay ${ms}ms rate ${mbit}mbit limit 20000
		for what in "send --transport RC" "send --transport UC" "send --transport UD" read; do
			section=wan-$ms-latency-$(echo "${what##* }")
			program - pt2pt/rg_verbs_lat --op $what -m 4 -i 20 -x 2
		done
		for what in "write --transport RC" "write --transport RC --qps 4" "read --transport RC" \
			"send --transport UC" "send --transport UD"; do
			for queue in 16 64 256; do
				section=wan-$ms-$(echo "$what" | tr -d ' ' | sed 's/--transport/\//; s/--qps/x/')-$queue
				program - pt2pt/rg_verbs_bw --op $what --over single -m 1K --queue $queue \
					-i 20 -x 2 --time-cap 20
			done
		done
		dropped "netem $ms ms one way"
	done
	echo "netem, $mbit Mbit/s, one rail: one-way latency of 4 bytes (a read: both ways), us;"
	echo "messages of 1 KiB by the length of the queue, MB/s:"
	awk '$1 ~ /^wan-.*-latency-/ { split($1, w, "-"); printf "  %5s ms  %-16s %10.1f\n", w[2], w[4], $5 }
	$1 ~ /^wan-/ && $1 !~ /latency/ {
		split($1, w, "-")
		printf "  %5s ms  %-16s --queue %-4s %8.3f\n", w[2], w[3], w[4], $5
	}' "$values"
	on_all vc-shape off
}

# buffers NAME MODES COMMAND...: messages of a program that knows nothing of the layer
buffers() {
	name=$1 modes=$2
	shift 2
	# shellcheck disable=SC2086 # words are meant
	program - "$@" measures/buffers -b 262144 -n 32 -s 9 --name "$name" $modes
}

# Registrations: of buffers that stay, and of those that do not; links as fast as they are
# emulated.  `each` keeps none.  Builds that go on using what is gone stop at a buffer of mmap.
memory() {
	section=memory
	for k in $(seq "$repeat"); do
		buffers kept "reused malloc mmap" src/cli/railgauge exec --over stripe --
		buffers each "reused malloc mmap" src/cli/railgauge exec --over stripe --registration each --
		[ -z "${RG_BEFORE_BUILD-}" ] ||
			buffers before "reused malloc" "$RG_BEFORE_BUILD/src/cli/railgauge" exec --over stripe --
		[ "$RG_MPI_FLAVOR" != openmpi ] || {
			RG_HW_MPIRUN_ARGS=$openmpi_ucx_args
			buffers ucx "reused malloc mmap"
			RG_HW_MPIRUN_ARGS=$plain
		}
	done
	echo "256 KiB over two rails, MB/s of a program under railgauge exec, or over UCX:"
	for mode in reused malloc mmap; do
		for other in each before ucx; do
			[ -z "$(per $other-$mode 262144)" ] ||
				ratio "buffers $mode, kept / $other" - kept-$mode 262144 $other-$mode 262144
		done
	done
}

: >"$values"
for part in $only; do
	$part
done
exit ${failed:-0}
