#!/bin/sh
# run.sh - `make check-arm`: tests on emulated arm64 machines, with Open MPI and with MPICH, each on a
# kernel with pages of 4 KiB and on one with pages of 16 KiB.
#	ARM_ONLY=WORDS	only the jobs whose name contains one of the words: "openmpi-4k mpich-16k"
#	ARM_TESTS=TESTS	these tests instead of a share (guest.sh); RG_LONG=1: all
#
# The builds are cross-compiled, in build-arm-openmpi and build-arm-mpich beside the sources.  The emulation shows what depends on
# the size of pages, on alignment, on the ABI and on instructions.  It does not show a missing barrier:
# this processor's order is behind it (src/softhca/ORDER.md has what does).
set -f					# patterns are the tests'
. "$srcdir/tests/results.sh"
here=tests/arm
top=$(cd "$srcdir" && pwd) || exit 99
cache=${VCLUSTER_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/railgauge}
packages="bash busybox-static procps iproute2 kmod make gcc g++ gfortran libc6-dev pkg-config mawk file
	libibverbs-dev ibverbs-providers libhwloc-dev libjansson-dev libpopt-dev libsodium-dev
	libcmocka-dev openmpi-bin libopenmpi-dev mpich libmpich-dev gnuplot-nox mount"
# Of the list, which takes a quarter of an hour on a busy machine, one case of four.
share="conformance each:*/rg_[bi][ws] tests/rail/test_ring tests/softhca/test_mailbox
	tests/softhca/test_mr_table tests/softhca/bounce"
[ -z "${RG_LONG-}" ] || share=all
mkdir -p $here "$cache"
choose "${ARM_ONLY-}" $here/openmpi-4k $here/openmpi-16k $here/mpich-4k $here/mpich-16k

# made DIR COMMAND...: once, for all builds
made() {
	[ ! -e "$1.made" ] || return 0
	dir=$1
	shift
	echo "== making $dir"
	"$@" && : >"$dir.made"
}

tools() {
	for tool in qemu-system-aarch64:qemu-system-arm aarch64-linux-gnu-gcc:gcc-aarch64-linux-gnu \
		aarch64-linux-gnu-g++:g++-aarch64-linux-gnu aarch64-linux-gnu-gfortran:gfortran-aarch64-linux-gnu; do
		command -v "${tool%:*}" >/dev/null || printf ' %s' "${tool#*:}"
	done
}

# What all jobs need: 77 with the reason, where it is absent.
prepare() {
	missing=$(tools)
	# shellcheck disable=SC2086 # words are meant
	[ -z "$missing" ] || [ "$(id -u)" -ne 0 ] || DEBIAN_FRONTEND=noninteractive \
		apt-get -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends $missing >/dev/null 2>&1
	missing=$(tools)
	[ -z "$missing" ] || { echo "missing:$missing" && return 77; }
	root=$cache/arm64-$( (cat "$top/tests/arm/root.sh" && echo $packages) | cksum | cut -d' ' -f1)
	# shellcheck disable=SC2086
	made "$root" sh "$top/tests/arm/root.sh" make bookworm "$root" $packages
}

# Pages of 16 KiB are in kernels since Debian 13.
kernel_of() {
	case $1 in
	*-4k) kernel=$cache/kernel-arm64 suite=bookworm package=linux-image-arm64 ;;
	*-16k) kernel=$cache/kernel-arm64-16k suite=trixie package=linux-image-arm64-16k ;;
	esac
	made "$kernel" sh "$top/tests/arm/root.sh" kernel $suite "$kernel" $package
}

job() {
	mpi=${1##*/} mpi=${mpi%-*}
	prepare && kernel_of "$1" || return
	sh "$top/tests/arm/cross.sh" "$root" "$top/build-arm-$mpi" "$mpi" || return
	# The machine has no other directory of this one.
	# shellcheck disable=SC2086
	(cd "$top" && exec tests/cluster/vcluster --timeout "${ARM_SECONDS:-$([ -n "${RG_LONG-}" ] && echo 86400 || echo 3600)}" \
		--arm64 "$root" "$kernel" "$top" -- env srcdir="$top" ${RG_SEED:+"RG_SEED=$RG_SEED"} \
		sh "$top/tests/arm/guest.sh" "$top/build-arm-$mpi" ${ARM_TESTS:-$share})
}

for job in $chosen; do
	began=$(date +%s)
	job "$job" >"$job.log" 2>&1
	result "$job" $? "$(($(date +%s) - began)) s"
done
exit $failed
