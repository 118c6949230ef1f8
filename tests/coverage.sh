#!/bin/sh
# coverage.sh - make coverage: lines and branches that the tests reach, by room, and the functions
# that no test enters.
#
#	COVERAGE_TESTS="tests/rail/test_policy ..."	these tests instead of make check
#
# A build of its own in coverage/; coverage/functions.txt has the functions, coverage/all.info the rest.
command -v lcov >/dev/null || { echo "not measured: no lcov (Debian: lcov)"; exit 77; }
srcdir=$(cd "$srcdir" && pwd) || exit 99
mkdir -p coverage && cd coverage || exit 99
[ -f Makefile ] || "$srcdir/configure" --with-mpi="$RG_MPI_FLAVOR" --disable-dependency-tracking \
	CFLAGS='-O0 -g --coverage -fprofile-update=atomic' >configure.out 2>&1 ||
	{ tail -n 5 configure.out; exit 1; }
make -s -j"$(nproc)" >make.out 2>&1 || { tail -n 20 make.out; exit 1; }
lcov -q -z -d . 2>/dev/null
# A test that fails has run its lines, too.
if [ -n "${COVERAGE_TESTS-}" ]; then
	make -s -j"$(nproc)" check TESTS="$COVERAGE_TESTS" >check.out 2>&1
else
	make -s -j"$(nproc)" check >check.out 2>&1
fi
grep -E '^# (PASS|FAIL|SKIP|ERROR):' check.out
lcov -q -c -d . -o every.info --rc lcov_branch_coverage=1 2>lcov.out &&
	lcov -q -e every.info "$srcdir/src/*" -o all.info --rc lcov_branch_coverage=1 2>>lcov.out ||
	{ tail -n 5 lcov.out; exit 1; }
awk -v src="$srcdir/src/" '
	/^SF:/ { file = substr($0, 4); sub(src, "src/", file); room = file; sub(/^src\//, "", room); sub(/\/.*/, "", room) }
	/^FN:/ { split(substr($0, 4), f, ","); line[file, f[2]] = f[1] }
	/^FNDA:/ {
		split(substr($0, 6), f, ",")
		if (!((file, f[2]) in seen)) { seen[file, f[2]] = 1; functions[room]++ }
		entered[file, f[2]] += f[1]
		name[file, f[2]] = room " " file " " f[2]
	}
	/^DA:/ { split(substr($0, 4), f, ","); lines[room]++; hit[room] += f[2] > 0 }
	/^BRDA:/ { split(substr($0, 6), f, ","); branches[room]++; taken[room] += f[4] > 0 }
	END {
		for (k in name)
			if (!entered[k]) {
				split(name[k], f, " ")
				missed[f[1]]++
				print f[2] ":" line[k] ": " f[3] >"functions.txt"
			}
		for (room in lines)
			printf "%-10s lines %5.1f %% of %6d   branches %5.1f %% of %6d   functions not entered %d of %d\n", \
				room, 100 * hit[room] / lines[room], lines[room], \
				branches[room] ? 100 * taken[room] / branches[room] : 0, branches[room], \
				missed[room], functions[room]
	}' all.info | sort
sort -o functions.txt functions.txt
echo "functions that no test enters: coverage/functions.txt ($(wc -l <functions.txt))"
