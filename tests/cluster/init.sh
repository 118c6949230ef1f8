#!/bin/busybox sh
# init.sh - first program of a virtual machine (vcluster): modules, the host's root
# file system read-only beneath a tmpfs, the run's directory at /vc, then guest.sh.
B=/bin/busybox
$B mkdir -p /bin /proc /sys /dev
$B --install -s /bin
export PATH=/bin
mount -t proc p /proc
mount -t sysfs s /sys
mount -t devtmpfs d /dev
give_up() {
	echo "vcluster: $*"
	poweroff -f
}
for module in $(cat /mod/order); do
	# busybox insmod ignores MODULE.PARAMETER=VALUE of the kernel's command line
	name=${module%.ko} parameters=
	for word in $(cat /proc/cmdline); do
		case $word in "$name".*) parameters="$parameters ${word#*.}" ;; esac
	done
	[ "$name" != ifb ] || parameters="$parameters numifbs=0"
	insmod "/mod/$module" $parameters || echo "vcluster: insmod $module failed"
done
mkdir -p /host /up /newroot
nine=trans=virtio,version=9p2000.L,msize=512000
mount -t 9p -o ro,$nine,cache=loose,posixacl hostroot /host ||
	mount -t 9p -o ro,$nine,cache=loose hostroot /host || give_up "no root file system"
mount -t tmpfs -o mode=755 t /up
mkdir -p /up/u /up/w
mount -t overlay -o lowerdir=/host,upperdir=/up/u,workdir=/up/w o /newroot ||
	give_up "no overlay"
cd /newroot || give_up "no new root"
mkdir -p proc sys dev run tmp vc
mount -t tmpfs t run
mount -t 9p -o rw,$nine,cache=none shared vc || give_up "no shared directory"
# A directory of the host that is not in its root file system, in the same place.
for word in $(cat /proc/cmdline); do
	case $word in
	vc.tree=/*)
		tree=${word#vc.tree=}
		mkdir -p /tree "/newroot$tree" /up/tu /up/tw
		mount -t 9p -o ro,$nine,cache=loose tree /tree || give_up "no tree"
		mount -t overlay -o lowerdir=/tree,upperdir=/up/tu,workdir=/up/tw tree "/newroot$tree" ||
			give_up "no overlay of the tree"
		;;
	esac
done
umount /proc /sys
mount -t proc p proc
mount -t sysfs s sys
mount -o move /dev dev || mount -t devtmpfs d dev
mkdir -p dev/pts dev/shm
mount -t devpts -o gid=5,mode=620,ptmxmode=666 p dev/pts
mount -t tmpfs -o mode=1777 t dev/shm
cp /bin/busybox run/busybox
exec switch_root -c /dev/console /newroot /run/busybox sh /vc/guest.sh
