#!/bin/sh
# railgauge run: a campaign by a launcher that writes records, and a small one of real launches; ended by
# signals and kills, and what goes on from there.
. "$srcdir/tests/run-lib.sh"

run() {
	timeout -k 10 "$limit" src/cli/railgauge run "$@" >"$out" 2>"$err"
	rc=$?
}

# says WORDS WHAT: exit code 3, one line with WORDS, nothing else.
says() {
	expect "$2: exit code 3, not $rc" [ $rc -eq 3 ]
	expect "$2: one line" [ "$(wc -l <"$err")" -eq 1 ]
	expect "$2: says '$1'" grep -q -e "^railgauge: .*$1" "$err"
	expect "$2: nothing else" [ ! -s "$out" ]
}

# ---- A launcher that leaves records -----------------------------------------------------------
# It appends PROGRAM LAUNCH to $work/order, and does as $work/PROGRAM.LAUNCH says, once: hang, fail,
# torn, silent.

cat >"$work/mpirun" <<END
#!/bin/sh
echo "\$*" >>"$work/commands"
while [ "\${1##*/rg_}" = "\$1" ] && [ "\${1##*/plain}" = "\$1" ]; do
	case \$1 in *=*) echo "\$1" >>"$work/variables" ;; esac
	[ "\$1" != --over ] || way=\$2
	[ "\$1" != --ledger ] || ledger=yes
	shift
done
program=\${1##*/} launch= json= samples=/dev/null
while [ \$# -gt 0 ]; do
	case \$1 in
	--launch) launch=\$2 ;;
	--json) json=\$2 ;;
	--samples) samples=\$2 ;;
	esac
	shift
done
echo "\$program\${way:+.\$way} \$launch" >>"$work/order"
this=$work/\$program.\${way:-\$launch}
does=\$(cat "\$this" 2>/dev/null)
rm -f "\$this"
[ -z "\$ledger" ] || cat "$work/ledger" 2>/dev/null
case \$does in
stay) trap "" TERM; echo \$\$ >"$work/hangs"; sleep 3; exit 1 ;;
hang) echo \$\$ >"$work/hangs"; exec sleep 600 ;;
fail) echo "it failed"; exit 137 ;;
wrong) echo "\$program: --qps 99: out of range"; exit 3 ;;
silent) exit 0 ;;
esac
[ -n "\$json" ] || exit 0
{
	echo '{"schema":1,"type":"run","program":"'\$program'","title":"a test","metric":"latency","unit":"us","ways":["single"]}'
	echo '{"schema":1,"type":"row","way":"single","bytes":8,"n":9,"mean":'\$launch.5',"median":'\$launch.5'}'
	[ "\$does" = torn ] || echo '{"schema":1,"type":"end","status":0,"rows":1}'
} >"\$json"
echo "a sample of \$launch" >"\$samples"
END
chmod +x "$work/mpirun"

# Campaigns of 4 launches of each of three programs, over one way.
fake() {
	dir=$1
	shift
	run --launcher "$work/mpirun" --out "$work/$dir" --seed 5 --launches 4 --over single "$@"
}
launches() {
	grep -c '"type":"launch"' "$work/$1/campaign.jsonl"
}
again() {
	: >"$work/order"
	run --out "$work/$1"
}

run --dry-run --launcher 'srun -n {n} --exclusive' --ranks 4 --out "$work/dry"
expect "a dry run" [ $rc -eq 0 ]
expect "... the estimate of quick" grep -q '^# 30 launches, 10 of each program; at most 121 s: 630 rows of 0.088 s; ' "$out"
expect "... the commands" [ "$(grep -c "^srun -n 4 --exclusive /.*/rg_[a-z]* --over native,single,stripe --sizes .* --time-cap 88ms --launch [0-9] --json $work/dry/records/rg_[a-z]*.00[0-9].jsonl --samples .*csv --overwrite$" "$out")" -eq 30 ]
expect "... of three programs" [ "$(sed -n 's/.*\/\(rg_[a-z]*\) --over.*/\1/p' "$out" | sort | uniq -c | grep -c ' 10 rg_\(latency\|bw\|alltoall\)$')" -eq 3 ]
expect "... and nothing is there" [ ! -e "$work/dry" ]
for preset in standard:100:3[0-9]*:0.6 paper:400:2[78][0-9]*:1.04; do
	set -- $(echo $preset | tr : ' ')
	run --dry-run --preset $1 --out "$work/dry"
	expect "$1" grep -q "^# $2 launches, .*; at most $3 s: [0-9]* rows of $4 s; " "$out"
