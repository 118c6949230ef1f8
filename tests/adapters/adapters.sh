# adapters.sh - for jobs on adapters of other personalities.  Sourced after nothing else.
#
#	on SPEC N PROGRAM ARG...	launch, each rank on a host of its own with such adapters
#	conforms SPEC OPTION...		the conformance list between two of its nodes
#	row NAME PROGRAM		a line of the table: ok, or the first line of the error
#
# ADAPTERS_DRAWN=yes: of what `drawn` names a part, by RG_SEED (.ci/run).
# The software HCA is found as libibverbs, so that all above it takes the path of an adapter.
. "$srcdir/tests/run-lib.sh"
unshare -u true 2>/dev/null || {
	echo "hosts are UTS namespaces, which this user cannot make"
	exit 77
}
[ "${ADAPTERS_DRAWN-}" = yes ] || draws=no
limit=${ADAPTERS_SECONDS:-60}
place=$work/verbs
mkdir "$place" || exit 99
ln .libs/libsofthca.so.0.0.0 "$place/libibverbs.so.1" 2>/dev/null ||
	cp .libs/libsofthca.so.0.0.0 "$place/libibverbs.so.1" || exit 99
export SOFTHCA_FABRIC
launches=0

# Ranks that the launcher kills leave the file of their fabric.
trap 'at_exit $?; rm -rf "$work" /dev/shm/softhca.*.adapters.$$.* /dev/shm/softhca.*.conforms.$$' EXIT

on() {
	spec=$1 ranks=$2
	shift 2
	launches=$((launches + 1))
	SOFTHCA_FABRIC=adapters.$$.$launches
	launch "$ranks" sh "$srcdir/tests/adapters/as.sh" "$place" "$spec" "$@"
}

conforms() {
	spec=$1
	shift
	SOFTHCA_FABRIC=conforms.$$
	env LD_LIBRARY_PATH="$place" SOFTHCA_EXPOSE=1 SOFTHCA_SPEC="$spec" \
		./tests/conformance/conformance --except longest --seed "${RG_SEED:-1}" "$@" >"$out" 2>"$err"
	rc=$?
}

row() {
	said=ok
	[ "$rc" -eq 0 ] || said=$(cat "$err" "$out" | grep -m 1 -E ': .*(:|cannot|refuse|lost)|^FAIL')
	printf '%-12s %-16s %s\n' "$1" "$2" "$said"
}

# Exit code 0, or the reason in one line with these words.
passes() {
	[ "$rc" -eq 0 ]
}
refuses() {
	[ "$rc" -ne 0 ] && [ "$rc" -ne 124 ] && [ "$rc" -lt 128 ] && grep -q "$1" "$err"
}
