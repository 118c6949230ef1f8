#!/bin/sh
# chroots.sh PAIR... - README's second command in bare Debians: PAIR is trixie:mpich and the like.
# Exit code 77: no bare Debian can be made here.
top=$(cd "$(dirname "$0")/.." && pwd) || exit 99
[ "${1-}" != --inside ] || {
	shift
	dir=$1 bad=
	shift
	for pair do
		suite=${pair%:*} mpi=${pair#*:} build=build
		[ "$mpi" != mpich ] || build=build-mpich
		sh "$top/tests/chroot.sh" make "$suite" "$dir/$suite" || exit
		sh "$top/tests/chroot.sh" run "$dir/$suite" $build "build-$suite-$mpi" \
			./bootstrap --check --with-mpi="$mpi" || bad="$bad $pair"
	done
	[ -z "$bad" ] || echo "chroots.sh: failed:$bad"
	[ -z "$bad" ]
	exit
}
unshare --mount true 2>/dev/null || {
	echo "chroots.sh: no bare Debian: unshare --mount is refused"
	exit 77
}
dir=$(mktemp -d "${TMPDIR:-/tmp}/rg-chroot-XXXXXX") || exit 99
unshare --mount sh "$0" --inside "$dir" "$@"
rc=$?
rm -rf "$dir"
exit $rc
