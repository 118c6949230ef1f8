# single.sh - one interface: latency and bandwidth of `single` beside the others.  Sourced by run.sh.
#
# The ratio is that to the better of Open MPI (or MPICH) and UCX.
# rg_ programs compare ways in one launch, which are then alike.
ways=native,single

# ucx WHAT BYTES: ucx_perftest by tags; its MB are 2^20 bytes
ucx() {
	command -v ucx_perftest >/dev/null || return 0
	ucx_port=$((ucx_port + 1))
	count=$(($2 <= 65536 ? 20000 : 400)) column=6 scale=1.048576 test="tag_bw -O 64"
	[ "$1" = bw ] || column=4 scale=1 test=tag_lat
	env="env UCX_TLS=tcp UCX_NET_DEVICES=eth0"
	# shellcheck disable=SC2086 # words are meant
	server $ucx_port $env ucx_perftest -p $ucx_port
	# shellcheck disable=SC2086 # words are meant
	on 0 $env "$own" timeout 60 ucx_perftest 10.0.1.2 -p $ucx_port -t $test -s "$2" -n $count \
		-w $((count / 10)) -f >"$work/ucx.client" 2>"$err" || stop "ucx_perftest $*"
	wait $started
	awk -v c=$column -v f=$scale '/^ *[0-9]/ && NF == 8 { print $c * f }' "$work/ucx.client"
}

# programs WHAT BYTES: the ways of rg_WHAT, a line each: WAY VALUE
programs() {
	RG_HOSTS_MPI=eth0 rows 2 "$own" "pt2pt/rg_$1" --over "$ways" $soft -m "$2" | cut -d' ' -f1,3
}

# Without rails over TCP there is the native way alone.
choose_ways() {
	soft="--soft net=eth0"
	[ -z "$(programs latency 8)" ] || return
	ways=native soft=
	[ -n "$(programs latency 8)" ] || stop "rg_latency"
	echo "  (no software HCA over TCP in this build: what the others reach)"
}

# compare WHAT BYTES WANTED LOW|HIGH [LEAST]: WANTED on x, ours / the better of both others; at LEAST
# this part of the stream
compare() {
	least=${5-}
	rm -f "$work"/v.*
	for k in $(seq "$launches"); do
		stream 0 "$1" "$2" >>"$work/v.stream"
		ucx "$1" "$2" >>"$work/v.ucx"
		programs "$1" "$2" | while read -r way value; do
			echo "$value" >>"$work/v.$way"
		done
	done
	set -- "$1" "$2" "$3" "$4" "$(median "$work/v.stream")" "$(median "$work/v.native")" \
		"$(median "$work/v.ucx")" "$(median "$work/v.single" 2>/dev/null)"
	echo "$@" | awk -v least="$least" '{
		better = !$7 || ($4 == "low" ? $6 < $7 : $6 > $7) ? $6 : $7
		printf "  %-8s %8s %10.4g %10.4g %10s %10s", $1, $2, $5, $6, $7 ? sprintf("%.4g", $7) : "-",
			$8 ? sprintf("%.4g", $8) : "-"
		if ($8) {
			x = $8 / better
			split($3, want, /=/)
			met = want[1] == "x<" ? x <= want[2] : x >= want[2] && $8 >= least * $5
			printf " %7.3f  %-9s %s", x, $3, met ? "met" : "missed"
			if (least)
				printf " (and %.3f of the stream, wanted %s)", $8 / $5, least
		}
		print ""
	}'
}

latencies() {
	compare latency 8 'x<=1.0' low
	compare latency 4096 'x<=1.0' low
	compare latency 65536 'x<=0.8' low
	compare latency 1048576 'x<=1.0' low
}
bandwidths() {
	compare bw 8 'x>=3.0' high
	compare bw 4096 'x>=1.0' high
	compare bw 65536 'x>=1.3' high
	compare bw 1048576 'x>=1.0' high 0.95
	compare bw 4194304 'x>=1.0' high 0.95
}

one_interface() {
	hosts 2 1 wire=direct offload=$1
	ucx_port=20000
	stream_serve
	choose_ways
	! part_wanted latency || latencies
	! part_wanted bw || bandwidths
	hosts_end
}

# latency and bw each choose a part of the rows, offload-yes and offload-no the hosts.
part_wanted() {
	named "$1" || ! named latency bw
}
single_groups() {
	wanted latency bw offload-yes offload-no || return 0
	for offload in yes no; do
		named offload-$offload || ! named offload-yes offload-no || continue
		echo "One interface, segmentation offload: $offload (us, MB/s)"
		echo "  what        bytes     stream   $(printf '%8s' "$RG_MPI_FLAVOR")        UCX     single   ratio  wanted"
		one_interface $offload
	done
}