done

fake a
expect "a campaign" [ $rc -eq 0 ]
expect "... 12 launches" [ "$(wc -l <"$work/order")" -eq 12 ]
expect "... each once" [ "$(sort -u "$work/order" | wc -l)" -eq 12 ]
expect "... in rounds" [ "$(sed -n 's/.* //p' "$work/order" | tr -d '\n')" = 000111222333 ]
expect "... in another order each" [ "$(sed 's/ .*//' "$work/order" | paste -d' ' - - - | sort -u | wc -l)" -ge 2 ]
expect "... with -np" grep -q '^-np 2 /.*/rg_' "$work/commands"
expect "... progress" [ "$(grep -c '^railgauge: [0-9]* of 12: rg_[a-z]*, launch [0-3]: [0-9.]* s; about [0-9]* s left$' "$err")" -eq 12 ]
expect "... the journal" [ "$(launches a)" -eq 12 ]
expect "... its plan" grep -q '^{"type":"campaign","version":1,"preset":"quick","launches":4,"seed":5,"launcher":".*","ranks":2,' "$work/a/campaign.jsonl"
expect "... samples" [ "$(cat "$work/a/records/rg_bw.003.csv")" = 'a sample of 3' ]
expect "... the summary" grep -q '^8  *2.0000  *-  *-$' "$out"
sed '1,2d' "$out" >"$work/summary"
expect "... is kept" cmp -s "$work/summary" "$work/a/summary.txt"
cp "$work/order" "$work/order-a"
again a
expect "a finished one: no launch" [ ! -s "$work/order" ]
expect "... and says so" grep -q '; 12 are finished; at most 0 s' "$out"
fake a2
expect "the same seed, the same order" cmp -s "$work/order" "$work/order-a"
: >"$work/order"
run --launcher "$work/mpirun" --out "$work/a3" --seed 6 --launches 4 --over single
expect "another seed, another order" [ "$(wc -l <"$work/order")" -eq 12 -a "$(cksum <"$work/order")" != "$(cksum <"$work/order-a")" ]

# ---- What fails -------------------------------------------------------------------------------

echo fail >"$work/rg_bw.1"
: >"$work/order"
fake b
expect "a rank that was killed: exit code 0 in the end" [ $rc -eq 0 ]
expect "... it is told" grep -q "^railgauge: rg_bw.001: exit code 137; what it printed is in $work/b/records/rg_bw.001.txt$" "$err"
expect "... it comes again, at the end" [ "$(tail -n 1 "$work/order")" = 'rg_bw 1' ]
expect "... both are in the journal" [ "$(launches b)" -eq 13 ]
expect "... as it ended" grep -q '"program":"rg_bw","launch":1,"record":"records/rg_bw.001.jsonl","exit":137,' "$work/b/campaign.jsonl"

for does in torn silent; do
	echo $does >"$work/rg_bw.1"
	: >"$work/order"
	fake $does
	expect "$does: exit code 0 in the end" [ $rc -eq 0 ]
	expect "$does: told" grep -q '^railgauge: rg_bw.001: ended without a whole record; ' "$err"
	expect "$does: again" [ "$(grep -c '^rg_bw 1$' "$work/order")" -eq 2 ]
done

mkdir "$work/always"
sed 's/^does=.*/does=fail/' "$work/mpirun" >"$work/always/mpirun"
chmod +x "$work/always/mpirun"
: >"$work/order"
run --launcher "$work/always/mpirun" --out "$work/fails" --launches 4
expect "all fail: exit code 4" [ $rc -eq 4 ]
expect "all fail: three are enough" [ "$(wc -l <"$work/order")" -eq 3 ]
echo wrong >"$work/rg_bw.0"
echo wrong >"$work/rg_latency.0"
echo wrong >"$work/rg_alltoall.0"
: >"$work/order"
fake wrong
expect "wrong use: one is enough" [ $rc -eq 3 -a "$(wc -l <"$work/order")" -eq 1 ]
expect "wrong use: one line" [ "$(wc -l <"$err")" -eq 1 ]
expect "wrong use: the program's words" grep -q '^railgauge: rg_[a-z]*.000: exit code 3; .*.000.txt: rg_[a-z]*: --qps 99: out of range$' "$err"
rm -f "$work"/rg_*.0
fake wrong --options '--qps 9'
expect "... and its directory takes other words" [ $rc -eq 0 -a "$(launches wrong)" -eq 12 ]

