# schemes.sh - a group of measures/run.sh: what the automatic choice between two processes of one host costs
# against each scheme that options force, plain copies, and the MPI libraries by themselves.
#
#	MEASURE_SCHEMES=WORDS	of: plain pt2pt collectives first before (default: all, a quarter of an hour); none: tables of
#				MEASURE_VALUES
#	MEASURE_LAUNCHES=N	default here: 5, of plain, collectives and first 3; 1 tries whether it works
#	MEASURE_SIZES=LOW:HIGH	of pt2pt (default: 4K:4M)
#	MEASURE_COLLECTIVES=WORDS	of: alltoall allgather bcast allreduce (default: all)
#	MEASURE_RANKS=NUMBERS	of collectives (default: 2 4)
#	MEASURE_VALUES=FILE	values are added to those of this file (its whole path): parts can be measured apart
#	MEASURE_PERF=N		of the rows below a native library, so many are run again under perf (default 4)
#	RG_MPICH_BUILD=DIR	a build with MPICH, for the better of two libraries
#	RG_BEFORE_BUILD=DIR	another build of Railgauge, for rows of `before`
#
# Ways take turns, in a launch and launch by launch.  Values are medians of launches.  The best forced
# scheme of a row is found in the odd launches and compared in the even ones, since the best of several is
# better by chance where it is found.  The automatic way stands there twice; its noise is the root mean
# square, over the sizes of a kind, of what the ratio of the two differs from 1.  What is asked of a row
# is less by it.
#
# All is kept in $values, lines "KIND BYTES WAY LAUNCH VALUE".
# shellcheck disable=SC2016,SC2046,SC2086,SC2154 # words are meant; the rest is of measures/run.sh, and of awk
values=${MEASURE_VALUES:-$work/values}
perf_rows=${MEASURE_PERF:-4}
scheme_sizes=${MEASURE_SIZES:-4K:4M}
scheme_args="--soft ideal --buffers malloc -i 2000 -x 5"
# Ways of one launch, which take turns inside each size; forced ones pin the eager limit of today's default,
# so that a choice of eager limits shows.  Options of a job make launches of their own.
one_launch="native auto again read write both turns ring ring-short ring-long eager16K eager32K eager64K"
own_launches="mapped"
# Without a warm-up each way is a launch.
first_ways="native auto again read both turns ring eager32K mapped"

# scheme_item WAY: as an item of --over; scheme_name undoes it
scheme_item() {
	case $1 in
	native) echo native ;;
	auto) echo single ;;
	again) echo single,rendezvous=auto ;;
	eager*) echo "single,eager=${1#eager}" ;;
	*=*) echo "single,coll=$1" ;;
	*) echo single,eager=8K,rendezvous=$1 ;;
	esac
}

scheme_name='s/^single$/auto/; s/^single,rendezvous=auto$/again/; s/^single,.*rendezvous=//; s/^single,eager=/eager/; s/^single,coll=//'

# scheme_options WAY: of a launch
scheme_options() {
	case $1 in
	native | auto | again) ;;
	eager*) echo "--eager ${1#eager}" ;;
	mapped) echo "--map-buffers" ;;
	*) echo "--eager 8K --rendezvous $1" ;;
	esac
}

# scheme_launch KIND WAY N PROGRAM ARG...: its rows; WAY replaces the name of the only way, "": names are
# those of items
scheme_launch() {
	kind=$1 way=$2
	shift 2
	once kept "$@" $scheme_args --json "$work/s.jsonl"
	case $way in
	"" | mpich) cp "$work/kept" "$work/library.${way:-own}" ;;
	esac
	sed -n 's/.*"type":"row","way":"\([^"]*\)","bytes":\([0-9]*\),.*"median":\([0-9.]*\),.*/\1 \2 \3/p' \
		"$work/s.jsonl" >"$work/s.rows"
	rm -f "$work/s.jsonl"
	while read -r item bytes value; do
		echo "$kind $bytes ${way:-$(echo "$item" | sed "$scheme_name")} $k $value"
	done <"$work/s.rows" >>"$values"
}

# scheme_turn KIND N "PROGRAM ARG..." "WAY..." WAY...: a launch of the ways of one launch, then one of each
scheme_turn() {
	kind=$1 ranks=$2 program=$3 items=
	for way in $4; do
		items=$items,$(scheme_item $way)
	done
	shift 4
	scheme_launch "$kind" "" $ranks $program --over "${items#,}"
	for way do
		scheme_launch "$kind" "$way" $ranks $program --over single $(scheme_options $way)
	done
	[ -z "${RG_MPICH_BUILD-}" ] || in_mpich scheme_launch "$kind" mpich $ranks $program --over native
}

