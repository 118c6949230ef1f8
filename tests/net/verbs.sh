#!/bin/sh
# verbs.sh - ping-pongs of rdma-core, perftest, UCX, and the conformance list between two hosts; some of it
# over IPv6.
. "$srcdir/tests/run-lib.sh"
. "$srcdir/tests/net/hosts.sh"
hosts 2 2
. "$srcdir/tests/net/between.sh"

for program in rc uc srq ud; do
	command -v ibv_${program}_pingpong >/dev/null || hosts_lack "no ibv_${program}_pingpong"
	expect "ibv_${program}_pingpong" between ibv_${program}_pingpong -g 0 -n 200 -s 1000
done
expect "ibv_rc_pingpong with events and long messages" between ibv_rc_pingpong -g 0 -n 100 -e -s 1000000
# More of perftest: matrix.sh.
for program in ib_write_bw ib_read_bw ib_send_bw ib_write_lat ib_send_lat ib_read_lat ib_atomic_bw; do
	command -v $program >/dev/null || hosts_lack "no $program"
	drawn 3 "one of perftest, $program" || continue
	expect "$program" between $program -x 0 -F -n 100 $(drawn 2 "$program" && echo -i 2)
done
# So many as the sender keeps until there is a connection.
expect "ib_send_bw of datagrams" between ib_send_bw -x 0 -F -n 20 -s 1000 -c UD
expect "ib_write_bw, both ways, several queue pairs" between ib_write_bw -x 0 -F -n 100 -b -q 4

# one_line_each LINE: the library wrote LINE at an end at least, and no end has two lines of the library.
one_line_each() {
	for file in "$work/server" "$err"; do
		[ "$(grep -c "^softhca: " "$file")" -le 1 ] || return 1
	done
	cat "$work/server" "$err" | grep -q "^softhca: $1"
}

# told PROGRAM ARG...: it fails at both ends or at one, and each end that the library refuses has one line.
told() {
	! between_once "$@" || return 1
	one_line_each "eth0: an address .*(accepted: GID index 0 at both ends, such as ib_write_bw -x 0"
}
expect "ib_write_bw needs no GID index" between ib_write_bw -F -n 100
expect "a GID index that does not exist" told ib_write_bw -x 3 -F -n 100
expect "... of datagrams" told ib_send_lat -x 3 -c UD -F -n 100
expect "no GID index" told ibv_rc_pingpong
expect "... of datagrams" told ibv_ud_pingpong
# qperf asks for an MTU that the interface has not, either.  The end that is refused first tells; the other
# may end before its turn.
qperf_told() {
	start 1 timeout 60 "$softhca" --soft $spec -- qperf >"$work/server" 2>&1
	port=19765 listens
	on 0 timeout 60 "$softhca" --soft $spec -- qperf -t 1 10.0.0.2 rc_bw >"$out" 2>"$err" || :
	kill $started
	wait $started
	one_line_each "eth0: an address without a GRH; .*(accepted: GID index 0"
}
! command -v qperf >/dev/null || expect "qperf, which knows no GID" qperf_told

# The secret of these programs is a file of both, in the home directory or another one; it is in no argument, no environment,
# no name of a file and no line of either end.
secret_stays() {
	secret=$(cat "$1") && [ ${#secret} -eq 64 ] || return 1
	start 1 timeout 60 "$softhca" --soft $spec -- ibv_rc_pingpong -g 0 -n 100 >"$work/server" 2>&1
	listens
	on 1 sh -c 'cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ; ls -R /dev/shm /tmp "$1"' sh "$hosts_dir" >"$work/seen" 2>&1
	on 0 timeout 60 "$softhca" --soft $spec -- ibv_rc_pingpong -g 0 -n 100 10.0.0.2 >"$out" 2>"$err" && wait $started &&
		grep -q ibv_rc_pingpong "$work/seen" && ! grep -qF "$secret" "$work/seen" "$work/server" "$out" "$err"
}
expect "the secret stays in its file" secret_stays "$hosts_dir/home/.softhca/secret"
(umask 077 && head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \n' >"$work/secret")
export SOFTHCA_SECRET_FILE="$work/secret"
expect "... in a named one" secret_stays "$SOFTHCA_SECRET_FILE"
unset SOFTHCA_SECRET_FILE

# ---- UCX over its transports for plain verbs.  Built with MPI it takes itself for a rank.
alone=
ucx_perftest -h 2>&1 | grep -q -e '-P <0|1>' && alone="-P 0"
# ucx TLS DEVICES OPTION...
ucx() {
	UCX_TLS=$1 UCX_NET_DEVICES=$2
	export UCX_TLS UCX_NET_DEVICES
	shift 2
	# shellcheck disable=SC2086 # two words or none
	port=13337 expect "ucx_perftest $* over $UCX_TLS, $UCX_NET_DEVICES" between ucx_perftest "$@" $alone
	unset UCX_TLS UCX_NET_DEVICES
}
if command -v ucx_perftest >/dev/null; then
	for tls in rc_verbs,ud_verbs,self ud_verbs,self; do
		ucx $tls soft0:1 -t tag_lat -n 200 -s 8
		! drawn 2 "long, $tls" || ucx $tls soft0:1 -t tag_bw -n 100 -s 65536
		! drawn 2 "two rails, $tls" || ucx $tls soft0:1,soft0:2 -t tag_bw -n 50 -s 1048576
	done
	for test in ucp_put_lat ucp_put_bw ucp_get ucp_add ucp_fadd ucp_swap ucp_cswap stream_bw; do
		! drawn 8 "ucx $test" || ucx rc_verbs,ud_verbs,self soft0:1 -t $test -n 100 -s 8
	done
	ucx rc_verbs,ud_verbs,self soft0:1 -t am_lat -n 100 -D short -x rc_verbs -d soft0:1
else
	echo "not here: ucx_perftest"
fi

# ---- IPv6
if [ -e /proc/net/if_inet6 ]; then
	ipv4=$spec spec=net=fd00:0:0:1::/64+fd00:0:0:2::/64
	for program in rc ud; do
		expect "ibv_${program}_pingpong over IPv6" between ibv_${program}_pingpong -g 0 -n 200 -s 1000
	done
	expect "ib_write_bw over IPv6" between ib_write_bw -x 0 -F -n 100 -i 2
	[ -z "$(command -v ucx_perftest)" ] || ucx rc_verbs,ud_verbs,self soft0:1,soft0:2 -t tag_bw -n 50 -s 1048576
	spec=$ipv4
fi

# ---- The conformance list
# conforms SPEC WORD...: --share and the like
conforms() {
	conforms_spec=$1
	shift
	# Only the network is another: a process that one side makes is one to the other.
	nsenter -t "$(host_pid 0)" -n "$softhca" --soft "$conforms_spec" -- tests/conformance/conformance \
		--peer-host "$(host_pid 1)" "$@" >"$out" 2>"$err"
	rc=$?
	grep -v '^ok' "$out"
	[ $rc -eq 0 ] || cat "$err"
	return $rc
}
# shellcheck disable=SC2046 # words are meant
expect "the conformance list" conforms net=eth0 $([ -n "${RG_LONG-}" ] || echo "--share 4 --seed ${RG_SEED:-1}")
share=20
[ -z "${RG_LONG-}" ] || share=4
[ ! -e /proc/net/if_inet6 ] || expect "a share of the conformance list over IPv6" \
	conforms net=fd00:0:0:1::/64 --share "$share" --seed "${RG_SEED:-1}"
finish
