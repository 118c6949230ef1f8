#!/bin/sh
# sets.sh - the conformance list, and a program of each layer, under the personality of each adapter
# that like= names; hosts of two kinds, too.  RG_LONG=1: all of the list, and each beside mlx5-ib.
. "$srcdir/tests/adapters/adapters.sh"
share="--share 8"
[ -z "${RG_LONG-}" ] || share=
short="--time-cap 50ms --iterations 200 --warmup 10"

# program NAME SPEC LABEL COMMAND...
program() {
	name=$1 of=$2 label=$3
	shift 3
	on "$of" 2 "$@"
	row "$name" "$label"
	case $name in
	hns-hip08*) expect "$name, $label: the reason" refuses "cannot make a queue pair for datagrams" ;;
	*)
		expect "$name, $label" passes
		[ "$label" = exec ] ||
			expect "$name, $label: by the adapter" grep -q 'in place of libibverbs' "$out"
		;;
	esac
}

programs() {
	for op in write send; do
		program "$1" "$2" "rg_verbs_lat $op" ./pt2pt/rg_verbs_lat --op=$op --validate --sizes 64 $short
	done
	program "$1" "$2" rg_latency ./pt2pt/rg_latency --validate --sizes 1:64K $short
	program "$1" "$2" rg_bw ./pt2pt/rg_bw --validate --over stripe --sizes 4K:1M --window 8 $short
	program "$1" "$2" exec ./src/cli/railgauge exec --over stripe -- ./tests/adapters/ring
}

for name in mlx5-ib mlx5-roce mlx5-vf mlx4 irdma-e810 bnxt_re hns-hip08; do
	drawn 2 "$name" || continue
	conforms "like=$name" $share
	row "$name" conformance
	expect "$name, conformance" passes
	programs "$name" "like=$name"
	[ -z "${RG_LONG-}" ] || programs "$name and mlx5-ib" "like=$name/mlx5-ib,link=ib"
done
programs "ib and vf" "like=mlx5-ib/mlx5-vf"
finish
