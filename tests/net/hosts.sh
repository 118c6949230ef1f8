# hosts.sh - hosts joined by Ethernet, as namespaces of this machine.  Sourced by sh scripts,
# behind run-lib.sh where they launch MPI programs.
#
#	hosts N R [WORD...]	N hosts with R rails: interfaces eth0, eth1, ... of host I (from 0) with
#				10.0.<rail + 1>.<I + 1>/24 and fd00:0:0:<rail + 1>::<I + 1>/64, and the
#				interface mgmt, 10.0.0.<I + 1>, for launchers.  Exit code 77, with the
#				reason, where no such hosts can be made.  WORDs:
#		mtu=BYTES	of all rails (1500)
#		rate=MBIT+MBIT	of each rail by a token bucket, both ways; the last is that of the others
#		offload=no	no segmentation offload, no coalescing of received segments
#		wire=direct	of two hosts: a rail is one veth pair, without a bridge
#	on I COMMAND...		on host I, in this directory, with standard input; exit code of COMMAND
#	on login COMMAND...	where the bridges are and launchers run, 10.0.0.254
#	start I COMMAND...	the same in the background: process $started, whose end ends COMMAND by
#				SIGTERM
#	host_pid I		the first process of host I; all of its others end with it
#	host_crash I		host I and all its processes end at once, as by a cut of power
#	host_boot I		it is there again, with its interfaces (not with wire=direct)
#	hosts_end		all hosts end; so they do with the script, however it ends
#
# A host has namespaces of its own for network, processes, mounts (/proc, /sys, /dev/shm), System V
# objects and its name, hostI.  HOME is a directory of the run that all hosts share.  All interfaces are
# in namespaces without a name, so that runs at the same time do not meet.  In $launcher, hosts leaves
# the launcher for run-lib.sh: ranks in blocks over all hosts (mpirun.sh).
work=${work:-$(mktemp -d "${TMPDIR:-/tmp}/rg-test-XXXXXX")} || exit 99
hosts_dir=$work/hosts
hosts_count=0 hosts_holders=
trap 'hosts_end; rm -rf "$work"' EXIT
trap 'exit 99' HUP INT TERM

hosts_lack() {
	echo "hosts.sh: no hosts as namespaces: $*"
	exit 77
}

hosts_can_be() {
	[ "$(id -u)" -eq 0 ] || hosts_lack "not root"
	for tool in ip unshare nsenter setpriv; do
		command -v $tool >/dev/null || hosts_lack "no $tool"
	done
	unshare -n -m -u -i -p --fork mount -t proc proc /proc 2>/dev/null ||
		hosts_lack "unshare or mount is refused"
}

# hosts_hold NAME ADDRESS OPTION...: a process that keeps the namespaces; its pid in $hosts_dir/NAME.
# pdeathsig: it ends with this shell, even one that was killed.
hosts_hold() {
	held=$1 address=$2
	shift 2
	setpriv --pdeathsig KILL unshare -n -m -u "$@" sh -c '
		read -r pid rest </proc/self/stat
		hostname "$1" && mount -t proc proc /proc && mount -t sysfs sysfs /sys &&
			mount -t tmpfs -o mode=1777 shm /dev/shm && mount --bind "$2/names" /etc/hosts &&
			ip link set lo up || exit
		for name in default all; do
			echo 0 >/proc/sys/net/ipv6/conf/$name/accept_dad
		done
		# Those of Debian, whatever this machine has.
		echo 4096 131072 6291456 >/proc/sys/net/ipv4/tcp_rmem
		echo 4096 16384 4194304 >/proc/sys/net/ipv4/tcp_wmem
		echo "$pid" >"$2/$1.new" && mv "$2/$1.new" "$2/$1"
		# Without a child, which would outlive it.
		[ $$ -eq 1 ] || read -r never <>"$2/never"
		# The first process of a host has its orphans to bury.
		while :; do
			sleep 3600 &
			wait
		done' sh "$held" "$hosts_dir" </dev/null >/dev/null 2>"$hosts_dir/$held.err" 8>&- 9>&- &
	hosts_holders="$hosts_holders $!"
	echo "$address $held" >>"$hosts_dir/names"
	until [ -e "$hosts_dir/$held" ]; do
		kill -0 $! 2>/dev/null || hosts_lack "$(cat "$hosts_dir/$held.err")"
		sleep 0.01
	done
}

