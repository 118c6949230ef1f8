#!/bin/sh
# run.sh - `make check-hw`: what tests/cluster does with Soft-RoCE, over real adapters.
#
#	HOSTS=node1,node2	two nodes or more; or inside a Slurm allocation
#	RG_HW_MPIRUN_ARGS	more arguments for the launcher (configure's, or RG_HW_MPIRUN)
#	RG_HW_SOFTWARE=1	the kernel's Soft-RoCE and Soft-iWARP count as well
#	RG_HW_PORTS="a:1 b:1"	for the conformance list, of the first node; all that are
#				found, of all nodes
#	RG_HW_SECONDS=N		limit of one launch
#	RG_HW_FOUND=1		what an earlier run found holds still
#	RG_LONG=1		more of them over RG_HW_SOFTWARE
#	RG_HW_FEW=1		of programs, memory and suites what depends on the MPI library
#	HW_ONLY=WORDS		only the jobs whose name contains one of the words
#
# The build directory must be seen by all nodes.  Results are tests/hw/JOB.trs and JOB.log; check-hw.tar.gz
# is all of them, with what each node tells of its adapters (about.sh): one file to send.
# Exit code 77, with the reason, where there is nothing to run on.
. "$srcdir/tests/results.sh"
here=tests/hw
mkdir -p $here
jobs=
for job in conformance loopback programs memory suites collectives bad-input; do
	jobs="$jobs $here/$job"
done
# shellcheck disable=SC2086 # words are meant
choose "${HW_ONLY-}" $jobs
rm -f check-hw.tar.gz $here/about-before $here/about-after
[ -n "${RG_HW_FOUND-}" ] || rm -f $here/found $here/found.err

# about WHEN: what each node tells of its adapters; this one alone, where no launcher starts programs on several.
about() {
	[ "$nodes" -ge 2 ] && sh "$MPIRUN" -np "$nodes" sh "$srcdir/tests/hw/about.sh" >$here/about-$1 2>&1 </dev/null ||
		sh "$srcdir/tests/hw/about.sh" >>$here/about-$1 2>&1 </dev/null
}

# One file to send, of what is there.
archive() {
	# shellcheck disable=SC2046 # words are meant
	tar -czf check-hw.tar.gz $(ls config.log build-info.h $here/found $here/found.err $here/about-before $here/about-after \
		$(for job in $chosen; do echo "$job.log" "$job.trs"; done) 2>/dev/null) &&
		echo "All of it, to send: $PWD/check-hw.tar.gz"
}

# Who finds no adapter has the most to ask.
absent() {
	echo "check-hw: skipped: $*"
	for job in $chosen; do
		echo "skipped: $*" >"$job.log"
		result "$job" 77
	done
	about before
	archive
	exit 77
}

RG_HW_MPIRUN=${RG_HW_MPIRUN:-$MPIRUN}
MPIRUN=$srcdir/tests/hw/mpirun.sh
export RG_HW_MPIRUN MPIRUN
nodes=$(echo "${HOSTS-}" | tr , '\n' | grep -c .)
[ "$nodes" -gt 0 ] || nodes=${SLURM_JOB_NUM_NODES:-${SLURM_NNODES:-0}}
[ "$nodes" -ge 2 ] || absent "two nodes are wanted: HOSTS=node1,node2, or a Slurm allocation"

# ---- What is there
[ -n "${RG_HW_FOUND-}" ] && [ -s $here/found ] ||
	sh "$MPIRUN" -np "$nodes" sh "$srcdir/tests/hw/found.sh" "${RG_HW_SOFTWARE-}" \
	>$here/found 2>$here/found.err </dev/null ||
	{
		cat $here/found.err
		absent "$RG_HW_MPIRUN does not start programs on $nodes nodes"
	}
grep -v '^found ' $here/found
with=$(sed -n 's/^found \([^ ]*\) .*/\1/p' $here/found | sort -u | wc -l)
[ "$with" -eq "$nodes" ] ||
	absent "$with of $nodes nodes have an ACTIVE port of a real adapter${RG_HW_SOFTWARE:+ or of Soft-RoCE}"
echo "Runs over: $(sed -n 's/^found //p' $here/found | sort | paste -sd , - | sed 's/,/, /g')"
[ "${RG_HW_SOFTWARE-}" != 1 ] ||
	echo "RG_HW_SOFTWARE: the kernel's software devices are accepted; that is no run on hardware."

about before
for job in $chosen; do
	began=$(date +%s)
	sh "$srcdir/$job.sh" >"$job.log" 2>&1 </dev/null
	result "$job" $? "$(($(date +%s) - began)) s"
	[ -z "${RG_HW_VERBOSE-}" ] || cat "$job.log"
done
# With the counters of all ports, before and after.
about after
archive
exit $failed
