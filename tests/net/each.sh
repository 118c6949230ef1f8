#!/bin/sh
# each.sh - every program with its bytes validated, on two hosts over two rails of TCP.
RG_ON_HOSTS="2 2" RG_SOFT=net=eth0+eth1 exec sh "$srcdir/tests/bench/each.sh"