# ---- Kills and signals ------------------------------------------------------------------------

# begun NAME [hang|stay]: a campaign of 4 launches each, in the background, that hangs in its sixth launch
begun() {
	does=${2-hang}
	: >"$work/order"
	sed -n 6p "$work/order-a" | while read -r program launch; do
		echo "$does" >"$work/$program.$launch"
	done
	rm -f "$work/hangs"
	src/cli/railgauge run --launcher "$work/mpirun" --out "$work/$1" --seed 5 --launches 4 --over single \
		>"$out" 2>"$err" &
	begun=$!
	for i in $(seq 600); do
		[ ! -s "$work/hangs" ] || break
		sleep 0.1
	done
	hangs=$(cat "$work/hangs")
}
# ends PID: within a minute
ends() {
	for i in $(seq 600); do
		kill -0 "$1" 2>/dev/null || return 0
		sleep 0.1
	done
	return 1
}
sums() {
	(cd "$work/$1/records" && cksum $(ls | grep 'jsonl$'))
}

for signal in INT TERM HUP; do
	begun $signal
	run --out "$work/$signal"
	says "in use by another run, process $begun " "SIG$signal: a directory in use"
	kill -$signal $begun
	wait $begun
	rc=$?
	expect "SIG$signal: exit code 4" [ $rc -eq 4 ]
	expect "SIG$signal: the launch is ended" ends "$hangs"
	expect "SIG$signal: what is finished stays" [ "$(launches $signal)" -eq 5 ]
	expect "SIG$signal: a summary" grep -q '^# campaign: quick, 5 of 12 launches finished, ' "$work/$signal/summary.txt"
	expect "SIG$signal: of what there is" grep -q '^8  ' "$work/$signal/summary.txt"
done
sums INT >"$work/sums"
again INT
expect "it goes on" [ $rc -eq 0 ]
expect "... with the launch that was ended" [ "$(head -n 1 "$work/order")" = "$(sed -n 6p "$work/order-a")" ]
expect "... in the same order" [ "$(cat "$work/order")" = "$(sed 1,5d "$work/order-a")" ]
sums INT >"$work/sums-now"
expect "... and leaves records as they are" [ "$(grep -cxFf "$work/sums" "$work/sums-now")" -eq 5 ]

begun kill
kill -9 $begun
wait $begun 2>/dev/null
expect "kill -9: the launch is ended" ends "$hangs"
sums kill >"$work/sums"
# Torn where power fails: in the journal, in a record; and a launch that the journal has not got yet.
sed '$d' "$work/kill/campaign.jsonl" >"$work/journal"
cp "$work/journal" "$work/kill/campaign.jsonl"
printf '{"type":"launch","ind' >>"$work/kill/campaign.jsonl"
again kill
expect "kill -9: it goes on" [ $rc -eq 0 ]
expect "... a torn line is told" grep -q '^railgauge: warning: .*/campaign.jsonl: torn last line dropped$' "$err"
expect "... a finished launch that the journal lacked is not repeated" \
	[ "$(cat "$work/order")" = "$(sed 1,5d "$work/order-a")" ]
sums kill >"$work/sums-now"
expect "... and records stay" [ "$(grep -cxFf "$work/sums" "$work/sums-now")" -eq 5 ]
expect "... the journal is whole" [ "$(launches kill)" -eq 12 ]
begun stay stay
kill -9 $begun
wait $begun 2>/dev/null
run --out "$work/stay"
expect "a launch that a killed run has left" [ $rc -eq 0 ]
expect "... is waited for" grep -q '^railgauge: waiting for the launch that a killed run has left$' "$err"
expect "... until it ends" [ "$(grep -c 'has not ended' "$err")" -eq 0 ]
expect "... which it does" ends "$hangs"
sed -i '$d' "$work/kill/records/rg_bw.002.jsonl"
again kill
expect "a record that is torn later: its launch is repeated" [ "$(cat "$work/order")" = 'rg_bw 2' ]

# ---- Builds and settings ----------------------------------------------------------------------

