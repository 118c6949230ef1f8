# results.sh - sourced by what runs jobs that are none of automake's tests: they have their
# result all the same, JOB.trs beside JOB.log in the build directory, where .ci/run counts.
#
#	choose WORDS JOB...	$chosen: the jobs whose name contains one of the words;
#				without words all of them
#	result JOB CODE [NOTE]	its line; its log as well, unless it passed; a NOTE "N s" is what it
#				took, which goes into the log as timed.sh writes it
#	$failed			1 when a job has failed
failed=0

choose() {
	words=$1 chosen=
	shift
	for job do
		[ -z "$words" ] || for word in $words none; do
			case $job in *"$word"*) break ;; esac
		done
		[ -n "$words" ] && [ "$word" = none ] || chosen="$chosen${chosen:+ }$job"
	done
	[ -n "$chosen" ] || {
		echo "$words: no such job; there are: $*"
		exit 3
	}
	for job in $chosen; do rm -f "$job.log" "$job.trs"; done
}

result() {
	case $2 in
	0) word=PASS ;;
	77) word=SKIP ;;
	*) word=FAIL failed=1 ;;
	esac
	case ${3-} in *[0-9]' s') echo "seconds: ${3% s}" >>"$1.log" ;; esac
	echo "$word: $1${3:+ ($3)}"
	[ $word = PASS ] || cat "$1.log"
	printf ':test-result: %s\n:global-test-result: %s\n:recheck: no\n' $word $word >"$1.trs"
}
