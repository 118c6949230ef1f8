# split.awk - parts C sources: lines of comments go to stdout as FILE:LINE, a tab, text; the rest of each line,
# with the variable `code`, to that file as FILE, a tab, text.
FNR == 1 { inside = 0 }
{
	line = $0
	rest = ""
	for (;;) {
		if (!inside) {
			at = index(line, "/*")
			if (!at) {
				rest = rest line
				break
			}
			rest = rest substr(line, 1, at - 1)
			line = substr(line, at + 2)
			inside = 1
		}
		at = index(line, "*/")
		if (!at) {
			print FILENAME ":" FNR "\t" line
			break
		}
		print FILENAME ":" FNR "\t" substr(line, 1, at - 1)
		line = substr(line, at + 2)
		inside = 0
	}
	if (code)
		print FILENAME "\t" rest >code
}