mkdir -p "$work/prefix/bin" "$work/tree/pt2pt" "$work/tree/collective"
for program in rg_latency rg_bw rg_alltoall; do
	ln -s /bin/true "$work/prefix/bin/$program"
	printf '#!/bin/sh\n' >"$work/prefix/bin/$program.new"
	mv -f "$work/prefix/bin/$program.new" "$work/prefix/bin/$program"
	chmod +x "$work/prefix/bin/$program"
done
cp "$work/prefix/bin/rg_latency" "$work/prefix/bin/rg_bw" "$work/tree/pt2pt"
: >"$work/commands"
: >"$work/order"
fake two --launches 2 --with "old=$work/prefix" --with "deep=UCX_TLS=tcp OMPI_MCA_x=1 --qps 4"
expect "two builds" [ $rc -eq 0 ]
expect "... in turns: a round has both of each" \
	[ "$(head -n 6 "$work/order" | sort | uniq -c | grep -c ' 2 ')" -eq 3 ]
expect "... the build's program" [ "$(grep -c "^-np 2 $work/prefix/bin/rg_bw --over" "$work/commands")" -eq 2 ]
expect "... variables and options" [ "$(grep -c "^-np 2 env UCX_TLS=tcp OMPI_MCA_x=1 /.*/rg_bw --over .* --qps 4 --launch" "$work/commands")" -eq 2 ]
expect "... records by build" [ -s "$work/two/records/old.rg_bw.001.jsonl" -a -s "$work/two/records/deep.rg_bw.001.jsonl" ]
expect "... interleaved" grep -q '"interleaved":true' "$work/two/campaign.jsonl"
expect "... columns by build" grep -q '^# Size  *old:single  *deep:single$' "$out"
fake one --with old=/nowhere --with new=
says 'with old=/nowhere: no such directory (accepted: a build directory, ' 'no such build'
fake one --with "old=$work/tree" --with new=
says "with old=$work/tree: rg_alltoall is not there (accepted: a build directory or" 'half a build'
expect "half a build: no campaign" [ ! -e "$work/one/campaign.jsonl" ]
fake one --with old=
says 'with old=: alone' 'one build'
fake one --with old= --with old=
says 'with old: the same name twice' 'one name twice'
fake one --with a/b= --with old=
says 'no name (accepted: NAME=DIR' 'no name'
fake one --with 'a=UCX_TLS=tcp qps=4' --with old=
says 'not settings' 'no settings'

# ---- Bad input --------------------------------------------------------------------------------

sed -i 's/"launches":4/"launches":4 /' "$work/a/campaign.jsonl"
for setting in '--preset paper:preset quick, not paper' '--launches 5:launches 4, not 5' '--ranks 4:ranks 2, not 4' \
	'--seed 6:seed 5, not 6' '--over native:over single, not native' '--options -c:options none, not -c' \
	'--launcher x:launcher .*mpirun, not x' '--time-cap 1:cap_ns 88000000, not 1000000000'; do
	cp "$work/a/campaign.jsonl" "$work/journal"
	run --out "$work/a" ${setting%%:*}
	says "/a: has a campaign of other settings: ${setting#*:} (accepted: " "other settings, ${setting%%:*}"
	expect "... and nothing is changed" cmp -s "$work/journal" "$work/a/campaign.jsonl"
done
run --out "$work/a" --with a= --with b=--qps\ 2
says 'other settings: builds ' 'other builds'
run --out "$work/a" ./a.out
says 'other settings: preset quick, not program' 'a program into a campaign of the suite'

