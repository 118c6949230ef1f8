#!/bin/sh
# run.sh - `make check-cluster`: jobs in virtual nodes with two Soft-RoCE devices each.
#	CLUSTER_ONLY=WORDS	only the jobs whose name contains one of the words
#
# One boot of two nodes carries all jobs but one, which has four nodes to itself.  Those of
# tests/hw are what `make check-hw` runs, by its own script.
. "$srcdir/tests/results.sh"
here=tests/cluster all=$here/all.log
mkdir -p $here tests/hw
jobs=
for job in cluster/yama hw/conformance cluster/pyverbs cluster/beside cluster/topo \
	hw/loopback hw/programs hw/memory cluster/shaped hw/suites hw/collectives \
	hw/bad-input cluster/down cluster/four; do
	jobs="$jobs tests/$job"
done
# shellcheck disable=SC2086 # words are meant
choose "${CLUSTER_ONLY-}" $jobs

# boot NODES JOB...: their results; in $left those that the machines ended before
boot() {
	nodes=$1 left=
	shift
	"$srcdir/tests/cluster/vcluster" --nodes "$nodes" --timeout 2100 --append hugepages=8 -- \
		env VC_MPIRUN="$MPIRUN" MPIRUN="$srcdir/tests/cluster/mpirun.sh" \
		RG_MPI_FLAVOR="$RG_MPI_FLAVOR" RG_SANITIZE="$RG_SANITIZE" srcdir="$srcdir" \
		sh "$srcdir/tests/cluster/jobs.sh" 600 "$@" >$all 2>&1
	rc=$?
	for job do
		code=$(sed -n "s,^== end $job \([0-9]*\) .*,\1,p" $all)
		sed -n "\\,^== begin $job\$,,\\,^== end $job ,p" $all >"$job.log"
		if [ -n "$code" ]; then
			result "$job" "$code" "$(sed -n "s,^== end $job [0-9]* ,,p" $all)"
		elif [ $rc -eq 77 ]; then
			cp $all "$job.log"
			result "$job" 77
		elif [ -s "$job.log" ]; then
			tail -n 60 $all >>"$job.log"
			result "$job" $rc "the machines ended in it"
		else
			left="$left${left:+ }$job"
		fi
	done
}

# carry NODES JOB...: another boot goes on behind the job that the machines ended in
carry() {
	left=
	boot "$@"
	while [ -n "$left" ]; do
		before=$left
		# shellcheck disable=SC2086 # words are meant
		boot "$1" $left
		[ "$left" = "$before" ] || continue
		# None was begun, twice.
		for job in $left; do
			cp $all "$job.log"
			result "$job" 1 "not begun"
		done
		break
	done
}

two= four=
for job in $chosen; do
	case $job in
	*/four) four=$job ;;
	*) two="$two $job" ;;
	esac
done
# shellcheck disable=SC2086 # words are meant
[ -z "$two" ] || carry 2 $two
[ -z "$four" ] || carry 4 "$four"
exit $failed
