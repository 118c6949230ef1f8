# sent.sh - sourced, behind run-lib.sh: by its own count, this node's devices have sent.
#
#	both_rails_sent PACKETS		...more than so many each, since this was sourced
sent() {
	cat "/sys/class/infiniband/$1/ports/1/hw_counters/sent_pkts"
}
sent_rxe0=$(sent rxe0) sent_rxe1=$(sent rxe1)

both_rails_sent() {
	for device in rxe0 rxe1; do
		eval "packets=\$(($(sent $device) - sent_$device))"
		echo "$device sent $packets packets"
		expect "$device was used" [ "$packets" -gt "$1" ]
	done
}
