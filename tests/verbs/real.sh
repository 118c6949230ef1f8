#!/bin/sh
# real.sh - test_real and test_absent with the libibverbs of fake_verbs.c in place of the system's.
[ -x tests/verbs/test_real ] || {
	echo "skipped: no cmocka"
	exit 77
}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cp .libs/fake_verbs.so "$work/libibverbs.so.1" || exit 1
LD_LIBRARY_PATH=$work${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH
./tests/verbs/test_real && ./tests/verbs/test_absent
