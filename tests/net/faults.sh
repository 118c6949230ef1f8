#!/bin/sh
# faults.sh - what goes wrong between hosts: stopped and killed processes, cables, interfaces,
# firewalls, MTUs, secrets, versions, ports; jobs and users at the same time.  Each case has hosts of
# its own, and all cases wait at the same time.
#
#	faults.sh		all cases, as make check-net runs it
#	faults.sh CASE		one, with the output of its programs where it fails; CASE6: over IPv6
cases='served stopped unmet killed shut cable far_cable for_ever vanished interface renamed address aborted unreliable firewall forgotten reject
	secret rails mtu crossed path_mtu
	path_mtu_read path_mtu_for_ever path_datagrams datagrams ports jobs users descriptors killed6 cable6 unreliable6 firewall6 reject6 path_mtu6
	datagrams6'
build=$PWD
PATH=$PATH:/usr/sbin:/sbin
export PATH
srcdir=${srcdir:-$(dirname "$0")/../..}
if [ $# -ne 1 ]; then
	logs=$(mktemp -d "${TMPDIR:-/tmp}/rg-test-XXXXXX") || exit 99
	trap 'rm -rf "$logs"' EXIT
	for case in ${RG_CASE:-$cases}; do
		(
			sh "$0" "$case" >"$logs/$case" 2>&1
			echo $? >"$logs/$case.rc"
		) &
	done
	wait
	failed=0 skipped=0
	for case in ${RG_CASE:-$cases}; do
		rc=$(cat "$logs/$case.rc")
		case $rc in
		0) echo "passed: $case" ;;
		77) skipped=77 && sed "s/^/$case: /" "$logs/$case" ;;
		*) failed=1 && sed "s/^/$case: /" "$logs/$case" && echo "FAILED: $case" ;;
		esac
	done
	[ $failed -eq 0 ] || exit 1
	exit $skipped
fi

unset $(env | sed -n 's/^\(RAILGAUGE_[A-Z_]*\|SOFTHCA_[A-Z_]*\)=.*/\1/p')
# shellcheck source=/dev/null
. "$srcdir/tests/net/hosts.sh"
RG_MEET=$work/meet
SOFTHCA_FABRIC=faults-$1-$$
SOFTHCA_SPEC=net=eth0 first=10.0.1.1 second=10.0.1.2
case $1 in
*6)
	SOFTHCA_SPEC=net=fd00:0:0:1::/64 first=fd00:0:0:1::1 second=fd00:0:0:1::2
	[ -e /proc/net/if_inet6 ] || { echo "skipped: no IPv6"; exit 77; }
	;;
esac
export RG_MEET SOFTHCA_FABRIC SOFTHCA_SPEC
mkdir -m 777 "$RG_MEET"
failures=0
# What a peer has, by the kernel's ways at least, before it counts as gone.
seconds='\([5-9]\|[1-9][0-9][0-9]*\)'

fail() {
	echo "FAIL: $*"
	failures=$((failures + 1))
	for file in "$work"/*.out "$work"/*.err; do
		sed "s|^|  ${file##*/}: |" "$file"
	done
}

expect() {
	what=$1
	shift
	"$@" || fail "$what"
}

# begin I ME PEER ACTION...: the program end on host I, in the background; $pid_ME
begin() {
	begin_host=$1 begin_me=$2
	shift
	# shellcheck disable=SC2016,SC2086
	start "$begin_host" $as sh -c 'echo $$ >"$1" && shift && exec "$@"' sh "$RG_MEET/$begin_me.pid" \
		$with "$build/tests/net/end" "$@" >"$work/$begin_me.out" 2>"$work/$begin_me.err"
	eval "pid_$begin_me=\$started"
}
as= with=

# end_of ME: it ends; exit code in $rc
end_of() {
	eval "wait \$pid_$1"
	rc=$?
}

# until_file NAME: an end has told it
until_file() {
	for turn in $(seq 600); do
		[ ! -e "$RG_MEET/$1" ] || return 0
		sleep 0.1
	done
	fail "no $1 within a minute"
}

tell() {
	: >"$RG_MEET/$1"
}

# signal SIGNAL I ME.  nsenter stops with its child, and reaps it only when it goes on.
signal() {
	# The shell's own: a bare Debian has no other kill.
	on "$2" sh -c 'kill "$@"' sh "-$1" "$(cat "$RG_MEET/$3.pid")"
	[ "$1" = STOP ] || eval "kill -CONT \$pid_$3" 2>/dev/null
}

