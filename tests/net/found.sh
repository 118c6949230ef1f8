#!/bin/sh
# found.sh - a job on hosts without RDMA takes by itself the interfaces over which all its hosts reach
# each other, and says in one line each what it leaves out.
. "$srcdir/tests/run-lib.sh"
. "$srcdir/tests/net/hosts.sh"
out=$work/out err=$work/err
: >"$out" >"$err"

# each COMMAND: the shell command on all hosts, where $i is 1, 2, 3
each() {
	for host in 0 1 2; do
		on $host sh -ec "i=$((host + 1)); $1" || expect "host $host: $1" false
	done
}

# found WHAT RAILS: a job of a rank on each host has these rails, and the lines of standard input,
# each "INTERFACE ADDRESS (HOSTS): REASON", and one about lo.  RAILS "": the job ends with an error.
found() {
	{
		cat
		echo "lo 127.0.0.1 (all hosts): loopback"
	} | sed 's/^/hello: no rail: /' | sort >"$work/expected"
	# shellcheck disable=SC2086 # words are meant
	launch 3 $kernel src/cli/railgauge exec -- tests/net/hello </dev/null
	grep "no rail: " "$err" | sort >"$work/lines"
	expect "$1: lines" diff "$work/expected" "$work/lines"
	if [ -z "$2" ]; then
		expect "$1: exit code" [ "$rc" -ne 0 ]
		expect "$1: an error" grep -q "^hello: no ACTIVE RDMA port on host host0, and no interfaces over \
which all 3 hosts reach each other (accepted: " "$err"
		return
	fi
	expect "$1: exit code" [ "$rc" -eq 0 ]
	expect "$1: rails and fabric" grep -q "^railgauge exec: 3 ranks, [1-8] rails\{0,1\} (soft0:1.*; software HCA over TCP \
(libsofthca), [1-8] ports\{0,1\} over TCP: [a-z0-9]* 10\.0\..* - software, not hardware\$" "$err"
	expect "$1: the job is whole" [ "$(grep -c "rank [0-2] of 3" "$out")" -eq 3 ]
	expect "$1: rails $2" grep -qx \
		"hello: [1-8] rails\{0,1\} by the software HCA over TCP between 3 hosts: net=$2" "$err"
}
kernel=
# Before Linux 5.7 only root binds connections to interfaces.
old_kernel="tests/softhca/confine old=bind --"
# counts INTERFACE...: "HOST INTERFACE tx|rx BYTES" of hosts 0 and 1
counts() {
	for host in 0 1; do
		for name do
			for way in tx rx; do
				echo "$host $name $way $(on $host cat "/sys/class/net/$name/statistics/${way}_bytes")"
			done
		done
	done
}
# count HOST INTERFACE tx|rx: bytes from $work/before to $work/after
count() {
	awk -v of="$1 $2 $3" '$1 " " $2 " " $3 == of { bytes = $4 - bytes } END { print bytes }' "$work/before" "$work/after"
}
# carries INTERFACE...: both hosts have sent and received messages over each, so no way back was another's
carries() {
	for host in 0 1; do
		for name do
			for way in tx rx; do
				expect "host $host: bytes over $name, $way" [ "$(count $host $name $way)" -gt 4194304 ]
			done
		done
	done
}

hosts 3 4
# ---- IPv6 alone --------------------------------------------------------------------------------
each 'ip -4 address flush dev eth1'
found "an interface without IPv4" 10.0.0.0/24+10.0.1.0/24+fd00:0:0:2::/64+10.0.3.0/24+10.0.4.0/24 </dev/null
each 'ip address add 10.0.2.$i/24 dev eth1'

# ---- No common subnet, but routes; the default way -----------------------------------------------
each 'ip address flush dev eth2; ip address add 10.7.$i.1/32 dev eth2
	for k in 1 2 3; do [ $k = $i ] || ip route add 10.7.$k.1/32 dev eth2; done'
found "addresses without a subnet" 10.0.0.0/24+10.0.1.0/24+10.0.2.0/24+10.7.1.1+10.0.4.0/24 </dev/null
counts eth0 eth2 >"$work/before"
launch 2 src/cli/railgauge exec --soft net=eth0+eth2 --trace "$work/trace" -- \
	pt2pt/rg_bibw --sizes 4M --iterations 8 --validate --json "$work/routed.jsonl"
