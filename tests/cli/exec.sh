#!/bin/sh
# railgauge exec: what it refuses, and an unmodified program over rails.
. "$srcdir/tests/run-lib.sh"

# exec_refused WORDS ARG...
exec_refused() {
	words=$1
	shift
	src/cli/railgauge exec "$@" >"$out" 2>"$err"
	rc=$?
	expect "exec $*: exit code 3" [ $rc -eq 3 ]
	expect "exec $*: one line" [ "$(wc -l <"$err")" -eq 1 ]
	expect "exec $*: says '$words'" grep -q "^railgauge: .*$words" "$err"
}

exec_refused 'no program' --over stripe
exec_refused 'no such program' ./nothing-of-that-name
exec_refused 'no such program' nothing-of-that-name
exec_refused 'unknown (accepted: auto, native' --over fast true
exec_refused 'unknown option' --overr stripe true
exec_refused 'out of range' --threshold 0 true
exec_refused "no alltoall 'chain' (accepted: auto, native, bruck" --coll alltoall=chain true
echo 'int main(void) { return 0; }' >"$work/s.c"
if ${CC:-gcc} -static -o "$work/static" "$work/s.c" 2>/dev/null; then
	exec_refused 'statically linked' "$work/static"
fi
# The other MPI library's program, by the name of a library that it links.
case $RG_MPI_FLAVOR in
openmpi) other=libmpich.so.12 names='MPICH, and librailmpi-mpich .*this railgauge was built for Open MPI' ;;
*) other=libmpi.so.40 names='Open MPI, and librailmpi-openmpi .*this railgauge was built for MPICH' ;;
esac
echo 'int its_call(void) { return 0; }' >"$work/l.c"
echo 'int its_call(void); int main(void) { return its_call(); }' >"$work/o.c"
if ${CC:-gcc} -shared -fPIC -Wl,-soname,$other -o "$work/$other" "$work/l.c" 2>/dev/null &&
	${CC:-gcc} -o "$work/other" "$work/o.c" "$work/$other" -Wl,-rpath,"$work" 2>/dev/null; then
	exec_refused "the program's MPI library is $names" "$work/other"
fi
printf 'no program' >"$work/no-format"
chmod +x "$work/no-format"
exec_refused 'Exec format error' "$work/no-format"
printf '\177ELF\001\001\001nonsense' >"$work/foreign"
chmod +x "$work/foreign"
exec_refused 'not a program of this machine' "$work/foreign"
: >"$work/noexec"
exec_refused 'no such program' "$work/noexec"

case $RG_MPI_FLAVOR in openmpi) parts=-np ;; *) parts=-n ;; esac
launch 2 tests/cli/mpi_plain
expect "the program by itself" grep -q '^layer: no' "$out"
for over in native single bind stripe weighted pull; do
	launch 4 src/cli/railgauge exec --over $over --soft ports=2 -- tests/cli/mpi_plain
	expect "$over: the program ends well" [ $rc -eq 0 ]
	expect "$over: the layer is there" grep -q '^layer: yes' "$out"
done
# A build inside of another one, such as `make coverage`'s, has its own libraries.
mkdir -p "$work/outer/inner/src/cli" "$work/outer/.libs"
cp .libs/librailmpi-$RG_MPI_FLAVOR.so.0 .libs/libsofthca.so.0 "$work/outer/.libs"
cp -r "$work/outer/.libs" "$work/outer/inner"
cp "$(ls src/cli/.libs/railgauge src/cli/railgauge 2>/dev/null | head -n 1)" "$work/outer/inner/src/cli/railgauge"
launch 1 "$work/outer/inner/src/cli/railgauge" exec -- /bin/sh -c 'echo "$LD_PRELOAD"'
expect "a nested build: its libraries" grep -q "/outer/inner/.libs/librailmpi-.*:.*/outer/inner/.libs/libsofthca" "$out"