# shows ME PATTERN: its output; says ME PATTERN: one line of libsofthca with it, and no other
shows() {
	grep -q -- "$2" "$work/$1.out" || fail "$1: no '$2'"
}
says() {
	grep -q "^softhca: .*$2" "$work/$1.err" || fail "$1: says no '$2'"
	[ "$(wc -l <"$work/$1.err")" -eq 1 ] || fail "$1: not one line"
}
silent() {
	[ ! -s "$work/$1.err" ] || fail "$1: says something"
}

is_over() {
	[ $failures -eq 0 ]
	exit
}

# pair ACTIONS-OF-A -- ACTIONS-OF-B: connected ends on hosts 0 and 1, of which a calls
pair() {
	pair_a=
	while [ "$1" != -- ]; do
		pair_a="$pair_a $1"
		shift
	done
	shift
	begin 1 b a connect "$@"
	# shellcheck disable=SC2086 # words are meant
	begin 0 a b connect $pair_a
}

# ---- Always served ------------------------------------------------------------

case_served() {
	hosts 2 1
	pair write 8 write 1000000 read 1000000 tell written rest end idle 3 -- \
		rest written check 1000000 idle 3 tell end rest never
	end_of a
	expect "a: exit code $rc" [ $rc -eq 0 ]
	shows a "^write: success"
	shows a "^read: success"
	shows b "^check: right"
	for side in a b; do
		awk '$1 == "idle:" { n = $2 } END { exit !(n < 20) }' "$work/$side.out" ||
			fail "$side wakes too often"
		silent $side
	done
}

# A receiver's window is full after some megabytes.
case_stopped() {
	hosts 2 1
	pair rest stopped flood 64 tell flooded rest checked -- \
		tell ready rest flooded flooded tell checked rest never
	until_file ready
	signal STOP 1 b
	tell stopped
	sleep "${RG_LONG:+3}8"
	[ ! -e "$RG_MEET/flooded" ] || fail "requests to a stopped process end"
	signal CONT 1 b
	end_of a
	expect "a: exit code $rc" [ $rc -eq 0 ]
	shows a "^flood: success"
	shows b "^check: right"
	silent a
	silent b
}

# The end that should call is stopped before it does.
case_unmet() {
	hosts 2 1
	begin 0 a b connect rest never
	until_file a.end
	signal STOP 0 a
	begin 1 b a connect post 8 tell posted done tell ended rest never
	until_file posted
	sleep "${RG_LONG:+3}8"
	[ ! -e "$RG_MEET/ended" ] || fail "requests to a stopped process end"
	signal CONT 0 a
	until_file ended
	shows b "^done: success"
	silent a
	silent b
}

case_killed() {
	hosts 2 1
	pair write 8 fate rest go post 8 post 8 done fate -- tell ready rest never
	begin 1 d c connect tell ready2 rest never
	begin 0 c d connect write 8 event catastrophic fate
	until_file ready
	until_file ready2
	signal STOP 1 b			# so that requests are under way when it is killed
	tell go
	until_file ready
	sleep 0.3
	signal KILL 1 b
	signal KILL 1 d
	end_of a
	shows a "^fate: reached"
	shows a "^done: transport retry counter exceeded"
	shows a "^fate: \(dead\|reset\)"
	shows c "^fate: dead"
	end_of c
	shows c "^event: .*catastrophic"
	silent a
	silent c
}

# A program that closes descriptors which it has not opened, at work (a) and idle (c).
case_shut() {
	hosts 2 1
	pair write 8 shut post 8 done -- event catastrophic
	begin 1 d c connect write 8 tell written event catastrophic
	begin 0 c d connect rest written shut rest never
	for end in a b d; do
		end_of $end
	done
	shows a "^done: \(transport retry counter exceeded\|Work Request Flushed Error\)"
	for turn in $(seq 100); do
		[ ! -s "$work/c.err" ] || break
		sleep 0.1
	done
	for side in a c; do
		says $side "rail 1, eth0: this program has closed the descriptor of the connection to host $second"
	done
	silent b
	silent d
}

# ---- Cables and interfaces ----------------------------------------------------

