#!/bin/sh
# siw.sh DIRECTORY - the kernel's software iWARP for vcluster's kernel, which Debian leaves out: built from Debian's
# linux-source into DIRECTORY, with the modules that it needs.  Where that cannot be: DIRECTORY/absent says why.
#
# As root it installs the headers; it fetches 140 MB.
place=$1
here=$(cd "$(dirname "$0")" && pwd)
[ ! -f "$place/siw.ko" ] || exit 0
mkdir -p "$place" && cd "$place" && rm -rf ./* || exit 1
absent() {
	echo "$*" >absent
	exit 0
}
PATH=$PATH:/usr/sbin:/sbin
# vcluster fetches the kernel.
"$here/vcluster" --nodes 1 --timeout 120 -- uname -r >boot.log 2>&1 || absent "vcluster: $(tail -n 1 boot.log)"
kernel=${VCLUSTER_KERNEL:-$(ls -td "${VCLUSTER_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/railgauge}"/linux-image-* | head -n 1)}
version=$(ls "$kernel/lib/modules" | head -n 1)
source=linux-source-$(echo "$version" | cut -d. -f1-2)
[ -e "/usr/src/linux-headers-$version/Makefile" ] || {
	[ "$(id -u)" = 0 ] && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "linux-headers-$version" make gcc
} >/dev/null 2>&1 || absent "linux-headers-$version is not installed and cannot be"
apt-get download -qq "$source" >/dev/null 2>&1 && dpkg --fsys-tarfile "$source"_*.deb |
	tar -xO --wildcards "./usr/src/$source.tar.xz" | tar -xJ --strip-components=5 "$source/drivers/infiniband/sw/siw" ||
	absent "apt-get cannot fetch $source"
rm -f "$source"_*.deb
make -C "/usr/src/linux-headers-$version" M="$place" CONFIG_RDMA_SIW=m modules >build.log 2>&1 ||
	absent "siw of $source does not build: $(grep -m 1 -i error build.log)"
strip -g siw.ko
for module in crc32c_generic libcrc32c iw_cm; do
	file=$(modprobe -d "$kernel" -S "$version" --show-depends $module | sed -n "s,^insmod \(.*/$module\.ko[.xz]*\) *$,\1,p")
	case $file in
	*.xz) xz -dc "$file" >$module.ko ;;
	*) cp "$file" . ;;
	esac || absent "no $module in $kernel"
done
