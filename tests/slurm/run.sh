#!/bin/sh
# run.sh --out DIR --launcher COMMAND --ranks N --preset NAME --launches N -m SIZES - in place of `railgauge run`,
# with its journal: three programs in turns, a line for each launch that has ended; resumes.
while [ $# -gt 0 ]; do
	case $1 in
	--*) eval "${1#--}=\$2" ;;
	-m) sizes=$2 ;;
	esac
	shift 2
done
mkdir -p "$out/records" || exit 3
exec 7>"$out/lock"
flock -n 7 || exit 3
journal=$out/campaign.jsonl
end() {
	kill -TERM $child 2>/dev/null
	wait $child
	echo "$1, $(grep -c '"launch",' "$journal") launches" >"$out/summary.txt"
}
child=
trap 'end stopped; exit 143' TERM INT
[ -s "$journal" ] || echo '{"type":"campaign","version":1}' >"$journal"
build=${RG_RAILGAUGE%/src/cli/railgauge}
index=0 launch=0
while [ $launch -lt "$launches" ]; do
	for program in pt2pt/rg_latency pt2pt/rg_bw collective/rg_alltoall; do
		name=${program##*/}
		record=records/$name.$(printf %03d $launch).jsonl
		if ! grep -q "\"record\":\"$record\"" "$journal"; then
			rm -f "$out/$record"
			$(echo "$launcher" | sed "s/{n}/$ranks/") "$build/$program" --over "$over" -m "$sizes" \
				--time-cap 0.1 --json "$out/$record" >"$out/$name.log" 2>&1 </dev/null 7>&- &
			child=$!
			wait $child
			code=$?
			[ $code -eq 0 ] || { end "exit code $code"; exit $code; }
			echo "{\"type\":\"launch\",\"index\":$index,\"build\":\"\",\"program\":\"$name\",\"launch\":$launch,\"record\":\"$record\",\"exit\":0}" >>"$journal"
		fi
		index=$((index + 1))
	done
	launch=$((launch + 1))
done
end complete
