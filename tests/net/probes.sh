#!/bin/sh
# probes.sh - a job that looks for its rails: one process of each host probes, N hosts make N log N pairs, and all
# probes are under way at the same time.
. "$srcdir/tests/run-lib.sh"
. "$srcdir/tests/net/hosts.sh"

calls=$work/calls
families=1
[ ! -e /proc/net/if_inet6 ] || families=2

# probed RANKS DISTANCE...: each host calls the hosts so far ahead, at each address of three interfaces.
probed() {
	ranks=$1
	shift
	rm -rf "$calls" && mkdir "$calls" || exit 99
	RG_CONNECTS=$calls launch "$ranks" env LD_PRELOAD="$PWD/tests/net/.libs/connects.so" src/cli/railgauge exec -- \
		tests/net/hello silent
	of_job="$ranks ranks on $hosts_count hosts"
	expect "$of_job: exit code" [ "$rc" -eq 0 ]
	expect "$of_job: one process of each probes" [ "$(ls "$calls" | wc -l)" -eq "$hosts_count" ]
	for host in $(seq 0 $((hosts_count - 1))); do
		for distance; do
			other=$(((host + distance) % hosts_count + 1))
			for rail in 0 1 2; do
				echo "call 10.0.$rail.$other"
				[ $families -eq 1 ] || echo "call fd00:0:0:$rail::$other" | sed 's/:0:0:0::/::/'
			done
		done | sort >"$work/expected"
		grep call "$calls/host$host".* | sort >"$work/seen"
		expect "$of_job: calls of host $host" diff "$work/expected" "$work/seen"
		expect "$of_job: host $host calls all, and then serves" \
			[ "$(uniq "$calls/host$host".* | grep -c '^serve$')" -eq 1 ]
	done
}

hosts 2 2
probed 6 1
hosts_end
hosts 4 2
probed 4 1 2
probed 12 1 2
finish