# breaks COMMAND...: it breaks a connection that has worked; requests end
breaks() {
	pair write 8 tell works rest broken post 8 post 8 done fate -- rest never
	until_file works
	"$@"
	tell broken
	end_of a
	shows a "^done: transport retry counter exceeded"
	! grep -q "^fate: dead" "$work/a.out" || fail "a process counts as ended"
}

case_cable() {
	hosts 2 1
	begin 0 c d tell watches event error
	until_file watches
	breaks on login ip link set h0r0 down
	says a "rail 1, eth0: host $second has not answered for $seconds s (the interface is down here)"
	end_of c
	shows c "^event: port error"
}

case_far_cable() {
	hosts 2 1
	breaks on login ip link set h1r0 down
	says a "rail 1, eth0: host $second has not answered for $seconds s (its interface"
}

# Without a limit, requests wait as long as it takes.
case_for_ever() {
	hosts 2 1
	begin 1 b a timeout=0 connect rest never
	begin 0 a b timeout=0 connect write 8 tell works rest broken post 8 post 1000000 tell posted done
	until_file works
	on login ip link set h1r0 down
	tell broken
	until_file posted
	# TCP sends once more after 0.2 + 0.4 + ... + 6.4 s, and next 12.8 s later.
	sleep 16
	on login ip link set h1r0 up
	end_of a
	expect "a: exit code $rc" [ $rc -eq 0 ]
	shows a "^done: success"
	silent a
}

# Nothing comes from there any more; the process is killed when its farewell cannot leave.
case_vanished() {
	hosts 2 1
	vanish() {
		on 1 nft -f - <<-END || exit 77
			table inet gone {
				chain in { type filter hook input priority 0; policy drop; }
				chain out { type filter hook output priority 0; policy drop; }
			}
		END
		signal KILL 1 b
	}
	breaks vanish
	says a "rail 1, eth0: host $second has not answered for $seconds s"
}

case_interface() {
	hosts 2 1
	begin 0 c d tell watches event error event active
	until_file watches
	breaks on 0 ip link set eth0 down
	says a "rail 1, eth0: host $second has not answered for $seconds s (the interface is down here)"
	on 0 ip link set eth0 up
	end_of c
	shows c "^event: port active"
}

# Its name changes before connections are made, and under one whose peer is stopped.
case_renamed() {
	hosts 2 1
	begin 1 b a rest go connect tell ready rest flooded flooded
	begin 0 a b tell open rest go connect write 8 rest stopped flood 64 tell flooded
	until_file open
	for host in 0 1; do
		on $host sh -ec 'ip link set eth0 down; ip link set eth0 name lan0; ip link set lan0 up'
	done
	tell go
	until_file ready
	signal STOP 1 b
	tell stopped
	sleep 12
	[ ! -e "$RG_MEET/flooded" ] || fail "requests to a stopped process end"
	signal CONT 1 b
	for end in a b; do
		end_of $end
		expect "$end: exit code $rc" [ $rc -eq 0 ]
		silent $end
	done
	shows a "^flood: success"
	shows b "^flooded\|^check: right"
}

# The kernel gives a connection up.
case_aborted() {
	hosts 2 1
	pair write 8 tell works event catastrophic -- rest never
	until_file works
	on 0 ss -Kt dst "$second" | grep -q "$second" || hosts_lack "no ss -K"
	end_of a
	says a "rail 1, eth0: the connection to host $second has failed: "
}

case_address() {
	hosts 2 1
	breaks on 0 ip address del $first/24 dev eth0
	says a "rail 1, eth0: host $second has not answered for $seconds s (the interface has lost its address here"
}

# Messages arrive again once the cable is back, whichever end calls and has lost the connection.
case_unreliable() {
	hosts 2 1
	receives="rest broken clear rest back arrive tell"
	# shellcheck disable=SC2086 # words are meant
	{
		begin 1 b a unreliable=1 connect arrive tell there $receives mended rest never
		begin 0 d c unreliable=1 connect arrive tell there2 $receives mended2 rest never
	}
	begin 0 a b unreliable=1 connect repeat there rest broken repeat mended
	begin 1 c d unreliable=1 connect repeat there2 rest broken repeat mended2
	until_file there
	until_file there2
	on login ip link set h1r0 down
	tell broken
	sleep 12
	[ ! -e "$RG_MEET/mended" ] || fail "messages arrive without a cable"
	on login ip link set h1r0 up
	tell back
	for end in a c; do
		end_of $end
		expect "$end: exit code $rc" [ $rc -eq 0 ]
	done
}

