#!/bin/sh
# handover.sh - one TCP port of each host is enough: the processes of a user share it, of one job and of
# several, while they look for rails, run and are killed.
RG_ON_HOSTS="2 2"
. "$srcdir/tests/run-lib.sh"
export SOFTHCA_PORTS=18700-18700

# ports_of I: on which processes of host I listen at addresses of eth0 and eth1, 10.0.1.* and 10.0.2.*, in
# hexadecimal.  At those of mgmt MPICH listens, too.
ports_of() {
	on "$1" awk '$4 == "0A" && $2 ~ /^..0[12]000A:/ { print substr($2, 10) }' /proc/net/tcp | sort -u
}

# job NAME PROGRAM ARG...: 6 ranks in the background.  Launchers at the same time need a directory each.
job() {
	job_name=$1
	shift
	mkdir "$work/$job_name"
	(
		out=$work/$job_name.out err=$work/$job_name.err
		OMPI_MCA_orte_tmpdir_base=$work/$job_name
		SUITE_VICTIM=$job_name
		export OMPI_MCA_orte_tmpdir_base SUITE_VICTIM
		launch_beside 6 "$@"
		echo "$rc" >"$work/$job_name.rc"
	) &
}
# ended NAME WHAT
ended() {
	out=$work/$1.out err=$work/$1.err
	until [ -s "$work/$1.rc" ]; do sleep 0.1; done
	expect "$2: exit code" [ "$(cat "$work/$1.rc")" -eq 0 ]
	expect "$2: validated" eval 'grep -q "^65536 .* Pass" "$out" && ! grep -q " Fail" "$out"'
}
alltoall="collective/rg_alltoall --over stripe --validate -m 4K:64K"

job named $alltoall --soft net=eth0+eth1 -i 10
ended named "three ranks a host share a port"

# Without names: rails are probed over the same port.
job one $alltoall -i 10
job two $alltoall -i 10
ended one "two jobs at once, one"
ended two "two jobs at once, the other one"
for name in one two; do
	expect "job $name has found its rails" grep -q "3 rails by the software HCA over TCP" "$work/$name.err"
done

# What the kernel gives to a stopped process is asked of others again, which are of its fabric or of another.
RG_MEET=$work/meet
mkdir "$RG_MEET"
# end_at HOST FABRIC ME PEER ACTION...: tests/net/end, in the background
end_at() {
	end_host=$1 end_fabric=$2
	shift 2
	# shellcheck disable=SC2016
	start "$end_host" env RG_MEET="$RG_MEET" SOFTHCA_FABRIC="$end_fabric-$$" SOFTHCA_SPEC=net=eth0 \
		sh -c 'echo $$ >"$RG_MEET/$1.pid" && exec tests/net/end "$@"' sh "$@" \
		>"$work/$1.out" 2>"$work/$1.err"
}
written() {
	out=$work/$1.out err=$work/$1.err
	until grep -q "^write: " "$out" || ! kill -0 "$started"; do sleep 0.1; done
	expect "$2" grep -q "^write: success" "$out"
}
end_at 1 one b a connect rest never
entered=$started
end_at 0 one a b connect write 8 rest never
written a "the first pair"
on 1 sh -c 'kill -STOP "$1"' sh "$(cat "$RG_MEET/b.pid")"
for fabric in one two; do
	for pair in 1 2 3; do
		end_at 1 $fabric d$fabric$pair c$fabric$pair connect rest never
		end_at 0 $fabric c$fabric$pair d$fabric$pair connect write 8 rest never
		written c$fabric$pair "next to a stopped process: pair $pair, fabric $fabric"
	done
done
on 1 sh -c 'kill -KILL "$1"' sh "$(cat "$RG_MEET/b.pid")"
# nsenter stops with its child.
kill -CONT $entered

# A job that is killed takes no port with it.  The other one has begun, and goes on.
rows() {
	until grep -q "^4096 .* Pass" "$work/$1.out" 2>/dev/null || [ -s "$work/$1.rc" ]; do sleep 0.1; done
}
job killed $alltoall -i 2000
rows killed
expect "one port on each host" [ "$(ports_of 0) $(ports_of 1)" = "490C 490C" ]
job survives $alltoall -i 30
rows survives
for pid in $(grep -lsxz SUITE_VICTIM=killed /proc/[0-9]*/environ | cut -d/ -f3); do
	! read -r name <"/proc/$pid/comm" || [ "$name" != rg_alltoall ] || kill -KILL "$pid"
done 2>/dev/null
job after $alltoall -i 10
ended survives "a job next to one that is killed"
ended after "a job after it"
until [ -s "$work/killed.rc" ]; do sleep 0.1; done
expect "the killed one" eval '[ "$(cat "$work/killed.rc")" -ne 0 ] || loses_exit_codes'
finish
