#!/bin/sh
# srun.sh - srun as the launcher: Open MPI by --mpi=pmix, MPICH by --mpi=pmi2, a campaign with each; and what
# ranks say that srun has started for another MPI library.  By hand: with Debian's Open MPI 4.1.4 and Slurm
# 22.05 about one of 40 launches by --mpi=pmix ends inside MPI_Init.
. "$srcdir/tests/run-lib.sh"
. "$srcdir/tests/slurm/cluster.sh"
cluster

# started WORDS-OF-SRUN COMMAND...: on both nodes
started() {
	words=$1
	shift
	# shellcheck disable=SC2086 # words are meant
	(limited on login srun -N 2 -n 2 $words "$@") >"$out" 2>"$err"
	rc=$?
}
# told BUILD WORDS-OF-SRUN TEXT: a benchmark and a program under exec, each with one line
told() {
	text=$3
	for command in pt2pt/rg_bw "src/cli/railgauge exec -- tests/cli/mpi_plain"; do
		name=${command##*/}
		# shellcheck disable=SC2086 # words are meant
		(cd "$1" && started "$2" $command; exit $rc)
		rc=$?
		expect "srun $2, $command: exit code 3" [ $rc -eq 3 ]
		expect "srun $2, $command: one line, $text" eval \
			'[ "$(ours "$name")" -eq 1 ] && grep -qF "$name: started by $text: 2 jobs of 1 rank (accepted: " "$err"'
	done
}
# campaign BUILD NAME
campaign() {
	build=$1
	campaign_script "$2.sh" --out "$2" --launches 1 --run "$quick" --launcher srun
	submit -o "$2.out" "$2.sh"
	comes_to "$2: the job ends" is_state $job COMPLETED FAILED
	cp "$jobs/$2.out" "$out"
	expect "$2: ... well" is_state $job COMPLETED
	expect "$2: 3 launches" [ "$(launches "$2")" -eq 3 ]
}
openmpi() {
	told "$1" --mpi=none "srun without --mpi (SLURM_STEP_NUM_TASKS=2), built for Open MPI"
	told "$1" --mpi=pmi2 "srun --mpi=pmi2 (PMI_SIZE=2), built for Open MPI"
	campaign "$1" openmpi
}
mpich() {
	told "$1" --mpi=none "srun without --mpi (SLURM_STEP_NUM_TASKS=2), built for MPICH"
	told "$1" --mpi=pmix "srun --mpi=pmix (SLURM_STEP_NUM_TASKS=2), built for MPICH"
	campaign "$1" mpich
}
if [ "$RG_MPI_FLAVOR" = openmpi ]; then
	openmpi "$PWD"
	[ -z "${RG_MPICH_BUILD-}" ] || mpich "$RG_MPICH_BUILD"
else
	mpich "$PWD"
fi
finish
