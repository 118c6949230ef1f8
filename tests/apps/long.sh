#!/bin/sh
# long.sh - of make check-long: IS and FT of classes W and A verify on 1, 2, 4 and 8 ranks, natively
# and over rails.  LONG_SECONDS: of class W alone.
. "$srcdir/tests/run-lib.sh"
classes="W A"
[ -z "${LONG_SECONDS-}" ] || classes=W

for program in rg_is rg_ft; do
	for np in 1 2 4 8; do
		for class in $classes; do
			launch $np apps/$program -C $class --over native,single,bind,stripe --soft ports=2
			expect "$program $class on $np" [ "$rc" -eq 0 ]
			expect "$program $class on $np: verified" \
				[ "$(grep -c '^ Verification    =               SUCCESSFUL$' "$out")" -eq 4 ]
		done
	done
done
finish
