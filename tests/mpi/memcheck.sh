#!/bin/sh
# memcheck.sh - under valgrind, programs over rails have no errors but those that they have natively.
. "$srcdir/tests/run-lib.sh"
command -v valgrind >/dev/null || { echo "skipped: no valgrind"; exit 77; }
grep -q '^#define HAVE_VALGRIND_MEMCHECK_H' config.h || { echo "skipped: built without valgrind's headers"; exit 77; }
[ "$RG_SANITIZE" = no ] || { echo "skipped: sanitizers and valgrind exclude each other"; exit 77; }
over="src/cli/railgauge exec --over stripe --soft ports=2 --"

# errors FILE...: each kind of error with the functions that it was found in, the innermost first.
errors() {
	sed 's/^==[0-9]*== \{0,1\}//' "$@" | awk '
		/^   (at|by) / {
			if ($1 == "at") { functions = ""; depth = 0 }
			if (depth++ < 3) functions = functions " < " $3
			if ($1 == "at") kind = before
			next
		}
		{ if (depth && kind !~ /^ /) print kind functions; depth = 0; before = $0 }' | sort -u
}

# judged OPTION PROGRAM ARG...: under valgrind with that option.
judged() {
	option=$1
	shift
	rm -f "$work"/*.memcheck
	launch 2 $over valgrind $option --log-file="$work/%p.memcheck" "$@"
	expect "$2: ends well" [ "$rc" -eq 0 ]
	expect "$2: two ranks under valgrind" \
		[ "$(cat "$work"/*.memcheck | grep -c 'ERROR SUMMARY: [0-9]')" -eq 2 ]
	# Debian 12's Open MPI has one in its launcher's library in each process.
	errors "$work"/*.memcheck | grep -v '< pmix_' >"$work/over"
	: >"$work/natively"
	if [ -s "$work/over" ]; then
		rm -f "$work"/*.memcheck
		launch 2 valgrind $option --log-file="$work/%p.memcheck" "$@"
		errors "$work"/*.memcheck >"$work/natively"
	fi
	comm -13 "$work/natively" "$work/over" >"$err"
	expect "$2: no error that it does not have natively" [ ! -s "$err" ]
}

judged --track-origins=no tests/mpi/assumptions finalize "persistent requests are started and freed"
[ -z "$(long all)" ] || {
	judged --track-origins=no tests/mpi/assumptions finalize
	judged --track-origins=yes tests/cli/mpi_plain
}
expect "nothing of ours in /dev/shm" shm_is_clean
finish
