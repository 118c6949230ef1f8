# recompute.awk - every statistic of every row again, from the file of --samples.
#
#	awk -f recompute.awk -v rate=MB samples.csv rows.jsonl
#
# rate: "MB" or "messages" per second, or "" for latencies.  Prints the rows and values compared; exits
# with 1 after a line for each that differs.  doc/measuring.md has the definitions.

function sort_up(a, low, high,    i, j, pivot, t) {
	if (low >= high)
		return
	pivot = a[int((low + high) / 2)]
	i = low; j = high
	while (i <= j) {
		while (a[i] < pivot) i++
		while (a[j] > pivot) j--
		if (i <= j) { t = a[i]; a[i++] = a[j]; a[j--] = t }
	}
	sort_up(a, low, j)
	sort_up(a, i, high)
}

# The median of x[key, from] to x[key, to].
function median(key, from, to,    i, n, part) {
	for (i = from; i <= to; i++)
		part[++n] = x[key, i]
	sort_up(part, 1, n)
	return (part[int((n + 1) / 2)] + part[int(n / 2) + 1]) / 2
}

function floor(v) { return int(v) > v ? int(v) - 1 : int(v) }
function ceil(v) { return -floor(-v) }

# A time of the row's samples in the unit of the metric.
function unit(ns) {
	if (!rate)
		return ns / messages / 1000
	return messages * pairs * (rate == "MB" ? bytes / 1e6 : 1) * 1e9 / ns
}

# A member of an object.
function in_text(text, name,    from) {
	if (!match(text, "\"" name "\":[^,}]*"))
		return "absent"
	from = RSTART + length(name) + 3
	return substr(text, from, RSTART + RLENGTH - from)
}

function said(name) { return in_text(record, name) }

# The text of a member that is an object of numbers and strings; "": absent.
function object(name) {
	return match(record, "\"" name "\":{[^}]*}") ? substr(record, RSTART, RLENGTH) : ""
}

function check(name, want) { check_value(name, said(name), want) }

function check_value(name, got, want) {
	values++
	if (want == "null" ? got == "null" : got != "null" && got != "absent" &&
	    (got - want) ^ 2 <= (1e-6 * want) ^ 2 + 1e-18)
		return
	print "row " key ": " name " is " got ", by the samples " want
	wrong = 1
}

function percentile(q,    rank) {
	if (n * (q < 0.5 ? q : 1 - q) < 10 - 1e-6)
		return "null"
	return unit(s[ceil(q * n - 1e-6)])
}

function compare(    i, sum, square, product, mean, low, high, reach, q1, q3, out, least, most) {
	n = count[key]
	for (i = 1; i <= n; i++)
		s[i] = x[key, i]
	for (i = 1; i <= n; i++)
		sum += s[i]
	mean = sum / n
	for (i = 1; i <= n; i++) {
		square += (s[i] - mean) ^ 2
		if (i > 1)
			product += (s[i] - mean) * (s[i - 1] - mean)
	}
	sort_up(s, 1, n)
	check("n", n)
	check("mean", unit(mean))
	check("median", unit(median(key, 1, n)))
	check("min", unit(rate ? s[n] : s[1]))
	check("max", unit(rate ? s[1] : s[n]))
	check("sd", n < 2 ? "null" : rate ? sqrt(square / (n - 1)) / mean * unit(mean) : \
	      unit(sqrt(square / (n - 1))))
	check("autocorrelation", n < 3 || square == 0 ? "null" : product / square)
	check("p1", percentile(0.01)); check("p5", percentile(0.05)); check("p25", percentile(0.25))
	check("p75", percentile(0.75)); check("p95", percentile(0.95)); check("p99", percentile(0.99))
	check("p99.9", percentile(0.999))
	q1 = s[ceil(n / 4)]; q3 = s[ceil(3 * n / 4)]; reach = 1.5 * (q3 - q1)
	check("iqr", n < 4 ? "null" : rate ? unit(q1) - unit(q3) : unit(q3) - unit(q1))
	for (i = 1; i <= n; i++)
		out += n >= 4 && (s[i] < q1 - reach || s[i] > q3 + reach)
	check("outliers", out + 0)
	least = median(key, 1, int(n / 3)); most = median(key, n - int(n / 3) + 1, n)
	check("drift", n < 6 ? "null" : rate ? median(key, 1, n) / most - median(key, 1, n) / least : \
	      (most - least) / median(key, 1, n))
	interval()
	wanted()
}

# Of -z.
function wanted(    text, list, i, count) {
	text = object("percentiles")
	gsub(/.*{|}|"/, "", text)
	count = split(text, list, ",")
	for (i = 1; i <= count; i++)
		check_value("percentile " list[i], substr(list[i], index(list[i], ":") + 1), percentile(list[i] / 100))
}

# From the medians of the batches that the file names.
function interval(    b, i, from, m, low, high, root) {
	for (i = from = 1; i <= n; i++)
		if (i == n || batch[key, i + 1] != batch[key, i]) {
			m[++b] = median(key, from, i)
			from = i + 1
		}
	sort_up(m, 1, b)
	check("batches", b)
	check("ci_n", b < 6 ? 0 : b)
	root = 1.96 * sqrt(b)
	low = floor((b - root) / 2); high = ceil(1 + (b + root) / 2)
	low = low < 1 ? 1 : low; high = high > b ? b : high
	check(rate ? "ci_high" : "ci_low", b < 6 ? "null" : unit(m[low]))
	check(rate ? "ci_low" : "ci_high", b < 6 ? "null" : unit(m[high]))
}

# ---- The samples: way, bytes, x, pair ----

BEGIN { FS = "," }
FNR == 1 { file++; next }	# the heading; the run record
file == 1 {
	series = $2 "," $3 "," $4 "," $5
	x[series, ++count[series]] = $9
	batch[series, count[series]] = $7
	in_turn[series, $6]++
	# Pairs have numbers; the cells of a tournament have names.
	if ($5 ~ /^[0-9]+$/ && $5 + 1 > pairs_of[$2 "," $3 "," $4])
		pairs_of[$2 "," $3 "," $4] = $5 + 1
	if ($10 != "ns" || $1 != 0)
		wrong = 1
	next
}

# ---- The rows ----

/"type":"row"/ {
	record = $0
	bytes = said("bytes")
	messages = said("messages")
	row = said("way"); gsub(/"/, "", row)
	x_value = in_text(object("x"), "value")
	row = row "," bytes "," (x_value == "absent" ? "" : x_value + 0)
	pairs = 1
	key = row "," (said("from") != "absent" ? said("from") "-" said("to") : pairs_of[row] ? "0" : "all")
	if (rate && pairs_of[row] > 1) {
		pairs = pairs_of[row]
		key = row ",all"
		for (i = 1; i <= count[key]; i++)	# a turn: its time by its windows, in whole ns
			x[key, i] = int(x[key, i] / in_turn[row ",0", i - 1] + 0.5)
	} else if (pairs_of[row] > 1) {
		for (p = 0; p < pairs_of[row]; p++)
			by[p + 1] = median(row "," p, 1, count[row "," p]) * 1000 + p
		sort_up(by, 1, pairs_of[row])
		key = row "," by[int(pairs_of[row] / 2) + 1] % 1000
	}
	compare()
	rows++
}
END {
	print rows + 0 " rows, " values + 0 " values"
	exit wrong || !rows
}
