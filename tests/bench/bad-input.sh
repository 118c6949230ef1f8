#!/bin/sh
# Bad input: one line of ours that names the option, the right exit code, no
# hang, nothing left in /dev/shm.
. "$srcdir/tests/run-lib.sh"

# bad RANKS WORDS-OF-THE-LINE ARG...
bad() {
	refused pt2pt/rg_bw "$@"
}

bad 2 'bogus: unknown option' --bogus
bad 2 'nearest: --iterations' --iteration 5
bad 2 '--window 0: out of range (accepted: 1 to 65536)' -W 0
bad 2 '--window many: makes no sense' -W many
bad 2 '--buffers stack: .*accepted: malloc, arena, near or far' --buffers stack
[ -e /sys/devices/system/node/node1 ] ||
	bad 2 '--buffers far: a node has no other NUMA node.*accepted: malloc, arena, near' --buffers far
bad 2 '--sizes 1K:8: the first size is larger' -m 1K:8
bad 2 '--sizes 0:8: out of range' -m 0:8
bad 2 '--sizes 2G: out of range' -m 2G
bad 2 '--over nativ: unknown item (accepted: a list of native' --over nativ
bad 2 'the same item twice' --over native,native
bad 2 '--threshold 0: out of range (accepted: 1 to 1T' --threshold 0
bad 2 '--threshold 1025G: out of range' --threshold 1025G
bad 2 '--percentiles 0,101: makes no sense' -z 0,101
bad 2 '--time-cap 0: out of range' --time-cap 0
bad 2 'stray: unexpected' stray
bad 2 'needs N' --pairs
bad 1 '1 rank: too few (accepted: 2 or more' --over native
bad 3 '3 ranks: pairs need an even number (accepted: 2 or 4)' --over native
bad 2 'nodes 3: more virtual nodes than ranks (accepted: 1 to 2)' --over native --nodes 3
bad 4 'pairs 3: 4 ranks make 2 pairs (accepted: 1 to 2)' --over native --pairs 3
bad 2 '/nonexistent/x.jsonl: cannot be written' --over native -m 8 --json /nonexistent/x.jsonl
bad 2 '/nonexistent/s.csv: cannot be written' --over native -m 8 --samples /nonexistent/s.csv
bad 2 '/dev/full: cannot be written' --over native -m 8 --json /dev/full
bad 2 '--window' -W 0 --json "$work/x.jsonl"
expect "a refused --json leaves nothing behind" [ ! -e "$work/x.jsonl" ]

# Rank 0 says it, however late it starts.
launch_beside 2 sh -c 'case ${OMPI_COMM_WORLD_RANK-$PMI_RANK} in 0) sleep 4 ;; esac; exec "$@"' sh \
	pt2pt/rg_bw -W 0
judge_refusal rg_bw 3 3 '--window 0: out of range' "rank 0 is late"

# Rails that carry nothing, or no connection; and a list of devices with others' in it.
for soft in "loss=1 peer 1 is lost: no connection over soft0:1 (.*; LID 1, GID .*; there LID 3, GID .*)" \
	"mtu=512 soft0:1: an MTU of 512 bytes is too small for connections (accepted: 1024" \
	"mtu=256 soft0:1: an MTU of 256 bytes is too small for connections (accepted: 1024"; do
	launch_beside 2 pt2pt/rg_latency --soft "ports=2,${soft%% *}" -m 8
	judge_refusal rg_latency 4 4 "${soft#* }" "--soft ${soft%% *}"
done
launch_beside 2 ./softhca -- pt2pt/rg_latency -m 8 -i 5
expect "under the softhca command: exit code 0" [ "$rc" -eq 0 ]
expect "... and a number" [ "$(row 8)" ]

RAILGAUGE_THRESHOLD=0
export RAILGAUGE_THRESHOLD
bad 2 'RAILGAUGE_THRESHOLD=0: out of range' -m 8
unset RAILGAUGE_THRESHOLD

# Ranks that were told different things: one line, before anything is measured.
rank1="sh $srcdir/tests/hw/rank1.sh"
for pair in "THRESHOLD=64K --threshold: rank 1 has '64K', rank 0 '8K'" \
	"ITERATIONS=7 --iterations: rank 1 has '7', rank 0 'auto'" \
	"QPS=2 --qps: rank 1 has '2', rank 0 'auto'"; do
	launch 2 $rank1 "RAILGAUGE_${pair%% *}" pt2pt/rg_bw -m 8 --soft ideal
	expect "${pair%% *} on rank 1: exit code 3" [ $rc -eq 3 ]
	expect "${pair%% *} on rank 1: one line of ours" [ "$(ours rg_bw)" -eq 1 ]
	expect "${pair%% *} on rank 1: named" grep -q -e "^rg_bw: ${pair#* } (accepted: the same" "$err"
done
launch 2 $rank1 RAILGAUGE_EAGER=4K tests/mpi/p2p_suite stripe
expect "a program that is linked: one line" [ "$(ours p2p_suite)" -eq 1 ]
expect "... that names the option" grep -q '^p2p_suite: --eager .*rank 1 has another value' "$err"
export RAILGAUGE_EAGER=8K
launch 2 tests/mpi/p2p_suite single,eager=64K
expect "a communicator that wants more than the job's --eager: an error" [ $rc -ne 0 ]
# Open MPI 4.1's launcher may drop the ranks' last lines when it cannot read its own help messages.
said() {
	grep -q "$1" "$err" && return
	grep -q 'ORTE_ERROR_LOG: Data unpack would read past end' "$err" &&
		echo "not judged: the launcher lost what was said"
}
expect "... and how much there is" said '^p2p_suite: eager=65536: .*: 0 to 8192'
# The error ends the job: rank 0's line comes first, late as it may be.
[ "$RG_SANITIZE" = no ] && ways="single,eager=64K sideways" || ways=
for way in $ways; do
	launch 2 env LD_PRELOAD="$PWD/tests/bench/.libs/late_error.so" tests/mpi/p2p_suite $way
	expect "$way: what rank 0 says is waited for" said '^p2p_suite: .*accepted'
done
unset RAILGAUGE_EAGER
launch 2 $rank1 RAILGAUGE_JSON=/nonexistent/x.jsonl pt2pt/rg_bw -m 8 -i 5 --soft ideal
expect "files are rank 0's business" [ $rc -eq 0 ]

# A rank that is killed in the middle: the job ends by itself.
killed 5 pt2pt/rg_latency --over native -m 8:4M
finish