# What it says of a job: a line at the start, one at the end, of rank 0; the program's output stays.
# said WORDS: such a line, once
said() {
	[ "$(grep -c "^railgauge exec: $1" "$err")" -eq 1 ]
}
# lines N: in all, of rank 0
lines() {
	[ "$(grep -c '^railgauge exec: ' "$err")" -eq "$1" ]
}
launch 2 tests/mpi/known_calls
cp "$out" "$work/alone"
launch 2 src/cli/railgauge exec --over stripe --soft ports=2 -- tests/mpi/known_calls
expect "the start: rails, way, fabric" \
	said '2 ranks, 2 rails (soft0:1, soft0:2), stripe above [0-9]*K; software HCA .* - software, not hardware$'
expect "the end: bytes by rail" said '2\.10 MB over 2 rails 50/50, 100 % striped$'
expect "the program's output is untouched" cmp "$out" "$work/alone"
launch 2 src/cli/railgauge exec --over single:1 --soft ports=2 -- tests/mpi/known_calls
expect "one rail: the start" said '.* single:1; '
expect "one rail: the end" said '2\.10 MB over 2 rails 0/100, 0 % striped$'
expect "one rail: two lines" lines 2
launch 4 src/cli/railgauge exec --soft ports=2,rate=1GB/s --threshold auto -- tests/cli/mpi_plain
expect "a model: said" said '4 ranks, .* - a model in software, not hardware$'
expect "measured at the start: not the program's" said '600 kB over 2 rails [0-9]*/[0-9]*, [0-9]* % striped$'
[ "$(nproc)" -ge 4 ] || expect "more ranks than cores: a warning" said 'warning: oversubscribed: '
launch 4 src/cli/railgauge exec --soft ports=2,rate=1GB/s --nodes 1 -- tests/cli/mpi_plain
expect "within a node" said '0 B over 2 rails; 600 kB within nodes$'
launch 2 src/cli/railgauge exec --over native -- tests/cli/mpi_plain
expect "native: so it says" said '2 ranks, native: no rails; every message is the MPI library.s ([A-Za-z:. ]*[0-9][0-9.]*[a-z0-9]*)$'
expect "native: no more" lines 1
launch 2 src/cli/railgauge exec --over stripe --soft ports=2 -- tests/mpi/known_calls abort
expect "aborted: it ends so" [ "$rc" -ne 0 -a "$rc" -ne 124 ]
expect "aborted: the start alone" lines 1
launch 2 src/cli/railgauge exec --quiet --over stripe --soft ports=2 -- tests/cli/mpi_plain
expect "--quiet: ends well" [ "$rc" -eq 0 ]
expect "--quiet: nothing" lines 0
launch 2 src/cli/railgauge exec --quiet --over native -- tests/cli/mpi_plain
expect "--quiet, native: nothing" lines 0
RAILGAUGE_QUIET=1 launch 2 src/cli/railgauge exec -- tests/cli/mpi_plain
expect "RAILGAUGE_QUIET=1: nothing" lines 0
# Rank 0 speaks for all, whatever the others want.
launch 2 sh "$srcdir/tests/hw/rank1.sh" RAILGAUGE_QUIET=1 src/cli/railgauge exec --soft ports=2 -- tests/cli/mpi_plain
expect "--quiet on rank 1: rank 0 speaks" lines 2
# A linked program is silent, unless it asks; a benchmark has lines of its own.
launch 2 tests/mpi/known_calls
expect "linked: nothing" lines 0
RAILGAUGE_QUIET=0 RAILGAUGE_SOFT=ports=2 launch 2 tests/mpi/known_calls
expect "linked, RAILGAUGE_QUIET=0: both lines" lines 2
launch 2 src/cli/railgauge exec -- pt2pt/rg_latency -m 8 -i 10 -x 1
expect "a benchmark: ends well" [ "$rc" -eq 0 ]
expect "a benchmark: nothing" lines 0

# Programs that link no MPI library: interpreters, and programs that start others, such as scripts.
over="src/cli/railgauge exec --over stripe --soft ports=2 --"
cat >"$work/script" <<-END
	#!/bin/sh
	exec tests/cli/mpi_plain
