#!/bin/sh
# verbs.sh - the conformance list, ping-pongs of rdma-core and perftest between two hosts.
. "$srcdir/tests/run-lib.sh"
. "$srcdir/tests/net/hosts.sh"
hosts 2 2
softhca=$PWD/softhca
export SOFTHCA_FABRIC=verbs.$$

# between PROGRAM ARG...: a server on host 1, its client on host 0; true if both succeed.
between() {
	# A server listens a moment later.
	start 1 timeout 60 "$softhca" --soft net=eth0+eth1 -- "$@" >"$work/server" 2>&1
	tries=0
	until on 1 ss -Hltn 2>/dev/null | grep -q ":$port "; do
		tries=$((tries + 1))
		[ $tries -lt 300 ] || break
		sleep 0.05
	done
	on 0 timeout 60 "$softhca" --soft net=eth0+eth1 -- "$@" 10.0.0.2 >"$out" 2>"$err"
	client=$?
	wait $started
	[ $? -eq 0 ] && [ $client -eq 0 ] || {
		cat "$work/server" "$out" "$err"
		return 1
	}
}
port=18515
for program in rc uc srq ud; do
	command -v ibv_${program}_pingpong >/dev/null || hosts_lack "no ibv_${program}_pingpong"
	expect "ibv_${program}_pingpong" between ibv_${program}_pingpong -g 0 -n 200 -s 1000
done
expect "ibv_rc_pingpong with events and long messages" between ibv_rc_pingpong -g 0 -n 100 -e -s 1000000
for program in ib_write_bw ib_read_bw ib_send_bw ib_write_lat ib_send_lat ib_read_lat ib_atomic_bw; do
	command -v $program >/dev/null || hosts_lack "no $program"
	expect "$program" between $program -x 0 -F -n 100 $(drawn 2 "$program" && echo -i 2)
done
# So many as the sender keeps until there is a connection.
expect "ib_send_bw of datagrams" between ib_send_bw -x 0 -F -n 20 -s 1000 -c UD
expect "ib_write_bw, both ways, several queue pairs" between ib_write_bw -x 0 -F -n 100 -b -q 4

# shellcheck disable=SC2046 # words are meant
# Only the network is another: a process that one side makes is one to the other.
nsenter -t "$(host_pid 0)" -n "$softhca" --soft net=eth0 -- tests/conformance/conformance \
	--peer-host "$(host_pid 1)" $([ -n "${RG_LONG-}" ] || echo "--share 4 --seed ${RG_SEED:-1}") >"$out" 2>"$err"
rc=$?
grep -v '^ok' "$out"
[ $rc -eq 0 ] || cat "$err"
expect "the conformance list" [ $rc -eq 0 ]
finish
