# bibtex.awk - reads BibTeX: "KEY FIELD VALUE" of each field, with tabs; anything else is an error.
# Characters that TeX interprets are escaped in values.
function fail(what) {
	print "bibtex: " what " at: " substr(text, at, 40) >"/dev/stderr"
	failed = 1
	exit 1
}
function blanks() {
	while (substr(text, at, 1) ~ /[ \t\n]/)
		at++
}
function word(pattern) {
	blanks()
	if (!match(substr(text, at), "^" pattern))
		fail("no " pattern)
	at += RLENGTH
	return substr(text, at - RLENGTH, RLENGTH)
}
# A value in braces, which are in pairs; a backslash takes the next character.
function value(   depth, start, c) {
	word("[{]")
	start = at
	for (depth = 1; depth; at++) {
		c = substr(text, at, 1)
		if (c == "")
			fail("no end of a value")
		if (c == "\\")
			at++
		else if (c == "{")
			depth++
		else if (c == "}")
			depth--
		else if (c ~ /[$&#_%~^]/)
			fail("a character that TeX interprets")
	}
	return substr(text, start, at - start - 1)
}
{ text = text $0 "\n" }
END {
	if (failed)
		exit 1
	at = 1
	for (blanks(); at <= length(text); blanks()) {
		word("@[a-z]+")
		word("[{]")
		key = word("[A-Za-z0-9._:-]+")
		if (key in seen)
			fail("a second " key)
		seen[key] = 1
		word(",")
		for (blanks(); substr(text, at, 1) != "}"; blanks()) {
			name = word("[a-z]+")
			word("=")
			blanks()
			print key "\t" name "\t" value()
			word(",")
		}
		word("[}]")
	}
}
