#!/bin/sh
# wan.sh - `make bench-wan`: MPI over long distances on the software HCA's profiles of them: what
# --eager, --qps and -W bring.  No cluster is needed; measures/rails.sh does the same with netem
# on Soft-RoCE.  Each value is the median of three windows, MB/s; the link carries 1000.
#
#	WAN_PROFILES="..."	of libsofthca (default: wan-1400mi wan-8600mi)
. "$srcdir/tests/run-lib.sh"
measuring=yes
limit=300
for profile in ${WAN_PROFILES:-wan-1400mi wan-8600mi}; do
	echo "$profile: MB/s"
	echo "  --eager  --qps    -W       8 KiB      16 KiB      32 KiB      64 KiB     128 KiB     256 KiB"
	for eager in 8K 64K; do
		for qps in 1 2 4; do
			for window in 16 64 256; do
				launch 2 pt2pt/rg_bw --over single --soft "$profile" -m 8K:256K -W $window \
					--eager $eager --qps $qps -i 3 -x 1 --time-cap 30 --json "$work/r.jsonl"
				if [ "$rc" -eq 0 ]; then
					printf '  %7s  %5s  %4s' $eager $qps $window
					sed -n 's/.*"type":"row",.*"median":\([0-9.]*\),.*/\1/p' "$work/r.jsonl" |
						awk '{ printf "  %10.2f", $1 } END { print "" }'
				else
					echo "  $eager $qps $window: exit code $rc: $(head -n 1 "$err")"
				fi
				rm -f "$work/r.jsonl"
			done
		done
	done
done
exit 0