scheme_pt2pt() {
	for row in "bw16 rg_bw -W 16" "bw64 rg_bw" "bibw64 rg_bibw" "latency rg_latency"; do
		for k in $(seq "$launches"); do
			scheme_turn "${row%% *}" 2 "$pt2pt/${row#* } -m $scheme_sizes --time-cap 0.06" \
				"$one_launch" $own_launches
		done
	done
	# Messages without a rendezvous have the native library alone beside them.
	for row in "bw64-small rg_bw" "bibw64-small rg_bibw" "latency-small rg_latency"; do
		for k in $(seq "$launches"); do
			scheme_turn "${row% *}" 2 "$pt2pt/${row#* } -m 8:2K --time-cap 0.06" \
				"native auto again"
		done
	done
}

# algorithms COLLECTIVE: as --coll has them, but for several rails, by the line that refuses another one
algorithms() {
	collective/rg_$1 --over single --soft ideal --coll "$1=none" 2>&1 |
		sed -n 's/.*(accepted: auto, native, \(.*\))$/\1/p' | tr -d , | tr ' ' '\n' |
		sed "/-rails$/d; s/^/$1=/"
}

scheme_collectives() {
	[ "$(nproc)" -ge 4 ] || echo "  4 ranks on $(nproc) processors: their times are mostly the scheduler's"
	for coll in ${MEASURE_COLLECTIVES:-alltoall allgather bcast allreduce}; do
		for ranks in ${MEASURE_RANKS:-2 4}; do
			for k in $(seq "$few"); do
				scheme_turn "$coll-$ranks" $ranks "collective/rg_$coll -m 4K:1M --time-cap 0.02" \
					"native auto again read both eager64K $(algorithms $coll | tr '\n' ' ')"
			done
		done
	done
}

# A ring of 256 KiB, as librail has with an eager limit of 64 KiB.
scheme_plain() {
	for k in $(seq "$few"); do
		measures/copies 4096 4194304 256 0 8 16 32 64 >"$work/plain" 2>"$err" || stop "copies"
		awk -v k="$k" '$1 == "plain" { print $2, $4, "plain-" $3, k, $5 }' "$work/plain" >>"$values"
	done
}

# Messages without a warm-up: COUNT:MODE of sizes from 4 KiB to 1 MiB, COUNT:MODE:BYTES of one size.  All launches
# have the same messages.
scheme_first() {
	for row in 100:reused:16384 100:reused:65536 100:reused:1048576 100:fresh:65536 \
		10000:reused 10000:heap; do
		IFS=: read -r count mode size <<-END
			$row
		END
		for k in $(seq "$few"); do
			for way in $first_ways; do
				by="src/cli/railgauge exec --over single --soft ideal $(scheme_options $way) --"
				[ $way != native ] || by=
				once kept 2 $by measures/first $mode $count ${size:-4096} ${size:-1048576} 1
				echo "first-$mode-$count ${size:-1048576} $way $k" \
					"$(sed -n 's/^first //p' "$work/kept")" >>"$values"
			done
		done
	done
}

# ---- Tables ---------------------------------------------------------------------------------------

# What both tables have: values by kind, size, way and launch; `auto` has all kinds and sizes.
scheme_awk='
	function median(kind, bytes, way, first, step,    k, n, i, j, t, v) {
		for (k = first; k <= launches; k += step)
			if ((kind, bytes, way, k) in value)
				v[++n] = value[kind, bytes, way, k]
		for (i = 2; i <= n; i++)
			for (j = i; j > 1 && v[j] < v[j - 1]; j--) {
				t = v[j]; v[j] = v[j - 1]; v[j - 1] = t
			}
		return n ? (n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2) : 0
	}
	function all(kind, bytes, way) { return median(kind, bytes, way, 1, 1) }
	function is_rate(kind) { return kind ~ /bw/ }
	function unit(kind) { return is_rate(kind) ? "MB/s" : "us" }
	# Above 1: a is better.
	function ratio(kind, a, b) { return !a || !b ? 0 : is_rate(kind) ? a / b : b / a }
	$1 ~ /-[24]$/ && $2 !~ /^(4096|65536|1048576)$/ { next }
	{
		value[$1, $2, $3, $4] = $5
		if (!(($1, $2) in known) && $3 == "auto") {
			known[$1, $2]
			row_kind[++rows] = $1
			row_bytes[rows] = $2
		}
		if (!($3 in way_known)) {
			way_known[$3]
			way[++ways] = $3
		}
	}'

# scheme_rows PROGRAM: awk, on all values
scheme_rows() {
	awk -v launches="$launches" -v missed="$work/missed" "$scheme_awk $1" "$values"
}

