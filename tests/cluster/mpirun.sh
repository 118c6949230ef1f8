#!/bin/sh
# mpirun.sh - mpirun inside the virtual cluster, as tests/run-lib.sh calls it: that of users
# with nodes of their own.  VC_MPIRUN is the real one.
. "$srcdir/tests/cluster/env.sh"
exec sh "$srcdir/tests/hw/mpirun.sh" "$@"
