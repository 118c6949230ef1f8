#!/bin/sh
# softhca-man.sh VERSION MODEL.H PAGE.IN <profiles: libsofthca(7) with what the tables and the
# model's header say.  stdin: the output of `softhca profiles`.
version=$1 header=$2 page=$3
awk -v version="$version" -v header="$header" '
function plain(s) { gsub(/\\/, "\\e", s); gsub(/-/, "\\-", s); return s }
function row(s,   name) {
	name = s
	sub(/^ */, "", s)
	name = s; sub(/ .*/, "", name)
	sub(/^[^ ]* */, "", s)
	print ".TP\n.B " plain(name) "\n" plain(s)
}
FNR == NR {
	if ($0 ~ /^Keys/) in_keys = 1
	else if ($0 ~ /^  [a-z0-9]/) { if (in_keys) key[++keys] = $0; else profile[++profiles] = $0 }
	else if ($0 ~ /^   / && !in_keys) profile[profiles] = profile[profiles] " (" substr($0, match($0, /[^ ]/)) ")"
	next
}
/^@KEYS@/ { for (i = 1; i <= keys; i++) row(key[i]); next }
/^@PROFILES@/ { for (i = 1; i <= profiles; i++) row(profile[i]); next }
/^@MODEL@/ {
	print ".nf"
	getline line <header
	while ((getline line <header) > 0 && line !~ /\*\//) {
		sub(/^ \* ?/, "", line)
		if (line ~ /^model.h/) continue
		sub(/^[.\047]/, "\\\\\\&&", line)
		print plain(line)
	}
	print ".fi"
	next
}
{ gsub(/@VERSION@/, version); print }' - "$page"
