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

# On a crowded machine a port may be DOWN before the job has begun, which is told.
began() {
	! grep -q 'was ACTIVE when the job began, and is DOWN now$\|is DOWN since the job began$' "$err"
}

if drawn 3 "changes"; then
	events event=sm:0/soft0:2@1000ms+lid:0/soft0:2@1100ms+pkey:0/soft0:2@1200ms+gid:0/soft0:2@1300ms+client:0/soft0:2@1400ms
	expect "changes: goes on" passes
	for name in SM_CHANGE LID_CHANGE PKEY_CHANGE GID_CHANGE CLIENT_REREGISTER; do
		expect "$name: a line" lines 1 ": warning: soft0:2 of host0: $name; LID, GID and P_Key are as before"
	done
fi

# Connections rely on what the port is called: the rail ends where that becomes another.
moves() {
	events "$1"
	expect "$1: ends" refuses "rail soft0:2 of host0 is lost: its $2; check the link and the ports"
	expect "$1: one line" [ "$(ours rg_bw)" -eq 1 ]
}
if drawn 3 "moves"; then
	moves link=ib,event=newlid:0/soft0:2@1200ms 'LID has changed from 2 to 258 (LID_CHANGE)'
	moves link=eth,gids=ll.v2:ip4.v2,event=newgid:0/soft0:2@1200ms \
		'GID 1 has changed from ::ffff:10.1.0.1 to ::ffff:11.1.0.1 (GID_CHANGE)'
	events link=eth,event=newlid:0/soft0:2@1200ms
	expect "a LID on Ethernet: goes on" passes
fi

if drawn 3 "fatal"; then
	events fatal=0/soft0:1@1200ms
	expect "fatal: ends" refuses "all rails of soft0 on host0 are lost: the adapter has failed (DEVICE_FATAL)"
	expect "fatal: one line for the adapter" lines 1 "DEVICE_FATAL); see"
fi
# The process that ends the job may be any one of its host, while the others are in no call of MPI: it tells.
if drawn 3 "fatal, busy"; then
	RANKS_PER_HOST=2
	export RANKS_PER_HOST
	on ports=2,fatal=0/soft0:1@3000ms 4 ./src/cli/railgauge exec --over stripe -- ./tests/adapters/ring busy
	row "fatal, busy" ring
	unset RANKS_PER_HOST
	expect "fatal, busy: ends" [ "$rc" -ne 0 -a "$rc" -ne 124 ]
	expect "fatal, busy: one line" lines 1 "all rails of soft0 on host0 are lost: the adapter has failed (DEVICE_FATAL)"
fi
# While the job starts: the port is left out, or the job ends, by what has become of the port.
start() {
	on "$1" 2 ./pt2pt/rg_latency --validate --over stripe --sizes 64 --time-cap 20ms
	row "$1" rg_latency
}
if drawn 3 "start"; then
	start ports=2,fatal=1/soft0:1@1us
	expect "start, fatal: ends" refuses "soft0:1 of host1 is \(a port whose adapter has failed\|DOWN\) since the job began\|soft0 on host1 are lost: the adapter has failed (DEVICE_FATAL)\|was ACTIVE when the job began"
	expect "start, fatal: one line" [ "$(ours rg_latency)" -eq 1 ]
	start hcas=2,ports=1,fatal=1/soft1:1@1us
	expect "start, fatal, another adapter: passes" passes
	expect "... a line" grep -q "soft1:1 of host0 is left out: soft1:1 of host1 is \(a port whose adapter has failed\|DOWN\) since the job began" "$err"
	expect "... and no other" [ "$(ours rg_latency)" -eq 1 ]
	# The probe lasts two seconds, for another reason: it has read the event.
	start link=ib,hcas=3,ports=1,reach=0/soft0:1-1/soft0:1,fatal=1/soft2:1@800ms
	expect "start, fatal, after another loss: passes" passes
	expect "... a line" grep -q "soft2:1 of host1 is .*a port whose adapter has failed since the job began (DEVICE_FATAL; see" "$err"
	start ports=2,down=1/soft0:2@1us
	expect "start, down: passes" passes
	expect "... a line" grep -q "soft0:2 of host0 is left out: soft0:2 of host1 is DOWN since the job began\$" "$err"
	expect "... and no other" [ "$(ours rg_latency)" -eq 1 ]