# Each way in its unit.
scheme_absolute() {
	scheme_rows '
	function occurs(kind, from, way,    i) {
		for (i = from; i <= rows && row_kind[i] == kind; i++)
			if (all(kind, row_bytes[i], way))
				return 1
		return 0
	}
	function header(kind, from,    n) {
		printf "  %s, %s\n  %8s", kind, unit(kind), "bytes"
		columns = 0
		for (n = 1; n <= ways; n++)
			if (occurs(kind, from, way[n])) {
				column[++columns] = way[n]
				printf " %9s", way[n]
			}
		print ""
	}
	function line(kind, bytes,    n, wide, v) {
		printf "  %8d", bytes
		for (n = 1; n <= columns; n++) {
			wide = length(column[n]) > 9 ? length(column[n]) : 9
			v = all(kind, bytes, column[n])
			printf " %" wide "s", v ? sprintf("%.2f", v) : "-"
		}
		print ""
	}
	END {
		for (i = 1; i <= rows; i++) {
			if (row_kind[i] != row_kind[i - 1])
				header(row_kind[i], i)
			line(row_kind[i], row_bytes[i])
		}
	}'
}

# What was asked: a table by kind, and in $work/missed "KIND BYTES WHAT RATIO LEAST WAY".
scheme_asked() {
	scheme_rows '
	# The best of the ways whose names match, in each second launch from `first` on, or in all.
	function best(kind, bytes, pattern, first, step,    i, v, top, name) {
		for (i = 1; i <= ways; i++)
			if (way[i] ~ pattern && (v = median(kind, bytes, way[i], first, step)) &&
			    (!top || ratio(kind, v, top) > 1)) {
				top = v
				name = way[i]
			}
		return name
	}
	function noise_of(kind,    i, r, n, sum) {
		for (i = 1; i <= rows; i++)
			if (row_kind[i] == kind &&
			    (r = ratio(kind, all(kind, row_bytes[i], "auto"), all(kind, row_bytes[i], "again")))) {
				sum += (r - 1) ^ 2
				n++
			}
		return n ? sqrt(sum / n) : 0
	}
	function cell(kind, bytes, text, r, least, name) {
		if (!r) {
			printf "  %6s  %-15s", "", ""
			return
		}
		asked += least > 0
		printf "  %5.2f%s  %-15s", r, (r < least ? "*" : " "), name
		if (r < least)
			printf "%s %d %s %.3f %.3f %s\n", kind, bytes, text, r, least, name >missed
	}
	function best_forced(kind, bytes, step) {
		return best(kind, bytes, "^(read|write|both|turns|ring.*|eager.*|.*=.*)$", 1, step)
	}
	function forced(kind, bytes,    name) {
		name = best_forced(kind, bytes, 2)
		cell(kind, bytes, "forced", ratio(kind, median(kind, bytes, "auto", even, 2),
			median(kind, bytes, name, even, 2)), (kind ~ /^first/ ? 1 / 1.1 : 0.95) - noise, name)
	}
	function beside(kind, bytes, text, pattern, least,    name) {
		name = best(kind, bytes, pattern, 1, 1)
		cell(kind, bytes, text, ratio(kind, all(kind, bytes, "auto"), all(kind, bytes, name)), least, name)
	}
	END {
		even = launches > 1 ? 2 : 1
		for (i = 1; i <= rows; i++) {
			kind = row_kind[i]
			bytes = row_bytes[i]
			if (kind != row_kind[i - 1]) {
				noise = noise_of(kind)
				printf "  %s, %s; noise %.1f %%\n  %8s %10s  %-23s  %-23s  %-23s  %s\n", kind,
					unit(kind), 100 * noise, "bytes", "automatic", "/ best forced",
					"/ best plain copy", "mapped / without", "/ better native library"
			}
			printf "  %8d %10.2f", bytes, all(kind, bytes, "auto")
			forced(kind, bytes)
			beside(kind, bytes, "plain", "^plain-(write|read|halves|turns|ring.*)$", bytes < 32768 ? 0 : 0.85)
			cell(kind, bytes, "mapped", ratio(kind, all(kind, bytes, "mapped"),
				all(kind, bytes, "auto")), 0.95 - noise, "")
			# Two kernel copies of equal cost differ by chance.
			beside(kind, bytes, "native", "^(native|mpich)$",
				best_forced(kind, bytes, 1) ~ /^(read|write)$/ ? 0.97 : 1)
			print ""
		}
		print "  ratios above 1: the automatic way is better, or mapping; * missed.  Asked: of the best forced way 0.95," \
			" without a\n  warm-up 1 / 1.1, of mapping 0.95, all less the noise; of a plain copy" \
			" 0.85 from 32 KiB on; of a library 1.0, or 0.97" \
			"\n  where one copy by the kernel is the best forced way"
		printf "  %d ratios were asked for\n", asked
	}'
	echo "  $(wc -l <"$work/missed") were missed"
}

