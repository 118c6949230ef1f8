#!/bin/sh
# cluster.sh - `make bench-cluster`: measures/rails.sh in one boot of a virtual cluster of two
# nodes with two Soft-RoCE devices each.  RAILS_... of rails.sh; RG_MPICH_BUILD: a build
# directory with MPICH.  Run it on an idle machine.
cores=$(nproc)
echo "Railgauge measures, rails: $(date -u +%Y-%m-%dT%H:%MZ), $cores CPUs," \
	"load $(cut -d' ' -f1 /proc/loadavg), $RG_MPI_FLAVOR; emulated machines"
set --
for name in RAILS_REPEAT RAILS_MBIT RAILS_ONLY RAILS_PROGRAMS RAILS_SECONDS RG_MPICH_BUILD \
	RG_BEFORE_BUILD; do
	eval "value=\${$name-}"
	[ -z "$value" ] || set -- "$@" "$name=$value"
done
exec "$srcdir/tests/cluster/vcluster" --nodes 2 --timeout "${RAILS_TIMEOUT:-10800}" -- \
	env VC_MPIRUN="$MPIRUN" VC_MPICH_MPIRUN="$(command -v mpirun.mpich || echo mpirun)" \
	MPIRUN="$srcdir/tests/hw/mpirun.sh" RG_MPI_FLAVOR="$RG_MPI_FLAVOR" RG_SANITIZE=no \
	srcdir="$srcdir" "$@" sh "$srcdir/measures/rails.sh"
