#!/bin/sh
# fortran.sh - a program in Fortran by each of the bindings (mpif.h, the modules mpi and
# mpi_f08), by itself and over rails.
. "$srcdir/tests/run-lib.sh"

if [ -z "${MPIFC-}" ]; then
	echo "skipped: no Fortran compiler of the MPI library (Debian: gfortran beside MPI's -dev)"
	exit 77
fi
# compile SOURCE PROGRAM ARG...: from gfortran 10 on buffers of two types need a word.
compile() {
	source=$1 program=$2
	shift 2
	for word in -fallow-argument-mismatch ''; do
		# shellcheck disable=SC2086 # none, or one
		$MPIFC -g -w $word "$@" -o "$program" "$source" >"$out" 2>"$err" && return
	done
	return 1
}

printf 'end\n' >"$work/nothing.f90"
if ! compile "$work/nothing.f90" "$work/nothing"; then
	echo "skipped: $MPIFC compiles nothing (Debian: gfortran)"
	sed 's/^/  /' "$err" | head
	exit 77
fi

passes() {
	[ "$rc" -eq 0 ] && grep -q '^[1-9][0-9]* checks, 0 failed$' "$out"
}

binding=0
for way in "include 'mpif.h'" 'use mpi' 'use mpi_f08'; do
	binding=$((binding + 1)) rc=
	printf '%s\nend\n' "$way" >"$work/has.f90"
	if ! compile "$work/has.f90" "$work/has"; then
		echo "skipped: $way: $MPIFC has none: $(grep -m 1 'Error' "$err")"
		continue
	fi
	compile "$srcdir/tests/mpi/fortran.F90" "$work/program" -DBINDING=$binding
	expect "$way: compiles" [ $? -eq 0 ]
	launch 2 "$work/program"
	expect "$way: by itself" passes
	expect "$way: no layer" grep -q '^layer: no' "$out"
	printf '%s\ninteger e\ncall MPI_Init(e)\ncall MPI_Barrier(MPI_COMM_WORLD, e)\ncall MPI_Finalize(e)\nend\n' "$way" >"$work/barrier.f90"
	compile "$work/barrier.f90" "$work/barrier"
	launch 2 src/cli/railgauge exec --ledger -- "$work/barrier"
	expect "$way: its time in MPI" grep -q '^  *[0-9.]* %  MPI_Barrier$' "$err"
	for over in single 'stripe --soft ports=2'; do
		# shellcheck disable=SC2086 # words are meant
		launch 2 src/cli/railgauge exec --over $over -- "$work/program"
		expect "$way: over $over" passes
		expect "$way: rails carried it" grep -q '^layer: yes, [1-9]' "$out"
		expect "$way: told at both ends" [ "$(grep -c '^railgauge exec: [1-9].* rails' "$err")" -eq 2 ]
	done
done
if [ $checks -eq 0 ]; then
	echo "skipped: $MPIFC has no binding of MPI"
	exit 77
fi
expect "nothing in /dev/shm" shm_is_clean
finish
