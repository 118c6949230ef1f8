#!/bin/sh
# lost.sh - ranks on other hosts are lost: an error that names the rank and the reason, and what does not
# need it goes on.
RG_ON_HOSTS="2 2"
. "$srcdir/tests/run-lib.sh"
export RAILGAUGE_SOFT=net=eth0+eth1 RAILGAUGE_OVER=stripe

# all_say N WORDS
all_say() {
	[ "$(grep -c "^rank [0-9]*: $2\$" "$out")" -eq "$1" ]
}

# The launcher, which would end the job at once, learns of it when all ranks have ended.
mkdir "$work/ended" || exit 99
launch 4 sh -c 'tests/mpi/lost killed
	code=$? looks=0
	: >"$0/${OMPI_COMM_WORLD_RANK-$PMI_RANK}"
	while [ "$(ls "$0" | grep -c .)" -lt 4 ] && [ $((looks += 1)) -le 600 ]; do
		sleep 0.1
	done
	exit $code' "$work/ended"
expect "a rank that dies: each wait has ended" all_say 3 "as it should be"
expect "... the reason, a line of each host" \
	[ "$(grep -c '^lost: peer 3 is lost: .*its process has .*ended' "$err")" -eq 2 ]
expect "... no other" [ "$(grep -c '^lost: peer 3 is lost: ' "$err")" -eq 2 ]

# The last rank's host loses a cable when all wait.  Host 0 has two ranks, which lose one peer; host 1 has a rank,
# which loses two.
pull() {
	for turn in $(seq 600); do
		[ "$(grep -c ': waits$' "$out")" -lt 3 ] || break
		sleep 0.1
	done
	on login ip link set h1r1 down
}
pull &
launch 3 tests/mpi/lost cut
wait $!
on login ip link set h1r1 up
expect "a cable is pulled: each wait has ended" all_say 3 "as it should be"
for end in 1.2 2.1; do
	here=10.0.2.${end%.*} there=10.0.2.${end#*.}
	expect "... rail, interface, host, once from $here" \
		[ "$(grep -c "^softhca: rail 2, eth1: host $there has not answered for " "$err")" -eq 1 ]
	expect "... a peer, once from $here" [ "$(grep -c \
		"^lost: peer [0-2] is lost: connection lost over soft0:2 (.*eth1 $here; there $there); check the interfaces" \
		"$err")" -eq 1 ]
done
expect "... and no other line" [ "$(ours lost)" -eq 2 ]
expect "... of the library, either" [ "$(grep -c '^softhca: ' "$err")" -eq 2 ]

for ranks in $(long 4); do
	launch $ranks tests/mpi/lost stopped
	expect "a rank that is stopped: exit code 0" [ "$rc" -eq 0 ]
	expect "... nothing is said" [ "$(ours lost)" -eq 0 ]
done
finish