# scheme_symbols FILE...: where these processes were most of the time: symbols, or libraries without them
scheme_symbols() {
	for file do
		perf report -i "$file" --stdio -q --no-children -g none -F overhead,symbol,dso 2>"$err"
	done | awk '$1 ~ /%/ { name = $3 ~ /^0x/ ? $NF : $3; part[name] += $1; all += $1 }
		END { for (name in part) printf "%.0f %s\n", 100 * part[name] / all, name }' |
		sort -gr | awk '$1 >= 3 && NR <= 6 { printf "%s%s %% %s", (NR > 1 ? ", " : ""), $1, $2 }'
}

# What the processors do in the rows farthest below the native library.
scheme_processor() {
	command -v perf >/dev/null || return 0
	grep ' native ' "$work/missed" | grep -E '^(bw|bibw|latency)' | sort -g -k 4 | head -n "$perf_rows" \
		>"$work/below"
	while read -r kind bytes _ ratio _; do
		program=${kind%-small}
		window=$(echo "$program" | tr -cd 0-9)
		for over in native single; do
			rm -f "$work"/perf.*
			once kept 2 sh -c "exec perf record -q -F 1999 -o $work/perf.\$\$ $pt2pt/rg_${program%%[0-9]*} \
				${window:+-W $window} --over $over $scheme_args -m $bytes:$bytes --time-cap 0.5"
			echo "  $kind $bytes ($ratio of native), $over: $(scheme_symbols "$work"/perf.*)"
		done
	done <"$work/below"
}

# ---- Against an earlier build ---------------------------------------------------------------------

scheme_start() {
	for k in $(seq "$launches"); do
		for by in . "$RG_BEFORE_BUILD"; do
			began=$(date +%s%N)
			once kept 2 $by/src/cli/railgauge exec --over single --soft ideal -- tests/cli/mpi_plain
			echo $((($(date +%s%N) - began) / 1000))
		done | tr '\n' ' ' | awk '{ print $1 / $2 }'
	done
}

# Medians of samples, since one sample that waits for a core moves a mean of 8 bytes.
scheme_eight() {
	for k in $(seq "$launches"); do
		rm -f "$work"/eight.*
		for _ in $(seq $TURNS); do
			for way in now before; do
				[ $way = now ] && by=. || by=$RG_BEFORE_BUILD
				once kept 2 $by/$pt2pt/rg_latency --over single --soft ideal -m 8:8 -i 20000 \
					--json "$work/s.jsonl"
				sed -n 's/.*"type":"row".*"median":\([^,]*\),.*/\1/p' "$work/s.jsonl" >>"$work/eight.$way"
				rm -f "$work/s.jsonl"
			done
		done
		echo "$(summary <"$work/eight.now") $(summary <"$work/eight.before")" | awk '{ print $1 / $4 }'
	done
}

scheme_before() {
	[ -n "${RG_BEFORE_BUILD-}" ] || { echo "  before: not measured (RG_BEFORE_BUILD=DIR)"; return; }
	scheme_eight | measure "rg_latency, 8 bytes: now / before" "x <= 1.02"
	scheme_start | measure "start and end of 2 ranks under railgauge exec: now / before" "x <= 1.05"
}

scheme_machine() {
	sed -n 's/^model name[^:]*: */  processor: /p' /proc/cpuinfo | head -n 1
	for index in /sys/devices/system/cpu/cpu0/cache/index*; do
		[ ! -e "$index/size" ] || echo "  cache: L$(cat "$index/level") $(cat "$index/type")" \
			"$(cat "$index/size"), of processors $(cat "$index/shared_cpu_list")"
	done
	sed -n 's/^# native: \(.*\) by itself.*/  library: \1/p' "$work"/library.* 2>/dev/null | sort -u
}

scheme_choice() {
	few=$launches
	[ -n "${MEASURE_LAUNCHES-}" ] || launches=5 few=3
	touch "$values"
	for part in ${MEASURE_SCHEMES:-plain pt2pt collectives first}; do
		case $part in
		none | before) ;;
		*) scheme_$part ;;
		esac
	done
	scheme_machine
	: >"$work/missed"
	scheme_absolute
	scheme_asked
	scheme_processor
	case ${MEASURE_SCHEMES:-before} in
	*before*) scheme_before ;;
	esac
}
