# ranks.sh - jobs: their start, idle ranks, what a peer takes.  Sourced by run.sh; ranks on any core.
ours_over="src/cli/railgauge exec --over stripe"

# seconds_of COMMAND...: of a launch of 4 ranks
seconds_of() {
	began=$(date +%s%N)
	launch 4 "$@" measures/net/ranks start
	ended=$(date +%s%N)
	[ "$rc" -eq 0 ] || stop "exit code $rc of 4 ranks: $*"
	echo "$began $ended" | awk '{ printf "%.3f\n", ($2 - $1) / 1e9 }'
}
start_rows() {
	heading "" ours "$RG_MPI_FLAVOR"
	rm -f "$work"/v.*
	for k in $(seq "$launches"); do
		seconds_of >>"$work/v.native"
		# shellcheck disable=SC2086 # words are meant
		seconds_of $ours_over -- >>"$work/v.found"
		# shellcheck disable=SC2086 # words are meant
		seconds_of $ours_over --soft net=eth0+eth1 -- >>"$work/v.named"
	done
	verdict "rails found (s)" 'x<=1.3' "$work/v.found" "$work/v.native"
	verdict "rails named (s)" - "$work/v.named" "$work/v.native"
}

# ranks COUNT WORD...: `measures/net/ranks WORD...` over both rails, its output in $out
ranks() {
	count=$1
	shift
	# shellcheck disable=SC2086 # words are meant
	launch "$count" $ours_over --soft net=eth0+eth1 -- measures/net/ranks "$@"
	[ "$rc" -eq 0 ] || stop "exit code $rc of $count ranks: $*"
}

# Of several ranks that sleep, the one with most wakes.  MPI_Recv polls: its row shows how often it gives
# way to others on its core.
idle_rows() {
	heading "voluntary switches of all threads" "a second"
	rm -f "$work"/v.*
	for k in $(seq "$launches"); do
		ranks 4 idle 5
		for kind in blocked sleeping; do
			for column in 2 3; do
				awk -v k=$kind -v c=$column '$1 == k { print $c }' "$out" | sort -g | tail -n 1 \
					>>"$work/v.$kind.$column"
			done
		done
	done
	verdict "asleep for 5 s" 'x<20' "$work/v.sleeping.2"
	verdict "blocked in MPI_Recv" - "$work/v.blocked.2"
	verdict "asleep: ms of the processor" - "$work/v.sleeping.3"
	verdict "blocked: ms of the processor" - "$work/v.blocked.3"
}

# A column of `ranks peers`: growth per peer after the first
per_peer() {
	awk -v c="$1" '$1 == 1 { first = $c } { n = $1; last = $c } END { print (last - first) / (n - 1) }' "$out"
}
peers_rows() {
	heading "" "a peer"
	rm -f "$work"/v.*
	for k in $(seq "$launches"); do
		ranks 8 peers 65536
		per_peer 2 >>"$work/v.memory"
		per_peer 3 >>"$work/v.fds"
	done
	verdict "private memory (KiB)" - "$work/v.memory"
	verdict "descriptors" - "$work/v.fds"
}

ranks_groups() {
	wanted start idle peers || return 0
	hosts 2 2 wire=direct
	! wanted start || {
		echo "Start of 4 ranks on 2 hosts: MPI_Init, a barrier, MPI_Finalize, over 2 rails"
		start_rows
	}
	! wanted idle || {
		echo "Idle ranks: 4 on 2 hosts, all connected, over 2 rails"
		idle_rows
	}
	! wanted peers || {
		echo "A rank's peers on another host: 8 ranks on 2 hosts, over 2 rails; 64 KiB each way"
		peers_rows
	}
	hosts_end
}
