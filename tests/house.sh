#!/bin/sh
# house.sh - figures of the house that a guide to contributors promises, one a line.
#
#	tests/house.sh [BUILD-DIRECTORY]	prints them; needs the objects of a build
#
# `make house` prints the figures; tests/layers.sh, words.sh and guides.sh hold the limits.
cd "${srcdir:-$(dirname "$0")/..}" || exit 99
build=${1-${build-build}}
work=$(mktemp -d "${TMPDIR:-/tmp}/rg-house-XXXXXX") || exit 99
trap 'rm -rf "$work"' EXIT

say() {
	printf '%-66s %s\n' "$1" "$2"
}

# ---- Comments ------------------------------------------------------------------------------

find src pt2pt collective apps -name '*.[ch]' | sort | xargs awk -f tests/comments.awk >"$work/comments"
all=$(wc -l <"$work/comments")
bad=$(awk -F'\t' 'tolower($2) ~ /^(of|what|one|its|by|it|as)[^a-z0-9_]/ { n++ } END { print n + 0 }' "$work/comments")
say "comments" "$all"
say "comments that begin with Of, What, One, Its, By, It, As" "$bad ($(awk -v a="$bad" -v b="$all" 'BEGIN { printf "%.1f", 100 * a / b }') %)"

# ---- Headers -------------------------------------------------------------------------------

# NAME HEADER of all that headers declare outside of functions, structures and comments.
find src -name '*.h' | sort | xargs awk -v code="$work/parts" -f tests/split.awk >"$work/texts"
awk -F'\t' '
	$1 != file { file = $1; depth = 0 }
	{ sub(/^[^\t]*\t/, "") }
	/^[ \t]*#/ { next }
	{
		text = $0
		n = length(text)
		word = ""
		for (i = 1; i <= n + 1; i++) {
			c = i <= n ? substr(text, i, 1) : " "
			if (c ~ /[A-Za-z0-9_]/) {
				word = word c
				continue
			}
			if (word != "" && depth == 0)
				print word, file
			word = ""
			if (c == "{")
				depth++
			else if (c == "}")
				depth--
		}
	}' "$work/parts" | sort -u >"$work/declared"

# ROOM/FILE NAME of each function with external linkage, and of each static one.
find "$build/src" -name '*.o' ! -path '*/tests/*' | sort | while read -r object; do
	name=${object##*/} name=${name%.o} name=${name##*-} room=${object%/*}
	room=${room%/.libs} room=${room#"$build/"}
	[ -f "$room/$name.c" ] || continue
	nm "$object" | awk -v of="$room/$name" 'NF == 3 && $2 ~ /^[Tt]$/ && $3 !~ /\./ { print $2, of, $3 }'
done | sort -u >"$work/functions"
sed -n 's/^T //p' "$work/functions" >"$work/global"
sed -n 's/^t //p' "$work/functions" >"$work/static"

# Public headers may declare what any file of their library defines.
awk -v public='^(softhca|rail|railmpi|memwatch|topo|report|stats|bench|vbench|vrb|nas)\.h$' '
	FNR == NR { where[$1] = where[$1] " " $2; next }
	{
		n = split($1, part, "/")
		file = part[n]
		room = part[2]
		if (!($2 in where))
			next
		count = split(where[$2], header, " ")
		own = is_public = 0
		for (i = 1; i <= count; i++) {
			base = header[i]
			sub(/.*\//, "", base)
			own += base == file ".h"
			is_public += base ~ public
		}
		if (is_public && !own)
			next
		all[room]++
		elsewhere[room] += !own
	}
	END {
		for (room in all)
			printf "%s %d of %d (%.0f %%)\n", room, elsewhere[room], all[room],
				100 * elsewhere[room] / all[room]
	}' "$work/declared" "$work/global" | sort | while read -r room text; do
	say "internal functions not declared in their file's header: $room" "$text"
done

# ---- Names ---------------------------------------------------------------------------------

# Sources of librailmpi, into which all libraries below are linked: names of static functions.
static_names() {
	find src/mpi src/rail src/verbs src/softhca src/util src/memwatch src/topo -name '*.c' \
		! -path 'src/softhca/tool/*' | sort |
		xargs grep -oE '^static [^=;(]*[a-z_0-9]+\(' |
		sed -E 's/^([^:]*):.*[ *]([a-z_0-9]+)\($/\2 \1/' | grep -v '^__' | sort -u
}
say "static names that are twice or more in librailmpi" \
	"$(static_names | awk '{ n[$1]++ } END { for (i in n) twice += n[i] > 1; print twice + 0 }')"

# ---- Places of a thing -----------------------------------------------------------------------

policies='RAIL_SINGLE|RAIL_BIND|RAIL_STRIPE|RAIL_WEIGHTED|RAIL_PULL'
say "files of src that name a policy" "$(grep -rlE "\b($policies)\b" src --include='*.[ch]' | wc -l)"
say "files of src that compare policies by order" \
	"$(grep -rlE "[<>]=? *($policies)\b|\b($policies) *[<>]" src --include='*.[ch]' | wc -l)"

# ---- Files -------------------------------------------------------------------------------------

for guide in README.md HACKING.md; do
	say "$guide" "$(wc -c <$guide) bytes"
done
say "rooms of src without a README.md" "$(for room in src/*/; do [ -f "${room}README.md" ] || printf '%s ' "$(basename "$room")"; done)"
for room in src/rail src/mpi; do
	say "files flat in $room" "$(find $room -maxdepth 1 -name '*.[ch]' | wc -l)"
done
say "files above 600 lines" "$(find src pt2pt collective apps -name '*.[ch]' | xargs wc -l | awk '$1 > 600 && $2 != "total"' | wc -l)"
say "-I of rooms" "$(grep -rhoE -- '-(I|iquote )\$\((top_)?srcdir\)/src/[a-z/]+' Makefile.am src/*/local.mk tests/*/local.mk tests/local.mk measures/local.mk 2>/dev/null | sort -u | wc -l)"
