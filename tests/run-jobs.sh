#!/bin/sh
# run-jobs.sh - scripts too long for `make check`, each a job with its result.
#
#	run-jobs.sh WORDS JOB...	JOB as in tests/softhca/matrix; WORDS select (results.sh)
. "$srcdir/tests/results.sh"
words=$1
shift
choose "$words" "$@"
for job in $chosen; do
	mkdir -p "${job%/*}"
	began=$(date +%s)
	sh "$srcdir/$job.sh" >"$job.log" 2>&1
	result "$job" $? "$(($(date +%s) - began)) s"
done
exit $failed
