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
	experiments/p1.json man1/railgauge-reproduce.1 man1/rg_bw.1 man1/softhca.1 man7/libsofthca.7 pkgconfig/libsofthca.pc; do
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
run uninstall
left=$(find "$root" ! -type d)
[ -z "$left" ] || {
	echo "FAIL: left behind: $left"
	failed=1
}
exit $failed