counts eth0 eth2 >"$work/after"
expect "addresses without a subnet: data" grep -q "^4194304 .*Pass" "$out"
carries eth0 eth2
expect "the default is stripe" grep -q '^# stripe: ' "$out"
expect "... in the record, alone" [ "$(grep -o '"way":"[^"]*"' "$work/routed.jsonl" | sort -u)" = '"way":"stripe"' ]
expect "nothing is modelled" eval '! grep -q "a model in software" "$out" "$err" && grep -q "\"modelled\":false" "$work/routed.jsonl"'
expect "a trace names rails" grep -q "^# rails: 0=soft0:1 eth0 1=soft0:2 eth2;" "$work/trace.0"
expect "a trace names the fabric" grep -q "^# fabric: software HCA over TCP .*: eth0 10.0.1.1, eth2 10.7.1.1" "$work/trace.0"
each 'for k in 1 2 3; do [ $k = $i ] || ip route delete 10.7.$k.1/32 dev eth2; done'

# ---- Next to rails: containers, a public network, other names ----------------------------------
each 'ip link add docker0 type bridge; ip address add 172.17.0.1/16 dev docker0
	ip link add inside type veth peer name port
	ip link set dev port master docker0 up; ip link set dev inside up; ip link set dev docker0 up
	for name in docker0 port inside; do ip -6 address flush dev $name; done
	ip address flush dev eth2; ip address add 192.0.2.$i/24 dev eth2'
on 1 sh -ec 'ip link set dev eth3 down name ens9; ip link set dev ens9 up
	ip -6 address flush dev ens9; ip address show dev ens9 | grep -q "10\.0\.4\.2/24"'
common='docker0 172.17.0.1 (all hosts): host1 has the same address
eth2 192.0.2.1 (all hosts): a public address; --soft net=192.0.2.0/24 names it'
found "containers, a public network, other names" 10.0.0.0/24+10.0.1.0/24+10.0.2.0/24+10.0.4.0/24 <<END
$common
END

# Bytes go over the rails, and nowhere else.  A route may have a congestion control of its own.
control='[a-z]*'
! on 0 ip route replace 10.0.1.0/24 dev eth0 proto kernel scope link src 10.0.1.1 congctl reno || control=reno
counts eth0 eth1 eth2 docker0 >"$work/before"
launch 2 pt2pt/rg_bibw --over stripe --sizes 4M --iterations 8 --validate --json "$work/bw.jsonl"
counts eth0 eth1 eth2 docker0 >"$work/after"
expect "a benchmark names fabric and rails" grep -q "^# fabric: software HCA over TCP .* 4 ports over TCP: \
mgmt 10.0.0.1, eth0 10.0.1.1, eth1 10.0.2.1, eth3 10.0.4.1" "$out"
buffers='"receive_buffer_bytes":\[4096,131072,6291456\],"send_buffer_bytes":\[4096,16384,4194304\]'
offloads='"offloads":"tso gso[ gro]*","congestion_control":"'$control'"'
expect "its record has the interfaces" grep -q \
	"\"net\":{\"interface\":\"eth0\",\"driver\":\"veth\",\"mtu_bytes\":1500,$offloads,$buffers}" "$work/bw.jsonl"
for python in python3 /usr/bin/python3; do
	"$python" -c 'import jsonschema' 2>/dev/null || continue
	expect "its record is valid" "$python" "$srcdir/tests/report/records.py" validate \
		"$srcdir/data/railgauge-result.schema.json" "$work/bw.jsonl"
	break
done
expect "its record has those of other names" grep -q '"net":{"interface":"ens9",' "$work/bw.jsonl"
expect "its data are right" grep -q "^4194304 .*Pass" "$out"
carries eth0 eth1
for host in 0 1; do
	for name in eth2 docker0; do
		for way in tx rx; do
			expect "host $host: no bytes over $name, $way" [ "$(count $host $name $way)" -lt 4096 ]
		done
	done
done
# shellcheck disable=SC2086 # words are meant
bibw() {
	counts eth0 eth1 >"$work/before"
	launch 2 $1 pt2pt/rg_bibw --over stripe --sizes 4M --iterations 8 --validate
	counts eth0 eth1 >"$work/after"
	expect "$2: data" grep -q "^4194304 .*Pass" "$out"
	carries eth0 eth1
}
bibw "$old_kernel" "before Linux 5.7"

# What is named, is taken.
launch 3 src/cli/railgauge exec --soft net=192.0.2.0/24 -- tests/net/hello
expect "a public network that is named" [ "$rc" -eq 0 ]
expect "nothing is left out that was named" eval '! grep -q "no rail: " "$err"'
for name in "docker0 172.17.0.1" "lo 127.0.0.1"; do
	launch 3 src/cli/railgauge exec --soft "net=eth1+${name% *}" -- tests/net/hello
	expect "an address of each host, $name" [ "$rc" -ne 0 ]
	expect "the line about $name" [ "$(grep -c "^hello: rail 1 (${name% *}, ${name#* }): peer [1-2] on another host \
has this address as well, so it reaches this host alone (accepted: " "$err")" -eq 1 ]
done

# ---- What is stacked, and tunnels --------------------------------------------------------------
if on login ip link add gone type vxlan id 7 dstport 4789 remote 10.0.0.1 2>/dev/null &&
	on login ip tuntap add gone1 mode tun 2>/dev/null; then
	# Both would answer ARP for either.
	each 'echo 1 >/proc/sys/net/ipv4/conf/all/arp_ignore'
	each 'ip link add upper link eth0 type macvlan mode bridge; ip address add 10.5.0.$i/24 dev upper
		ip link set dev upper up; ip -6 address flush dev upper
		ip link add vx type vxlan id 7 dstport 4789 group 239.1.1.1 dev eth1
		ip address add 10.6.0.$i/24 dev vx; ip link set dev vx up; ip -6 address flush dev vx
		ip tuntap add tun0 mode tun; ip address add 10.9.0.$i/24 dev tun0; ip link set dev tun0 up'
	found "stacked ones and tunnels" 10.0.0.0/24+10.0.1.0/24+10.0.2.0/24+10.0.4.0/24 <<-END
		$common
		upper 10.5.0.1 (all hosts): its packets go over the same wire as those of eth0
		vx 10.6.0.1 (all hosts): a tunnel
		tun0 10.9.0.1 (all hosts): a tunnel
	END
	each 'ip link delete upper; ip link delete vx; ip link delete tun0
		echo 0 >/proc/sys/net/ipv4/conf/all/arp_ignore'
fi

# ---- A management network: bridges have the speed of their fastest port --------------------------
each 'ip link set dev eth2 down; ip link set dev docker0 down'
common='docker0 172.17.0.1 (all hosts): down, or without carrier
eth2 192.0.2.1 (all hosts): down, or without carrier'
if on 0 timeout 1 tests/net/tap some 1000 || [ $? -eq 124 ]; then
	for host in 0 1 2; do
		for rail in 0 1; do
			start $host tests/net/tap fast$rail 100000
		done
	done
	each 'for rail in 0 1; do
		until [ -e /sys/class/net/fast$rail ]; do sleep 0.01; done
		ip link add dev br$rail type bridge; ip address flush dev eth$rail
		ip link set dev eth$rail master br$rail; ip link set dev fast$rail master br$rail up
		ip link set dev br$rail up; ip address add 10.0.$((rail + 1)).$i/24 dev br$rail
		until [ "$(cat /sys/class/net/br$rail/speed)" = 100000 ]; do sleep 0.01; done
		for name in br fast eth; do ip -6 address flush dev $name$rail; done
	done'
	found "a management network" 10.0.1.0/24+10.0.2.0/24 <<-END
		$common
		mgmt 10.0.0.1 (all hosts): 1250MB/s, less than a quarter of the 12.5GB/s of br0
		eth3 10.0.4.1 (host0; ens9 on host1): 1250MB/s, less than a quarter of the 12.5GB/s of br0
	END
	each 'for rail in 0 1; do
		ip link delete dev br$rail; ip address add 10.0.$((rail + 1)).$i/24 dev eth$rail
	done'
	for host in 0 1 2; do
		on $host sh -c 'for rail in 0 1; do ip link delete dev fast$rail; done'
	done
fi

# ---- A firewall, a route that is lacking, an MTU that does not pass ----------------------------
each 'ip link set dev mgmt mtu 1400; ip link set dev mgmt up'
if command -v nft >/dev/null && on 2 sh -ec 'nft add table inet wall
	nft add chain inet wall in "{ type filter hook input priority 0; }"
	nft add rule inet wall in iifname eth0 tcp dport 18600-18855 drop
	nft add rule inet wall in iifname eth1 tcp dport 18600-18855 reject with tcp reset'; then
	found "a firewall" 10.0.0.0/24+10.0.4.0/24 <<-END
		$common
		eth0 10.0.1.1 (all hosts): host0: no answer within 3 s from host2 10.0.1.3: no path, or a firewall
		eth1 10.0.2.1 (all hosts): host0: a refusal (a firewall?) from host2 10.0.2.3
	END
	on 2 nft delete table inet wall
fi
each 'ip link set dev eth0 mtu 9000'
on 1 ip route add unreachable 10.0.2.3/32
found "a smaller MTU between hosts, no route" 10.0.0.0/24+10.0.4.0/24 <<END
$common
eth0 10.0.1.1 (all hosts): host0: packets of the full MTU do not pass to or from host1 10.0.1.2 (MTU 9000 and 9000 bytes)
eth1 10.0.2.1 (all hosts): host1: no route to host2 10.0.2.3
END
on 1 ip route delete unreachable 10.0.2.3/32
each 'ip link set dev eth0 mtu 1500'

# ---- Two interfaces in one subnet, on one wire -------------------------------------------------
for host in 0 1 2; do
	on login ip link set h${host}r1 master rail0
done
each 'for name in eth0 eth1; do ip -6 address flush dev $name; done
	ip address flush dev eth1; ip address add 10.0.1.1$i/24 dev eth1
	for name in all eth0 eth1; do echo 0 >/proc/sys/net/ipv4/conf/$name/rp_filter; done'
# What ARP makes of it is chance; so host 0 has the answer of host 1's eth0, for good.
on 0 ip neigh replace 10.0.1.12 dev eth1 lladdr "$(on 1 cat /sys/class/net/eth0/address)" nud permanent
on 1 ip neigh replace 10.0.1.11 dev eth0 lladdr "$(on 0 cat /sys/class/net/eth1/address)" nud permanent
launch 3 src/cli/railgauge exec -- tests/net/hello </dev/null
expect "crossed ARP: exit code" [ "$rc" -eq 0 ]
expect "crossed ARP is named" grep -qx "hello: no rail: eth1 10\.0\.1\.11 (all hosts): on host1 its packets \
arrive on eth0: net.ipv4.conf.all.arp_ignore=1 and net.ipv4.conf.all.arp_announce=2 there change that" "$err"
on 0 ip neigh delete 10.0.1.12 dev eth1
on 1 ip neigh delete 10.0.1.11 dev eth0
each 'echo 1 >/proc/sys/net/ipv4/conf/all/arp_ignore; echo 2 >/proc/sys/net/ipv4/conf/all/arp_announce
	for name in eth0 eth1; do echo 1 >/proc/sys/net/ipv4/conf/$name/rp_filter; done
	ip neigh flush all'
found "a filter of reverse paths" 10.0.0.0/24+10.0.1.1+10.0.4.0/24 <<END
$common
eth1 10.0.1.11 (all hosts): host0: no answer within 3 s from host1 10.0.1.12; eth0 is in this subnet, \
too, and eth1 drops what would go back there: net.ipv4.conf.eth1.rp_filter=2 on host1 changes that
END
each 'for name in eth0 eth1; do echo 2 >/proc/sys/net/ipv4/conf/$name/rp_filter; done'
found "settings for two interfaces in a subnet" 10.0.0.0/24+10.0.1.1+10.0.1.11+10.0.4.0/24 <<END
$common
END
bibw "" "two interfaces in a subnet"
kernel=$old_kernel
found "two interfaces in a subnet, before Linux 5.7" 10.0.0.0/24+10.0.1.1+10.0.4.0/24 <<END
$common
eth1 10.0.1.11 (all hosts): host0: packets leave over another interface between it and host1 10.0.1.12, and this kernel \
lets only root bind them to one (accepted: Linux 5.7 or newer, CAP_NET_RAW, or routes over this interface)
END
kernel=
# shellcheck disable=SC2086 # words are meant
launch 2 $old_kernel src/cli/railgauge exec --soft net=eth0+eth1 -- tests/mpi/p2p_suite stripe
expect "... that are named" [ "$rc" -ne 0 ]
expect "... rail, interface, host" grep -q "^softhca: rail 2, eth1: packets to host 10\.0\.1\.12 leave over another \
interface, and this kernel lets only root bind .*(accepted: Linux 5\.7 or newer, " "$err"

# ---- None --------------------------------------------------------------------------------------
if command -v nft >/dev/null && on 1 sh -ec 'nft add table inet wall
	nft add chain inet wall in "{ type filter hook input priority 0; }"
	nft add rule inet wall in tcp dport 18600-18855 reject with tcp reset'; then
	found "no interface reaches all hosts" "" <<-END
		$common
		mgmt 10.0.0.1 (all hosts): host0: a refusal (a firewall?) from host1 10.0.0.2
		eth0 10.0.1.1 (all hosts): host0: a refusal (a firewall?) from host1 10.0.1.2
		eth1 10.0.1.11 (all hosts): host0: a refusal (a firewall?) from host1 10.0.1.12
		eth3 10.0.4.1 (host0; ens9 on host1): host0: a refusal (a firewall?) from host1 10.0.4.2
	END
fi
finish