# hosts_entered I: the command that enters host I, as words.
hosts_entered() {
	read -r entered_pid <"$hosts_dir/$1" || return
	entered="nsenter -t $entered_pid -n -m -u -i"
	[ "$1" = login ] || entered="$entered -p"
}

hosts_name() {
	case $1 in
	login | host*) echo "$1" ;;
	*) echo "host$1" ;;
	esac
}

on() {
	(hosts_exec "$@")
}
# A directory of mpirun or of $work is the same on all hosts.  nsenter forks: its child ends with it.
hosts_exec() {
	hosts_entered "$(hosts_name "$1")" || exit 99
	shift
	HOME=$hosts_dir/home
	export HOME
	# shellcheck disable=SC2016,SC2086 # words are meant
	exec $entered setpriv --pdeathsig TERM sh -c 'cd "$1" && shift && exec "$@"' sh "$PWD" "$@" \
		8>&- 9>&-
}
start() {
	hosts_exec "$@" &
	started=$!
}
host_pid() {
	cat "$hosts_dir/$(hosts_name "$1")"
}

# hosts_wire NAME I LINE...: interface NAME of host I, from the login's side, which LINE says.
hosts_wire() {
	wire_name=$1 wire_host=$2
	shift 2
	on login ip link add "$@" type veth peer name "$wire_name" netns "$(host_pid "$wire_host")"
}

# hosts_address NAME I RAIL: addresses of an interface; rail -1 is mgmt.  The congestion control is
# Debian's, too: a namespace has that of its machine, and a route another.
hosts_address() {
	on "$2" sh -c '
		ip link set dev "$1" mtu "$4" up && ip address add "10.0.$3.$2/24" dev "$1" || exit
		ip route replace "10.0.$3.0/24" dev "$1" proto kernel scope link src "10.0.$3.$2" \
			congctl cubic 2>/dev/null || :
		[ ! -e /proc/net/if_inet6 ] || ip address add "fd00:0:0:$3::$2/64" dev "$1" nodad' \
		sh "$1" $(($2 + 1)) $(($3 + 1)) "$mtu"
}

# hosts_bridge NAME: on the login, where its ports find it.
hosts_bridge() {
	on login ip link add "$1" mtu "$mtu" type bridge stp_state 0 mcast_snooping 0 ||
		hosts_lack "no bridge in this kernel"
	on login ip link set "$1" up
}

# hosts_quality I RAIL: rate and offloads of what host I sends there.
hosts_quality() {
	if [ "$offload" = no ]; then
		command -v ethtool >/dev/null || hosts_lack "no ethtool"
		on "$1" ethtool -K "eth$2" tso off gso off gro off || return
	fi
	quality_rate=$(echo "$rate" | cut -d+ -f$(($2 + 1)))
	[ -n "$quality_rate" ] || quality_rate=${rate##*+}
	[ -z "$quality_rate" ] ||
		on "$1" tc qdisc add dev "eth$2" root tbf rate "${quality_rate}mbit" burst 256kb latency 50ms ||
		hosts_lack "no token bucket (sch_tbf) in this kernel"
}

# hosts_plug I RAIL: host I gets its interface.
hosts_plug() {
	[ "$wire" = direct ] || {
		hosts_wire "eth$2" "$1" "h${1}r$2" mtu "$mtu" master "rail$2" &&
			on login ip link set "h${1}r$2" up
	} || hosts_lack "no veth in this kernel"
	hosts_address "eth$2" "$1" "$2" && hosts_quality "$1" "$2" || exit 99
}

hosts_rail() {
	if [ "$wire" = direct ]; then
		ip link add "eth$1" netns "$(host_pid 0)" type veth \
			peer name "eth$1" netns "$(host_pid 1)" || hosts_lack "no veth in this kernel"
	else
		hosts_bridge "rail$1"
	fi
	for host in $(seq 0 $((hosts_count - 1))); do
		hosts_plug "$host" "$1"
	done
}

# hosts_plug_management I: of Ethernet's usual MTU
hosts_plug_management() {
	rail_mtu=$mtu mtu=1500
	hosts_wire mgmt "$1" "h${1}m" master mgmt && on login ip link set "h${1}m" up &&
		hosts_address mgmt "$1" -1 || hosts_lack "no veth in this kernel"
	mtu=$rail_mtu
}

hosts_management() {
	rail_mtu=$mtu mtu=1500
	hosts_bridge mgmt
	mtu=$rail_mtu
	on login ip address add 10.0.0.254/24 dev mgmt
	for host in $(seq 0 $((hosts_count - 1))); do
		hosts_plug_management "$host"
	done
}

hosts_hold_host() {
	hosts_hold "host$1" "10.0.0.$(($1 + 1))" -i -p --fork --kill-child
}

host_crash() {
	kill -KILL "$(host_pid "$1")"
	rm "$hosts_dir/$(hosts_name "$1")"
}

# The kernel takes the interfaces of the crashed host away in its own time.
host_boot() {
	while on login ip link show "h${1}m" >/dev/null 2>&1; do sleep 0.05; done
	hosts_hold_host "$1"
	hosts_plug_management "$1"
	for rail in $(seq 0 $((rails - 1))); do
		while on login ip link show "h${1}r$rail" >/dev/null 2>&1; do sleep 0.05; done
		hosts_plug "$1" "$rail"
	done
	# Others still know its addresses by those of the interfaces that are gone.
	for host in login $(seq 0 $((hosts_count - 1))); do
		on "$host" ip neigh flush all
	done
}

# The way of launchers to a host, instead of ssh: enter HOST COMMAND-LINE.
hosts_agent() {
	cat >"$hosts_dir/enter" <<-END
		#!/bin/sh
		while :; do
			case \$1 in -*) shift ;; *) break ;; esac
		done
		host=\$1
		shift
		read -r pid <'$hosts_dir'/"\$host" || exit 255
		exec nsenter -t "\$pid" -n -m -u -i -p setpriv --pdeathsig TERM sh -c \
			"cd '\$PWD' && \$*"
	END
	chmod +x "$hosts_dir/enter"
}

