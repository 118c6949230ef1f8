#!/bin/sh
# root.sh - the files of an arm64 Debian, from its packages: unpacked, none of their scripts run, so that
# no program of that architecture runs here.
#
#	root.sh SUITE DIR PACKAGE...	DIR: the root; the packages with all that they depend on
#
# DIR.debs keeps what was fetched.  Exit code 77, with the reason in one line: it cannot be made here.
set -u
suite=$1 root=$2
shift 2
apt=$root.apt debs=$root.debs

lacks() {
	echo "root.sh: no arm64 Debian: $*"
	exit 77
}
command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || lacks "no apt-get here"

# An apt of its own: nothing is installed yet, there is one architecture.
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Identifier: Packages' 'Label: Debian' 2>/dev/null | head -n 1)
mkdir -p "$root" "$apt/lists/partial" "$debs/partial" || exit 99
: >"$apt/status"
echo "deb ${mirror:-http://deb.debian.org/debian} $suite main" >"$apt/sources.list"
cat >"$apt/apt.conf" <<END
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
fetch() {
	APT_CONFIG=$apt/apt.conf apt-get -qq "$@" >"$apt/log" 2>&1 || lacks "apt-get: $(tail -n 1 "$apt/log")"
}
fetch update
fetch -y --download-only install '?essential' "$@"

# Directories of a merged /usr, before packages that have files in both places.
for dir in bin sbin lib; do
	mkdir -p "$root/usr/$dir"
	ln -sfn "usr/$dir" "$root/$dir"
done
for deb in "$debs"/*.deb; do
	dpkg-deb --fsys-tarfile "$deb" | tar -xpf - --keep-directory-symlink --no-same-owner -C "$root" ||
		lacks "tar: $deb"
done

# What the packages' scripts would do, as far as programs here need it.
printf 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/bin/sh\n' >"$root/etc/passwd"
printf 'root:x:0:\nnogroup:x:65534:\ntty:x:5:\n' >"$root/etc/group"
printf 'root:*:19000:0:99999:7:::\n' >"$root/etc/shadow"
[ -e "$root/bin/sh" ] || ln -s dash "$root/bin/sh"
[ -e "$root/usr/bin/awk" ] || ln -s mawk "$root/usr/bin/awk"
mkdir -p "$root/root" "$root/proc" "$root/sys" "$root/dev" "$root/tmp" "$root/run"
ln -sfn libmpi.so.40 "$root/usr/lib/aarch64-linux-gnu/libmpi.so"
rm -rf "$apt"
