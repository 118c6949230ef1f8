#!/bin/sh
# make check-threads: libsofthca and the tests in which several threads, or
# processes that die, use it, built with a thread sanitizer in tsan/.
set -u
top=$(cd "$srcdir" && pwd)
programs="tests/softhca/threads tests/softhca/kill tests/conformance/conformance"
mkdir -p tsan && cd tsan || exit 1
if [ ! -f Makefile ]; then
	"$top/configure" --enable-sanitize=thread CFLAGS='-g -O1 -Wno-tsan' >configure.out 2>&1 ||
		{ tail -n 20 configure.out; exit 1; }
fi
make -j"$(nproc)" $programs >make.out 2>&1 || { tail -n 20 make.out; exit 1; }
TSAN_OPTIONS=ignore_noninstrumented_modules=1:exitcode=66
SOFTHCA_EXPOSE=1
SOFTHCA_FABRIC=tsan.$$
export TSAN_OPTIONS SOFTHCA_EXPOSE SOFTHCA_FABRIC
failed=0

check() {
	echo "== $*"
	timeout 300 "$@" >check.out 2>&1 && { tail -n 2 check.out; return; }
	cat check.out
	echo "FAIL: $*"
	failed=1
}

# The list, for races; a case that was merely too slow (so built) has another try.
check_list() {
	echo "== conformance, spec $SOFTHCA_SPEC"
	timeout 300 tests/conformance/conformance >list.out 2>&1 && { tail -n 1 list.out; return; }
	if grep -q ThreadSanitizer list.out || ! grep -q '^FAIL ' list.out; then
		cat list.out
		echo "FAIL: conformance"
		failed=1
		return
	fi
	for name in $(sed -n 's/^FAIL //p' list.out); do
		check tests/conformance/conformance --only "$name"
	done
}

for spec in ideal rate=1GB/s,latency=5us; do
	check tests/softhca/threads 5000 $spec
	SOFTHCA_SPEC=$spec
	export SOFTHCA_SPEC
	check_list
done
unset SOFTHCA_SPEC
SOFTHCA_REMAP=never SOFTHCA_COPY=bounce check tests/softhca/threads 3000
for mode in mapped copied bounced; do
	check tests/softhca/kill 5 1 $mode
done
exit $failed
