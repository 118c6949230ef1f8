#!/bin/sh
# Validation passes what is right and fails what is not, whatever went wrong.
. "$srcdir/tests/run-lib.sh"

launch 2 tests/bench/rg_broken --over native -c -i 10 -x 1
expect "nothing wrong: Pass" [ $rc -eq 0 ]
expect "Pass is printed" grep -q '^64 .*Pass' "$out"
for damage in flip stale swap lose beyond; do
	launch 2 tests/bench/rg_broken --over native -c -i 10 -x 1 --damage $damage --json "$work/b.jsonl"
	expect "$damage: exit code 1" [ $rc -eq 1 ]
	expect "$damage: Fail" grep -q '^64 .*Fail' "$out"
	expect "$damage: one line of ours" [ "$(ours rg_broken)" -eq 1 ]
	expect "$damage: recorded" grep -q '"valid":false' "$work/b.jsonl"
	expect "$damage: end record" grep -q '"type":"end","status":1,' "$work/b.jsonl"
done
launch 4 tests/bench/rg_broken --over native -c -i 10 -x 1 --damage flip
expect "the first wrong byte is named" \
	grep -q '^rg_broken: validation failed: native, 64 bytes: rank 3, block 63, byte 63: got' "$err"

launch 4 tests/bench/rg_example --over native -c -m 1:4K -i 5 -x 1 --time-cap 0.2
expect "a collective: Pass" [ $rc -eq 0 ]
expect "a collective: 13 rows" [ "$(grep -c '^[0-9].*Pass' "$out")" -eq 13 ]
launch 3 tests/bench/rg_example --over native -c -m 1:64 -i 5 -x 1 --time-cap 0.2
expect "three ranks are fine for a collective" [ $rc -eq 0 ]
finish
