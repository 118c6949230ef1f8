# run-lib.sh - for tests that launch MPI programs.  Sourced by sh scripts, which
# automake starts with MPIRUN, RG_MPI_FLAVOR, RG_SANITIZE and srcdir set, in the
# build directory.
#
#	launch N PROGRAM ARG...		mpirun -np N, at most $limit seconds, in its
#					turn; output in $out and $err,
#					exit code in $rc; says how long it took.  With
#					measuring=yes it is alone, and says nothing
#	in_turn COMMAND...		what launches MPI programs by itself, in its turn
#	launch_beside N ...		the same beside others: for what does not get to work
#	expect WHAT COMMAND...		the test fails unless COMMAND succeeds
#	killed LEAST PROGRAM ARG...	rank 1 of two is killed while they measure: the test fails unless
#					the job ends with an exit code of LEAST or more, and
#					leaves nothing but the records, in $work/k.jsonl
#	loses_exit_codes		this MPI library's launcher, now and then
#	refused PROGRAM N WORDS ARG...	launches it; fails unless it ends with exit code 3,
#					one line of its own, with WORDS, and no table
#	more WORD...			these as well, but not under sanitizers, to which
#					the code matters and not how often it runs,
#					unless RG_LONG=1 wants all
#	long WORD...			these with RG_LONG=1 alone
#	drawn N WORD...			the turn of these words: one in N, by RG_SEED; with
#					RG_LONG=1 always
#	finish				ends the test; skipped, where RG_SEED draws none of its cases
#
# RG_REFUSAL_LIMIT=SECONDS: of what is refused (60); an emulated machine needs more.
# RG_ON_HOSTS="2 2": programs run on 2 hosts with 2 rails (tests/net/hosts.sh).
limit=${limit:-600}
work=$(mktemp -d "${TMPDIR:-/tmp}/rg-test-XXXXXX") || exit 99
out=$work/out err=$work/err rc=
failures=0 checks=0
trap 'at_exit $?; rm -rf "$work"' EXIT
trap 'signal=HUP; exit 99' HUP
trap 'signal=INT; exit 99' INT
trap 'signal=TERM; exit 99' TERM
signal=

# at_exit CODE: a test that ends before its summary says so, and why.
at_exit() {
	case $1:$signal in
	0: | 77: | 1:) ;;
	*) echo "ended early${signal:+ by SIG$signal}, exit code $1, after $checks checks, $failures failed" ;;
	esac
}

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# Between asking the ranks of a job that failed to end, and ending them: a second, else.
export OMPI_MCA_odls_base_sigkill_timeout=0
# Not one directory for all jobs of a user: a job that ends takes it away under one that begins.
[ -n "${HOSTS-}" ] || export OMPI_MCA_orte_tmpdir_base="$work"
# MPI libraries leak, from plugins that are unloaded when leaks are looked for, so
# that no suppression matches; leaks of ours are found by the unit tests.
# What is preloaded comes before the sanitizer's runtime, which complains otherwise.
export ASAN_OPTIONS=detect_leaks=0:verify_asan_link_order=0
unset $(env | sed -n 's/^\(RAILGAUGE_[A-Z_]*\|SOFTHCA_[A-Z_]*\)=.*/\1/p')
# What papers measured, which is not installed yet.
RAILGAUGE_DATA=$(cd "$srcdir/data" && pwd)
export RAILGAUGE_DATA

case $RG_MPI_FLAVOR in
openmpi) launcher="$MPIRUN --oversubscribe -np" ;;
*) launcher="$MPIRUN -n" ;;
esac

# `make -j check` starts tests at the same time; ranks of two jobs would take each other's cores.
# Ranks of Open MPI can be told to yield, and its launcher mostly waits: two of its jobs at a time.
# This shell holds the lock; what the launcher leaves behind does not.
turns=yes measuring=
take_turn() {
	if [ "$RG_MPI_FLAVOR" = openmpi ] && [ -z "$measuring" ]; then
		export OMPI_MCA_mpi_yield_when_idle=1
		flock -n 8 || flock -n 9 || flock $((8 + $$ % 2))
	else
		take_all_turns
	fi
}
take_all_turns() {
	flock 8
	flock 9
}
in_turn() {
	(
		[ $turns = no ] || take_turn
		"$@" 8>&- 9>&-
		exit $?		# not the shell's last command, which it would become
	) 8>tests/.mpi-lock-2 9>tests/.mpi-lock
}

launch() {
	np=$1
	shift
	launch_began=$(date +%s)
	watched=
	[ "$RG_MPI_FLAVOR" != openmpi ] || [ -n "$measuring" ] || {
		launcher_watch </dev/null >/dev/null 2>&1 &
		watched=$!
	}
	in_turn env RG_LAUNCH=$$ timeout -k 10 "$limit" $launcher "$np" "$@" >"$out" 2>"$err"
	rc=$?
	[ -z "$watched" ] || kill $watched
	! launcher_stayed || rc=$(sed -n 's/^ *Exit code: *\([0-9]*\)$/\1/p' "$err" | head -n 1)
	[ -n "$measuring" ] || echo "$(($(date +%s) - launch_began)) s: $np ranks, $*"
	[ "$rc" -ne 124 ] || echo "launch: no end within $limit s: $*" >>"$err"
}