fi
if drawn 3 "down"; then
	events down=0/soft0:2@1200ms+1/soft0:2@1200ms
	for host in host0 host1; do
		expect "down: a line from $host" lines 1 ": warning: soft0:2 of $host is DOWN (PORT_ERR)"
	done
	expect "down: ends with the reason" refuses "connection lost over soft0:2 (.*: the port here is DOWN; LID [0-9]*, GID .*; there LID [0-9]*, GID .*)"
fi
# Connections wait for a port as messages do, and no peer is said to be silent meanwhile.
if drawn 3 "down, connecting"; then
	on ports=2,down=0/soft0:1@3s,up=0/soft0:1@9500ms 2 ./src/cli/railgauge exec --over stripe -- ./tests/adapters/ring late
	row "down, connecting" ring
	! began || expect "down, connecting: goes on" passes
	expect "down, connecting: no peer is lost" sh -c '! grep -q "is lost\|host0.*does not answer" "$1"' sh "$err"
fi
# Where nothing is under way over a rail, no request fails.
if drawn 3 "stays down"; then
	on ports=3,down=0/soft0:3@500ms 2 ./pt2pt/rg_latency --over single:0 --sizes 8:1K --iterations 10000000 --time-cap 50s
	row "stays down" rg_latency
	expect "stays down: ends" refuses "rail soft0:3 of host0 is lost: its port stays DOWN; check the link and the ports"
fi
if drawn 3 "back"; then
	events down=0/soft0:2@1200ms,up=0/soft0:2@2500ms
	expect "back: goes on" passes
	expect "back: a line when it goes" lines 1 ": warning: soft0:2 of host0 is DOWN (PORT_ERR)"
	expect "back: a line when it is back" lines 1 ": warning: soft0:2 of host0 is ACTIVE again, after"
fi

# Below MPI, also where memory is polled for what never comes.
for op in write send; do
	drawn 3 "verbs, down, $op" || continue
	on ports=2,down=1/soft0:1@1200ms 2 ./pt2pt/rg_verbs_lat --op $op --sizes 64 --iterations 10000000 --time-cap 4s
	row "verbs, down" "rg_verbs_lat $op"
	! began || expect "verbs, down, $op: ends" refuses 'rank [01]: a queue pair has failed: transport retry counter exceeded$'
done

# Of four hosts in an Alltoall one loses a rail of two: it ends, or goes on; the end that tells first may be either one.
alltoall() {
	on "$1" 4 ./collective/rg_alltoall --validate --over stripe --sizes 64K --iterations 10000000 --time-cap 4s
	row "$1" rg_alltoall
}
if drawn 3 "alltoall, down"; then
	alltoall down=2/soft0:2@1200ms
	! began || expect "alltoall, down: a line from the host" lines 1 ": warning: soft0:2 of host2 is DOWN (PORT_ERR)"
	! began || expect "alltoall, down: ends with the reason" refuses "peer [0-3] is lost: connection lost over soft0:2"
	expect "alltoall, down: a line for a peer at most, at either end" \
		[ "$(grep -c 'peer [0-3] is lost' "$err")" -le 6 ]
fi
if drawn 3 "alltoall, fatal"; then
	alltoall hcas=2,ports=1,fatal=3/soft1:1@1200ms
	expect "alltoall, fatal: ends" refuses "all rails of soft1 on host3 are lost: the adapter has failed (DEVICE_FATAL)"
	expect "alltoall, fatal: one line for the adapter" lines 1 "DEVICE_FATAL); see"
fi
if drawn 3 "alltoall, back"; then
	alltoall down=1/soft0:1@1200ms,up=1/soft0:1@2500ms,event=sm:0/soft0:2@1300ms+lid:3/soft0:2@1400ms
	expect "alltoall, back: goes on" passes
	expect "alltoall, back: a line when it is back" lines 1 ": warning: soft0:1 of host1 is ACTIVE again, after"
	expect "alltoall, back: a line of each event" lines 2 "CHANGE; LID, GID and P_Key are as before, the rail goes on"
fi
finish
