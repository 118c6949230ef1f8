#!/bin/sh
# Words that prose must not use, each with the term to use instead, and the first words of comments
# (HACKING.md, Rules).
#
# Checked: all sources, headers, guides, man pages and texts, in comments, messages and names; of
# tests only headers and README.md.
#
#	tests/words.sh			as make check runs it
#	tests/words.sh FILE...		these files alone
cd "${srcdir:-$(dirname "$0")/..}" || exit 99
places='src pt2pt collective apps doc HACKING.md README.md NEWS'

# _ is part of a word in the second list: MEASURE_ONLY has names with these words.
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
whole_words='
beside		"next to", "in addition to", "compared with"
besides		"in addition to", "other than"
behind		"after", "late", "of"
stands		"is", "has"
'
# Comments that begin with these words hide their subject; some read well.
openers='of what one its by it as'
openers_percent=3

# shellcheck disable=SC2086 # places are words
if [ $# -gt 0 ]; then
	files=$*
else
	files=$(find $places -name '*.[ch]' -o -name '*.md' -o -name NEWS -o -name '*.in' -o \
		-name '*.h2m' -o -name '*.txt' | sort
		find tests -name '*.h' | sort
		echo tests/README.md)
	[ "$(echo "$files" | wc -l)" -ge 400 ] || { echo "few files found: are the places right?"; exit 99; }
fi

# shellcheck disable=SC2086
awk -v words="$words" -v whole_words="$whole_words" '
	# Also in the plural; a letter on either side makes it another word.
	function list_add(list, side,   line, count, i, at) {
		count = split(list, line, "\n")
		for (i = 1; i <= count; i++) {
			at = match(line[i], /[\t]+/)
			if (!at)
				continue
			n++
			word[n] = substr(line[i], 1, at - 1)
			term[n] = substr(line[i], at + RLENGTH)
			pattern[n] = side word[n] "s?" side
			any = any (n > 1 ? "|" : "") word[n]
		}
	}
	function refuse(what, instead) {
		printf "%s:%d: %s: use %s\n", FILENAME, FNR, what, instead
		found = 1
	}
	BEGIN {
		list_add(words, "[^a-z]")
		list_add(whole_words, "[^a-z_]")
	}
	{
		body = " " tolower($0) " "
		# Code of tests, code in guides and the name of the file are no prose.
		if (FILENAME ~ /^tests\/.*\.h$/ && !sub(/.*\/\*/, "/*", body) && body !~ /^[ \t]*\* /)
			next
		if (FILENAME ~ /\.md$/)
			gsub(/`[^`]*`/, "``", body)
		if (FNR <= 2)
			sub(/^[ \/*]*[a-z0-9_]+\.[a-z]+ - /, "", body)
		if (body ~ any)
			for (i = 1; i <= n; i++)
				if (body ~ pattern[i])
					refuse(word[i], term[i])
		# The end of a sentence, of a comment, of a line of shell.
		if (body ~ /there (is|are) *([.;:,)"]|\*\/)/ || body ~ /# .*there (is|are) *$/)
			refuse("there is, there are at an end", "a verb, or \"all ...\"")
	}
	END { exit found }' $files || failed=1

# shellcheck disable=SC2086
awk -f tests/comments.awk $(echo "$files" | tr ' ' '\n' | grep '\.[ch]$') /dev/null |
	awk -F'\t' -v openers="$openers" -v percent="$openers_percent" '
	BEGIN {
		count = split(openers, word, " ")
		for (i = 1; i <= count; i++)
			hides[word[i]] = 1
	}
	{
		first = tolower($2)
		sub(/[^a-z0-9_].*/, "", first)
		if (first in hides)
			bad[++n] = $1 ": begins with " first ": " $2
	}
	END {
		if (100 * n <= percent * NR)
			exit 0
		for (i = 1; i <= n; i++)
			print bad[i]
		printf "%d of %d comments begin with %s (accepted: %d %%): begin with the subject\n", n,
			NR, openers, percent
		exit 1
	}' || failed=1
exit "${failed:-0}"
