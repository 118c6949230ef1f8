#!/bin/sh
# root.sh - files of arm64 Debian packages: unpacked, none of their scripts run, so that no program of
# that architecture runs here.  For any user.
#
#	root.sh make SUITE DIR PACKAGE...	DIR: a root with the packages and all that they depend on
#	root.sh kernel SUITE DIR PACKAGE	DIR: the kernel that this package stands for
#
# DIR.debs keeps what was fetched.  Exit code 77, with the reason in one line: it cannot be made here.
set -u
what=$1 suite=$2 root=$3
shift 3
apt=$root.apt debs=$root.debs

lacks() {
	echo "root.sh: no arm64 Debian: $*"
	rm -rf "$apt"
	exit 77
}
fetch() {
	APT_CONFIG=$apt/apt.conf "$@" >"$apt/log" 2>&1 || lacks "$1: $(tail -n 1 "$apt/log")"
}

# An apt of its own: nothing is installed yet, there is one architecture.
begin() {
	command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || lacks "no apt-get here"
	mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Identifier: Packages' 'Label: Debian' 2>/dev/null |
		head -n 1)
	mkdir -p "$root" "$apt/lists/partial" "$debs/partial" || exit 99
	: >"$apt/status"
	echo "deb ${mirror:-http://deb.debian.org/debian} $suite main" >"$apt/sources.list"
	cat >"$apt/apt.conf" <<-END
		APT::Architecture "arm64";
		#clear APT::Architectures;
		APT::Architectures "arm64";
		APT::Install-Recommends "false";
		APT::Sandbox::User "root";
		Acquire::Languages "none";
		Dir::State "$apt";
		Dir::State::lists "$apt/lists";
		Dir::State::status "$apt/status";
		Dir::Cache "$apt";
		Dir::Cache::archives "$debs";
		Dir::Etc::sourcelist "$apt/sources.list";
		Dir::Etc::sourceparts "-";
		Dir::Etc::preferencesparts "-";
	END
	fetch apt-get -qq update
}

unpack() {
	for deb in "$debs"/*.deb; do
		dpkg-deb --fsys-tarfile "$deb" |
			tar -xpf - --keep-directory-symlink --no-same-owner -C "$root" || lacks "tar: $deb"
	done
	rm -rf "$apt"
}

make_root() {
	begin
	fetch apt-get -qq -y --download-only install '?essential' "$@"
	# Links of a merged /usr, before packages that have files in both places.
	for dir in bin sbin lib; do
		mkdir -p "$root/usr/$dir"
		ln -sfn "usr/$dir" "$root/$dir"
	done
	unpack
	# What the packages' scripts would do, as far as tests need it.
	printf 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/bin/sh\n' >"$root/etc/passwd"
	printf 'root:x:0:\nnogroup:x:65534:\ntty:x:5:\n' >"$root/etc/group"
	printf 'root:*:19000:0:99999:7:::\n' >"$root/etc/shadow"
	[ -e "$root/bin/sh" ] || ln -s dash "$root/bin/sh"
	[ -e "$root/usr/bin/awk" ] || ln -s mawk "$root/usr/bin/awk"
	[ ! -e "$root/usr/bin/gnuplot-nox" ] || ln -sfn gnuplot-nox "$root/usr/bin/gnuplot"
	ln -sfn libmpi.so.40 "$root/usr/lib/aarch64-linux-gnu/libmpi.so"
	mkdir -p "$root/root" "$root/proc" "$root/sys" "$root/dev" "$root/tmp" "$root/run"
}

# The package depends on the one that has the files.
make_kernel() {
	begin
	name=$(APT_CONFIG=$apt/apt.conf apt-cache depends "$1" 2>/dev/null |
		sed -n 's/^  Depends: \(linux-image-[^ ]*\)$/\1/p' | head -n 1)
	[ -n "$name" ] || lacks "no package $1 in $suite"
	cd "$debs" && fetch apt-get -qq download "$name" && cd - >/dev/null || exit 99
	unpack
	[ -e "$root/lib" ] || ln -s usr/lib "$root/lib"		# a merged /usr
}

case $what in
make) make_root "$@" ;;
kernel) make_kernel "$@" ;;
esac
