#!/bin/sh
# Print build-info.h: which sources these are and how they are compiled.
#   build-info.sh SRCDIR CC CFLAGS SANITIZERS
# A release tarball carries a file COMMIT; elsewhere git tells.  A checkout
# that merely contains the sources (distcheck's) is not theirs.
set -e
srcdir=$(cd "$1" && pwd -P)

commit=unknown dirty=-1
if [ -f "$srcdir/COMMIT" ]; then
	commit=$(cat "$srcdir/COMMIT") dirty=0
elif top=$(git -C "$srcdir" rev-parse --show-toplevel 2>/dev/null) && [ "$top" = "$srcdir" ]; then
	commit=$(git -C "$srcdir" rev-parse HEAD 2>/dev/null || echo unknown)
	dirty=0
	[ -z "$(git -C "$srcdir" status --porcelain --untracked-files=no 2>/dev/null)" ] || dirty=1
fi
quote() {
	printf '%s' "$1" | sed 's/[\\"]/\\&/g'
}
cat <<END
/* Made by src/report/build-info.sh. */
#define RG_BUILD_COMMIT "$(quote "$commit")"
#define RG_BUILD_DIRTY $dirty
#define RG_BUILD_CC "$(quote "$2")"
#define RG_BUILD_CFLAGS "$(quote "$3")"
#define RG_BUILD_SANITIZE "$(quote "$4")"
END
