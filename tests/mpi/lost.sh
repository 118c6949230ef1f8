#!/bin/sh
# lost.sh - a rank is lost while others wait for it, in every way that a program can wait: an error
# that names it, and what does not need it goes on.
. "$srcdir/tests/run-lib.sh"
export RAILGAUGE_OVER=stripe

# all_say N WORDS
all_say() {
	[ "$(grep -c "^rank [0-9]*: $2\$" "$out")" -eq "$1" ]
}

# Its rails are cut; it lives.  Fewer ranks than ways to wait, where processors are few and slow.
n=22
[ "$RG_SANITIZE" = no ] || n=5
last=$((n - 1))
export RAILGAUGE_NODES=$n RAILGAUGE_SOFT="ports=2,down=$last/soft0:1@600ms+$last/soft0:2@600ms"
cut() {
	launch $n tests/mpi/lost cut
	expect "a rank whose rails are cut: exit code 0" [ "$rc" -eq 0 ]
	expect "... each wait has ended" all_say $n "as it should be"
	expect "... MPI_Finalize, too" all_say $n "the end"
	expect "... each line names a rail" \
		[ "$(ours lost)" -eq "$(grep -c '^lost: peer [0-9]* is lost: .*over soft0:' "$err")" ]
}
# One thread each with Open MPI, ready for several with MPICH; both with both, where it is long.
[ "$RG_MPI_FLAVOR" = openmpi ] || export RG_LOST_THREADS=1
cut
unset RG_LOST_THREADS
for threads in $(long 0 1); do
	[ "$threads" = 0 ] || export RG_LOST_THREADS=1
	cut
	unset RG_LOST_THREADS
done

# With the error handler that all programs begin with, the job ends.
export RAILGAUGE_NODES=3 RAILGAUGE_SOFT=ports=2,down=2/soft0:1@500ms
launch 3 tests/mpi/lost fatal
expect "the usual error handler: an error" [ "$rc" -ne 0 -a "$rc" -ne 124 ]
expect "... one line for a rank and each that it loses" [ "$(ours lost)" -ge 1 -a "$(ours lost)" -le 4 ]
expect "... that names the rail" grep -q '^lost: peer [0-2] is lost: .*soft0:1' "$err"
# Open MPI 4.1's launcher may drop the library's lines when it cannot read its own help messages.
says_error() {
	grep -q 'rail: rank [0-2] on host .* is lost: ' "$err" "$out" ||
		grep -q 'ORTE_ERROR_LOG: .*show_help' "$err"
}
expect "... and the library's with the error's text" says_error

export RAILGAUGE_NODES=4 RAILGAUGE_SOFT=ports=2
# It dies, where the launcher lets the others go on (MPICH's does not: it kills them, late).
if [ "$RG_MPI_FLAVOR" = openmpi ]; then
	launcher="$MPIRUN --enable-recovery --oversubscribe -np"
	launch 4 tests/mpi/lost killed
	expect "a rank that dies: each wait has ended" all_say 3 "as it should be"
	expect "... and the layer's part of MPI_Finalize" \
		[ "$(grep -c '^lost: warning: MPI_Finalize does not wait ' "$err")" -eq 3 ]
	expect "... said" grep -q '^lost: peer 3 is lost: .*its process has ended' "$err"
	launcher="$MPIRUN --oversubscribe -np"
fi

# It is stopped for longer than any limit; nobody minds.
for ranks in $(long 4); do
	launch $ranks tests/mpi/lost stopped
	expect "a rank that is stopped: exit code 0" [ "$rc" -eq 0 ]
	expect "... nothing is said" [ "$(ours lost)" -eq 0 ]
done
expect "nothing in /dev/shm" shm_is_clean
finish
