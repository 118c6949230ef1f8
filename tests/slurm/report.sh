#!/bin/sh
# report.sh - from sbatch to report, on two nodes over two rails: a script of railgauge sbatch, with the
# launcher of each MPI library, is submitted, and its campaign ends; its records can be read; an array.
. "$srcdir/tests/run-lib.sh"
. "$srcdir/tests/slurm/cluster.sh"
cluster

# measured DIR: a campaign of 2 launches of each of 3 programs, whose records report can read
measured() {
	cp "$jobs/$1/summary.txt" "$out" 2>/dev/null
	expect "$1: 6 launches" [ "$(launches "$1")" -eq 6 ]
	for program in rg_latency rg_bw rg_alltoall; do
		src/cli/railgauge report "$jobs/$1/records/$program".*.jsonl >"$out" 2>"$err"
		expect "$1: the report of $program" eval \
			'grep -q "2 ranks on 2 hosts" "$out" && grep -q "over TCP" "$out" && grep -q "^262144 \|^256K " "$out"'
	done
}

# campaign BUILD NAME LAUNCHER ARG...: from sbatch to report
campaign() {
	build=$1 name=$2
	campaign_script $name.sh --out $name --launches 2 --run "$quick" --launcher "$3"
	submit -o $name.out $name.sh
	comes_to "$name: the job ends" is_state $job COMPLETED FAILED CANCELLED TIMEOUT NODE_FAIL
	cp "$jobs/$name.out" "$out" 2>/dev/null
	expect "$name: its end" is_state $job COMPLETED
	measured $name
}
campaign "$PWD" one mpirun
if [ "$RG_MPI_FLAVOR" = openmpi ]; then
	if [ -n "${RG_MPICH_BUILD-}" ]; then
		campaign "$RG_MPICH_BUILD" mpich mpirun
	else
		echo "no RG_MPICH_BUILD: MPICH's mpirun is not asked"
	fi
fi

build=$PWD
campaign_script array.sh --out array --launches 1 --run "$quick" --repeats 2 --launcher mpirun
submit -o array.out array.sh
comes_to "the array ends" is_state $job COMPLETED FAILED CANCELLED
expect "its end" is_state $job COMPLETED
expect "each task has a campaign of its own" [ "$(launches array/1):$(launches array/2)" = 3:3 ]
for host in 0 1; do
	expect "nothing is left on host $host" [ -z "$(left_on $host)" ]
done
finish
