#!/bin/sh
# assumptions.sh - what programs do besides MPI, natively and over rails (src/mpi/ASSUMPTIONS.md).
. "$srcdir/tests/run-lib.sh"
over="src/cli/railgauge exec --over stripe --soft ports=2 --"
program=tests/mpi/assumptions

# What the program takes for granted natively, over rails as well.
alike() {
	group=$1
	launch 2 $program "$@"
	expect "$*: natively" holds_all no
	cp "$out" "$work/native"
	launch 2 $over $program "$@"
	expect "$*: over rails" holds_all yes
}

holds_all() {
	[ "$rc" -eq 0 ] && grep -q "^$group: .* cases hold, layer: $1" "$out"
}

takers() {
	sed -n 's/^threads that take signals: //p' "$1"
}

# A sanitizer reserves far more address space and stack than these leave.
for group in process errors handler finalize $(more threads limits as-large); do
	alike $group
done
alike signals
expect "no thread of ours takes the program's signals" \
	[ "$(takers "$work/native")" -eq "$(takers "$out")" ]

# What the libraries themselves do not bear: Open MPI longjmp, MPICH calls from a handler under
# MPI_THREAD_MULTIPLE.  Natively 20000 requests take Open MPI 10 s.
for group in longjmp thread-handler calls; do
	launch 2 $over $program $group
	expect "$group: over rails" holds_all yes
done

# In MPI_Finalize: rails that were wanted later than the program's attributes, and with threads.
group=finalize
launch 2 src/cli/railgauge exec --over native --soft ports=2 -- $program finalize
expect "finalize: rails wanted late" holds_all yes
launch 2 env OMPI_MPI_THREAD_LEVEL=3 MPIR_CVAR_DEFAULT_THREAD_LEVEL=MPI_THREAD_MULTIPLE \
	$over $program finalize
expect "finalize: MPI_THREAD_MULTIPLE" holds_all yes

# Its input is a pipe, and all else as odd as it gets.  A plugin of hwloc starts libxml2,
# which divides zero by zero: natively as well, on Debian 13.
launch 2 $program odd </dev/null
case $rc in
8 | 136) export HWLOC_PLUGINS_PATH=/nowhere ;;
esac
for how in "" "$over"; do
	launch 2 $how $program odd <<-END
		word
	END
	expect "odd${how:+ over rails}" grep -q '^odd: 5 cases hold' "$out"
	launch 2 $how $program closed
	expect "closed descriptors${how:+ over rails}" [ "$rc" -eq 0 ]
done

# What is a limit is said in one line.
for group in $(more as) fsize; do
	launch 2 $over $program $group
	judge_refusal assumptions 3 3 "must be unlimited" "$group"
done

# A tool that stands before the layer, in the ranks alone.
front=$PWD/tests/mpi/.libs/assumptions_front.so
tool="env LD_PRELOAD=$front"
for how in "" "$over"; do
	launch 2 $tool $how $program errors
	expect "profiling tool${how:+ over rails}" grep -q '^tool: has seen all' "$out"
done
expect "profiling tool: the layer is there" grep -q 'layer: yes' "$out"

# A search finds the layer before a tool that the program is linked with.
for bind in LD_BIND_NOW= LD_BIND_NOW=1; do
	launch 2 $over env $bind sh -c "LD_PRELOAD=\$LD_PRELOAD:$front exec $program errors"
	expect "a linked tool, $bind" grep -q '^tool: has seen all' "$out"
	expect "a linked tool, $bind: the layer is there" grep -q 'layer: yes' "$out"
done

# Ends: as the launcher tells them natively, and nothing stays behind.  Of ranks that leave without
# MPI_Finalize MPICH's Hydra tells now and then 1 instead of their exit code, natively as well: it
# ends the others when it sees the first connection close.
for end in atexit abort killed leaves; do
	launch 2 $program end $end
	native=$rc
	launch 2 $over $program end $end
	case $RG_MPI_FLAVOR:$end:$native:$rc in
	mpich:leaves:[14]:[14])	native=$rc ;;
	mpich:leaves:[04]:[04] | mpich:killed:[09]:[09]) ! loses_exit_codes || native=$rc ;;
	esac
	expect "end by $end: exit code $native natively" [ "$rc" -eq "$native" ]
done
expect "nothing in /dev/shm" shm_is_clean
finish
