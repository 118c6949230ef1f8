# between.sh - two programs as server and client on hosts 0 and 1.  Sourced behind hosts.sh.
#
#	between PROGRAM ARG...	the server on host $serving (1), its client on the other, with the server's
#				address as the last argument; true if both succeed, else says what they
#				said.  The server listens on $port
serving=1 port=18515 spec=net=eth0+eth1
softhca=$PWD/softhca
export SOFTHCA_FABRIC=between.$$

# listens: a server does, a moment later.
listens() {
	for turn in $(seq 300); do
		! on $serving ss -Hltn 2>/dev/null | grep -q ":$port " || return 0
		sleep 0.05
	done
}

between_once() {
	start $serving timeout ${between_limit:-100} "$softhca" --soft $spec -- "$@" >"$work/server" 2>&1
	listens
	on $((1 - serving)) timeout ${between_limit:-100} "$softhca" --soft $spec -- "$@" "10.0.0.$((serving + 1))" >"$out" 2>"$err"
	rc=$?
	wait $started
	served=$?
	[ $rc -eq 0 ] && [ $served -eq 0 ]
}

between() {
	for attempt in 1 2 3 4 5; do
		! between_once "$@" || return 0
		# perftest reads the processor's clock for its report, and refuses to print one when
		# the host took the processor away meanwhile: it says nothing of the device then.
		grep -qs "^Can't produce a report" "$out" "$work/server" || break
		echo "again: perftest could not read the processor's clock ($attempt): $*"
	done
	echo "server $served, client $rc: $*"
	cat "$work/server" "$out" "$err"
	return 1
}