mkdir "$work/damaged" "$work/other"
echo 'not a journal' >"$work/damaged/campaign.jsonl"
run --out "$work/damaged"
says 'campaign.jsonl:1: not the journal of a campaign' 'a foreign journal'
expect "... stays" [ "$(cat "$work/damaged/campaign.jsonl")" = 'not a journal' ]
sed '3s/"launch"/"lau/' "$work/b/campaign.jsonl" >"$work/damaged/campaign.jsonl"
run --out "$work/damaged"
says 'campaign.jsonl:3: damaged: ' 'a damaged journal'
sed '1s/"cap_ns":[0-9]*/"cap_ns":"x"/' "$work/b/campaign.jsonl" >"$work/damaged/campaign.jsonl"
run --out "$work/damaged"
expect "a damaged plan: named" grep -q 'damaged/campaign.jsonl:1: damaged: cap_ns\|cap_ns "x"\|cap_ns x' "$err"
expect "... exit code 3" [ $rc -eq 3 ]
echo x >"$work/other/thesis.tex"
run --out "$work/other"
says 'has other files and no campaign (accepted: a campaign, an empty' "another's directory"
expect "... gets nothing" [ "$(ls "$work/other")" = thesis.tex ]
run --out "$work/no/where"
says 'out .*/no/where: No such file or directory' 'no parent directory'
run --out /dev/null
says 'out /dev/null: Not a directory' 'no directory'
run --out /proc/self/new
says 'out /proc/self/new: No such file' 'an unwritable directory'
run --launcher /nowhere/mpirun --out "$work/none" --launches 2
expect "no launcher: exit code 3" [ $rc -eq 3 ]
expect "no launcher: one line" [ "$(wc -l <"$err")" -eq 1 ]
expect "no launcher: named" grep -q '^railgauge: --launcher /nowhere/mpirun: cannot be started (accepted: ' "$err"
run --sizes 8:4 --out "$work/none"
says 'sizes 8:4: makes no sense' 'wrong sizes'
run --preset long
says 'preset long: unknown (accepted: quick, standard or paper)' 'no such preset'
run --over natively
says 'over natively: unknown item' 'no such way'

# ---- A program of the user's ------------------------------------------------------------------

printf '#!/bin/sh\n' >"$work/plain"
chmod +x "$work/plain"
cat >"$work/ledger" <<END
plain: ledger of 2 ranks together; messages are those sent at once, chunks are of large ones
  MPI_Send 7 600000 1
  rail sent: msgs chunks bytes
  mlx5_0:1 11 0 299776 11 20 299776 1 0
  mlx5_1:1 12 0 300224 12 40 300224 2 -
END
: >"$work/order"
: >"$work/commands"
HWLOC_XMLFILE=$srcdir/tests/topo/slot.xml run --launcher "$work/mpirun" --out "$work/program" --launches 6 -- \
	"$work/plain" --json 'two words'
expect "a program" [ $rc -eq 0 ]
expect "... 6 launches over each way, one with its ledger" \
	[ "$(sort "$work/order" | uniq -c | tr -s ' \n' ' ')" = ' 6 plain.native 6 plain.single 7 plain.stripe ' ]
expect "... interleaved" [ "$(head -n 3 "$work/order" | sort -u | wc -l)" -eq 3 ]
expect "... by exec" [ "$(grep -c "^-np 2 /.*railgauge exec --over stripe -- $work/plain --json two words$" "$work/commands")" -eq 6 ]
expect "... medians" [ "$(grep -c '^\(native\|single\|stripe\)  *6  *[0-9.e-]*  *[0-9.e-]*  *[0-9.e-]*$' "$out")" -eq 3 ]
expect "... an answer" grep -q '^striping \(helps\|harms\|does not help\): [-0-9.e]* % \[[-0-9.e]*, [-0-9.e]*\] less time than over one rail$' "$out"
expect "... and why" grep -qx 'why striping cannot help: no message above 8K; one PCIe slot: all rails share 0000:01:00, 31.5 GB/s' "$out"
expect "... records" grep -q '"quantity": *"wall time"' "$work/program/records/stripe.plain.005.jsonl"
expect "... of the journal's program" grep -q "\"program\": *\"$work/plain\"" "$work/program/records/stripe.plain.005.jsonl"
cp "$work/program/summary.txt" "$work/summary"
export HWLOC_XMLFILE="$srcdir/tests/topo/slot.xml"
again program
unset HWLOC_XMLFILE
expect "... again: no launch, the same answer" cmp -s "$work/summary" "$work/program/summary.txt"
expect "... no launch" [ ! -s "$work/order" ]
run --launcher "$work/mpirun" --out "$work/program2" -- "$work/nothing"
says 'nothing: no such program' 'no such program'
run --sizes 8 -- "$work/plain"
says 'sizes: not for .*/plain (accepted: without a program)' 'sizes of a program'

