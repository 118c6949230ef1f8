#!/bin/sh
# crash.sh - a node ends in the middle of a campaign, with slurmd and all its processes.  Slurm requeues the
# job, nothing is left on the other node, and when the node is there again the campaign ends: each launch
# that had ended stays as it was.
. "$srcdir/tests/run-lib.sh"
. "$srcdir/tests/slurm/cluster.sh"
cluster
campaign_script job.sh --out campaign --launches 3 --run "$quick" --launcher mpirun
journal=$jobs/campaign/campaign.jsonl

has_more() {
	[ "$(launches campaign)" -gt "$1" ]
}
records() {
	(cd "$jobs/campaign" && done_well "$1" | sed 's/.*"record": *"\([^"]*\)".*/\1/' | sort | xargs cksum)
}

# crashes HOST: in the middle
crashes() {
	comes_to "a launch has ended" has_more "$2"
	node_down "$1"
	comes_to "the job waits for its nodes" is_state $job PENDING
	comes_to "nothing is left on the other node" eval "[ -z \"\$(left_on $((1 - $1)))\" ]"
	sed '$!b; /}$/!d' "$journal" >"$work/kept.jsonl"
	records "$work/kept.jsonl" >"$work/kept.sums"
	kept=$(grep -c '"launch",' "$work/kept.jsonl")
	echo "$kept launches had ended"
	expect "the campaign is to resume" [ "$kept" -lt 9 ]
	node_up "$1"
}
submit -o job.out job.sh
# One of them runs the batch script, too.
crashes 1 0
crashes 0 "$kept"
comes_to "the job ends" is_state $job COMPLETED FAILED
cat "$jobs/job.out" "$jobs/campaign"/*.log "$jobs/campaign/summary.txt" >"$out" 2>/dev/null
expect "... well" is_state $job COMPLETED
expect "rows are kept" eval 'head -c "$(wc -c <"$work/kept.jsonl")" "$journal" | cmp - "$work/kept.jsonl"'
expect "records are kept" eval 'records "$work/kept.jsonl" | cmp - "$work/kept.sums"'
expect "the campaign is whole" [ "$(done_well "$journal" | wc -l)" -eq 9 ]
expect "no launch was measured twice" [ "$(records "$journal" | sort -u | wc -l)" -eq 9 ]
finish