hosts() {
	hosts_can_be
	hosts_count=$1 rails=$2 mtu=1500 rate= offload=yes wire=bridge
	shift 2
	for word do
		case $word in
		mtu=* | rate=* | offload=* | wire=*) eval "${word%%=*}=\${word#*=}" ;;
		*)
			echo "hosts: $word: accepted: mtu=, rate=, offload=, wire="
			exit 99
			;;
		esac
	done
	mkdir -p "$hosts_dir/home"
	echo "127.0.0.1 localhost" >"$hosts_dir/names"
	mkfifo "$hosts_dir/never"
	hosts_hold login 10.0.0.254
	for host in $(seq 0 $((hosts_count - 1))); do
		hosts_hold_host "$host"
	done
	hosts_management
	for rail in $(seq 0 $((rails - 1))); do
		hosts_rail "$rail"
	done
	hosts_agent
	RG_HOSTS=$hosts_dir RG_HOSTS_COUNT=$hosts_count
	export RG_HOSTS RG_HOSTS_COUNT
	launcher="sh $srcdir/tests/net/mpirun.sh"
}

# A host's other processes end with its first.  Those of the login, and what has entered a host by nsenter and
# waits outside, perhaps stopped, are found by their network.
hosts_end() {
	[ -n "$hosts_holders" ] || return 0
	set --
	for name in $(sed -n 's/^10[.0-9]* //p' "$hosts_dir/names"); do
		# "net:[4026531840]", as a pattern
		read -r pid <"$hosts_dir/$name" && net=$(readlink "/proc/$pid/ns/net") &&
			[ "$net" != "$(readlink /proc/self/ns/net)" ] &&
			set -- "$@" ${1:+-o} -lname "$(echo "$net" | sed 's/[][]/\\&/g')"
	done 2>/dev/null
	for name in $(sed -n 's/^10[.0-9]* //p' "$hosts_dir/names"); do
		[ ! -e "$hosts_dir/$name" ] || kill -KILL "$(cat "$hosts_dir/$name")"
	done 2>/dev/null
	for turn in 1 2 3 4 5 6 7 8 9; do
		left=
		[ $# -eq 0 ] || left=$(find /proc/[0-9]*/ns/net "$@" 2>/dev/null)
		[ -n "$left" ] || break
		for pid in $left; do
			pid=${pid#/proc/}
			kill -KILL "${pid%%/*}" 2>/dev/null
		done
		sleep 0.05
	done
	# The first process goes when all others have gone and are buried, and then its holder.
	for pid in $hosts_holders; do
		[ -e "$hosts_dir/login" ] || kill -KILL "$pid"
		wait "$pid"
	done 2>/dev/null
	hosts_holders=
	rm -rf "$hosts_dir"
}
