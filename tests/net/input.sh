#!/bin/sh
# input.sh - bad input to a job on two hosts: rails that are named, and that one host lacks or over which
# the hosts do not reach each other.  One line each, with the host, and no rank ends well.
. "$srcdir/tests/run-lib.sh"
. "$srcdir/tests/net/hosts.sh"
hosts 2 2
out=$work/out err=$work/err
: >"$out" >"$err"
mkdir "$work/ended" || exit 99

# measures: named rails, a rank on each host; the exit code of a rank that ends by itself in $work/ended.
measures() {
	rm -f "$work/ended/"*
	# shellcheck disable=SC2016 # for the rank's shell
	limit=120 launch_beside 2 sh -c '"$@"; code=$?; echo $code >"$0/$(hostname)"; exit $code' "$work/ended" \
		pt2pt/rg_bw --soft net=eth0+eth1 --sizes 8 --iterations 4
	expect "$1: exit code" [ "$rc" -ne 0 -a "$rc" -ne 124 ]
	expect "$1: no rank ends well" eval '! cat "$work/ended/"* 2>&1 | grep -qx 0'
	expect "$1: no table" [ "$(grep -c '^[0-9]' "$out")" -eq 0 ]
}

# unreached RAIL WORDS: a line of libsofthca says so, once for each host, and none is about the other rail.
# First contact is over rail 1; over rail 2, the end that is called may be the first to give up.
unreached() {
	expect "$2" grep -q "^softhca: rail $1, eth$(($1 - 1)): .*10\.0\.$1\.[12][ :,].*\($2\)" "$err"
	expect "$2: once for each host" [ -z "$(sed -n 's/^softhca: .*\(10\.0\.[12]\.[12]\)[ :,].*/\1/p' "$err" |
		sort | uniq -d)" ]
	expect "$2: of this rail alone" [ "$(grep '^softhca: ' "$err" | grep -vc "^softhca: rail $1, eth$(($1 - 1)): ")" -eq 0 ]
	expect "$2: no LID" eval '! grep -q "LID" "$err"'
}

# ---- No way between the hosts --------------------------------------------------------------------
# firewall INTERFACE VERDICT: of host 1, both ways; false, where the kernel has none
firewall() {
	on 1 nft -f - <<-END
		table inet wall {
			chain in {
				type filter hook input priority 0
				iifname "$1" tcp dport 18600-18855 $2
			}
			chain out {
				type filter hook output priority 0
				oifname "$1" tcp dport 18600-18855 $2
			}
		}
	END
}

# fenced RAIL WORDS VERDICT
fenced() {
	firewall eth$(($1 - 1)) "$3" || return 0
	measures "eth$(($1 - 1)): $3"
	unreached "$1" "$2"
	on 1 nft delete table inet wall
}
if command -v nft >/dev/null; then
	fenced 1 "a firewall drops" drop
	fenced 1 "a firewall rejects" "reject with tcp reset"
	fenced 2 "a firewall" "reject with tcp reset"
	for rail in 1 $(long 2); do
		fenced $rail "No route to host\|a firewall" "reject with icmpx type host-unreachable"
	done
	for rail in $(long 2); do
		fenced $rail "a firewall" drop
	done
fi
for rail in 1 $(long 2); do
	for host in 0 1; do
		on $host ip route add unreachable "10.0.$rail.$((2 - host))/32"
	done
	measures "eth$((rail - 1)): no route"
	unreached $rail "No route to host over this interface\|a firewall"
	for host in 0 1; do
		on $host ip route delete unreachable "10.0.$rail.$((2 - host))/32"
	done
done

# ---- A host without the interface ----------------------------------------------------------------
# lacks WORDS: host 1 does
lacks() {
	limit=60 launch_beside 2 pt2pt/rg_bw --soft net=eth0+eth1 --sizes 8 --iterations 4
	judge_refusal rg_bw 3 4 "host1: net=eth1: $1" "$1"
}
on 1 ip link set dev eth1 down
lacks "interface eth1 is down"
on 1 sh -ec 'ip link set dev eth1 up; ip address flush dev eth1; ip link set dev eth1 addrgenmode none'
lacks "this interface has no address"
on 1 sh -ec 'ip link set dev eth1 down; ip link set dev eth1 name lan1'
lacks "no such interface"
finish
