# guest.sh - process 1 of a virtual machine after init.sh: network, Soft-RoCE, ssh; node 0
# then runs the job, the others serve until it is done.  /vc is the run's directory.
busybox=/run/busybox
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export HOME=/root TERM=dumb LC_ALL=C
for word in $(cat /proc/cmdline); do
	case $word in
	vc.*=*)
		name=${word#vc.}
		export "VC_$(echo "${name%%=*}" | tr a-z A-Z)=${name#*=}"
		;;
	esac
done
id=$VC_ID
count() { seq 0 $(($1 - 1)); }

hostname "node$id"
ulimit -l unlimited
ulimit -c 0

# ---- Names.  nodeK is its address on rail 0, nodeK-rJ the one on rail J; no DNS waits.
{
	echo "127.0.0.1 localhost"
	for i in $(count "$VC_NODES"); do
		echo "10.0.1.$((i + 1)) node$i"
		for r in $(count "$VC_RAILS"); do
			echo "10.0.$((r + 1)).$((i + 1)) node$i-r$r"
		done
	done
} >/etc/hosts
echo "node$id" >/etc/hostname
printf '%s: files\n' hosts passwd group shadow >/etc/nsswitch.conf

# ---- One segment and one Soft-RoCE device per rail.
ip link set lo up
sysctl -qw net.ipv6.conf.all.accept_dad=0 net.ipv6.conf.default.accept_dad=0 \
	net.ipv4.conf.all.arp_ignore=1 net.ipv4.conf.all.arp_announce=2 \
	net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.default.rp_filter=0
for r in $(count "$VC_RAILS"); do
	mac=$(printf '52:54:00:%02x:00:%02x' $((r + 1)) $((id + 1)))
	for path in /sys/class/net/*; do
		[ "$(cat "$path/address" 2>/dev/null)" != "$mac" ] || device=${path##*/}
	done
	[ "$device" = eth$r ] || ip link set dev "$device" name eth$r
	sysctl -qw net.ipv6.conf.eth$r.accept_dad=0
	ip link set dev eth$r mtu "$VC_MTU" up
	ip addr add 10.0.$((r + 1)).$((id + 1))/24 dev eth$r
	rdma link add rxe$r type rxe netdev eth$r || echo "vcluster: no rxe$r"
done

# ---- ssh between the nodes, with keys that live as long as the run.
mkdir -p /root/.ssh /etc/dropbear /usr/local/bin
chmod 700 /root /root/.ssh
# A machine without others has no key.
[ ! -e /vc/key ] || {
	cp /vc/key.pub /root/.ssh/authorized_keys
	cp /vc/key /root/.ssh/id_dropbear
	cp /vc/hostkey /etc/dropbear/hostkey
	chmod 600 /root/.ssh/* /etc/dropbear/hostkey
}
cat >/usr/local/bin/ssh <<'S'
#!/bin/sh
# ssh, as far as MPI launchers need it: OpenSSH's options are dropped.
while :; do
	case $1 in
	-o | -l | -p | -i) shift 2 ;;
	-*) shift ;;
	*) break ;;
	esac
done
host=$1
shift
exec dbclient -y -y -T -i /root/.ssh/id_dropbear root@"$host" ${1:+"$*"} 2>/dev/null
S
cat >/usr/local/bin/vc-link <<'S'
#!/bin/sh
# vc-link NODE RAIL on|off: the carrier of one NIC, switched by the hypervisor
ticket=$$.$(date +%s%N)
echo "$1 set_link n$2 $3" >/vc/t.$ticket
mv /vc/t.$ticket /vc/ask.$ticket
for i in $(seq 1200); do
	[ ! -e /vc/done.$ticket ] || break
	sleep 0.05
done
rm -f /vc/done.$ticket
S
cat >/usr/local/bin/vc-shape <<'S'
#!/bin/sh
# vc-shape [-r RAIL] QDISC...|off: shape what this node receives, for instance
#	vc-shape tbf rate 50mbit burst 64kb limit 8mb
#	vc-shape -r 1 netem delay 6.5ms limit 4000 loss 0.1%
# Through ifb and not at the egress: there rxe's packets point to the socket of their
# queue pair, which kernel 6.1 may free under them (a panic, seen once).
rails=$(seq 0 $((VC_RAILS - 1)))
[ "$1" != -r ] || {
	rails=$2
	shift 2
}
for r in $rails; do
	if [ "$1" = off ]; then
		tc qdisc del dev eth$r ingress 2>/dev/null
		ip link del ifb$r 2>/dev/null
		continue
	fi
	ip link show ifb$r >/dev/null 2>&1 || ip link add ifb$r type ifb
	ip link set dev ifb$r mtu 9000 up
	tc qdisc show dev eth$r | grep -q ingress || {
		tc qdisc add dev eth$r handle ffff: ingress
		tc filter add dev eth$r parent ffff: matchall action mirred egress redirect dev ifb$r
	}
	tc qdisc replace dev ifb$r root "$@"
done
S
chmod 755 /usr/local/bin/ssh /usr/local/bin/vc-link /usr/local/bin/vc-shape
# A shell that dropbear starts for a command reads no profile.
cat >/run/shell <<S
#!/bin/sh
export PATH=$PATH LC_ALL=C VC_ID=$id VC_NODES=$VC_NODES VC_RAILS=$VC_RAILS
ulimit -l unlimited
exec /bin/sh "\$@"
S
chmod 755 /run/shell
echo /run/shell >>/etc/shells
sed -i 's,^root:.*,root:x:0:0:root:/root:/run/shell,' /etc/passwd
sed -i 's,^root:[!*]*:,root:x:,' /etc/shadow
[ ! -e /vc/key ] || dropbear -r /etc/dropbear/hostkey -p 22 -s -R -P /run/dropbear.pid 2>/run/dropbear.log

# ---- The job.
echo >"/vc/ready.$id"
if [ "$id" = 0 ]; then
	for i in $(count "$VC_NODES"); do
		until [ -e "/vc/ready.$i" ]; do sleep 0.2; done
	done
	(
		setsid sh /vc/job >/vc/log 2>&1 </dev/null
		echo $? >/vc/rc
	)
	echo >/vc/done
fi
until [ -e /vc/done ]; do sleep 0.3; done
dmesg >"/vc/dmesg.$id"
sync
$busybox poweroff -f
