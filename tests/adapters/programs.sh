#!/bin/sh
# programs.sh - programs that nobody here wrote, on adapters of each personality: they pass, or end at once where
# the adapter has no such queue pair.  Debian's ibverbs-utils find libsofthca as libibverbs.so.1; perftest, which
# takes the interface of drivers from the system's libibverbs, has it preloaded.  One in eight, by RG_SEED; RG_LONG=1: all.
. "$srcdir/tests/adapters/adapters.sh"
. "$srcdir/tests/listens.sh"
for program in ibv_devinfo ibv_rc_pingpong ib_write_bw; do
	command -v $program >/dev/null || {
		echo "skipped: $program is not installed"
		exit 77
	}
done
draws=yes
port=$((20000 + $$ % 10000))

# member NODE PROGRAM ARG...: on a host of its own, with $found=LD_PRELOAD or LD_LIBRARY_PATH
member() {
	node=$1
	shift
	library=$place
	[ $found = LD_LIBRARY_PATH ] || library=$place/libibverbs.so.1
	timeout 100 unshare -u env $found="$library" SOFTHCA_EXPOSE=1 SOFTHCA_SPEC="$spec" SOFTHCA_NODE="$node" \
		SOFTHCA_FABRIC="conforms.$$" "$@"
}

# pair PROGRAM ARG...: a server and a client, again where perftest could not read the processor's clock.
pair() {
	for attempt in 1 2 3; do
		port=$((port + 1))
		member 0 "$@" -p $port >"$work/server" 2>&1 &
		server=$!
		listens $port $server
		member 1 "$@" -p $port localhost >"$out" 2>"$err"
		rc=$?
		wait $server
		rs=$?
		grep -qs "^Can't produce a report" "$out" "$work/server" || break
	done
	echo "$spec: $*: client $rc, server $rs"
}

both_pass() {
	[ "$rc" -eq 0 ] && [ "$rs" -eq 0 ] || { cat "$work/server" >>"$err" && false; }
}
both_end() {
	[ "$rc" -ne 0 ] && [ "$rc" -ne 124 ] && [ "$rs" -ne 124 ]
}

# runs NEEDS PROGRAM ARG...: NEEDS is rc, srq, ud, uc or atomic.
runs() {
	needs=$1
	shift
	drawn 8 "$name $*" || return 0
	pair "$@"
	case $name:$needs in
	irdma-e810:srq | irdma-e810:uc | irdma-e810:atomic | bnxt_re:uc | bnxt_re:atomic | hns-hip08:uc | hns-hip08:ud)
		expect "$name: $* ends" both_end ;;
	*) expect "$name: $* passes" both_pass ;;
	esac
}

for name in mlx5-ib mlx5-roce mlx5-vf mlx4 irdma-e810 bnxt_re hns-hip08; do
	spec=like=$name found=LD_LIBRARY_PATH
	if drawn 2 "$name ibv_devinfo"; then
		member 0 ibv_devinfo -v >"$out" 2>"$err"
		rc=$?
		expect "$name: ibv_devinfo" [ "$(grep -c PORT_ACTIVE "$out")" -eq 2 ]
	fi
	for kind in rc srq ud uc; do
		runs $kind ibv_${kind}_pingpong -g 0 -n 100 -c
	done
	found=LD_PRELOAD grh=
	[ $name != mlx5-vf ] || grh="-x 0"
	# shellcheck disable=SC2086 # two words, or none
	{
		runs rc ib_write_bw -n 400 $grh
		runs rc ib_send_lat -n 400 $grh
		runs rc ib_read_bw -n 400 $grh
		runs atomic ib_atomic_bw -n 400 $grh
		runs ud ib_send_bw -c UD -n 400 $grh
		runs uc ib_write_lat -c UC -n 400 $grh
		runs srq ib_send_bw --use-srq -n 400 $grh
	}
done
finish
