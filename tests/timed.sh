#!/bin/sh
# timed.sh PROGRAM ARG... - how `make check` starts each test: its log ends with the seconds
# that it took, which .ci/run reads.
began=$(date +%s)
"$@"
rc=$?
echo "seconds: $(($(date +%s) - began))"
exit $rc
