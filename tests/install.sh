#!/bin/sh
# `make install` puts everything in its place; `make uninstall` leaves nothing behind.
root=$(mktemp -d) || exit 1
trap 'rm -rf "$root"' EXIT
failed=0

# run TARGET: by a make of its own
run() {
	MAKEFLAGS='' MFLAGS='' ${MAKE-make} "$1" DESTDIR="$root" >"$root.log" 2>&1 || {
		echo "FAIL: make $1"
		tail -n 20 "$root.log"
		failed=1
	}
	rm -f "$root.log"
}

run install
for name in bin/rg_bw bin/rg_is bin/rg_ft bin/rg_tune bin/railgauge bin/softhca lib/libsofthca.so.0 lib/librail.so.0 \
	lib/softhca/libibverbs.so.1 lib/softhca/softhca-files.so include/softhca.h include/rail.h include/railmpi.h include/rail/ledger.h \
	railgauge/railgauge-result.schema.json experiments/p1.json reframe/railgauge.py man1/railgauge-check.1 man1/railgauge-reproduce.1 man1/railgauge-show.1 man1/rg_bw.1 man1/softhca.1 man7/libsofthca.7 pkgconfig/libsofthca.pc pkgconfig/librail.pc examples/rail_example.c; do
	# Links are followed.
	find "$root" -path "*/$name" -exec test -s '{}' ';' -print | grep -q . || {
		echo "FAIL: no $name"
		failed=1
	}
done
# Below $root it lies where the installed command looks for it.
railgauge=$(find "$root" -path '*/bin/railgauge')
said=$(RAILGAUGE_DATA= "$railgauge" reproduce p1 --list 2>&1) ||
	said=$(RAILGAUGE_DATA=$root$(expr "$said" : 'railgauge: \(/[^:]*\):') \
		"$railgauge" reproduce p1 --list)
[ "$(echo "$said" | grep -c '^p1-fig1[2-9]-pci[ex] ')" -eq 16 ] || {
	echo "FAIL: railgauge reproduce p1 --list: $said"
	failed=1
}
# Its helper is in libexecdir as seen from bindir: alone it finds no job of two.
said=$(OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 "$railgauge" topo --soft ideal 2>&1)
helper=$(find "$root" -name "railgauge-gather-$RG_MPI_FLAVOR")
case $RG_MPI_FLAVOR:$said in
openmpi:*" but not for $(realpath "$(dirname "$railgauge")")/"*"/$(basename "$helper"): "*) ;;
mpich:*) [ -x "$helper" ] || {
	echo "FAIL: no railgauge-gather-mpich"
	failed=1
} ;;
*)
	echo "FAIL: railgauge topo in a job: $said"
	failed=1
	;;
esac
# Its libraries are in libdir as seen from bindir, wherever both are.
if [ "${RG_SANITIZE:-no}" = no ]; then
	layer=$(find "$root" -name 'librailmpi-*.so.0')
	said=$(LD_LIBRARY_PATH=$(dirname "$layer") "$railgauge" exec -- /bin/sh -c 'echo "$LD_PRELOAD"' 2>&1)
	case $said in
	"$(realpath "$layer"):$(dirname "$(realpath "$layer")")/libsofthca.so"*) ;;
	*)
		echo "FAIL: railgauge exec has preloaded: $said"
		failed=1
		;;
	esac
fi

# ---- librail, from the installed files alone -----------------------------------------------

# rail_flags OPTION: pkg-config of a librail.pc whose paths lie below $root
rail_flags() {
	PKG_CONFIG_PATH=$root/pc ${PKG_CONFIG-pkg-config} "$1" librail
}
# NAME COMMAND...: it succeeds and is silent.
silent() {
	name=$1
	shift
	said=$("$@" 2>&1) && [ -z "$said" ] && return
	echo "FAIL: $name: $said"
	failed=1
}
mkdir "$root/pc" "$root/example"
installed=$(find "$root" -name librail.pc)
sed "s|^\([a-z_]*\)=/|\1=$root/|" "$installed" >"$root/pc/librail.pc"
example=$(find "$root" -name rail_example.c)
libdir=$(dirname "$(dirname "$installed")")
if rail_flags --exists; then
	cflags=$(rail_flags --cflags) libs=$(rail_flags --libs) cc=${CC-cc}
	warn='-Wall -Wextra -Werror' sanitize=
	[ "${RG_SANITIZE:-no}" = no ] || sanitize=-fsanitize=$RG_SANITIZE
	echo '#include <rail.h>' >"$root/example/alone.c"
	cp "$root/example/alone.c" "$root/example/alone.cc"
	cd "$root/example" || exit 99
	silent 'rail.h in C11' $cc -std=c11 $warn $cflags -fsyntax-only alone.c
	if ${CXX-c++} --version >/dev/null 2>&1; then
		silent 'rail.h in C++' ${CXX-c++} -std=c++11 $warn $cflags -fsyntax-only alone.cc
	fi
	silent 'rail_example.c' $cc -std=gnu11 $warn $cflags "$example" -o rail_example $sanitize $libs
	said=$(LD_LIBRARY_PATH=$libdir${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} timeout 120 ./rail_example 2>&1)
	rc=$?
	[ $rc -eq 0 ] && [ "$(echo "$said" | grep -c '^process [01] has sent 2[0-9]* bytes over soft0:[12]$')" -eq 4 ] || {
		echo "FAIL: rail_example: $rc, $said"
		failed=1
	}
	cd "$OLDPWD" || exit 99
else
	echo "FAIL: pkg-config finds no librail, or there is no pkg-config"
	failed=1
fi
rm -r "$root/pc" "$root/example"
run uninstall
left=$(find "$root" ! -type d)
[ -z "$left" ] || {
	echo "FAIL: left behind: $left"
	failed=1
}
exit $failed
