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
expect "... the reason, at each" \
	[ "$(grep -c '^lost: peer 3 is lost: .*its process has .*ended' "$err")" -eq 3 ]
expect "... no other" [ "$(grep -c '^lost: peer 3 is lost: ' "$err")" -eq 3 ]

for ranks in $(long 4); do
	launch $ranks tests/mpi/lost stopped
	expect "a rank that is stopped: exit code 0" [ "$rc" -eq 0 ]
	expect "... nothing is said" [ "$(ours lost)" -eq 0 ]
done
finish
