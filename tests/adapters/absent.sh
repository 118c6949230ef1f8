#!/bin/sh
# absent.sh - hosts whose kernel shows RDMA devices that have no port to use: a line from each host
# with the reason.  /sys/class is another tree, in a mount namespace.
. "$srcdir/tests/adapters/adapters.sh"
unshare -um mount -t tmpfs none /sys/class 2>/dev/null || {
	echo "another /sys/class needs mounts, which this user cannot make"
	exit 77
}
tree=$work/class

# device NAME NODE_TYPE DRIVER [UVERBS]: as the kernel shows it.
device() {
	mkdir -p "$tree/infiniband/$1/device" "$tree/infiniband_verbs"
	echo "$2" >"$tree/infiniband/$1/node_type"
	ln -sfn "../../drivers/$3" "$tree/infiniband/$1/device/driver"
	[ -z "${4-}" ] || {
		mkdir -p "$tree/infiniband_verbs/$4"
		echo "$1" >"$tree/infiniband_verbs/$4/ibdev"
	}
}

# seen WORDS: two ranks on each of two hosts, one line from each.
seen() {
	launch 4 sh "$srcdir/tests/adapters/tree.sh" "$tree" ./pt2pt/rg_latency --sizes 8 --time-cap 20ms
	[ "$(grep -c "warning: host host[01] has no ACTIVE RDMA port, .*: $1" "$err")" -eq 2 ]
	expect "$1: a line from each host" [ $? -eq 0 ]
	expect "$1: no other" [ "$(grep -c 'no ACTIVE RDMA port' "$err")" -eq 2 ]
	rm -rf "$tree"
}

device mlx5_0 "1: CA" mlx5_core uverbs0
device mlx5_1 "1: CA" mlx5_core uverbs1
seen "mlx5_0 and 1 more: libibverbs has no provider for it (driver mlx5_core): install"
device mlx5_0 "1: CA" mlx5_core
seen "mlx5_0: the kernel has no verbs device for it (modprobe ib_uverbs)"
device rdmap0s6 "7: unspecified" efa uverbs0
device usnic_0 "6: usNIC UDP" enic uverbs1
device rocep59s0 "4: RNIC" ice uverbs2
seen "rdmap0s6: EFA, .*; rocep59s0: iWARP, .*devlink dev param set pci/.*enable_roce.*; usnic_0: usNIC"
launch 2 sh "$srcdir/tests/adapters/tree.sh" "$tree" ./pt2pt/rg_latency --sizes 8 --time-cap 20ms
expect "no device: no line" [ "$(grep -c 'RDMA port' "$err")" -eq 0 ]
finish
