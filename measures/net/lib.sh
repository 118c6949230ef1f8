# lib.sh - what the rows of `make bench-net` share.  Sourced by run.sh, behind run-lib.sh and hosts.sh.
#
#	stop WHAT		the end, with the last error output
#	wanted GROUP...		is one of them in NET_ONLY, or all of everything?
#	median [FILE...]	of lines of one number
#	$own COMMAND...		words that start it on the core of its host, 0 or 1
#	server PORT COMMAND...	on host 1, on its core; returns when it listens; process $started
#	stream RAIL WHAT BYTES	by measures/net/stream, whose server stream_serve starts: microseconds or MB/s
#	rows N PROGRAM ARG...	lines "WAY BYTES MEAN MEDIAN" of an rg_ program
#	values WAY BYTES	of those lines in $work/rows, the medians
#	heading UNIT OURS THEIRS	of the table below
#	verdict TEXT ASKED OURS [THEIRS]
#				a row of files with a value per launch: medians; the median, with extremes, of the
#				ratios of launches, or of OURS; ASKED of it, as x<=1.2
launches=${NET_LAUNCHES:-7} seconds=${NET_SECONDS:-0.3}
stream_port=19999
own=$work/own

cat >"$own" <<'EOT' && chmod +x "$own"
#!/bin/sh
name=$(hostname)
exec taskset -c "${name#host}" "$@"
EOT

stop() {
	echo "measures: $*" >&2
	cat "$err" >&2
	exit 4
}

named() {
	for word do
		case " ${NET_ONLY-} " in
		*" $word "*) return 0 ;;
		esac
	done
	return 1
}
wanted() {
	[ -z "${NET_ONLY-}" ] || named "$@"
}

median() {
	sort -g "$@" | awk '{ v[NR] = $1 } END {
		if (NR) print (NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2) }'
}

server() {
	port=$1
	shift
	start 1 "$own" "$@" >"$work/server" 2>&1
	until on 1 grep -q "$(printf ':%04X 0*:0000 0A' "$port")" /proc/net/tcp /proc/net/tcp6; do
		kill -0 $started 2>/dev/null || { cat "$work/server"; stop "no server: $*"; }
		sleep 0.02
	done
}

stream_serve() {
	server $stream_port measures/net/stream --listen $stream_port
}
stream() {
	on 0 "$own" measures/net/stream "10.0.$(($1 + 1)).2" $stream_port "$2" "$3" "$seconds" 2>"$err" ||
		stop "stream $*"
}

rows() {
	launch "$@" --json "$work/rows.jsonl" --overwrite
	[ "$rc" -eq 0 ] || return
	mean='"mean":\([^,]*\),"median":\([^,]*\),'
	sed -n 's/.*"type":"row".*"way":"\([^"]*\)".*"bytes":\([0-9]*\).*'"$mean"'.*/\1 \2 \3 \4/p' \
		"$work/rows.jsonl"
}
values() {
	awk -v w="$1" -v b="$2" '$1 == w && $2 == b { print $4 }' "$work/rows"
}

heading() {
	printf '  %-40s %10s %10s %8s  %-20s %s\n' "$1" "$2" "${3-}" x "" asked
}

verdict() {
	text=$1 asked=$2 ours=$3 theirs=${4-}
	[ -s "$ours" ] || stop "no values: $text"
	if [ -n "$theirs" ]; then
		paste "$ours" "$theirs" | awk '{ print $1 / $2 }' >"$work/x"
		theirs=$(median "$theirs")
	else
		cp "$ours" "$work/x"
	fi
	sort -g "$work/x" | awk -v text="$text" -v asked="$asked" -v ours="$(median "$ours")" -v theirs="$theirs" \
		-v x="$(median "$work/x")" '
		NR == 1 { low = $1 }
		{ high = $1 }
		END {
			match(asked, /[<>]=?/)
			bar = substr(asked, RSTART + RLENGTH) + 0
			met = substr(asked, RSTART, 1) == "<" ? x < bar || (RLENGTH == 2 && x == bar) : x >= bar
			row = sprintf("  %-40s %10.4g %10s %8.4g  %-20s %s", text, ours,
				theirs == "" ? "" : sprintf("%.4g", theirs), x, sprintf("%.4g..%.4g", low, high),
				asked == "-" ? "" : sprintf("%-8s %s", asked, met ? "met" : "missed"))
			sub(/ *$/, "", row)
			print row
		}'
}
