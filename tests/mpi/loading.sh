#!/bin/sh
# loading.sh - MPI that a program looks up instead of linking it, and MPI that goes past the layer.
limit=60
. "$srcdir/tests/run-lib.sh"
over="src/cli/railgauge exec --ledger --over stripe --soft ports=2 --"
program=tests/mpi/loading
modules=$PWD/tests/mpi/.libs
library=$(ldd "$modules/loading_module.so" | sed -n 's/.* => \(.*libmpi[^ ]*\.so[^ ]*\) .*/\1/p' | head -n 1)
layer=librailmpi-$RG_MPI_FLAVOR

# calls_are FUNCTION N: routed, and none natively.
calls_are() {
	grep -Eq "^  $1 +$2 +[0-9]+ +0\$" "$err"
}

# time_names FUNCTION: some of the time in MPI is its.
time_names() {
	grep -q "^  *[0-9.]* %  $1\$" "$err"
}

# ---- What is looked up in the library alone ----
# Each file is loaded once: the module, and a copy of it with RTLD_DEEPBIND.
cp "$modules/loading_module.so" "$work/deep.so"
launch 2 $over $program "$library" "$modules/loading_module.so" "$work/deep.so"
expect "pointers, a module and RTLD_DEEPBIND: each talks with each" [ "$rc" -eq 0 ]
expect "pointers, a module and RTLD_DEEPBIND: all messages are right" \
	[ "$(grep -c '^loading: rank ., 36 messages, 0 wrong' "$out")" -eq 2 ]
expect "pointers, a module and RTLD_DEEPBIND: all go over rails" calls_are MPI_Send 36
launch 2 $over $program "$library"
expect "pointers alone: over rails" calls_are MPI_Send 4
expect "pointers alone: their time is not known" grep -q "^  time in MPI: none seen: " "$err"
expect "pointers alone: the ledger is all there is to say" [ "$(ours loading)" -eq 1 ]

python=$(command -v /usr/bin/python3 || command -v python3) || python=
[ -z "$python" ] || {
	launch 2 $over "$python" "$srcdir/tests/mpi/loading.py" "$library"
	expect "ctypes: holds" [ "$(grep -c '^loading: rank . holds' "$out")" -eq 2 ]
	expect "ctypes: over rails" calls_are MPI_Sendrecv 6
	expect "ctypes: its time is in MPI" time_names MPI_Sendrecv
}
# Debian's is for Open MPI.
if [ -n "$python" ] && ldd $("$python" -c 'import mpi4py; print(mpi4py.__path__[0])' 2>/dev/null)/MPI*.so \
		2>/dev/null | grep -qF "$library"; then
	launch 2 $over "$python" -c 'from mpi4py import MPI
comm = MPI.COMM_WORLD
other = 1 - comm.rank
assert comm.sendrecv({"rank": comm.rank}, other, source=other) == {"rank": other}
got = bytearray(300000)
comm.Sendrecv(bytearray([comm.rank + 1]) * 300000, other, 3, got, other, 3)
assert got == bytearray([other + 1]) * 300000'
	expect "mpi4py: ends well" [ "$rc" -eq 0 ]
	expect "mpi4py: over rails" calls_are MPI_Sendrecv 2
	expect "mpi4py: its time is in MPI" time_names MPI_Sendrecv
	expect "mpi4py: told at both ends" [ "$(grep -c '^railgauge exec: 2 ranks, \|^railgauge exec: .* over 2 rails' \
		"$err")" -eq 2 ]
fi

# ---- What goes past the layer is told ----
# past WHAT WORDS: the last launch has one line of ours, with these words.
past() {
	expect "$1: one line" [ "$(grep -c "^[a-z0-9_.-]*: .*$layer" "$err")" -eq 1 ]
	expect "$1: says '$2'" grep -q ": .*$2" "$err"
}

launch 2 $over $program "$modules/loading_other.so"
past "another MPI library" "warning: calls of MPI went to .*loading_other.so, and $layer is for .*libmpi"
launch 2 env LOADING_ALSO="$modules/loading_other.so" $over $program "$library"
past "two MPI libraries" "two MPI libraries in one process: .*libmpi.*, the library of $layer, and .*other.so"
expect "two MPI libraries: refused" [ "$rc" -ne 0 -a "$rc" -ne 124 ]

# A copy of Open MPI calls the first one's functions, so that it cannot run at all.
if [ "$RG_MPI_FLAVOR" = openmpi ]; then
	cp "$library" "$work/libmpi-copy.so"
	launch 2 $over $program "$work/libmpi-copy.so"
	past "a copy of the library" "two MPI libraries in one process: .*libmpi.*, the library of .* and .*libmpi-copy.so"
	expect "a copy of the library: refused" [ "$rc" -ne 0 -a "$rc" -ne 124 ]
fi

# The library in front of the layer, which railgauge exec prevents.
before="env LD_PRELOAD=$library"
launch 2 $before $over tests/cli/mpi_plain
expect "exec puts the layer before the library: over rails" calls_are MPI_Sendrecv 2
launch 2 $over sh -c "LD_PRELOAD=$library:\$LD_PRELOAD exec tests/cli/mpi_plain"
past "the library before the layer" "warning: calls of MPI went to .*libmpi.*, past the layer"
expect "the library before the layer: goes on natively" [ "$rc" -eq 0 ]
launch 2 $before pt2pt/rg_latency --over native,stripe --soft ports=2 -m 8:8
judge_refusal rg_latency 1 255 'calls of MPI go to .*past the layer' "rg_latency past the layer"

# A library of the same kind, newer than the layer's.
launch 2 $over sh -c "LD_PRELOAD=\$LD_PRELOAD:$modules/loading_version.so exec tests/cli/mpi_plain"
past "another version" "warning: $layer was built with version .*, and this program runs with .*v\?99.7.1"
expect "another version: over rails all the same" calls_are MPI_Sendrecv 2
expect "nothing of ours in /dev/shm" shm_is_clean
finish
