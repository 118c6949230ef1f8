#!/bin/sh
# about.sh - on one node: what a reader of results wants to know of its adapters; all at once, since
# several nodes write.
text=$(
	echo "== $(hostname)"
	uname -srvm
	sed -n 's/^PRETTY_NAME=//p' /etc/os-release
	ulimit -a
	lsmod 2>/dev/null | grep -E '^(ib_|rdma|mlx|irdma|bnxt_re|hns_roce|iw_|ice |efa|siw)'
	cat /proc/self/cgroup
	ls -l /dev/infiniband 2>&1
	ibv_devinfo -v 2>&1
	rdma link 2>&1
	ip -br address 2>&1
	for file in /sys/class/infiniband/*/*_ver /sys/class/infiniband/*/board_id /sys/class/infiniband/*/node_type \
		/sys/class/infiniband/*/ports/*/rate /sys/class/infiniband/*/ports/*/state \
		/sys/class/infiniband/*/ports/*/*counters/*; do
		[ ! -f "$file" ] || echo "$file $(cat "$file" 2>&1)"
	done
)
printf '%s\n\n' "$text"
