#!/bin/sh
# jobs.sh - on node 0 of a virtual cluster: one job after the other, each between two
# lines that run.sh looks for.
#
#	jobs.sh SECONDS JOB...
limit=$1
shift
nodes=$(seq 0 $((VC_NODES - 1)))
. "$srcdir/tests/cluster/env.sh"

# Print the outputs of a failed job.
look() {
	for node in $nodes; do
		echo "-- node$node: memory, processes, the kernel's last words"
		timeout 30 ssh "node$node" "free -m | sed -n 2p; ps -eo pid,stat,args | grep -v ' \\[' |
			tail -n 20; dmesg | grep -v 'speed is unknown' | tail -n 40"
	done
}

# Jobs of check-hw start as their user starts them; jobs of another build start in it.
job() {
	case $1 in
	tests/hw/*) ;;
	*/tests/hw/*)
		RG_MPI_FLAVOR=mpich VC_MPIRUN=$VC_MPICH_MPIRUN
		export RG_MPI_FLAVOR VC_MPIRUN
		[ -n "${RG_LONG-}" ] || export RG_HW_FEW=1
		. "$srcdir/tests/cluster/env.sh"
		cd "${1%/tests/hw/*}" || exit 99
		;;
	esac
	case $1 in
	*tests/hw/*) RG_HW_FOUND=1 RG_HW_VERBOSE=1 HW_ONLY=${1##*/} exec timeout -k 10 "$limit" sh "$srcdir/tests/hw/run.sh" ;;
	*) exec timeout -k 10 "$limit" sh "$srcdir/$1.sh" ;;
	esac
}

# ended JOB CODE BEGAN
ended() {
	rc=$2
	# Here there are ports: nothing found is no reason to skip.
	case $rc:$1 in 77:*tests/hw/*) rc=1 ;; esac
	[ "$rc" -ne 124 ] || echo "$1: no end within $limit s"
	[ "$rc" -eq 0 ] || [ "$rc" -eq 77 ] || look
	echo "== end $1 $rc $(($(date +%s) - $3)) s"
}

# A long job of one node goes to node 1, while node 0 is busy.
aside=
begin_aside() {
	aside=$1 aside_began=$(date +%s)
	ssh node1 "cd '$PWD' && srcdir='$srcdir' RG_SEED='${RG_SEED-}' RG_LONG='${RG_LONG-}' exec timeout -k 10 $limit sh '$srcdir/$1.sh'" \
		>/tmp/aside 2>&1 </dev/null &
	aside_pid=$!
}
end_aside() {
	[ -n "$aside" ] || return
	echo "== begin $aside"
	wait $aside_pid
	code=$?
	cat /tmp/aside
	ended "$aside" $code "$aside_began"
	aside=
}

# The first job of each build looks for devices; later ones use its result.
for job do
	case $job in *tests/hw/*) rm -f "${job%/*}/found" ;; esac
done
for job do
	case $job in
	*/yama)
		begin_aside "$job"
		continue
		;;
	*/conformance | */pyverbs | */beside | */topo | */loopback) ;;
	*) end_aside ;;
	esac
	echo "== begin $job"
	began=$(date +%s)
	(job "$job") </dev/null
	ended "$job" $? "$began"
done
end_aside
