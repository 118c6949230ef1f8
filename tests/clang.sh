#!/bin/sh
# clang.sh - clang reads every C file with the flags of its compile; a warning is an error.
#
#	make -n V=1 CC=clang: ... | clang.sh FLAG...	make check-clang; FLAG...: for files that scripts and
#							rules of their own compile
#
# Warnings need no code, so clang writes none: this takes a fifth of the time of a build.
command -v clang >/dev/null || { echo "no clang to read C files with (Debian: clang)"; exit 99; }
work=$(mktemp -d "${TMPDIR:-/tmp}/rg-clang-XXXXXX") || exit 99
trap 'rm -rf "$work"' EXIT

# One line for each compile; two objects of the same source and flags are one compile.
sed -n -e ':join' -e '/\\$/{N;s/\\\n//;b join' -e '}' -e '/clang:.* -c -o /!d' \
	-e 's/.*clang://;s/ &&.*//;s/ -M[DP] / /g;s/ -M[DP] / /g;s/ -M[TF] [^ ]*//g;s/ -c -o [^ ]*//p' |
	sort -u >"$work/compiles"
# A line ends with its source: X.c, or `test -f 'X.c' || echo 'SRCDIR'`X.c.
sed "s/.*[ \`]//;s,^$srcdir/,," "$work/compiles" | sort -u >"$work/read"
(cd "$srcdir" && find src pt2pt collective apps tests measures -name '*.c' | sort) >"$work/sources"
comm -13 "$work/read" "$work/sources" | while read -r source; do
	echo "$* $srcdir/$source"
done >>"$work/compiles"
[ "$(wc -l <"$work/read")" -ge 400 ] || { echo "make tells few compiles"; exit 99; }

xargs -d '\n' -n 1 -P "$(nproc)" sh -c 'eval "clang -fsyntax-only -Werror -Wno-unknown-warning-option $0"' \
	<"$work/compiles" || exit 1
echo "clang: $(wc -l <"$work/compiles") compiles of $(wc -l <"$work/sources") files without a warning"
