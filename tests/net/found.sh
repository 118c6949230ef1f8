#!/bin/sh
# found.sh - a job on hosts without RDMA takes by itself the interfaces over which all its hosts reach
# each other, and says what it leaves out.
. "$srcdir/tests/run-lib.sh"
. "$srcdir/tests/net/hosts.sh"
hosts 2 2
out=$work/out err=$work/err
launch 2 src/cli/railgauge exec --over stripe -- tests/net/hello
cat $out $err
finish
