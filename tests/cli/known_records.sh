# known_records.sh - result files of known values, for tests of figures and citations.  Sourced.
#
#	records FILE			bandwidth of three ways, sizes 0 to 4M, with intervals and marks
#	records_latency FILE		latency of two of these ways, and of one without a name in any table
#	records_old FILE		schema 1, means alone
#	records_pairs FILE		a matrix of three nodes
#	records_app FILE		a program that is timed as a whole
#	values FILE			WAY BYTES MEDIAN CI_LOW CI_HIGH of each row, "?" for none

# run_record SCHEMA PROGRAM TITLE METRIC UNIT WAYS MORE: the line
run_record() {
	printf '{"schema":%s,"type":"run","program":"%s","title":"%s","metric":"%s","unit":"%s","ways":[%s]' \
		"$1" "$2" "$3" "$4" "$5" "$6"
	printf ',"notes":["fabric: software HCA (libsofthca), 2 ports, 1 GB/s - a model in software, not hardware"]'
	printf ',"mpi":"Open MPI v4.1.4","options":{"window":{"value":"64","from":"default"},'
	printf '"iterations":{"value":"100","from":"command line"}},"fabric":{"kind":"software HCA","hardware":false,'
	printf '"modelled":true,"text":"software HCA (libsofthca), 2 ports, 1 GB/s","rails":[{"name":"soft0:1"}]},'
	printf '"oversubscribed":false,"ranks":[{"rank":0,"host":"node_1&2","node":0},{"rank":1,"host":"b","node":1}],'
	printf '"provenance":{"utc":"2026-03-04T05:06:07Z","argv":["%s"],"machine":{"clock_source":"tsc"},' "$2"
	printf '"software":{"railgauge":"0.1.0","commit":"0123456789abcdef","dirty":false}}%s}\n' "${7-}"
}

# end_record ROWS MORE
end_record() {
	printf '{"schema":2,"type":"end","status":0,"rows":%s,"seconds":1.5%s}\n' "$1" "${2-}"
}

# Curves without noise: the value follows from the size and the way's number.
records() {
	{
		run_record 2 rg_bw 'Uni-directional bandwidth' bandwidth MB/s '"native","single","stripe"' \
			",\"foreign_ways\":[\"native\"],\"caption\":[\"$caption\"]"
		awk 'function noise(disturbed) {
			return ",\"noise\":{\"wait_ns\":9e6,\"wait_ns_most\":" (disturbed ? 9000000 : 9) ",\"rank\":1," \
				"\"wall_ns\":100000000,\"switches\":1,\"steal_ticks\":0,\"span_ns\":100000000}"
		}
		BEGIN {
			split("native single stripe", way, " ")
			for (bytes = 0; bytes <= 4194304; bytes = bytes ? bytes * 4 : 1)
				for (w = 1; w <= 3; w++) {
					value = 1000 * bytes / (bytes + 4096) * w + 0.125
					printf "{\"schema\":2,\"type\":\"row\",\"way\":\"%s\",\"bytes\":%d,", way[w], bytes
					printf "\"mean\":%.6f,\"median\":%.6f,\"min\":1,\"max\":9999,", value * 2, value
					printf "\"n\":100,\"ci_low\":%.6f,\"ci_high\":%.6f,", value * 0.95, value * 1.05
					printf "\"ci_n\":20,\"ci_of\":\"batches\",\"batches\":20,\"timing\":{\"method\":\"local\"},"
					printf "\"converged\":%s,\"cut\":%s,\"valid\":%s%s}\n",
						bytes == 64 && w == 2 ? "false" : "true",
						bytes == 256 && w == 2 ? "true" : "false",
						bytes == 1024 && w == 3 ? "false" : "null", noise(bytes == 16384 && w == 1)
				}
		}'
		end_record 39 ',"citable":false,"why":["1 launch, fewer than 6","noise in 2 of 39 rows"]'
	} >"$1"
}

records_latency() {
	{
		run_record 2 rg_latency 'One-way latency' latency us '"stripe","native","ring=\"x\""'
		for bytes in 0 8 64; do
			for way in 'stripe' 'native' 'ring=\"x\"'; do
				printf '{"schema":2,"type":"row","way":"%s","bytes":%s,"mean":9,"median":2.5,"min":1,' \
					"$way" $bytes
				printf '"max":9,"n":100,"valid":null,"cut":false}\n'
			done
		done
		end_record 9 ',"citable":true,"why":[]'
	} >"$1"
}

records_old() {
	{
		run_record 1 rg_bw 'Uni-directional bandwidth' bandwidth MB/s '"single"'
		for bytes in 1024 4096; do
			printf '{"schema":1,"type":"row","way":"single","bytes":%s,"mean":%s.5,"n":4}\n' $bytes $bytes
		done
		printf '{"schema":1,"type":"end","status":0,"rows":2,"seconds":1}\n'
	} >"$1"
}

records_pairs() {
	{
		run_record 2 rg_pairs 'Bandwidth of every pair of nodes' bandwidth MB/s '"single:0","single:1"' \
			',"matrix":{"names":["node a","node b","node '"'"'c'"'"'"],"labels":["single:0 (r0)","single:1 (r1)"],"slow":0.9,"alike":true}'
		for way in 0 1; do
			for from in 0 1 2; do
				for to in 0 1 2; do
					[ $from -ne $to ] || continue
					value=$((1000 - 500 * (from == 2 && to == 0 && way == 1) + from))
					printf '{"schema":2,"type":"row","way":"single:%s","bytes":1048576,"mean":1,' $way
					printf '"median":%s,"min":1,"max":1,"n":7,"from":%s,"to":%s,"valid":null,"cut":false}\n' \
						$value $from $to
				done
			done
		done
		end_record 12
	} >"$1"
}

records_app() {
	{
		run_record 2 rg_is 'Integer sort, NAS-style' operations Mop/s '"native","stripe"' \
			',"app":{"class":"S","size":"65536","operation":"keys ranked","operations":655360,"iterations":10,"ranks":2}'
		for way in native stripe; do
			total=3 talk=1
			[ $way = native ] || total=2
			printf '{"schema":2,"type":"row","way":"%s","bytes":262144,"mean":0.2,"median":0.25,"min":0.1,' $way
			printf '"max":0.3,"n":3,"valid":true,"cut":false,"app":{"total_s":[%s,%s.5],' $total $total
			printf '"communication_s":[%s,%s.25],"sent_bytes":[1,2]}}\n' $talk $talk
		done
		end_record 2
	} >"$1"
}

# member NAME: of each row, a line
values() {
	grep '"type":"row"' "$1" | awk '
		function member(name,   at, text) {
			at = index($0, "\"" name "\":")
			if (!at)
				return "?"
			text = substr($0, at + length(name) + 3)
			sub(/[,}].*/, "", text)
			gsub(/"/, "", text)
			return text == "null" ? "?" : text
		}
		{ print member("way"), member("bytes"), member("median"), member("ci_low"), member("ci_high") }'
}
