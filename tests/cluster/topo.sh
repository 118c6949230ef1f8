#!/bin/sh
# topo.sh - railgauge topo with the kernel's own devices: where their network interfaces
# are, and a port that goes down.
. "$srcdir/tests/run-lib.sh"

topo() {
	src/cli/railgauge topo "$@" >"$out" 2>"$err"
	rc=$?
}
# The PCI address of the interface below a device, from sysfs.
address() {
	basename "$(readlink -f "/sys/class/net/$(cat "/sys/class/infiniband/$1/parent")/device/..")"
}

topo
expect "exit code 0" [ $rc -eq 0 ]
for rail in 0 1; do
	expect "rxe$rail is rail $rail, ACTIVE, where its interface is" grep -Eq \
		"^$rail +rxe$rail:1 +Ethernet +ACTIVE +[0-9.]+[kMG]B/s +[0-9]+ +0 +$(address rxe$rail) .*RoCE v2 ::ffff:" \
		"$out"
done
expect "through the host bridge to each other and to the core" \
	grep -Eq '^rxe1:1 +PHB +X +PHB$' "$out"
topo --json
expect "kernel software" [ "$(grep -c '"kind": "kernel software"' "$out")" -eq 2 ]

vc-link "$VC_ID" 1 off
for second in $(seq 60); do
	topo
	grep -q '^rxe1:1 is DOWN: ' "$out" && break
	sleep 1
done
expect "a port without a carrier is DOWN, and no rail" grep -Eq '^- +rxe1:1 +Ethernet +DOWN ' "$out"
expect "... which is warned about" grep -q '^rxe1:1 is DOWN: ' "$out"
vc-link "$VC_ID" 1 on
for second in $(seq 60); do
	topo
	grep -q DOWN "$out" || break
	sleep 1
done
expect "and is a rail again" grep -Eq '^1 +rxe1:1 +Ethernet +ACTIVE ' "$out"
finish
