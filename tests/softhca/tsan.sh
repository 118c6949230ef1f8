#!/bin/sh
# make check-threads: libsofthca and the tests in which several threads, or
# processes that die, use it, built with a thread sanitizer in tsan/.
set -u
top=$(cd "$srcdir" && pwd)
programs="tests/softhca/threads tests/softhca/kill tests/conformance/conformance"
mkdir -p tsan && cd tsan || exit 1
if [ ! -f Makefile ]; then
	# As in bootstrap: faster in dash; built once.
	[ -n "${CONFIG_SHELL-}" ] || [ ! -x /bin/dash ] || export CONFIG_SHELL=/bin/dash
	${CONFIG_SHELL-} "$top/configure" --enable-sanitize=thread --disable-dependency-tracking \
		CFLAGS='-g1 -O1 -Wno-tsan' >configure.out 2>&1 ||
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
	timeout 900 "$@" >check.out 2>&1 && { tail -n 2 check.out; return; }
	cat check.out
	echo "FAIL: $*"
	failed=1
}

for spec in ideal rate=1GB/s,latency=5us; do
	check tests/softhca/threads 5000 $spec
	SOFTHCA_SPEC=$spec
	export SOFTHCA_SPEC
	check tests/conformance/conformance --except longest	# 2 GiB in one message
done
unset SOFTHCA_SPEC
SOFTHCA_REMAP=never SOFTHCA_COPY=bounce check tests/softhca/threads 3000
for mode in mapped copied bounced; do
	check tests/softhca/kill 5 1 $mode
done
exit $failed
