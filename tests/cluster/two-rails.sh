# two-rails.sh - for jobs about both rails of two nodes.  Sourced behind run-lib.sh.
#
#	on_nodes COMMANDS	in a shell of each node, behind $rules; $node is its number
#	bw COMMANDS		the same, and then rg_bw over both rails
#	well RAILS		it took so many, and every byte was right
rules=
on_nodes() {
	for node in 0 1; do
		ssh node$node "node=$node; $rules
			$1" || expect "node$node: $1" false
	done
}
bw() {
	on_nodes "$1"
	launch 2 pt2pt/rg_bw --over stripe -m 64K:256K -i 2 -x 1 -W 4 -c
}
well() {
	[ "$rc" -eq 0 ] && grep -q "^# fabric: kernel software, RoCE, $1 rail" "$out" && grep -q Pass "$out" &&
		! grep -q Fail "$out"
}
