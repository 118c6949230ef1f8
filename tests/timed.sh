#!/bin/sh
# timed.sh PROGRAM ARG... - how `make check` starts each test: its log ends with the seconds
# that it took, which .ci/run reads.
#
#	RG_TEST_LIMIT=S		a test that has not ended after S seconds (900) hangs: the log shows its
#				processes, they are killed, and the test fails
limit=${RG_TEST_LIMIT:-900}
# Processes of the test that are left: pid, state, the kernel's function it sleeps in, command.
left() {
	for at in $(grep -lsxz "RG_TEST=$$" /proc/[0-9]*/environ); do
		at=${at%/environ}
		echo "left: ${at#/proc/} $(sed -n 's/^State:\s*//p' "$at/status" 2>&1)" \
			"$(cat "$at/wchan" 2>&1) $(tr '\0' ' ' <"$at/cmdline")"
		kill -KILL "${at#/proc/}"
	done
}
began=$(date +%s)
# In the foreground: an interrupt from the terminal reaches the test.
timeout --foreground -k 10 "$limit" env RG_TEST=$$ "$@"
rc=$?
took=$(($(date +%s) - began))
if [ "$took" -ge "$limit" ]; then
	echo "no end within $limit s: $*"
	left 2>/dev/null
	rc=1
fi
echo "seconds: $took"
exit $rc