# Open MPI 5.0.7: now and then, on a crowded machine, prterun stays for ever after it has told the exit code of
# ranks that failed.  launcher_watch ends it after $patience seconds without a rank, well before $limit.  Accepted
# only if no process of the launch is left.
patience=60
launcher_told() {
	grep -q '^prterun detected' "$err" && grep -q '^ *Exit code: *[0-9]*$' "$err"
}
launch_processes() {
	grep -lsxz "RG_LAUNCH=$$" /proc/[0-9]*/environ | cut -d/ -f3
}
launcher_stayed() {
	[ "$rc" -eq 137 ] && launcher_told && [ -z "$(launch_processes)" ]
}
launcher_alone() {
	launchers=
	for pid in $(launch_processes); do
		read -r name <"/proc/$pid/comm" || continue
		case $name in
		timeout) ;;
		prterun | mpirun) launchers="$launchers $pid" ;;
		*) return 1 ;;
		esac
	done
	[ -n "$launchers" ]
}
launcher_watch() {
	alone=0
	while sleep 1 && kill -0 $$; do
		launcher_told && launcher_alone && alone=$((alone + 1)) || alone=0
		[ "$alone" -lt "$patience" ] || kill -9 $launchers
	done
}

launch_beside() {
	turns=no
	launch "$@"
	turns=yes
}

expect() {
	what=$1
	shift
	checks=$((checks + 1))
	"$@" && return
	failures=$((failures + 1))
	echo "FAILED: $what (exit code of the launch: $rc)"
	sed 's/^/  out: /' "$out" | head -40
	sed 's/^/  err: /' "$err" | head -40
}

more() {
	[ "$RG_SANITIZE" != no ] && [ -z "${RG_LONG-}" ] || echo "$@"
}

long() {
	[ -z "${RG_LONG-}" ] || echo "$@"
}

draws=yes undrawn=0
drawn() {
	one_in=$1
	shift
	[ $draws = no ] || [ -n "${RG_LONG-}" ] ||
		[ $(($(echo "${RG_SEED:-1} $*" | cksum | cut -d' ' -f1) % one_in)) -eq 0 ] || {
		undrawn=$((undrawn + 1))
		return 1
	}
}

# The table's row of a size: its columns behind the size.
row() {
	sed -n "s/^$1  *//p" "$out"
}

# Lines of our programs on stderr, not of the launcher.
ours() {
	grep -c "^$1: " "$err"
}

refused() {
	program=$1 np=$2 words=$3
	shift 3
	limit=${RG_REFUSAL_LIMIT:-60} launch_beside "$np" "$program" "$@"
	judge_refusal "${program##*/}" 3 3 "$words" "$*"
}

# judge_refusal PROGRAM LEAST MOST WORDS WHAT: so did the last launch, with such an exit code.
judge_refusal() {
	expect "$5: exit code $2 to $3, not $rc" [ "$rc" -ge "$2" -a "$rc" -le "$3" ]
	expect "$5: one line of ours" [ "$(ours "$1")" -eq 1 ]
	expect "$5: says '$4'" grep -q "^$1: .*$4" "$err"
	expect "$5: no table" [ "$(grep -c '^[0-9]' "$out")" -eq 0 ]
}

# MPICH 4.1 to 4.2.2: of ranks that end without MPI_Finalize hydra now and then tells 0 (mpich issue 7057).
loses_exit_codes() {
	[ "$RG_MPI_FLAVOR" = mpich ] && $MPIRUN --version | grep -q 'Version: *4\.\(1\|2\.[012]\)'
}

# Of MPICH 4.0 hydra, whatever it launches, now and then ends with 1 where it means the rank's signal,
# and says so; 1 of ours would be a failed validation.
ended_by_a_kill() {
	case $RG_MPI_FLAVOR:$rc in
	*:124) return 1 ;;
	mpich:1) grep -q 'EXIT STRING: Hangup' "$out" ;;
	mpich:0) loses_exit_codes && ! grep -q '"type":"end"' "$work/k.jsonl" ;;
	*) [ "$rc" -ge "$1" ] ;;
	esac
}
killed() {
	least=$1
	shift
	launch 2 "$srcdir/tests/bench/die.sh" "$work/k.jsonl" "$@" -i 10000000 --time-cap 600 \
		--json "$work/k.jsonl"
	expect "rank 1 measured, and was killed" grep -q '"type":"run"' "$work/k.jsonl"
	expect "a killed rank ends the job, with an error" ended_by_a_kill "$least"
	expect "nothing of ours stays in /dev/shm" shm_is_clean
}

# awk decides about numbers: holds '3 < 4.5'
holds() {
	awk "BEGIN { exit !($1) }"
}

# The fabric of an MPI job is called job-..., and its name lives for a moment while the
# job starts.  Jobs of other tests wait meanwhile; of jobs that are not ours, and of
# processes that are just ending, left behind is what stays.
shm_names() {
	find /dev/shm -maxdepth 1 -name 'softhca.*job-*' 2>/dev/null | sort
}
shm_before=$(shm_names)
shm_is_clean() {
	(
		take_all_turns
		left=$(shm_names)
		for second in $(seq 60); do
			left=$(shm_names | grep -Fx "$left" | grep -vFx "${shm_before:-none}")
			[ -n "$left" ] || exit 0
			sleep 1
		done
		echo "left in /dev/shm for $second s: $left" >>"$err"
		exit 1
	) 8>tests/.mpi-lock-2 9>tests/.mpi-lock
}

finish() {
	echo "$checks checks, $failures failed"
	[ "$checks" -gt 0 ] || [ "$undrawn" -eq 0 ] || {
		echo "skipped: RG_SEED=${RG_SEED:-1} draws none of $undrawn cases"
		exit 77
	}
	[ "$failures" -eq 0 ] && [ "$checks" -gt 0 ]
	exit
}
if [ -n "${RG_ON_HOSTS-}" ]; then
	. "$srcdir/tests/net/hosts.sh"
	# shellcheck disable=SC2086 # words are meant
	hosts $RG_ON_HOSTS
fi
