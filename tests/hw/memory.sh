#!/bin/sh
# memory.sh - messages from and into memory that changes in between, over real ports: adapters go
# on having pages that a program no longer has.
. "$srcdir/tests/run-lib.sh"
. "$srcdir/tests/hw/rails.sh"
rounds=24
# Emulated machines: fewer bytes, and what only costs time.
[ "${RG_HW_SOFTWARE-}" != 1 ] || rounds=8 max=300000
. "$srcdir/tests/memory/lib.sh"

lifecycle exec
lifecycle late --random --rounds 40
[ "${RG_HW_FEW-}" != 1 ] || finish
lifecycle linked --random --rounds 60
lifecycle linked --multiple --rounds 4
# shellcheck disable=SC2086 # words are meant
with_allocators $heap_kinds
finish
