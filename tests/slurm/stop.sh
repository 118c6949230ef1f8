#!/bin/sh
# stop.sh - a campaign that Slurm stops: by scancel, by the signal before the time limit, by preemption.
# Nothing is left on the nodes, each launch that had ended stays as it was, and the rest follows.
. "$srcdir/tests/run-lib.sh"
. "$srcdir/tests/slurm/cluster.sh"
cluster
campaign_script job.sh --out campaign --launches 3 --run "$quick" --launcher mpirun

# The journal grows, and no line of it changes, nor a record that it names.
keep() {
	sed '$!b; /}$/!d' "$jobs/campaign/campaign.jsonl" >"$work/kept.jsonl"
	kept=$(grep -c '"launch",' "$work/kept.jsonl")
	(cd "$jobs/campaign" && done_well "$work/kept.jsonl" | sed 's/.*"record": *"\([^"]*\)".*/\1/' |
		xargs cksum) >"$work/kept.sums"
	echo "$kept launches had ended"
}
is_kept() {
	head -c "$(wc -c <"$work/kept.jsonl")" "$jobs/campaign/campaign.jsonl" | cmp - "$work/kept.jsonl" &&
		(cd "$jobs/campaign" && cut -d' ' -f3 "$work/kept.sums" | xargs cksum) | cmp - "$work/kept.sums"
}
has_more() {
	[ "$(launches campaign)" -gt "$kept" ]
}
log_is_out() {
	cp "$jobs/job.out" "$out" 2>/dev/null
}
is_clean() {
	[ -z "$(left_on 0)$(left_on 1)" ]
}
kept=0

submit -o job.out job.sh
comes_to "a launch has ended" has_more
slurm scancel "$job"
comes_to "scancel ends the job" is_state $job CANCELLED
comes_to "its nodes are free" nodes_are_idle
log_is_out
comes_to "scancel leaves nothing on the nodes" is_clean
keep
expect "... and a campaign to resume" [ "$kept" -ge 1 -a "$kept" -lt 9 ]
expect "... and a summary" [ -s "$jobs/campaign/summary.txt" ]

submit -o job.out job.sh
comes_to "the next job goes on" has_more
# As Slurm does at --signal=B:USR1@60.
slurm scancel --batch --signal=USR1 "$job"
comes_to "the job requeues itself" is_state $job PENDING
comes_to "nothing is left on the nodes" is_clean
expect "rows are kept" is_kept
keep
comes_to "the same job goes on" has_more

# A job of a partition that comes first takes the nodes.
first=$job
submit -p high -N 2 --exclusive -o high.out --wrap 'echo here'
comes_to "a job with priority ends" is_state $job COMPLETED
expect "rows are kept" is_kept
comes_to "the job that had to go ends" is_state $first COMPLETED FAILED
log_is_out
expect "... well" is_state $first COMPLETED
expect "rows are kept" is_kept
expect "the campaign is whole" [ "$(done_well "$jobs/campaign/campaign.jsonl" | wc -l)" -eq 9 ]
expect "no launch was measured twice" [ "$(done_well "$jobs/campaign/campaign.jsonl" |
	sed -n 's/.*"record": *"\([^"]*\)".*/\1/p' | sort -u | wc -l)" -eq 9 ]
expect "nothing is left on the nodes" is_clean
finish
