#!/bin/sh
# chroot.sh - a bare Debian, where README's commands have all to install.
#
#	chroot.sh ready			installs debootstrap; make does so, too
#	chroot.sh make SUITE DIR	debootstrap's smallest system of that release, in DIR
#	chroot.sh run DIR BUILD KEPT COMMAND ARG...
#					there, in a copy of this tree at this tree's own path, whose
#					build directory BUILD is KEPT of this tree
#
# For root, in a mount namespace of its own (unshare --mount), with which all mounts end.
# The mirror is that of this machine.  Compilers share $CCACHE_DIR, if it is set.
# Exit code 77, with the reason in one line: no such system can be made here.
top=$(cd "$(dirname "$0")/.." && pwd) || exit 99

lacks() {
	echo "chroot.sh: no bare Debian: $*"
	exit 77
}

# The packages of this machine's own Debian come from there; none: debootstrap's own choice.
mirror() {
	apt-get indextargets --format '$(REPO_URI)' 'Identifier: Packages' 'Label: Debian' \
		2>/dev/null | head -n 1
}

ready() {
	[ "$(id -u)" -eq 0 ] || lacks "not root"
	[ "$(readlink /proc/self/ns/mnt)" != "$(readlink /proc/1/ns/mnt)" ] ||
		lacks "not in a mount namespace of its own (unshare --mount)"
	command -v apt-get >/dev/null || lacks "no apt-get"
	[ -n "$(mirror)" ] && command -v debootstrap >/dev/null || apt-get update -qq >/dev/null 2>&1
	command -v debootstrap >/dev/null ||
		DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y -qq \
			--no-install-recommends debootstrap >/dev/null 2>&1 ||
		lacks "debootstrap cannot be installed"
}

make_root() {
	suite=$1 root=$2
	ready
	mkdir -p "$root" || exit 99
	# In memory where there is enough: dpkg waits for each of its files to be on the disk.
	if [ "$(sed -n 's/^MemAvailable: *\([0-9]*\) .*/\1/p' /proc/meminfo)" -lt 10000000 ]; then
		mount --bind "$root" "$root"
	else
		mount -t tmpfs -o mode=755 chroot "$root"
	fi || lacks "mount is refused"
	for try in 1 2; do
		# shellcheck disable=SC2046 # none, or one word
		debootstrap --variant=minbase "$suite" "$root" $(mirror) >"$root.log" 2>&1 && break
		[ $try -eq 1 ] || lacks "debootstrap: $(tail -n 1 "$root.log")"
	done
	cp /etc/resolv.conf /etc/hosts "$root/etc/" 2>/dev/null
	apt-config dump | grep '^Acquire::\(http\|https\|Check\)' >"$root/etc/apt/apt.conf.d/90host"
	printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
	chmod +x "$root/usr/sbin/policy-rc.d"
	mount -t proc proc "$root/proc" && mount --rbind /sys "$root/sys" &&
		mount --rbind /dev "$root/dev" && mount -t tmpfs shm "$root/dev/shm" ||
		lacks "mount is refused"
}

# What belongs to the tree, committed or not, as a clone or a tarball has it.
tree() {
	cd "$top" || exit
	if git rev-parse >/dev/null 2>&1; then
		git ls-files -z -c -o --exclude-standard | xargs -0 ls -d 2>/dev/null | tar -cf - -T -
	else
		tar -cf - --exclude='./build*' --exclude=./results .
	fi
}

bound() {
	mkdir -p "$1" "$root$2" && { mountpoint -q "$root$2" || mount --bind "$1" "$root$2"; }
}

run_there() {
	root=$1 build=$2 kept=$3
	shift 3
	[ -e "$root$top/bootstrap" ] || { mkdir -p "$root$top" && tree | tar -xf - -C "$root$top"; } || exit 99
	bound "$top/$kept" "$top/$build" || exit 99
	[ -z "${CCACHE_DIR-}" ] || bound "$CCACHE_DIR" "$CCACHE_DIR" || exit 99
	# pivot_root, as containers do: a process in a chroot may make no user namespace.
	exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
		${CCACHE_DIR:+"CCACHE_DIR=$CCACHE_DIR"} ${RG_SEED:+"RG_SEED=$RG_SEED"} \
		${LISTS_DRAWN:+"LISTS_DRAWN=$LISTS_DRAWN"} \
		${RG_LONG:+"RG_LONG=$RG_LONG"} ${http_proxy:+"http_proxy=$http_proxy"} \
		${https_proxy:+"https_proxy=$https_proxy"} \
		unshare --mount sh -c 'cd "$0" || exit
			pivot_root . mnt 2>/dev/null && umount -l /mnt || set -- chroot . "$@"
			exec "$@"' "$root" sh -c 'cd "$0" && exec "$@"' "$top" "$@"
}

case ${1-} in
ready) ready ;;
make) make_root "$2" "$3" ;;
run)
	shift
	run_there "$@"
	;;
*)
	sed -n '2,/^top/s/^# \{0,1\}//p' "$0"
	exit 3
	;;
esac
