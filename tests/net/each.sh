#!/bin/sh
# each.sh - every program with its bytes validated, on two hosts over two rails of TCP; with RG_LONG=1
# also on four hosts over one.
RG_ON_HOSTS="2 2" RG_SOFT=net=eth0+eth1 sh "$srcdir/tests/bench/each.sh" || exit
[ -z "${RG_LONG-}" ] || RG_ON_HOSTS="4 1" RG_SOFT=net=eth0 exec sh "$srcdir/tests/bench/each.sh"
