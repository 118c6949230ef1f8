#!/bin/sh
# programs.sh - every program over real ports with validation: over one rail and all, by every
# policy, rendezvous and completion, with what the ports can be asked for.
. "$srcdir/tests/run-lib.sh"
. "$srcdir/tests/hw/rails.sh"
few="-i 5 -x 1 -c"
ways="--over single,bind,stripe,weighted,pull"
# Emulated machines take half a second for every size and way.
if [ "${RG_HW_SOFTWARE-}" = 1 ]; then
	small=4K:16K large=8K:32K some=16K:16K
else
	small=1:64K large=1K:1M some=4K:256K
fi

for program in "rg_latency -m $small" "rg_bw -m $large -W 8" "rg_bibw -m $large -W 8" \
	"rg_mr -m 64:128"; do
	drawn 2 "$program" || continue
	launch 2 pt2pt/$program $ways $few
	expect "$program" well
done
launch "$nodes" pt2pt/rg_pairs -m 64K -W 4 --patience 1000000 $few
expect "rg_pairs" well
# Below MPI.  A message of several packets that UC loses one of may stop Soft-RoCE's receiver.
for program in "lat --op send" "lat --op write" "lat --op read --bidir" "lat --op fadd" \
	"bw --over single,stripe --qps 2" "bw --op send --queue 8" \
	"bibw --over bind,stripe --completion control" "bibw --op read" \
	"bw --op send --transport UD" "bw --transport UC" "notify" \
	"reuse --sweep size --buffer-count 4 --registration cache" \
	"reuse --sweep size --buffer-count 4 --registration each --op read"; do
	drawn 2 "$program" || continue
	case $program in
	*fadd*) sizes=8 ;;
	*U[CD]*) sizes=1K ;;
	*) sizes=$some ;;
	esac
	launch 2 pt2pt/rg_verbs_$program -m $sizes -W 8 $few
	! lacks || { echo "not on these adapters: rg_verbs_$program" && continue; }
	expect "rg_verbs_$program" well
done
[ "${RG_HW_FEW-}" != 1 ] || finish

launch 2 pt2pt/rg_bibw --rails "$first_rail" -m $some -W 8 $few
expect "one rail by name" well
for options in "--rendezvous read --qps 4 --bind near" \
	"--rendezvous read --eager 0 --threshold 1K --mtu 1024" \
	"--completion control --gid-index auto --sl 1 --tclass 8" "--completion control --qps 2 --mtu 256" \
	"--chunk 16K --eager 1K"; do
	drawn 2 "$options" || continue
	case $options in
	*control*) ways="--over single,stripe,weighted" ;;
	*) ways="--over single,stripe,weighted,pull" ;;
	esac
	launch 2 pt2pt/rg_bibw $ways $options -m $some -W 8 $few
	expect "rg_bibw $options" well
done
# Four ranks, two on each node: each pair across, and by --intranode rails as well within.
launch 4 pt2pt/rg_bw --over bind,stripe --intranode rails -m $some -W 8 $few
expect "rg_bw, two ranks per node" well
finish
