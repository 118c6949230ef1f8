#!/bin/sh
# guides.sh - guides and comments name things that exist: files, functions, options, targets of make;
# and each program has a man page, a row in README.md and a line of make.
#
# A guide is README.md, HACKING.md, and the README.md of a room or of tests.  tests/names.txt has the
# names of other people's files, functions and options.
build=$PWD
cd "$srcdir" || exit 99
work=$(mktemp -d "${TMPDIR:-/tmp}/rg-guides-XXXXXX") || exit 99
trap 'rm -rf "$work"' EXIT
failures=0
fail() {
	failures=$((failures + 1))
	echo "FAILED: $*"
}

find README.md HACKING.md src tests doc -name '*.md' | sort >"$work/guides"
find src pt2pt collective apps -name '*.[ch]' | sort >"$work/sources"
# Files of the tree, without its builds.
find . -name 'build*' -prune -o -name .git -prune -o -type f -print | sed 's,^\./,,' | sort >"$work/files"
[ "$(wc -l <"$work/sources")" -ge 300 ] || { echo "few sources found"; exit 99; }

# ---- Programs ----------------------------------------------------------------------------

for source in pt2pt/rg_*.c collective/rg_*.c apps/rg_*.c; do
	program=${source%.c} name=${source##*/} name=${name%.c}
	[ -x "$build/$program" ] || fail "$source: bin_PROGRAMS has no $program"
	grep -q "^| .*\`$name\`.* |" README.md || fail "$source: no row of a table of README.md begins with \`$name\`"
	! grep -q '^HELP2MAN = ..*help2man' "$build/Makefile" ||
		[ -s "$build/man/$name.1" ] || [ -s "man/$name.1" ] || fail "$source: no man page"
done

# ---- Comments and code -----------------------------------------------------------------------

# Comments as FILE:LINE, a tab and text; the rest of all sources, tests included, as $work/code.
xargs awk -v code="$work/parts" -f tests/split.awk <"$work/sources" >"$work/comments"
cut -f 2- "$work/parts" >"$work/code"
# In guides only names in backticks, and blocks of commands, are names.
while read -r guide; do
	awk -v guide="$guide" '
		/^```/ { block = !block; next }
		block { sub(/#.*/, ""); print guide ":" FNR "\t" $0; next }
		{
			n = split($0, part, "`")
			for (i = 2; i <= n; i += 2)
				print guide ":" FNR "\t" part[i]
		}' "$guide"
done <"$work/guides" >"$work/quoted"
cat "$work/comments" "$work/quoted" >"$work/texts"

# known FILE: one name a line
{
	grep -v '^#' tests/names.txt
	grep -E '^(tests|measures)/' "$work/files" | grep -E '\.(c|h|sh|cc|py)$' | xargs cat "$work/code" |
		cat - bootstrap configure.ac Makefile.am m4/*.m4 src/*/local.mk tests/local.mk tests/*/local.mk \
			doc/local.mk measures/local.mk src/mpi/abi/calls.txt tests/*/*.txt |
		grep -oE '[A-Za-z_][A-Za-z0-9_]+'
	sed 's,.*/,,; s,\..*,,' "$work/files"
} | sort -u >"$work/known"

# named PATTERN FILE: WHERE NAME of each in the texts, as a word of its own
named() {
	awk -F'\t' -v pattern="[^A-Za-z0-9_]$1" '
		{
			text = " " $2 " "
			while (match(text, pattern)) {
				name = substr(text, RSTART + 1, RLENGTH - 1)
				text = substr(text, RSTART + RLENGTH)
				if (text !~ /^[A-Za-z0-9_]/)
					print $1, name
			}
		}' "$2"
}

# Functions, fields and the like: words with underscores.
named '[a-z][a-z0-9]*(_[a-z0-9]+)+' "$work/texts" |
	awk 'FNR == NR { known[$1] = 1; next } !($2 in known)' "$work/known" - >"$work/unknown"
while read -r where name; do
	fail "$where: $name: nothing has this name"
done <"$work/unknown"

# Files: by path, by the path that an include has, or by name.
named '[A-Za-z0-9_.{},*/-]+\.(c|h|sh|mk|txt|md|awk|map|ac|am)' "$work/texts" |
	grep -vE ' (\.|.*[{*<])' >"$work/named-files"
while read -r where name; do
	grep -qE "(^|/)$(echo "$name" | sed 's/\./\\./g; s/^-*//')$" "$work/files" ||
		grep -qxF "$name" tests/names.txt || fail "$where: $name: no such file"
done <"$work/named-files"

# A name in brackets after a file is in that file: `src/stats/stats.h` (STATISTICS).
while read -r guide; do
	grep -oE '`[^` ]+\.[ch]` \([A-Z_]+\)' "$guide" | tr -d '`()' | while read -r file name; do
		[ ! -f "$file" ] || grep -qw "$name" "$file" || echo "$guide: $file has no $name"
	done
done <"$work/guides" >"$work/elsewhere"
while read -r line; do
	fail "$line"
done <"$work/elsewhere"

# Options of programs, of bootstrap and of configure.
named '--[a-z][a-z0-9-]+' "$work/texts" | sort -u >"$work/named-options"
{
	grep -hoE '(\.name = |"--|\{")"?[a-z][a-z0-9-]+"' $(cat "$work/sources") | grep -oE '[a-z][a-z0-9-]+"' | tr -d '"'
	grep -hoE '\{ "[a-z][a-z-]+", ' tests/*/*.c | grep -oE '[a-z][a-z-]+'
	grep -ohE -- '--[a-z][a-z0-9-]+' bootstrap m4/*.m4 configure.ac tests/names.txt | sed 's/^--//'
	grep -ohE 'AC_ARG_(WITH|ENABLE)\(\[?[a-z-]+' m4/*.m4 configure.ac |
		sed 's/AC_ARG_WITH(\[*/with-/; s/AC_ARG_ENABLE(\[*/enable-/'
} | sort -u >"$work/options"
while read -r where name; do
	grep -qxF "${name#--}" "$work/options" || fail "$where: $name: no such option"
done <"$work/named-options"

# Targets of make.
named 'make (-C [a-z./-]+ |-[A-Za-z]+ )*[a-z][a-z-]+' "$work/quoted" | awk '{ print $1, $NF }' | sort -u >"$work/named-targets"
while read -r where name; do
	grep -qE "^($name|[a-z-]+ $name)[a-z -]*:" "$build/Makefile" || fail "$where: make $name: no such target"
done <"$work/named-targets"

# ---- Sizes ------------------------------------------------------------------------------------

# at_most BYTES GUIDE...
at_most() {
	most=$1
	shift
	for guide; do
		[ "$(wc -c <"$guide")" -le "$most" ] || fail "$guide: longer than $most bytes"
	done
}
at_most 10240 README.md
at_most 8192 HACKING.md
at_most 6144 $(find src -name README.md)
for room in src/*/; do
	[ -f "${room}README.md" ] || fail "$room has no README.md"
done

wc -l "$work/named-files" "$work/named-options" "$work/named-targets" | sed -n 's/^/  /;$!p'
[ "$(wc -l <"$work/named-files")" -ge 100 ] || fail "few names of files found"
[ $failures -eq 0 ]