END
chmod +x "$work/script"
for how in "$work/script" "sh -e $work/script" "env A=b"; do
	launch 2 $over $how tests/cli/mpi_plain
	expect "$how: over rails" grep -q '^layer: yes, [1-9]' "$out"
	expect "$how: nothing to tell" [ $rc -eq 0 -a "$(ours railgauge)" -eq 0 ]
done

# The layer was dropped on the way: one line for all ranks, at the end.
# dropped PROGRAM ARG...
dropped() {
	launch 2 $over "$@"
	expect "$*: ends well" [ "$rc" -eq 0 ]
	expect "$*: one line" [ "$(ours railgauge)" -eq 1 ]
	expect "$*: named" grep -q "^railgauge: warning: $1 has ended .*the layer has seen no MPI_Init.* sessions of MPI" "$err"
}
dropped env LD_PRELOAD= tests/cli/mpi_plain
dropped sh -c 'unset LD_PRELOAD; tests/cli/mpi_plain; true'
expect "without the layer: natively" grep -q '^layer: no' "$out"
[ ! -x "$work/static" ] || dropped sh -c "$work/static"
# Open MPI ends the job of a rank that fails, and may not read later output.
launch 2 $over sh -c 'exit 7'
expect "sh -c 'exit 7': exit code 7" [ "$rc" -eq 7 ]

# Rank 1 has another idea: one line says of what.
for option in threshold=16K eager=4K qps=2 rails=soft0:1 bind=near coll=native; do
	name=${option%%=*}
	variable=RAILGAUGE_$(echo "$name" | tr a-z A-Z)
	launch 2 sh "$srcdir/tests/hw/rank1.sh" "$variable=${option#*=}" \
		src/cli/railgauge exec --soft ports=2 -- tests/cli/mpi_plain
	expect "$option on one rank: exit code" [ $rc -ne 0 ]
	expect "$option on one rank: one line" [ "$(ours mpi_plain)" -eq 1 ]
	expect "$option on one rank: named" \
		grep -q "^mpi_plain: --$name .*rank 1 has another value than rank 0" "$err"
done

# All ranks refuse: rank 0 alone prints the error, whichever rank ends first.
launch_beside 3 src/cli/railgauge exec --bind sideways -- tests/cli/mpi_plain
judge_refusal railgauge 1 255 '--bind sideways: .*accepted: rank' "refused by all"

# An executable of an MPMD job that does not carry the layer, or a rank that stays native.
exec="src/cli/railgauge exec --over stripe --soft ports=2 --start-limit 2 --"
# Open MPI 5.0.7's launcher crashes with two executables of any kind (ompi issue 13303), else.
launch 1 true : $parts 1 true
[ $rc -ne 139 ] || export PMIX_MCA_pmdl=^ompi
launch 1 $exec tests/cli/mpi_plain : $parts 1 tests/cli/mpi_plain
expect "the second of two without the layer: an error" [ $rc -ne 0 -a $rc -ne 124 ]
expect "the second of two: one line" [ "$(ours mpi_plain)" -eq 1 ]
expect "the second of two: named" \
	grep -q '^mpi_plain: rank 1 did not take part within 2 s (--start-limit)' "$err"
launch 2 tests/cli/mpi_plain : $parts 2 $exec tests/cli/mpi_plain
expect "the first two of four without the layer: an error" [ $rc -ne 0 -a $rc -ne 124 ]
expect "the first two of four: one line" [ "$(ours mpi_plain)" -eq 1 ]
expect "the first two of four: named" grep -q '^mpi_plain: rank 0 did not take part' "$err"
launch 4 src/cli/railgauge exec --over stripe --soft ports=2 -- tests/cli/mpi_plain
expect "stripe: rails carried the message" grep -q '^layer: yes, 300000 bytes' "$out"
expect "nothing of ours in /dev/shm" shm_is_clean
finish
