#!/bin/sh
# The conformance list with both sides in one process, on a clock of its own: in some of the set-ups
# that tests/softhca/conformance.sh leaves out, with RG_LONG=1 in all.
CONFORMANCE=./tests/virtual/conformance
export CONFORMANCE
exec sh "$srcdir/tests/softhca/conformance.sh"
