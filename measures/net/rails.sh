# rails.sh - two rails with a token bucket at each end.  Sourced by run.sh.
#
# The ways of a row take turns in one launch.  A window is 16 messages from 1 MiB on, where 64 would
# last 2 s on one rail; a row has 10 samples, at the longest size 3.
rails_sizes="65536 262144 1048576 4194304"

# rails_launches N PROGRAM WAYS ARG...: all launches, a file $work/v.WAY.BYTES each with their values
rails_launches() {
	rails_np=$1 path=$2 rails_ways=$3
	shift 3
	rm -f "$work"/v.*
	for k in $(seq "$launches"); do
		for bytes in $rails_sizes; do
			window='' samples=10
			[ "$bytes" -lt 4194304 ] || samples=3
			case $path:$((bytes >= 1 << 20)) in
			pt2pt/*:1) window="-W 16" ;;
			esac
			# shellcheck disable=SC2086 # words are meant
			rows "$rails_np" "$own" "$path" --over "$rails_ways" --soft net=eth0+eth1 -m "$bytes" $window \
				-x 1 -i $samples "$@" >"$work/rows"
			[ "$rc" -eq 0 ] || stop "exit code $rc: $path of $bytes bytes"
			for way in $(echo "$rails_ways" | tr , ' '); do
				values "$way" "$bytes" >>"$work/v.$way.$bytes"
			done
		done
	done
}

# One way or both, MB/s
rails_bandwidth() {
	rails_launches 2 "pt2pt/$1" single,stripe
	for bytes in $rails_sizes; do
		verdict "$1, $bytes bytes" 'x>=1.95' "$work/v.stripe.$bytes" "$work/v.single.$bytes"
	done
}

# Times: the ratio is that of speeds.  Ranks that share cores take 2 to 4 ms for the shortest messages,
# over any number of rails.
rails_collective() {
	rails_launches 4 "collective/$1" single,stripe
	for bytes in $rails_sizes; do
		verdict "$1, 4 ranks, $bytes bytes" 'x>=1.8' "$work/v.single.$bytes" "$work/v.stripe.$bytes"
	done
}

# The sum of streams that run one after the other, each alone on its rail; both ways twice that.
rails_sum() {
	rm -f "$work/streams"
	for k in $(seq "$launches"); do
		for rail in 0 1; do
			stream $rail bw 1048576 >"$work/rail$rail"
		done
		cat "$work/rail0" "$work/rail1" | awk '{ s += $1 } END { print s }' >>"$work/streams"
	done
}
rails_unequal() {
	stream_serve
	rails_sum
	rails_sizes="1048576 4194304"
	awk '{ print 2 * $1 }' "$work/streams" >"$work/both"
	for program in rg_bw rg_bibw; do
		rails_launches 2 pt2pt/$program weighted,pull
		asked='x>=0.97' sum=$work/streams
		[ $program = rg_bw ] || asked=- sum=$work/both
		for bytes in $rails_sizes; do
			for way in weighted pull; do
				verdict "$program $way, $bytes bytes" $asked "$work/v.$way.$bytes" "$sum"
			done
		done
	done
}

rails_groups() {
	if wanted one-way both-ways collectives; then
		hosts 2 2 wire=direct rate=1000
		echo "Two rails of 1 Gbit/s each, both ways (MB/s)"
		! wanted one-way both-ways || heading "" stripe single
		! wanted one-way || rails_bandwidth rg_bw
		! wanted both-ways || rails_bandwidth rg_bibw
		if wanted collectives; then
			heading "(us; 2 ranks of a host share a core)" single stripe
			for program in rg_alltoall rg_allgather; do
				rails_collective $program
			done
		fi
		hosts_end
	fi
	if wanted unequal; then
		hosts 2 2 wire=direct rate=1000+250
		echo "Rails of 1000 and 250 Mbit/s (MB/s), the sum of single streams: one after the other"
		heading "" ours streams
		rails_unequal
		hosts_end
	fi
}
