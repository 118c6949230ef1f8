#!/bin/sh
# run.sh - `make check-cluster`: each job boots two nodes of its own.
#	CLUSTER_ONLY=WORD	only the jobs whose name contains WORD
#
# Results are automake's: tests/cluster/JOB.trs and .log in the build directory.
mkdir -p tests/cluster
failed=0
for job in programs suites; do
	case $job in
	*"${CLUSTER_ONLY-}"*) ;;
	*) continue ;;
	esac
	log=tests/cluster/$job.log
	"$srcdir/tests/cluster/vcluster" --timeout 500 -- env VC_MPIRUN="$MPIRUN" \
		MPIRUN="$srcdir/tests/cluster/mpirun.sh" RG_MPI_FLAVOR="$RG_MPI_FLAVOR" \
		RG_SANITIZE="$RG_SANITIZE" srcdir="$srcdir" sh "$srcdir/tests/cluster/$job.sh" \
		>"$log" 2>&1
	case $? in
	0) result=PASS ;;
	77) result=SKIP ;;
	*) result=FAIL failed=1 ;;
	esac
	echo "$result: tests/cluster/$job"
	[ $result = PASS ] || cat "$log"
	printf ':test-result: %s\n:global-test-result: %s\n:recheck: no\n' $result $result \
		>"tests/cluster/$job.trs"
done
exit $failed
