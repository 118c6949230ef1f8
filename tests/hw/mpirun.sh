#!/bin/sh
# mpirun.sh - mpirun over nodes, as tests/run-lib.sh calls it: ranks in blocks.
#
#	RG_HW_MPIRUN		the launcher; configure's MPIRUN
#	RG_HW_MPIRUN_ARGS	more arguments for it
#	HOSTS			node1,node2; else the nodes of the Slurm allocation
#
# RAILGAUGE_ and SUITE_ variables reach all ranks.  The build directory must be the same everywhere.
[ "$1" != --oversubscribe ] || shift
count=$2
shift 2
if [ -n "${HOSTS-}" ]; then
	nodes=$(echo "$HOSTS" | tr , '\n' | grep -c .)
else
	nodes=${SLURM_JOB_NUM_NODES:-${SLURM_NNODES:-1}}
fi
each=$(((count + nodes - 1) / nodes))
hosts=$(echo "${HOSTS-}" | tr , '\n' | head -n $(((count + each - 1) / each)) | paste -sd , -)
case $RG_MPI_FLAVOR in
openmpi)
	set -- -np "$count" $RG_HW_MPIRUN_ARGS \
		$(env | sed -n 's/^\(\(RAILGAUGE\|SUITE\)_[A-Z_]*\)=.*/-x \1/p') "$@"
	if [ -n "$hosts" ]; then
		set -- --host "$(echo "$hosts" | sed "s/\([^,][^,]*\)/\1:$each/g")" --map-by slot "$@"
	else
		set -- --map-by "ppr:$each:node" "$@"
	fi
	;;
*)
	set -- -n "$count" -ppn "$each" $RG_HW_MPIRUN_ARGS "$@"
	[ -z "$hosts" ] || set -- -hosts "$hosts" "$@"
	;;
esac
# shellcheck disable=SC2086 # words are meant
exec $RG_HW_MPIRUN "$@"
