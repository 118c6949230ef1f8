#!/bin/sh
# secret.sh - the secret of a job: rank 0 draws it, all ranks have it, and it is in no argument, environment, name of a
# file, record, sample, ledger, trace, queue that a signal prints, or line.
. "$srcdir/tests/run-lib.sh"
. "$srcdir/tests/net/hosts.sh"

hosts 2 2
export RAILGAUGE_SOFT=net=eth0+eth1 RG_DRAWN="$work/drawn"
results=$work/results
mkdir "$results" || exit 99
railgauge="env LD_PRELOAD=$PWD/tests/net/.libs/drawn.so src/cli/railgauge exec --over stripe --ledger --dump-signal USR2 --trace $results/trace.%r --"

# drawn: the secret of the last job, of 64 digits
secret_drawn() {
	secret=$(cat "$RG_DRAWN"/*)
	[ ${#secret} -eq 64 ] && [ -e "$RG_DRAWN"/host0.* ]
}
# A part of it, in either case, is too much.
secret_is_in() {
	grep -raqi -e "$(echo "$secret" | cut -c1-16)" -e "$(echo "$secret" | cut -c49-64)" "$@"
}
# job RANKS COMMAND...
job() {
	rm -rf "$RG_DRAWN" && mkdir "$RG_DRAWN" || exit 99
	launch "$@"
	expect "exit code of $*" [ "$rc" -eq 0 ]
	expect "rank 0 draws one secret" secret_drawn
}

# ---- Results ----------------------------------------------------------------------------------
# shellcheck disable=SC2086 # words are meant, here and below
job 4 $railgauge pt2pt/rg_bw --over stripe --ledger --sizes 8:64K -i 20 -x 2 --json "$results/bw.jsonl" \
	--samples "$results/bw.csv"
ls "$results" >"$results/names"
expect "record, samples and traces" [ "$(grep -c '^bw.jsonl$\|^bw.csv$\|^trace.[0-3]$' "$results/names")" -eq 6 ]
expect "the ledger" grep -q "^# ledger stripe soft0:2: " "$out"
expect "a record with its environment" grep -q '"RAILGAUGE_SOFT":' "$results/bw.jsonl"
expect "no secret in results" eval '! secret_is_in "$results" "$out" "$err"'

# ---- A job that runs --------------------------------------------------------------------------
# seen I: what other processes of host I see of those of the job
seen() {
	on "$1" sh -c 'for at in /proc/[0-9]*; do
			tr "\0" "\n" <$at/cmdline
			tr "\0" "\n" <$at/environ
			cat $at/comm
			ls -l $at/fd
		done
		ls -R /dev/shm /tmp "$HOME"
		"$@" list' sh "$PWD/softhca" 2>/dev/null
}
# holds_secret I: a rank of host I has it in its memory
holds_secret() {
	on "$1" sh -c 'for at in /proc/[0-9]*; do
			grep -q hello $at/comm || continue
			sed -n "s/^\([0-9a-f]*\)-\([0-9a-f]*\) rw.*\[heap\]$/\1 \2/p" $at/maps | while read -r first last; do
				dd if=$at/mem bs=4096 skip=$((0x$first / 4096)) count=$(((0x$last - 0x$first) / 4096))
			done
		done' 2>/dev/null | grep -aq "$secret"
}
# look: once all ranks are there
look() {
	for turn in $(seq 600); do
		[ "$(ls "$RG_MEET" | grep -c rank)" -lt 4 ] || break
		sleep 0.1
	done
	secret=$(cat "$RG_DRAWN"/*)
	for host in 0 1; do
		seen $host >"$work/seen.$host"
		! holds_secret $host || : >"$work/held.$host"
		on $host sh -c 'for at in /proc/[0-9]*; do
				! grep -q hello $at/comm || kill -USR2 ${at#/proc/}
			done' 2>/dev/null
	done
	: >"$RG_MEET/end"
}
export RG_MEET="$work/meet"
mkdir "$RG_MEET" || exit 99
look &
job 4 $railgauge tests/net/hello
wait $!
for host in 0 1; do
	expect "host $host: processes are seen" grep -q "^RG_DRAWN=" "$work/seen.$host"
	# Their names are gone once all ranks have joined.
	expect "host $host: files of the fabric are seen" grep -aq "/memfd:softhca-fabric" "$work/seen.$host"
	expect "host $host: all ranks have the secret" [ -e "$work/held.$host" ]
	expect "host $host: others see no secret" eval '! secret_is_in "$work/seen.$host"'
done
expect "no secret in lines and traces" eval '! secret_is_in "$results" "$out" "$err"'
finish
