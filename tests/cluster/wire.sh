#!/bin/sh
# wire.sh - the software HCA joins two machines over TCP: over the interfaces below Soft-RoCE devices,
# and over those that a job finds where there are no RDMA devices.
. "$srcdir/tests/run-lib.sh"
few="-i 2 -x 1 -W 4 -c"
softhca=$PWD/softhca port=18515

# One user's secret, as in a home directory that all nodes share.
mkdir -m 700 -p /root/.softhca
(umask 077 && head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \n' >/root/.softhca/secret)
ssh node1 'umask 077; mkdir -p /root/.softhca; cat >/root/.softhca/secret' </root/.softhca/secret

# well RAILS: the last launch, between the machines, and every byte was right.
well() {
	[ "$rc" -eq 0 ] && grep -q "^# fabric: software HCA over TCP .*, $1 port" "$out" &&
		! grep -q Fail "$out" && grep -q Pass "$out"
}

# apart COMMAND...: on node 1, in this directory; its output in $work/far, and its exit code.
apart() {
	ssh node1 "cd '$PWD' && RG_SEED='${RG_SEED-}' SOFTHCA_FABRIC=wire timeout 300 $* 2>&1; echo \"exit code \$?\"" \
		>"$work/far" </dev/null &
	far=$!
}
apart_well() {
	wait $far
	grep -qx "exit code 0" "$work/far" || {
		cat "$work/far"
		return 1
	}
}

# between PROGRAM ARG...: a server on node 1, its client here; true if both succeed.
between() {
	apart "'$softhca' --soft net=eth0+eth1 -- $*"
	ssh node1 "timeout 60 sh -c 'until ss -Hltn | grep -q \":$port \"; do sleep 0.1; done'"
	SOFTHCA_FABRIC=wire timeout 100 "$softhca" --soft net=eth0+eth1 -- "$@" node1 >"$out" 2>"$err"
	near=$?
	apart_well && [ $near -eq 0 ]
}

launch 2 pt2pt/rg_bw --soft net=eth0 -m 4K:32K $few
expect "rg_bw over one rail" well 1
# Two, as those that are found below.
for soft in $(long net=10.0.1.0/24+10.0.2.0/24); do
	launch 2 pt2pt/rg_bw --soft "$soft" --over stripe -m 64K:256K $few
	expect "rg_bw over two rails" well 2
done

expect "ibv_rc_pingpong" between ibv_rc_pingpong -g 0 -n 50 -s 10000 -e
for program in "ib_write_bw -b" "ib_read_lat" "ib_send_bw -c UD -s 1000"; do
	drawn 2 "$program" || continue
	# shellcheck disable=SC2086 # words are meant
	expect "$program" between $program -x 0 -F -n 20
done

# longest is 2 GiB, threads 12,000 round trips: minutes here.
share="--share $([ -n "${RG_LONG-}" ] && echo 1 || echo 16) --seed ${RG_SEED:-1} --except longest,threads"
list="--soft net=eth0+eth1 -- tests/conformance/conformance $share --join"
apart "'$softhca' $list node0:7471"
# shellcheck disable=SC2086 # words are meant
SOFTHCA_FABRIC=wire "$softhca" $list :7471 >"$out" 2>"$err"
rc=$?
grep -v '^ok' "$out"
expect "the conformance list" [ $rc -eq 0 ]
expect "... on the other machine" apart_well

# ---- Without RDMA devices ----------------------------------------------------------------------
# devices COMMAND...: for both devices of both nodes, $rail
devices() {
	sh -c "for rail in 0 1; do $*; done"
	ssh node1 "for rail in 0 1; do $*; done"
}
# shellcheck disable=SC2016 # the nodes' shells expand it
devices 'rdma link delete rxe$rail'
launch 2 pt2pt/rg_bw --over stripe -m 16K:64K $few
expect "rails are found" well 2
expect "... and named" grep -q "^rg_bw: 2 rails by the software HCA over TCP between 2 hosts: \
net=10.0.1.0/24+10.0.2.0/24\$" "$err"
# shellcheck disable=SC2016 # the nodes' shells expand it
devices 'rdma link add rxe$rail type rxe netdev eth$rail'
finish
