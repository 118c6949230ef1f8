#!/bin/sh
# mpirun.sh - the launcher of tests/hw/mpirun.sh where hosts are UTS namespaces and the software HCA is
# the adapter: ranks in blocks, RANKS of them on each host as --host or -ppn says.
#
#	ADAPTERS_PLACE, ADAPTERS_SPEC	as.sh's directory and spec
#	ADAPTERS_MPIRUN			the launcher itself
#	ADAPTERS_JOB			the script by which names of fabrics are known (adapters.sh)
while [ $# -gt 0 ]; do
	case $1 in
	-np | -n) count=$2 && shift 2 ;;
	--host) each=${2##*:} && shift 2 ;;
	-ppn) each=$2 && shift 2 ;;
	-hosts | --map-by | -x) shift 2 ;;
	*) break ;;
	esac
done
RANKS_PER_HOST=${each:-1} SOFTHCA_FABRIC=adapters.$ADAPTERS_JOB.$$
export RANKS_PER_HOST SOFTHCA_FABRIC
# shellcheck disable=SC2086 # words are meant
exec $ADAPTERS_MPIRUN "$count" sh "$srcdir/tests/adapters/as.sh" "$ADAPTERS_PLACE" "$ADAPTERS_SPEC" "$@"
