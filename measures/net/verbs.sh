# verbs.sh - one rail below MPI: perftest, and 8 bytes next to large writes.  Sourced by run.sh.

# perftest WAY COLUMN PROGRAM BYTES ARG...: that column of the client's result, times $scale, in $work/v.WAY
perftest() {
	way=$1 column=$2 program=$3 bytes=$4
	shift 4
	for attempt in 1 2 3 4 5; do
		server 18515 timeout 60 "$PWD/softhca" --soft net=eth0 -- "$program" -x 0 -F -s "$bytes" "$@"
		on 0 "$own" timeout 60 "$PWD/softhca" --soft net=eth0 -- "$program" -x 0 -F -s "$bytes" "$@" \
			10.0.1.2 >"$work/perftest" 2>&1
		client=$?
		wait $started && [ $client -eq 0 ] && break
		# perftest reads the processor's clock, and gives up where that failed.
		grep -q "^Can't produce a report" "$work/perftest" "$work/server" || break
	done
	awk -v c="$column" -v b="$bytes" -v f="$scale" '$1 == b { print $c * f; n++ } END { exit !n }' \
		"$work/perftest" >>"$work/v.$way" || {
		cat "$work/server" "$work/perftest"
		stop "$program"
	}
}

perftest_rows() {
	heading "" perftest stream
	rm -f "$work"/v.*
	for k in $(seq "$launches"); do
		stream 0 bw 1048576 >>"$work/v.bw"
		scale=1.048576		# its MB are 2^20 bytes
		for op in write read send; do
			perftest $op 4 ib_${op}_bw 1048576 -n 2000
		done
		stream 0 latency 8 >>"$work/v.latency"
		scale=1
		perftest write_lat 6 ib_write_lat 8 -n 20000
	done
	verdict "ib_write_bw, 1 MiB (MB/s)" 'x>=0.9' "$work/v.write" "$work/v.bw"
	verdict "ib_read_bw" 'x>=0.85' "$work/v.read" "$work/v.bw"
	verdict "ib_send_bw" 'x>=0.85' "$work/v.send" "$work/v.bw"
	verdict "ib_write_lat, 8 bytes (us)" 'x<=1.2' "$work/v.write_lat" "$work/v.latency"
}

# mixed_once: us and MB/s of measures/net/mixed
mixed_once() {
	verbs="env SOFTHCA_EXPOSE=1 SOFTHCA_SPEC=net=eth0 measures/net/mixed 18515"
	# shellcheck disable=SC2086 # words are meant
	server 18515 timeout 60 $verbs
	# shellcheck disable=SC2086 # words are meant
	on 0 "$own" timeout 60 $verbs 10.0.1.2 "$seconds" 2>"$err" || stop "mixed"
	wait $started
}

mixed_rows() {
	heading "" verbs sockets
	rm -f "$work"/v.*
	for k in $(seq "$launches"); do
		stream 0 mixed 8 >>"$work/v.sockets"
		mixed_once >>"$work/v.verbs"
	done
	for way in sockets verbs; do
		cut -d' ' -f1 "$work/v.$way" >"$work/v.$way.us"
		cut -d' ' -f2 "$work/v.$way" >"$work/v.$way.mb"
	done
	verdict "8 bytes next to 1 MiB writes (us)" 'x<=2' "$work/v.verbs.us" "$work/v.sockets.us"
	verdict "the writes meanwhile (MB/s)" - "$work/v.verbs.mb" "$work/v.sockets.mb"
}

verbs_groups() {
	wanted perftest mixed || return 0
	hosts 2 1 wire=direct
	stream_serve
	! wanted perftest || {
		echo "A queue pair of perftest and a stream"
		perftest_rows
	}
	! wanted mixed || {
		echo "Two queue pairs, or sockets, of one process at each end, served by one loop"
		mixed_rows
	}
	hosts_end
}