# ---- Firewalls ----------------------------------------------------------------

# firewall I VERDICT
firewall() {
	on "$1" nft -f - <<-END
		table inet firewall {
			chain in {
				type filter hook input priority 0
				iifname "eth0" tcp dport 1024-65535 $2
			}
		}
	END
}

case_firewall() {
	hosts 2 1
	firewall 1 drop || exit 77
	pair write 8 -- write 8
	end_of a
	end_of b
	for side in a b; do
		shows $side "^write: transport retry counter exceeded"
	done
	says a "rail 1, eth0: $second ports 18600 to 18855: .*a firewall drops.*SOFTHCA_PORTS"
	says b "rail 1, eth0: no connection from host $first.*18600 to 18855.*SOFTHCA_PORTS"
}

case_reject() {
	hosts 2 1
	firewall 1 "reject with tcp reset" || exit 77
	pair write 8 -- rest never
	end_of a
	shows a "^write: transport retry counter exceeded"
	says a "rail 1, eth0: $second ports 18600 to 18855: no process listens"
}

# ---- The other end is another one -----------------------------------------------

# differs ENVIRONMENT WORDS: of b, and both lines
differs() {
	with="env $1"
	begin 1 b a connect write 8
	with=
	begin 0 a b connect write 8
	end_of a
	end_of b
	shows a "^write: transport retry counter exceeded"
	says a "rail 1, eth0: $second .*the process there has $2"
	says b "rail 1, eth0: the process that calls from host $first has $2"
	shows b "^write: transport retry counter exceeded"
}

# It drops packets of established connections, and answers new ones.
case_forgotten() {
	hosts 2 1
	forgets() {
		firewall 1 "tcp flags & syn == 0 drop" || exit 77
	}
	breaks forgets
	says a "rail 1, eth0: host $second answers, but packets of this connection .*a firewall has forgotten it"
}

case_secret() {
	hosts 2 1
	head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n' >"$work/secret"
	chmod 600 "$work/secret"
	differs "SOFTHCA_SECRET_FILE=$work/secret" "another secret"
}

case_rails() {
	hosts 2 2
	differs "SOFTHCA_SPEC=net=eth0+eth1" "another number of rails"
}

case_mtu() {
	hosts 2 1
	on 1 ip link set eth0 mtu 1400
	differs A=B "another MTU than this interface"
}

# The names of one host are exchanged; its kernel answers ARP for both addresses on either wire.
case_crossed() {
	hosts 2 2
	on 1 sh -ec 'for name in eth0 eth1; do ip address flush dev $name; ip link set $name down; done
		ip link set eth0 name other; ip link set eth1 name eth0; ip link set other name eth1
		ip link set eth0 up; ip link set eth1 up
		ip address add 10.0.2.2/24 dev eth0; ip address add 10.0.1.2/24 dev eth1
		echo 0 >/proc/sys/net/ipv4/conf/all/arp_ignore; echo 0 >/proc/sys/net/ipv4/conf/all/rp_filter
		echo 0 >/proc/sys/net/ipv4/conf/eth0/rp_filter; echo 0 >/proc/sys/net/ipv4/conf/eth1/rp_filter'
	# The time-outs are longer than a call.
	begin 1 b a timeout=20 connect write 8
	begin 0 a b timeout=20 connect write 8
	end_of a
	shows a "^write: transport retry counter exceeded"
	says a "rail 1, eth0: 10.0.2.2 .*arrive there on another one"
	says b "eth0: calls of host 10.0.1.1 arrive on eth1, and answers of eth0 do not reach it"
}

# long_lost I: packets of more than 1500 bytes do not arrive at host I, and no ICMP tells
long_lost() {
	on "$1" nft -f - <<-END || exit 77
		table inet path {
			chain in {
				type filter hook prerouting priority -300
				meta length > 1500 drop
			}
		}
	END
}

case_path_mtu() {
	hosts 2 1 mtu=9000
	long_lost 1
	pair write 8 write 100000 -- rest never
	end_of a
	shows a "^write: success"
	shows a "^write: transport retry counter exceeded"
	says a "rail 1, eth0: host $second answers, but long packets .* MTU of 9000"
}

