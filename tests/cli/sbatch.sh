#!/bin/sh
# railgauge sbatch: what the script says, what is refused, the launcher that is found, and the script at
# work with stand-ins for Slurm and `railgauge run`.  tests/slurm has the real ones.
. "$srcdir/tests/run-lib.sh"
script=$work/job.sh

# written ARG...
written() {
	src/cli/railgauge sbatch "$@" >"$script" 2>"$err"
	rc=$?
	cp "$script" "$out"
	expect "sbatch $*: a script" eval '[ $rc -eq 0 ] && [ ! -s "$err" ] && sh -n "$script"'
}
says() {
	expect "the script says '$1'" grep -qxF -e "$1" "$script"
}
refuses() {
	words=$1
	shift
	src/cli/railgauge sbatch "$@" >"$out" 2>"$err"
	rc=$?
	expect "sbatch $*: exit code 3" [ $rc -eq 3 ]
	expect "sbatch $*: one line, '$words'" eval \
		'[ "$(wc -l <"$err")" -eq 1 ] && grep -qF -e "$words" "$err" && [ ! -s "$out" ]'
}

# Stand-ins: srun knows the types in $work/types; scontrol and `railgauge run` note how they are called.
mkdir "$work/bin"
cat >"$work/bin/srun" <<END
#!/bin/sh
[ "\$*" = --mpi=list ] && [ -e '$work/types' ] && cat '$work/types'
END
cat >"$work/bin/scontrol" <<END
#!/bin/sh
echo "\$*" >>'$work/scontrol'
END
# It finishes launches until there are three; \$STOPS: SIGTERM comes first, after so many.
cat >"$work/bin/railgauge" <<END
#!/bin/sh
printf '<%s>\n' "\$@" >'$work/words'
out=\$3
mkdir "\$out" 2>/dev/null
launches() { grep -c launch "\$out/campaign.jsonl" 2>/dev/null; }
trap 'echo summary >>"\$out/summary.txt"; exit 143' TERM
: >>"\$out/campaign.jsonl"
more=\${STOPS:-3}
while [ "\$(launches)" -lt 3 ]; do
	if [ "\$more" -eq 0 ]; then
		: >'$work/waits'
		while :; do sleep 0.05; done
	fi
	echo '{"type":"launch"}' >>"\$out/campaign.jsonl"
	more=\$((more - 1))
done
END
chmod +x "$work/bin/"*
PATH=$work/bin:$PATH

# ---- What it says ----------------------------------------------------------------------------

written
for line in --nodes=2 --ntasks-per-node=1 --exclusive --time=0:15:00 --requeue --open-mode=append \
	--signal=B:USR1@60 --output=railgauge-%j.out; do
	says "#SBATCH $line"
done
expect "no array, no partition" eval '! grep -qE "^#SBATCH --(array|partition|account)" "$script"'
says '"$railgauge" run --out "$out" --launcher "$launcher" --ranks "$ranks" --preset quick &'
written -N 4 --ranks-per-node 3 -t 1-02:00 -p 'fast,slow' -A me.x --repeats 5 --preset paper --launches 20
for line in --nodes=4 --ntasks-per-node=3 --time=1-02:00 --partition=fast,slow --account=me.x \
	--array=1-5%1 --output=railgauge-%A_%a.out; do
	says "#SBATCH $line"
done
says 'ranks=${SLURM_NTASKS:-12}'
says '"$railgauge" run --out "$out" --launcher "$launcher" --ranks "$ranks" --preset paper --launches 20 &'
written --run "--over native  -m 8:1K;x"
says '"$railgauge" run --out "$out" --launcher "$launcher" --ranks "$ranks" --preset quick --over native -m '"'8:1K;x' &"
written --preset standard
says "#SBATCH --time=2:00:00"

