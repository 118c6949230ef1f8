#!/bin/sh
# events.sh - asynchronous events while messages are under way: a line from each host that has one;
# what cannot go on ends, what can goes on with every byte right.
. "$srcdir/tests/adapters/adapters.sh"

# events SPEC: four seconds of messages, which begin before the first event on a crowded machine, too.
events() {
	on "$1" 2 ./pt2pt/rg_bw --validate --over stripe --sizes 256K --window 8 --iterations 10000000 --time-cap 4s
	row "$1" rg_bw
}
# lines N WORDS
lines() {
	[ "$(grep -c "$2" "$err")" -eq "$1" ]
}

if drawn 2 "changes"; then
	events event=sm:0/soft0:2@1000ms+lid:0/soft0:2@1100ms+pkey:0/soft0:2@1200ms+gid:0/soft0:2@1300ms+client:0/soft0:2@1400ms
	expect "changes: goes on" passes
	for name in SM_CHANGE LID_CHANGE PKEY_CHANGE GID_CHANGE CLIENT_REREGISTER; do
		expect "$name: a line" lines 1 ": warning: soft0:2 of host0: $name; LID, GID and P_Key are as before"
	done
fi

if drawn 2 "fatal"; then
	events fatal=0/soft0:1@1200ms
	expect "fatal: ends" refuses "all rails of soft0 on host0 are lost: the adapter has failed (DEVICE_FATAL)"
	expect "fatal: one line for the adapter" lines 1 "DEVICE_FATAL); see"
fi
if drawn 2 "down"; then
	events down=0/soft0:2@1200ms+1/soft0:2@1200ms
	for host in host0 host1; do
		expect "down: a line from $host" lines 1 ": warning: soft0:2 of $host is DOWN (PORT_ERR)"
	done
	expect "down: ends with the reason" refuses "connection lost over soft0:2 (.*: the port here is DOWN)"
fi
if drawn 2 "back"; then
	events down=0/soft0:2@1200ms,up=0/soft0:2@2500ms
	expect "back: goes on" passes
	expect "back: a line when it goes" lines 1 ": warning: soft0:2 of host0 is DOWN (PORT_ERR)"
	expect "back: a line when it is back" lines 1 ": warning: soft0:2 of host0 is ACTIVE again, after"
fi

# Of four hosts in an Alltoall one loses a rail of two: it ends, or goes on; the end that tells first may be either one.
alltoall() {
	on "$1" 4 ./collective/rg_alltoall --validate --over stripe --sizes 64K --iterations 10000000 --time-cap 4s
	row "$1" rg_alltoall
}
if drawn 2 "alltoall, down"; then
	alltoall down=2/soft0:2@1200ms
	expect "alltoall, down: a line from the host" lines 1 ": warning: soft0:2 of host2 is DOWN (PORT_ERR)"
	expect "alltoall, down: ends with the reason" refuses "peer [0-3] is lost: connection lost over soft0:2"
	expect "alltoall, down: a line for a peer at most, at either end" \
		[ "$(grep -c 'peer [0-3] is lost' "$err")" -le 6 ]
fi
if drawn 2 "alltoall, fatal"; then
	alltoall hcas=2,ports=1,fatal=3/soft1:1@1200ms
	expect "alltoall, fatal: ends" refuses "all rails of soft1 on host3 are lost: the adapter has failed (DEVICE_FATAL)"
	expect "alltoall, fatal: one line for the adapter" lines 1 "DEVICE_FATAL); see"
fi
if drawn 2 "alltoall, back"; then
	alltoall down=1/soft0:1@1200ms,up=1/soft0:1@2500ms,event=sm:0/soft0:2@1300ms+lid:3/soft0:2@1400ms
	expect "alltoall, back: goes on" passes
	expect "alltoall, back: a line when it is back" lines 1 ": warning: soft0:1 of host1 is ACTIVE again, after"
	expect "alltoall, back: a line of each event" lines 2 "CHANGE; LID, GID and P_Key are as before, the rail goes on"
fi
finish
