#!/bin/sh
# Words that prose must not use, each with the term to use instead (HACKING.md, Style).
#
# Checked: headers and texts as a whole, other sources in the comment at their head.
# Tests are left out.
places='src pt2pt collective apps doc HACKING.md README.md NEWS'
cd "$srcdir" || exit 99

words='
whoever		the thing: "the caller", "a program that ..."
whomever	the thing
somebody	the thing: "a thread", "another process"
someone		the thing
anybody		"any rank", "any sender"
anyone		"any rank", "any sender"
nobody		"no rank", "no thread"; or the passive
everybody	"all ranks", "all peers"
everyone	"all ranks", "all peers"
ticker		progress thread
attendant	progress thread
bell		wake-up; or doorbell, from host to HCA
porter		copy service
dice		random numbers
unbelievable	implausible
'

# text FILE: FILE:LINE:TEXT of what is checked
text() {
	case $1 in
	*.h | *.md | *.in | *.h2m | NEWS) awk -v f="$1" '{ print f ":" NR ":" $0 }' "$1" ;;
	*) awk -v f="$1" 'NR == 1 && !/^\/\*/ { exit } { print f ":" NR ":" $0 } /\*\// { exit }' \
		"$1" ;;
	esac
}

# shellcheck disable=SC2086 # places are words
files=$(find $places -name '*.[ch]' -o -name '*.md' -o -name NEWS -o -name '*.in' -o -name '*.h2m' | sort)
[ "$(echo "$files" | wc -l)" -ge 100 ] || { echo "few files found: are the places right?"; exit 99; }
for file in $files; do
	text "$file"
done | awk -v words="$words" '
	BEGIN {
		count = split(words, line, "\n")
		for (i = 1; i <= count; i++) {
			at = match(line[i], /[\t]+/)
			if (!at)
				continue
			n++
			word[n] = substr(line[i], 1, at - 1)
			term[n] = substr(line[i], at + RLENGTH)
		}
	}
	{
		# Also in the plural; a letter on either side makes it another word, _ does not.
		body = tolower($0)
		sub(/^[^:]*:[0-9]+:/, "", body)
		split($0, place, ":")
		for (i = 1; i <= n; i++)
			if ((" " body " ") ~ ("[^a-z]" word[i] "s?[^a-z]")) {
				printf "%s:%s: %s: use %s\n", place[1], place[2], word[i], term[i]
				found = 1
			}
	}
	END { exit found }'