# The long packets are answers, of an end that has no requests.
case_path_mtu_read() {
	hosts 2 1 mtu=9000
	long_lost 0
	pair write 8 read 100000 fate -- event catastrophic
	end_of a
	shows a "^read: transport retry counter exceeded"
	shows a "^fate: reset"
	end_of b
	says b "rail 1, eth0: host $first answers, but long packets .* MTU of 9000"
}

# ---- Datagrams --------------------------------------------------------------------

# Of a number of the other host, its own process, and of no process at all.
case_datagrams() {
	hosts 2 1
	begin 1 c d connect rest never
	begin 0 d c connect tell works rest never
	pair reach +reached tell reached reach left tell left reach cut -- rest reached
	until_file works
	until_file left
	signal KILL 1 c
	end_of a
	for reach in reached left cut; do
		shows a "^reach: $reach"
	done
}

# Datagrams are lost, and their stream with them; the host answers.
case_path_datagrams() {
	hosts 2 1 mtu=9000
	long_lost 1
	begin 1 d c connect rest never
	begin 0 c d datagram=2000 connect reach +cut
	end_of c
	shows c "^reach: cut"
	says c "rail 1, eth0: host $second answers, but long packets .* MTU of 9000"
}

# Of requests that wait for ever for a host that does not answer.
case_path_mtu_for_ever() {
	hosts 2 1 mtu=9000
	long_lost 1
	begin 1 b a timeout=0 connect rest never
	begin 0 a b timeout=0 connect write 8 write 100000
	end_of a
	shows a "^write: success"
	shows a "^write: transport retry counter exceeded"
	says a "rail 1, eth0: host 10.0.1.2 answers, but long packets .* MTU of 9000"
}

# ---- Ports ----------------------------------------------------------------------

case_ports() {
	hosts 2 1
	SOFTHCA_PORTS=20000-20001
	export SOFTHCA_PORTS
	pair write 8 rest go -- rest never
	begin 1 d c connect write 8 rest go
	begin 0 c d connect write 8 rest go
	begin 1 f e connect write 8 rest go
	begin 0 e f connect write 8 rest go
	for end in a c d e f; do
		for turn in $(seq 600); do
			! grep -q "^write: success" "$work/$end.out" || break
			sleep 0.1
		done
		shows $end "^write: success"
	done
	start 0 "$build/tests/net/reach" --listen 20002
	expect "another program listens" on 0 "$build/tests/net/reach" $first 20002
	SOFTHCA_PORTS=20002
	begin 0 g h connect
	end_of g
	shows g "listen on all TCP ports from 20002 to 20002: .*SOFTHCA_PORTS"
	tell go
}

# ---- At the same time -------------------------------------------------------------

case_jobs() {
	hosts 2 1
	pair flood 64 tell one rest two -- rest one flooded rest two
	SOFTHCA_FABRIC=$SOFTHCA_FABRIC-2
	begin 1 d c connect rest two flooded
	begin 0 c d connect flood 64 tell two
	for end in a b c d; do
		end_of $end
		expect "$end: exit code $rc" [ $rc -eq 0 ]
	done
}

# Of one name, with a secret each, that the first use makes.
case_users() {
	hosts 2 1
	mkdir -m 777 "$work/theirs"
	chmod 755 "$work" "$build" 2>/dev/null
	as="setpriv --reuid 65534 --regid 65534 --clear-groups env HOME=$work/theirs"
	on 0 $as test -x "$build/tests/net/end" || { echo "skipped: another user cannot run it"; exit 77; }
	pair flood 64 tell one rest two -- rest one flooded rest two
	as=
	begin 1 d c connect rest two flooded
	begin 0 c d connect flood 64 tell two
	for end in a b c d; do
		end_of $end
		expect "$end: exit code $rc" [ $rc -eq 0 ]
	done
	expect "the other user's secret" [ -s "$work/theirs/.softhca/secret" ]
}

case_descriptors() {
	hosts 2 1
	with="prlimit --nofile=1024:4096"
	pair write 8 descriptors tell seen rest never -- rest seen descriptors
	end_of b
	for side in a b; do
		shows $side "^descriptors: 0 below 1024, some above, limit 1024"
		shows $side "^descriptors of a child: limit 1024"
	done
}

case_"${1%6}"
is_over
