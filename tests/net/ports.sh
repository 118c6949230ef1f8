#!/bin/sh
# Ports that are network interfaces, as other people's programs see them (ibv_devices, ibv_devinfo,
# ibv_asyncwatch), and softhca list and railgauge topo.  Two hosts, as network namespaces of this
# machine with two veth pairs between them, share everything else: also the directory of registries.
build=$PWD
PATH=$PATH:/usr/sbin:/sbin
if [ "${1-}" != inside ]; then
	[ "${RG_SANITIZE:-no}" = no ] || { echo "skipped: these programs cannot load a sanitized library"; exit 77; }
	for tool in ip unshare nsenter ibv_devices ibv_devinfo ibv_asyncwatch stdbuf; do
		command -v $tool >/dev/null || { echo "skipped: no $tool"; exit 77; }
	done
	# In a user namespace, where this user is not root.
	if [ "$(id -u)" -eq 0 ]; then options=-n; else options=-rn; fi
	unshare $options ip link add one0 type veth peer name two0 2>/dev/null ||
		{ echo "skipped: no network namespace with veth"; exit 77; }
	exec unshare $options sh "$0" inside
fi

work=$(mktemp -d "${TMPDIR:-/tmp}/rg-test-XXXXXX") || exit 99
unshare -n sleep 600 &
second=$! watch=
trap 'kill $second $watch; rm -rf "$work"' EXIT
trap 'exit 99' HUP INT TERM
unset $(env | sed -n 's/^\(RAILGAUGE_[A-Z_]*\|SOFTHCA_[A-Z_]*\)=.*/\1/p')
SOFTHCA_FABRIC=ports-$$ SOFTHCA_DIR=$work
export SOFTHCA_FABRIC SOFTHCA_DIR
out=$work/out err=$work/err
softhca=$build/softhca
failures=0

fail() {
	echo "FAIL: $*"
	failures=$((failures + 1))
}

# same WHAT EXPECTED ACTUAL
same() {
	[ "$2" = "$3" ] || fail "$1: '$3', not '$2'"
}

# shows WHAT PATTERN: a line of $out
shows() {
	grep -q -- "$2" "$out" || fail "$1: no '$2' in: $(cat "$out" "$err")"
}

# eventually COMMAND...: within a minute
eventually() {
	for turn in $(seq 600); do
		"$@" && return
		sleep 0.1
	done
	fail "not within a minute: $*"
}

# refused WORDS COMMAND...: no device, and one line of ours with the words
refused() {
	words=$1
	shift
	timeout 60 "$@" >"$out" 2>"$err" && fail "$*: exit code 0"
	grep '^softhca: ' "$err" | sort -u >"$work/lines"
	[ "$(wc -l <"$work/lines")" -eq 1 ] || fail "$*: not one line: $(cat "$err")"
	grep -q -- "$words" "$work/lines" || fail "$*: no '$words' in: $(cat "$err")"
}

on_second() {
	nsenter -t $second -n "$@"
}

# is_running COMMAND...: with ip of one host, both interfaces
is_running() {
	[ "$("$@" ip -o link show up | grep -c 'eth[01].*state UP')" -eq 2 ]
}

