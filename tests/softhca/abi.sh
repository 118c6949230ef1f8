#!/bin/sh
# libsofthca.so has what libibverbs has, under the same versions; nothing needs
# libibverbs; devices of the real library stay reachable.
set -u
library=.libs/libsofthca.so.0
[ -e $library ] || {
	echo "skipped: no shared library in this build"
	exit 77
}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failed=0

fail() {
	echo "FAIL: $*"
	failed=1
}

echo "== no dependency on libibverbs"
objdump -p $library | grep -q 'NEEDED.*ibverbs' && fail "needs libibverbs"
nm -D --undefined-only $library | grep ' ibv_' && fail "undefined ibv_*"
nm -D --defined-only $library | grep -v -e ' A ' -e 'IBVERBS_' -e 'SOFTHCA_' && fail "exports more"

echo "== the same functions under the same versions"
real=$(ldconfig -p 2>/dev/null | sed -n 's/.*libibverbs\.so\.1 .*=> //p' | head -1)
if [ -n "$real" ]; then
	nm -D --defined-only "$real" | sed -n 's/.* T \(.*@@IBVERBS_1.*\)/\1/p' | sort >"$work/theirs"
	nm -D --defined-only $library | sed -n 's/.* T \(.*@@IBVERBS_1.*\)/\1/p' | sort >"$work/ours"
	[ -s "$work/theirs" ] || fail "read no symbols of $real"
	comm -23 "$work/theirs" "$work/ours" >"$work/missing"
	[ -s "$work/missing" ] && fail "missing: $(tr '\n' ' ' <"$work/missing")"
	nm -D --defined-only "$real" | sed -n 's/.*ibv_query_gid_type@@\(IBVERBS_PRIVATE_.*\)/\1/p' |
		while read -r node; do
			nm -D $library | grep -q "ibv_query_gid_type@$node" || echo "$node"
		done >"$work/private"
	[ -s "$work/private" ] && fail "ibv_query_gid_type@$(cat "$work/private")"
else
	echo "skipped: no libibverbs here to compare with"
fi

echo "== a machine without libibverbs, and one with a device"
unset SOFTHCA_EXPOSE
SOFTHCA_FABRIC=abi.$$
export SOFTHCA_FABRIC
cp .libs/fake_verbs.so "$work/libibverbs.so.1" || fail "no fake library"
: >"$work/empty"
mkdir "$work/none" && cp "$work/empty" "$work/none/libibverbs.so.1"	# cannot be loaded
LD_LIBRARY_PATH=$work/none ./tests/softhca/forward 0 0 || fail "without libibverbs"
LD_LIBRARY_PATH=$work/none SOFTHCA_EXPOSE=1 ./tests/softhca/forward 1 0 || fail "software only"
LD_LIBRARY_PATH=$work ./tests/softhca/forward 0 1 || fail "real only"
LD_LIBRARY_PATH=$work SOFTHCA_EXPOSE=1 SOFTHCA_SPEC=hcas=3 ./tests/softhca/forward 3 1 || fail "both"
echo "== programs that load libibverbs themselves"
runtime=$(ldd $library | sed -n 's/.*lib[at]san[^ ]* => \([^ ]*\).*/\1/p')
run="env ASAN_OPTIONS=detect_leaks=0 LD_PRELOAD=$runtime ./softhca --soft hcas=3"
$run --drop-in -- ./tests/softhca/dropin 3 1 || fail "drop-in"
[ -z "$real" ] || $run -- ./tests/softhca/dropin 0 1 || fail "preloaded only"
LD_LIBRARY_PATH=$PWD/.libs/softhca ./tests/softhca/dropin 0 0 || fail "drop-in, not exposed"
[ ! -e "/dev/shm/softhca.$(id -u).$SOFTHCA_FABRIC" ] || fail "left its file behind"
exit $failed