refuses "--nodes 0: out of range" --nodes 0
refuses "--time soon: no time limit of Slurm's (accepted: MINUTES" --time soon
refuses "--partition a b: no name of Slurm's" --partition 'a b'
refuses "no name of Slurm's" --account 'x
touch y'
refuses "--preset fast: unknown" --preset fast
refuses "--launcher mpiexec -n 2: no place for the number of ranks (accepted: mpirun, srun" --launcher 'mpiexec -n 2'
refuses "--out : empty, or several lines" --out ''
refuses "--run : empty" --run ''

# ---- The launcher ------------------------------------------------------------------------------

# finds LAUNCHER TYPES ARG...
finds() {
	command=$1
	printf 'MPI plugin types are...\n%s\n' "$2" >"$work/types"
	shift 2
	written "$@"
	says "launcher='$command'"
}
case $RG_MPI_FLAVOR in
openmpi)
	finds "$MPIRUN -np {n}" '	pmix'
	finds "srun --mpi=pmix --kill-on-bad-exit=1 -n {n}" '	none' --launcher srun
	;;
*)
	finds "srun --mpi=pmi2 --kill-on-bad-exit=1 -n {n}" '	none
	pmi2'
	finds "$MPIRUN -n {n}" '	pmi2x none'
	rm "$work/types"
	written
	says "launcher='$MPIRUN -n {n}'"
	expect "srun could not be asked" grep -q 'srun could not be asked' "$script"
	finds "$MPIRUN -n {n}" '	pmi2' --launcher mpirun
	;;
esac
finds 'my launcher -n {n}' '	none' --launcher 'my launcher -n {n}'

# ---- At work -----------------------------------------------------------------------------------

# works VARIABLE=VALUE...: as Slurm would start it
works() {
	sed -i "s,^railgauge=.*,railgauge=$work/bin/railgauge," "$script"
	env SLURM_SUBMIT_DIR="$work" SLURM_NTASKS=4 SLURM_JOB_ID=17 "$@" sh "$script" >"$out" 2>"$err"
	rc=$?
}
launches() {
	grep -c launch "$work/$1/campaign.jsonl"
}
written --out "it's here" --launcher mpirun -- ./a.out "x  'y'" '$HOME'
works
expect "a program's words stay as they are" eval '
	[ $rc -eq 0 ] && tail -n 4 "$work/words" | tr -d "\n" | grep -qxF "<-->\
<./a.out><x  '"'y'"'><\$HOME>"'
expect "its directory is in that of sbatch" [ "$(launches "it's here")" -eq 3 ]
expect "the ranks are those of the job" grep -qx '<4>' "$work/words"
written --repeats 2
works SLURM_ARRAY_TASK_ID=2
expect "a repeat has a directory of its own" [ "$(launches railgauge-campaign/2)" -eq 3 ]

# stopped SIGNAL JOB STOPS: the script gets SIGNAL when its campaign waits.
stopped() {
	rm -f "$work/waits"
	sed -i "s,^railgauge=.*,railgauge=$work/bin/railgauge," "$script"
	env SLURM_SUBMIT_DIR="$work" SLURM_JOB_ID="$2" STOPS="$3" sh "$script" >"$out" 2>"$err" &
	job=$!
	while [ ! -e "$work/waits" ]; do sleep 0.05; done
	kill -"$1" $job
	wait $job
	rc=$?
}
written --out cut
stopped TERM 20 1
expect "SIGTERM: the campaign ends, with its code" [ $rc -eq 143 ]
expect "... and its summary" grep -q summary "$work/cut/summary.txt"
expect "... and is not requeued by the script" [ ! -e "$work/scontrol" ]
stopped USR1 21 1
expect "the time limit: requeued" eval '[ $rc -eq 143 ] && [ "$(cat "$work/scontrol")" = "requeue 21" ]'
stopped USR1 22 0
expect "... not if nothing was finished" [ "$(cat "$work/scontrol")" = "requeue 21" ]
works
expect "what is missing is measured" eval '[ $rc -eq 0 ] && [ "$(launches cut)" -eq 3 ]'
finish
