#!/bin/sh
# A launcher of another MPI library: one line of rank 0 and exit code 3, of a benchmark and of any program
# under `railgauge exec`; a job of one rank that is meant.  Launchers that are not installed here are
# replaced by the variables that they set; tests/slurm has srun itself.
. "$srcdir/tests/run-lib.sh"

case $RG_MPI_FLAVOR in
openmpi)
	ours='built for Open MPI' other=mpiexec.hydra mark='mpich\|hydra'
	rank="PMI_SIZE=2 MPI_LOCALNRANKS=2 PMI_RANK" name='Hydra (PMI_SIZE=2)'
	right="Open MPI's mpirun, or srun --mpi=pmix"
	;;
*)
	ours='built for MPICH' other=mpirun.openmpi mark='open-mpi\|Open MPI'
	rank="OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK" name="Open MPI's mpirun (OMPI_COMM_WORLD_SIZE=2)"
	right="MPICH's mpiexec, or srun --mpi=pmi2"
	;;
esac

# told PROGRAM NAME: of the last launch
told() {
	expect "$1, by $2: exit code 3" [ "$rc" -eq 3 ]
	expect "$1, by $2: one line" [ "$(ours "$1")" -eq 1 ]
	expect "$1, by $2: says so" grep -qF "$1: started by $2, $ours: 2 jobs of 1 rank (accepted: $right)" "$err"
	expect "$1, by $2: no result" [ ! -s "$out" ]
}

# by VARIABLES NAME PROGRAM COMMAND...: as rank 0 of 2, by these variables
by() {
	variables=$1 name_of=$2 program=$3
	shift 3
	# shellcheck disable=SC2086 # words are meant
	timeout 60 env $variables "$@" >"$out" 2>"$err"
	rc=$?
	told "$program" "$name_of"
}
exec="src/cli/railgauge exec --"
step="SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=0"
by "$rank=0" "$name" rg_bw pt2pt/rg_bw
by "$rank=0" "$name" mpi_plain $exec tests/cli/mpi_plain
by "$step" 'srun without --mpi (SLURM_STEP_NUM_TASKS=2)' rg_bw pt2pt/rg_bw
by "$step" 'srun without --mpi (SLURM_STEP_NUM_TASKS=2)' mpi_plain $exec tests/cli/mpi_plain

if command -v $other >/dev/null && $other --version 2>&1 | grep -qi "$mark"; then
	for command in pt2pt/rg_bw "$exec tests/cli/mpi_plain"; do
		[ "$RG_MPI_FLAVOR" = openmpi ] && options=-n || options="--oversubscribe -np"
		# shellcheck disable=SC2086 # words are meant
		in_turn timeout 60 $other $options 2 $command >"$out" 2>"$err"
		rc=$?
		told "${command##*/}" "$name"
	done
else
	echo "no $other here: not asked"
fi

# One rank is what was asked for.
for variables in "$step SLURM_STEP_NUM_TASKS=1" "SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_JOB_ID=7" "HOME=$HOME"; do
	case $RG_MPI_FLAVOR:$variables in openmpi:*STEP*) continue ;; esac # which Open MPI itself refuses
	# shellcheck disable=SC2086 # words are meant
	timeout 60 env $variables $exec tests/cli/mpi_plain >"$out" 2>"$err"
	rc=$?
	expect "$variables: a job of one rank" eval '[ $rc -eq 0 ] && grep -q "^layer: yes" "$out"'
done
launch 1 $exec tests/cli/mpi_plain
expect "a job of one rank" eval '[ $rc -eq 0 ] && grep -q "^layer: yes" "$out"'
finish
