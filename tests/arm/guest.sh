#!/bin/sh
# guest.sh - on an arm64 machine: tests of a build that cross.sh made.
#
#	guest.sh BUILD TEST...	TEST: as `make check TESTS=` takes it; conformance: one case of four of the
#				list; each:PATTERN: the programs that match, validated; all: each test
cd "$1" || exit 99
shift
# This machine's own compilers and launchers, in the places of those that made the build.
# Not links: MPICH's launcher looks for the rest of itself beside its name.
for file in bin/*; do
	printf '#!/bin/sh\nexec "/usr/bin/%s" "$@"\n' "${file##*/}" >"$file"
done
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# Emulated: ten to twenty times as slow.
export RG_TEST_LIMIT="${RG_TEST_LIMIT:-14400}" RG_REFUSAL_LIMIT=900
[ -e /dev/fd ] || ln -s /proc/self/fd /dev/fd		# as udev does
echo "== $(uname -srm), pages of $(getconf PAGESIZE) bytes"
set -f
failed=0 tests= programs=
for test do
	case $test in
	conformance)
		SOFTHCA_EXPOSE=1 SOFTHCA_FABRIC=arm tests/conformance/conformance --except longest \
			--share 4 --seed "${RG_SEED:-1}" >/tmp/list 2>&1 ||
			failed=1
		grep -v '^ok' /tmp/list
		;;
	each:*) programs=${test#each:} ;;
	*) tests="$tests $test" ;;
	esac
done
# Objects depend on headers of the cross compiler, which are not here: make would compile everything.
find . -name '*.Po' -o -name '*.Plo' | while read -r file; do : >"$file"; done
# There is no git to ask for the commit: with another build-info.h make would link all programs.
echo 'cat build-info.h' >"$srcdir/src/report/build-info.sh"
# All in one call: make alone takes a quarter of a minute here, and finds nothing to build.  A pattern is not for
# all, as units have cases of their own.  Results are told as they come, a failure with the test's log, so that an
# end at the machine's limit shows what ran until then.
check() {
	make -k -j3 "$@" check-TESTS 2>&1 | tee /tmp/out | while read -r result test rest; do
		case $result in
		PASS: | SKIP:) echo "$result $test, $(sed -n 's/^seconds: \(.*\)/\1 s/p' "$test.log" | tail -n 1)" ;;
		FAIL: | ERROR:) echo "$result $test" && cat "$test.log" ;;
		esac
	done
	grep -q '^# TOTAL' /tmp/out && ! grep -q '^\(FAIL\|ERROR\):' /tmp/out && return
	failed=1
	tail -n 20 /tmp/out
}
[ -z "$programs" ] || RG_CASE=$programs check TESTS=tests/bench/each.sh
case $tests in
'') ;;
' all') check ;;
*) check TESTS="${tests# }" ;;
esac
exit $failed
