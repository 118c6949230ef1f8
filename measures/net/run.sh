#!/bin/sh
# run.sh - `make bench-net`: the software HCA over TCP, beside Open MPI's TCP, UCX's and a bare stream.
#
# Two hosts as namespaces, a pair of virtual interfaces, each end on a core of its own; sockets' limits
# as Debian has them.  What is compared takes turns; shown are medians over launches and, of the ratio to
# the better of both others, its median with its extremes.  Nothing here is a test: a missed measure is
# printed as such and the exit code stays 0.  Run it as root on an idle machine.
#
#	NET_LAUNCHES=N	launches per row (7)
#	NET_ONLY=WORDS	of: latency bw offload-yes offload-no; both parts and both ways
#	NET_SECONDS=S	of each measurement of the stream (0.3)
. "$srcdir/tests/run-lib.sh"
. "$srcdir/tests/net/hosts.sh"
measuring=yes limit=60
launches=${NET_LAUNCHES:-7} seconds=${NET_SECONDS:-0.3}
# rg_ programs compare ways in one launch, which are then alike.
ways=native,single

stop() {
	echo "measures: $*" >&2
	cat "$err" >&2
	exit 4
}

wanted() {
	case " ${NET_ONLY:-latency bw offload-yes offload-no} " in
	*" $1 "*) ;;
	*" ${1%%-*}"*) return 1 ;;
	esac
}

median() {
	sort -g "$@" | awk '{ v[NR] = $1 } END {
		if (NR) print (NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2) }'
}

# stream WHAT BYTES: by measures/net/stream, whose server runs on host 1
stream() {
	on 0 taskset -c 0 measures/net/stream 10.0.1.2 "$stream_port" "$1" "$2" "$seconds" 2>"$err" ||
		stop "stream $*"
}

# ucx WHAT BYTES: ucx_perftest by tags; its MB are 2^20 bytes
ucx() {
	command -v ucx_perftest >/dev/null || return 0
	ucx_port=$((ucx_port + 1))
	count=$(($2 <= 65536 ? 20000 : 400)) column=6 scale=1.048576 test="tag_bw -O 64"
	[ "$1" = bw ] || column=4 scale=1 test=tag_lat
	env="env UCX_TLS=tcp UCX_NET_DEVICES=eth0"
	start 1 $env taskset -c 1 ucx_perftest -p $ucx_port >"$work/ucx" 2>&1
	until on 1 grep -q "$(printf ':%04X 0*:0000 0A' $ucx_port)" /proc/net/tcp /proc/net/tcp6; do
		kill -0 $started 2>/dev/null || { cat "$work/ucx"; stop "ucx_perftest"; }
	done
	# shellcheck disable=SC2086 # words are meant
	on 0 $env taskset -c 0 timeout 60 ucx_perftest 10.0.1.2 -p $ucx_port -t $test -s "$2" -n $count \
		-w $((count / 10)) -f >"$work/ucx.client" 2>"$err" || stop "ucx_perftest $*"
	wait $started
	awk -v c=$column -v f=$scale '/^ *[0-9]/ && NF == 8 { print $c * f }' "$work/ucx.client"
}

# programs WHAT BYTES: the ways of rg_WHAT, a line each: WAY VALUE
programs() {
	RG_HOSTS_MPI=eth0 launch 2 sh -c 'exec taskset -c "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" "$@"' sh \
		"pt2pt/rg_$1" --over "$ways" $soft -m "$2" --json "$work/rows.jsonl" --overwrite
	[ "$rc" -eq 0 ] || return
	sed -n 's/.*"type":"row".*"way":"\([^"]*\)".*"mean":\([^,]*\),.*/\1 \2/p' "$work/rows.jsonl"
}

# Without rails over TCP there is the native way alone.
choose_ways() {
	soft="--soft net=eth0"
	[ -z "$(programs latency 8)" ] || return
	ways=native soft=
	[ -n "$(programs latency 8)" ] || stop "rg_latency"
	echo "  (no software HCA over TCP in this build: what the others reach)"
}

# row WHAT BYTES WANTED LOW|HIGH: WANTED on x, ours / the better of both others
row() {
	rm -f "$work"/v.*
	for k in $(seq "$launches"); do
		stream "$1" "$2" >>"$work/v.stream"
		ucx "$1" "$2" >>"$work/v.ucx"
		programs "$1" "$2" | while read -r way value; do
			echo "$value" >>"$work/v.$way"
		done
	done
	set -- "$@" "$(median "$work/v.stream")" "$(median "$work/v.native")" \
		"$(median "$work/v.ucx")" "$(median "$work/v.single" 2>/dev/null)"
	echo "$@" | awk '{
		better = !$7 || ($4 == "low" ? $6 < $7 : $6 > $7) ? $6 : $7
		printf "  %-8s %8s %10.4g %10.4g %10s %10s", $1, $2, $5, $6, $7 ? sprintf("%.4g", $7) : "-",
			$8 ? sprintf("%.4g", $8) : "-"
		if ($8) {
			x = $8 / better
			split($3, want, /=/)
			met = want[1] == "x<" ? x <= want[2] : x >= want[2]
			printf " %7.3f  %-9s %s", x, $3, met ? "met" : "missed"
		}
		print ""
	}'
}

latencies() {
	row latency 8 'x<=1.0' low
	row latency 4096 'x<=1.0' low
	row latency 65536 'x<=0.8' low
	row latency 1048576 'x<=1.0' low
}
bandwidths() {
	row bw 8 'x>=3.0' high
	row bw 4096 'x>=1.0' high
	row bw 65536 'x>=1.3' high
	row bw 1048576 'x>=1.0' high
	row bw 4194304 'x>=1.0' high
}

one_interface() {
	hosts 2 1 wire=direct offload=$1
	ucx_port=20000 stream_port=19999
	start 1 taskset -c 1 measures/net/stream --listen $stream_port
	sleep 0.3
	choose_ways
	! wanted latency || latencies
	! wanted bw || bandwidths
	hosts_end
}

[ "$(nproc)" -ge 2 ] || { echo "bench-net: one processor: each end wants its own"; exit 77; }
echo "Railgauge measures over TCP: $launches launches each; $(date -u +%Y-%m-%dT%H:%MZ), $(uname -m)," \
	"$(nproc) CPUs, load $(cut -d' ' -f1 /proc/loadavg), $RG_MPI_FLAVOR"
for offload in yes no; do
	wanted offload-$offload || continue
	echo "One interface, segmentation offload: $offload (us, MB/s)"
	echo "  what        bytes     stream   $(printf '%8s' "$RG_MPI_FLAVOR")        UCX     single   ratio  wanted"
	one_interface $offload
done
exit 0
