#!/bin/sh
# guest.sh - on an arm64 machine: tests of a build that cross.sh made.
#
#	guest.sh BUILD TEST...	TEST: as `make check TESTS=` takes it; conformance: the list; all: each test
cd "$1" || exit 99
shift
# This machine's own compilers and launchers, in the places of those that made the build.
for file in bin/*; do
	ln -sf "/usr/bin/${file##*/}" "$file"
done
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
echo "== $(uname -srm), pages of $(getconf PAGESIZE) bytes"
failed=0 tests=
for test do
	case $test in
	conformance)
		SOFTHCA_EXPOSE=1 SOFTHCA_FABRIC=arm tests/conformance/conformance --except longest >/tmp/list 2>&1 ||
			failed=1
		grep -v '^ok' /tmp/list
		;;
	*) tests="$tests $test" ;;
	esac
done
# All in one call: make alone takes a quarter of a minute here.  It finds nothing to build.
case $tests in
'') ;;
' all') make -k check-TESTS || failed=1 ;;
*) make -s check-TESTS TESTS="${tests# }" || failed=1 ;;
esac >/tmp/out 2>&1
grep '^\(PASS\|FAIL\|SKIP\|ERROR\):' /tmp/out
[ $failed -eq 0 ] || tail -n 300 test-suite.log /tmp/out
exit $failed
