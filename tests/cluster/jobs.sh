#!/bin/sh
# jobs.sh - on node 0 of a virtual cluster: one job after the other, each between two
# lines that run.sh looks for.
#
#	jobs.sh SECONDS JOB...
limit=$1
shift
nodes=$(seq 0 $((VC_NODES - 1)))
. "$srcdir/tests/cluster/env.sh"

# What a job that failed leaves to look at.
look() {
	for node in $nodes; do
		echo "-- node$node: memory, processes, the kernel's last words"
		timeout 30 ssh "node$node" "free -m | sed -n 2p; ps -eo pid,stat,args | grep -v ' \\[' |
			tail -n 20; dmesg | grep -v 'speed is unknown' | tail -n 40"
	done
}

# Those of check-hw as their user starts them.
job() {
	case $1 in
	tests/hw/*) RG_HW_VERBOSE=1 HW_ONLY=${1##*/} exec timeout -k 10 "$limit" sh "$srcdir/tests/hw/run.sh" ;;
	*) exec timeout -k 10 "$limit" sh "$srcdir/$1.sh" ;;
	esac
}

for job do
	echo "== begin $job"
	began=$(date +%s)
	(job "$job") </dev/null
	rc=$?
	# Here there are ports: nothing found is no reason to skip.
	case $rc:$job in 77:tests/hw/*) rc=1 ;; esac
	[ $rc -ne 124 ] || echo "$job: no end within $limit s"
	[ $rc -eq 0 ] || [ $rc -eq 77 ] || look
	echo "== end $job $rc $(($(date +%s) - began)) s"
done