# ---- Two hosts: eth0 and eth1, each the other end of the same name ----
until [ "$(readlink /proc/$second/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do
	sleep 0.01
done
for i in 0 1; do
	ip link add eth$i type veth peer name eth$i netns $second || exit 99
	for host in '' on_second; do
		$host ip link set eth$i addrgenmode none
		$host ip link set eth$i up
	done
	ip addr add 10.0.$((i + 1)).1/24 dev eth$i
	on_second ip addr add 10.0.$((i + 1)).2/24 dev eth$i
done
ip link set lo up
ip link set eth1 mtu 9000
on_second ip link set eth1 mtu 9000
ip addr add fd00:0:0:2::1/64 dev eth1 nodad
eventually is_running
eventually is_running on_second

# ---- What programs see ----
$softhca --soft net=eth0+eth1 ibv_devices >"$out" 2>"$err" || fail "ibv_devices: $(cat "$err")"
shows ibv_devices "soft0"
guid=$(awk '$1 == "soft0" { print $2 }' "$out")
on_second $softhca --soft net=eth0+eth1 ibv_devices >"$out" 2>"$err" || fail "ibv_devices: $(cat "$err")"
[ "$guid" != "$(awk '$1 == "soft0" { print $2 }' "$out")" ] || fail "both hosts have GUID $guid"
same "GUID" 16 ${#guid}

$softhca --soft net=eth0+eth1 ibv_devinfo -v >"$out" 2>"$err" || fail "ibv_devinfo: $(cat "$err")"
# value PORT NAME: the value of a line of ibv_devinfo
value() {
	awk -v port="$1" -v name="$2:" '$1 == "port:" { at = $2 } at == port && $1 == name { print $2 }' \
		"$out"
}
# of PORT MTU GID
of() {
	same "port $1: state" PORT_ACTIVE "$(value "$1" state)"
	same "port $1: MTU" "$2" "$(value "$1" active_mtu)"
	same "port $1: LID" 0 "$(value "$1" port_lid)"
	same "port $1: link layer" Ethernet "$(value "$1" link_layer)"
	same "port $1: width" 1X "$(value "$1" active_width)"
	same "port $1: speed" 10.0 "$(value "$1" active_speed)"
	same "port $1: GID" "$3," "$(awk -v port="$1" '
		$1 == "port:" { at = $2 } at == port && /GID\[/ { print $3 }' "$out")"
}
of 1 1024 ::ffff:10.0.1.1
of 2 4096 ::ffff:10.0.2.1
same "ports" 2 "$(awk '$1 == "phys_port_cnt:" { print $2 }' "$out")"

# By subnet, in another order; by IPv6; on the second host, whose names are the same.
$softhca --soft net=10.0.2.0/24+10.0.1.0/24 ibv_devinfo -v >"$out" 2>"$err"
of 1 4096 ::ffff:10.0.2.1
of 2 1024 ::ffff:10.0.1.1
$softhca --soft net=fd00::/16 ibv_devinfo -v >"$out" 2>"$err"
of 1 4096 fd00:0:0:2::1
on_second $softhca --soft net=eth1 ibv_devinfo -v >"$out" 2>"$err"
of 1 4096 ::ffff:10.0.2.2

"$build/src/cli/railgauge" topo --soft net=eth0+eth1,rate=1Gb/s >"$out" 2>"$err" ||
	fail "topo: $(cat "$err")"
shows topo "soft0:1 .*125MB/s .*1024 .*10\.0\.1\.1"
"$build/src/cli/railgauge" topo --soft net=lo >"$out" 2>"$err" || fail "topo: $(cat "$err")"
shows topo "soft0:1 .*ACTIVE *- "

# ---- Both hosts are on a fabric of their own; a port that goes down ----
stdbuf -oL $softhca --soft net=eth0+eth1 ibv_asyncwatch >"$work/watch" 2>&1 &
watch=$!
eventually grep -q "async event FD" "$work/watch"
on_second $softhca --soft net=eth1 ibv_devinfo >"$out" 2>"$err" ||
	fail "hosts meet in one registry: $(cat "$err")"
refused "exists with spec ports=2,net=eth0+eth1" $softhca --soft net=eth1+eth0 ibv_devinfo
$softhca list >"$out" 2>"$err"
shows list "fabric $SOFTHCA_FABRIC: 2 ports over TCP: eth0, eth1"
shows list "port 0/soft0:2 eth1: active"
refused "the ports of fabric $SOFTHCA_FABRIC are network interfaces" $softhca port 0/soft0:1 down
refused "the ports of fabric $SOFTHCA_FABRIC are network interfaces" $softhca loss 0/soft0:1 0.5
ip link set eth1 down
eventually grep -q "IBV_EVENT_PORT_ERR (10), port 2" "$work/watch"
$softhca --soft net=eth0+eth1 ibv_devinfo -v >"$out" 2>"$err" &&
	fail "a process joins with an interface that is down"
$softhca list >"$out" 2>"$err"
shows list "port 0/soft0:1 eth0: active"
shows list "port 0/soft0:2 eth1: down for"
ip link set eth1 up
eventually grep -q "IBV_EVENT_PORT_ACTIVE (9), port 2" "$work/watch"
on_second ip link set eth0 down
eventually grep -q "IBV_EVENT_PORT_ERR (10), port 1" "$work/watch"
on_second ip link set eth0 up
eventually grep -q "IBV_EVENT_PORT_ACTIVE (9), port 1" "$work/watch"
kill $watch
wait $watch
watch=

# ---- Bad input ----
refused "net=eth7: no such interface (accepted: lo 127.0.0.1, eth0 10.0.1.1" \
	$softhca --soft net=eth0+eth7 ibv_devinfo
refused "net=10.9.0.0/16: no interface has an address there" $softhca --soft net=10.9.0.0/16 ibv_devinfo
refused "are in this subnet (accepted: the name of one, or a smaller subnet)" \
	$softhca --soft net=10.0.0.0/8 ibv_devinfo
refused "both are interface eth1" $softhca --soft net=eth1+10.0.2.0/24 ibv_devinfo
refused "net=eth0+eth0: one is named twice" $softhca --soft net=eth0+eth0 ibv_devinfo
refused "latency=2us: no meaning with net=" $softhca --soft net=eth0,latency=2us ibv_devinfo
refused "node: .*1 is not a node (accepted: 0 to 0)" $softhca --node 1 --soft net=eth0 ibv_devinfo
if command -v rping >/dev/null && [ ! -e /dev/infiniband/rdma_cm ]; then
	refused "rdma_cm is not supported .*EOPNOTSUPP" $softhca --soft net=eth0 rping -s -a 10.0.1.1
fi
ip link set eth0 down
refused "net=eth0: interface eth0 is down" $softhca --soft net=eth0 ibv_devinfo
ip addr flush dev eth1
refused "net=eth1: this interface has no address" $softhca --soft net=eth1 ibv_devinfo
on_second ip link set eth1 down
# without_carrier: the interface's flags say so later than the link itself
without_carrier() {
	ip -o link show eth1 | grep -q 'state DOWN'
}
eventually without_carrier
refused "net=eth1: interface eth1 has no carrier" $softhca --soft net=eth1 ibv_devinfo
$softhca list >"$out" 2>"$err"
! grep -q "$SOFTHCA_FABRIC" "$out" || fail "left behind: $(cat "$out")"
[ $failures -eq 0 ]
