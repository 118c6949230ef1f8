#!/bin/sh
# run.sh - `make check-cluster`: jobs in virtual nodes with two Soft-RoCE devices each.
#	CLUSTER_ONLY=WORDS	only the jobs whose name contains one of the words
#	RG_MPICH_BUILD=DIR	a build with MPICH, whose jobs run as well: a part of what depends
#				on the MPI library, or with RG_LONG=1 the whole
#	CLUSTER_DRAWN=yes	about a third of the jobs, by RG_SEED: .ci/run
#
# One boot of two nodes carries all jobs but one, which has four nodes to itself.  `make
# check-hw` runs the jobs of tests/hw, by its own script.
. "$srcdir/tests/results.sh"
here=tests/cluster all=$here/all.log
# Jobs of another build start elsewhere.
srcdir=$(cd "$srcdir" && pwd) || exit 99
mkdir -p $here tests/hw
all_jobs="yama conformance pyverbs beside topo loopback programs memory shaped wan suites collectives bad-input
	down probe vlan wire four"
mpich_jobs="programs memory suites"
# Of all, a third by RG_SEED, each as long as the others: what a change of verbs breaks first is in all.
turn=$((${RG_SEED:-1} / 3 % 9)) drawn=${CLUSTER_DRAWN-}
[ -z "${RG_LONG-}${CLUSTER_ONLY-}" ] || drawn=
case $drawn:$((turn % 3)) in
yes:0) all_jobs="yama conformance topo wire probe" ;;
yes:1) all_jobs="conformance pyverbs beside loopback programs shaped wan down vlan" mpich_jobs= ;;
yes:2) all_jobs="conformance memory suites bad-input collectives four" mpich_jobs= ;;
esac
[ "$drawn" != yes ] || mpich_jobs=$(echo $mpich_jobs | cut -d' ' -f$((turn / 3 + 1)))
# The module that it needs is built once, of a large source.
case "${RG_LONG-} ${CLUSTER_ONLY-} " in
1* | *" iwarp "*) all_jobs=$(echo "$all_jobs" | sed 's/ four/ iwarp four/') ;;
esac
jobs=
for job in $all_jobs; do
	for place in cluster hw; do
		[ ! -e "$srcdir/tests/$place/$job.sh" ] || jobs="$jobs tests/$place/$job"
	done
done
[ -z "${RG_MPICH_BUILD-}" ] || for job in $mpich_jobs; do
	mkdir -p "$RG_MPICH_BUILD/tests/hw"
	jobs="$jobs $RG_MPICH_BUILD/tests/hw/$job"
done
# shellcheck disable=SC2086 # words are meant
choose "${CLUSTER_ONLY-}" $jobs

# boot NODES JOB...: their results
boot() {
	nodes=$1
	shift
	"$srcdir/tests/cluster/vcluster" --nodes "$nodes" --timeout 2100 --append hugepages=8 -- \
		env VC_MPIRUN="$MPIRUN" MPIRUN="$srcdir/tests/cluster/mpirun.sh" \
		VC_MPICH_MPIRUN="$(command -v mpirun.mpich || echo mpirun)" VC_SIW="${siw-}" RG_LONG="${RG_LONG-}" RG_SEED="${RG_SEED-}" \
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
			cp $all "$job.log"
			result "$job" 1 "not begun"
		fi
	done
}

siw=
case " $chosen " in
*/iwarp\ *)
	siw=${VCLUSTER_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/railgauge}/siw
	sh "$srcdir/tests/cluster/siw.sh" "$siw"
	;;
esac
two= four=
for job in $chosen; do
	case $job in
	*/four) four=$job ;;
	*) two="$two $job" ;;
	esac
done
# shellcheck disable=SC2086 # words are meant
[ -z "$two" ] || boot 2 $two
[ -z "$four" ] || boot 4 "$four"
exit $failed