# The answer follows from the journal: three times as fast, and equally fast.
answer() {
	sed -i "s/\(\"build\":\"stripe\".*\"seconds\":\).*/\1$1}/; s/\(\"build\":\"single\".*\"seconds\":\).*/\13.0}/" \
		"$work/program/campaign.jsonl"
	run --out "$work/program"
}
answer 1.5
expect "yes" grep -qx 'striping helps: 50 % \[50, 50\] less time than over one rail' "$out"
answer 3.0
expect "no" grep -qx 'striping does not help: 0 % \[0, 0\] less time than over one rail' "$out"
answer 3.3
expect "no, slower" grep -qx 'striping harms: -10 % \[-10, -10\] less time than over one rail' "$out"

# ---- Real launches ----------------------------------------------------------------------------

case $RG_MPI_FLAVOR in
openmpi) real="$MPIRUN --oversubscribe -np {n}" ;;
*) real="$MPIRUN -n {n}" ;;
esac
# The first rank 1 that comes is killed.
cat >"$work/once" <<END
#!/bin/sh
if [ "\${OMPI_COMM_WORLD_RANK:-\$PMI_RANK}" = 1 ] && mkdir "$work/was-killed" 2>/dev/null; then
	kill -9 \$\$
fi
exec "\$@"
END
chmod +x "$work/once"
real_begun() {
	in_turn src/cli/railgauge run --launcher "$real $work/once" --out "$work/real" --launches 2 \
		--over single,stripe --sizes 8:16 --options '-i 4 -x 1' >"$out" 2>"$err" &
	begun=$!
	for i in $(seq 600); do
		[ "$(cat "$work/real/campaign.jsonl" 2>/dev/null | grep -c '"exit":0')" -lt 2 ] || break
		sleep 0.1
	done
	kill -9 "$(cat "$work/real/lock")"
	wait $begun 2>/dev/null
}
if [ "$RG_SANITIZE" = no ] || [ -z "$RG_SANITIZE" ]; then
	real_begun
	# As of a job that was killed while its ranks joined.
	SOFTHCA_FABRIC=run.$$ ./tests/softhca/hold >"$work/held" 2>&1 &
	held=$!
	for i in $(seq 600); do
		[ ! -s "$work/held" ] || break
		sleep 0.1
	done
	kill -9 $held
	wait $held 2>/dev/null
	expect "real launches: killed on the way" [ "$(launches real)" -lt 7 ]
	cp "$work/real/campaign.jsonl" "$work/journal"
	for record in $(sed -n 's/.*"record":"\([^"]*\)","exit":0.*/\1/p' "$work/journal"); do
		cksum "$work/real/$record"
	done >"$work/sums"
	expect "... some are finished" [ -s "$work/sums" ]
	in_turn timeout -k 10 "$limit" src/cli/railgauge run --out "$work/real" >"$out" 2>"$err"
	rc=$?
	expect "... it goes on" [ $rc -eq 0 ]
	expect "... a rank that was killed" [ -d "$work/was-killed" ]
	expect "... is told or known" grep -q '"exit":[1-9]' "$work/real/campaign.jsonl"
	expect "... six are finished" [ "$(grep -c '"exit":0' "$work/real/campaign.jsonl")" -eq 6 ]
	awk '{ print $3 }' "$work/sums" | xargs cksum >"$work/sums-now"
	expect "... what was finished stays as it is" cmp -s "$work/sums" "$work/sums-now"
	expect "... samples have the launch" [ "$(sed 1d "$work/real/records/rg_bw.001.csv" | cut -d, -f1 | sort -u)" = 1 ]
	expect "... and records" grep -q '"launch": *{"value": *"1"' "$work/real/records/rg_bw.001.jsonl"
	expect "... the launches are of one job" grep -q ', 2 launches$' "$out"
	ended=$work/real/records/rg_bw.001.jsonl
	sed -i '4,$d' "$ended"
	cp "$ended" "$work/ended"
	in_turn timeout -k 10 "$limit" src/cli/railgauge run --out "$work/real" >"$out" 2>"$err"
	expect "a launch that was ended goes on" [ $? -eq 0 ]
	expect "... with the rows that it had finished" \
		[ "$(sed -n 2,3p "$ended")" = "$(sed -n 2,3p "$work/ended")" ]
	expect "... and the others" [ "$(grep -c '"type":"row"' "$ended")" -eq 4 ]
	expect "a job that was killed leaves no name" [ ! -e "/dev/shm/softhca.$(id -u).run.$$" ]
	expect "nothing is left in /dev/shm" shm_is_clean
fi
finish
