#!/bin/sh
# idle.sh - ranks that compute send each other nothing: the kernels see that the hosts are there, and no process
# wakes for its peers, however many they are.
. "$srcdir/tests/run-lib.sh"
. "$srcdir/tests/net/hosts.sh"
hosts 2 2
export RG_MEET="$work/meet"
mkdir "$RG_MEET" || exit 99

# sent: segments with data that host 0 has sent over its rails
sent() {
	on 0 ss -Htin '( dport >= :18600 and dport <= :18855 ) or ( sport >= :18600 and sport <= :18855 )' |
		grep -o 'data_segs_out:[0-9]*' | awk -F: '{ n += $2; c++ } END { print n + 0, c + 0 }'
}
# watch: once all ranks are there, for some seconds
watch() {
	for turn in $(seq 600); do
		[ "$(ls "$RG_MEET" | grep -c rank)" -lt 6 ] || break
		sleep 0.1
	done
	sleep 1
	sent >"$work/before"
	sleep 6
	sent >"$work/after"
	: >"$RG_MEET/end"
}
command -v ss >/dev/null || hosts_lack "no ss"
watch &
launch 6 src/cli/railgauge exec --soft net=eth0+eth1 --over stripe -- tests/net/hello
wait $!
expect "exit code" [ "$rc" -eq 0 ]
read -r before connections <"$work/before"
read -r after left <"$work/after"
expect "the ranks are connected" [ "$connections" -gt 0 ] && expect "... and stay so" [ "$left" -eq "$connections" ]
# A rank that the machine lets wait for seconds may ask for itself.
echo "$((after - before)) segments over $connections connections"
expect "idle ranks send nothing" [ $((after - before)) -le "$connections" ]
finish
