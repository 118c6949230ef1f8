#!/bin/sh
# Whole stacks that nobody here wrote, on software devices: UCX, Open MPI over UCX, qperf.  (Open
# MPI's openib BTL wants rdma_cm on Ethernet ports.)  What is not installed is named and left out;
# nothing at all: skipped.
. "$srcdir/tests/softhca/pair-lib.sh"
tried=0
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# have PROGRAM: is it there?
have() {
	command -v "$1" >/dev/null || { echo "not here: $1"; return 1; }
	tried=1
}

# judge WHAT RC: with the output of the client in $work/client
judge() {
	if [ "$2" -eq 0 ]; then
		echo "ok: $1: $(tail -n 1 "$work/client")"
	else
		echo "FAIL: $1: exit code $2"
		cat "$work/client" "$work/server" 2>/dev/null
		failed=$((failed + 1))
	fi
}

# ---- UCX by itself, over each of its transports for plain verbs.
# Where it is built with MPI, as Debian 13's is, it takes itself for a rank.
alone=
ucx_perftest -h 2>&1 | grep -q -e '-P <0|1>' && alone="-P 0"
ucx() {
	UCX_TLS=$1 UCX_NET_DEVICES=$2
	export UCX_TLS UCX_NET_DEVICES
	shift 2
	port=$((port + 1))
	timeout 100 $softhca --fabric $fabric --node 0 -- ucx_perftest "$@" $alone -p $port \
		>"$work/server" 2>&1 &
	server=$!
	listens $port $server
	timeout 100 $softhca --fabric $fabric --node 1 -- ucx_perftest "$@" $alone -p $port localhost \
		>"$work/client" 2>&1
	rc=$?
	wait $server || rc=$?
	judge "ucx_perftest $* over $UCX_TLS, $UCX_NET_DEVICES" $rc
	unset UCX_TLS UCX_NET_DEVICES
}

if have ucx_perftest; then
	for tls in rc_verbs,ud_verbs,self ud_verbs,self; do
		ucx $tls soft0:1 -t tag_lat -n 2000 -s 8
		ucx $tls soft0:1 -t tag_bw -n 500 -s 65536
		ucx $tls soft0:1,soft0:2 -t tag_bw -n 100 -s 1048576
		ucx $tls soft0:1 -t stream_bw -n 500 -s 4096
	done
	for test in ucp_put_lat ucp_put_bw ucp_get ucp_add ucp_fadd ucp_swap ucp_cswap; do
		ucx rc_verbs,ud_verbs,self soft0:1 -t $test -n 500 -s 8
	done
	ucx rc_verbs,ud_verbs,self soft0:1 -t am_lat -n 500 -D short -x rc_verbs -d soft0:1
fi

# ---- Open MPI: ranks of one node each, or together, every byte checked by the program.
mpi() {
	what=$1
	shift
	rm -f "$work/server"
	timeout 100 $softhca --fabric $fabric -- "$@" >"$work/client" 2>&1
	judge "$what" $?
}

if [ "$RG_MPI_FLAVOR" = openmpi ] && have "$MPIRUN"; then
	run="$MPIRUN --oversubscribe --mca orte_base_help_aggregate 0 -np 2"
	for tls in rc_verbs,ud_verbs,self ud_verbs,self; do
		mpi "Open MPI over UCX, $tls" $run --mca pml ucx --mca osc ucx -x UCX_TLS=$tls \
			-x UCX_NET_DEVICES=soft0:1 pt2pt/rg_bw --over native -c -m 1:1M -i 5 -x 1
	done
	mpi "Open MPI over UCX, two rails" $run --mca pml ucx -x UCX_TLS=rc_verbs,ud_verbs,self \
		-x UCX_NET_DEVICES=soft0:1,soft0:2 -x UCX_MAX_RNDV_RAILS=2 \
		pt2pt/rg_bw --over native -c -m 64K:4M -i 5 -x 1
fi

# ---- qperf.
if have qperf; then
	port=$((port + 1))
	timeout 100 $softhca --fabric $fabric --node 0 -- qperf -lp $port >"$work/server" 2>&1 &
	server=$!
	listens $port $server
	for test in rc_lat rc_bw rc_bi_bw uc_lat uc_bw ud_lat ud_bw rc_rdma_read_lat \
		rc_rdma_read_bw rc_rdma_write_lat rc_rdma_write_bw rc_rdma_write_poll_lat \
		uc_rdma_write_lat uc_rdma_write_bw uc_rdma_write_poll_lat \
		rc_compare_swap_mr rc_fetch_add_mr ver_rc_compare_swap ver_rc_fetch_add; do
		timeout 60 $softhca --fabric $fabric --node 1 -- qperf -lp $port -t 1 localhost $test \
			>"$work/client" 2>&1
		rc=$?
		grep -q '=' "$work/client" || rc=1
		judge "qperf $test" $rc
	done
	kill $server
	wait $server 2>/dev/null
fi

[ $tried -eq 1 ] || {
	echo "skipped: no stack is installed (ucx-utils, openmpi-bin, qperf)"
	exit 77
}
finish_pairs
