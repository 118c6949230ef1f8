#!/bin/sh
# The conformance list in all set-ups, both sides in one process, on a clock of its own.
CONFORMANCE=./tests/virtual/conformance
RG_LONG=1
export CONFORMANCE RG_LONG
exec sh "$srcdir/tests/softhca/conformance.sh"
