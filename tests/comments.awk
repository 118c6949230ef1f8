# comments.awk - prints one line for each comment of C sources: FILE:LINE, a tab, its first line.
# Rules between sections and the names at the head of files are left out.
FNR == 1 { inside = want = 0 }
{
	line = $0
	for (;;) {
		if (!inside) {
			at = index(line, "/*")
			if (!at)
				break
			line = substr(line, at + 2)
			inside = want = 1
		}
		if (want) {
			text = line
			sub(/^[ \t*]+/, "", text)
			if (text ~ /^[A-Za-z]/ && !(FNR <= 2 && text ~ /^[a-z_0-9.]+ - /))
				print FILENAME ":" FNR "\t" text
			if (text != "")
				want = 0
		}
		at = index(line, "*/")
		if (!at)
			break
		line = substr(line, at + 2)
		inside = 0
	}
}
