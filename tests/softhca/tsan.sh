#!/bin/sh
# make check-threads: libsofthca and the tests in which several threads, or
# processes that die, use it, built with a thread sanitizer in tsan/.
. "$srcdir/tests/tsan-lib.sh"
build tests/softhca/threads tests/softhca/kill tests/softhca/served tests/conformance/conformance \
	tests/softhca/members
SOFTHCA_EXPOSE=1
SOFTHCA_FABRIC=tsan.$$
export SOFTHCA_EXPOSE SOFTHCA_FABRIC

# share N: of the conformance list; all with RG_LONG.
share() {
	[ -n "${RG_LONG-}" ] || echo "--share $1 --seed ${RG_SEED:-1}"
}

for spec in ideal rate=1GB/s,latency=5us; do
	check tests/softhca/threads 5000 $spec
	SOFTHCA_SPEC=$spec
	export SOFTHCA_SPEC
	# shellcheck disable=SC2046 # words are meant, here and below
	check tests/conformance/conformance --except longest $(share 2)	# 2 GiB in one message
done
unset SOFTHCA_SPEC
# Two members in one process: each structure that processes share (src/softhca/ORDER.md).  In memory
# that both map, where the sanitizer sees the messages, too: half a minute.
check tests/softhca/members --arena --except longest
if [ -n "${RG_LONG-}" ]; then
	check tests/softhca/members --except longest
	SOFTHCA_COPY=bounce check tests/softhca/members --except longest
	SOFTHCA_SPEC=rate=1GB/s,latency=5us check tests/softhca/members --except longest
fi
SOFTHCA_REMAP=never SOFTHCA_COPY=bounce check tests/softhca/threads 3000
SOFTHCA_LINK=tcp check tests/softhca/threads 5000 net=lo
check tests/softhca/served
# What peers write and read there is ordered by messages, which pass through other processes.  Of old
# writes no stack is left: `check` is the list's reading.
cat >suppressions <<END
race:^land_in_place$
race:^check$
race:^hca_remote_atomic$
END
(
	TSAN_OPTIONS=$TSAN_OPTIONS:history_size=7:suppressions=$PWD/suppressions
	# shellcheck disable=SC2046
	SOFTHCA_LINK=tcp SOFTHCA_SPEC=net=lo check tests/conformance/conformance --except longest $(share 6)
	exit $failed
) || failed=1
for mode in mapped copied bounced; do
	check tests/softhca/kill 5 1 $mode
done
exit $failed
