#!/bin/sh
# random.sh - random programs over ways (tests/mpi/random/programs.h): 1,000 runs with Open MPI, of a
# program over a way, fewer where another build has them (another MPI library, sanitizers), and ten
# times as many with RG_LONG=1.
#
#	RG_SEED=N	other programs; a failure says how one is repeated
. "$srcdir/tests/run-lib.sh"
seed=${RG_SEED:-1} first=0 all=0
case $RG_MPI_FLAVOR:$RG_SANITIZE in
openmpi:no) share=100 few=3 ;;
openmpi:*) share=8 few=2 ;;
*) share=20 few=2 ;;	# MPICH never yields and pays dearly for more ranks than cores
esac
[ -z "${RG_LONG-}" ] || share=$((share * 10))

passed() {
	[ "$rc" -eq 0 ] && grep -q "^$count programs passed, each over $ways ways\$" "$out"
}

# programs RANKS PERCENT WAY...: so many percent of the share over each way, others each time
programs() {
	ranks=$1 count=$((share * $2 / 100))
	shift 2
	[ "$count" -gt 0 ] || count=1
	launch "$ranks" tests/mpi/random_programs --seed "$seed" --first "$first" \
		--programs "$count" "$@"
	ways=$#
	expect "$count programs, seed $seed, from $first, $ranks ranks, $*" passed
	first=$((first + count)) all=$((all + count * $#))
}

# MPICH 4.0.2 does not pass them natively (tests/mpi/random/programs.h).
native=native
[ "$RG_MPI_FLAVOR:$RG_SANITIZE" = openmpi:no ] || native=	# and none of it is sanitized
# shellcheck disable=SC2086 # a word or none
programs $few 100 $native bind stripe pull
# shellcheck disable=SC2086
programs 3 75 $native single stripe,rendezvous=read weighted
programs 1 40 stripe
# shellcheck disable=SC2046 # words are meant
[ -z "$(long yes)" ] || programs 4 50 $native stripe
# The other eager lane, pacing, three rails, other limits.
export RAILGAUGE_SOFT=ports=3,rate=1GB/s,latency=2us
programs $few 60 bind,eager=1000 stripe,completion=control
programs $few 40 pull,rendezvous=read,threshold=2K weighted,completion=control
export RAILGAUGE_SOFT=ports=1
programs 2 30 stripe,threshold=1,eager=0
unset RAILGAUGE_SOFT
export RAILGAUGE_COLL=native
programs 2 30 stripe
unset RAILGAUGE_COLL
echo "$all runs of $first programs, seed $seed"

for wrong in "--programs 0 native" "--seed x native" "--ways native" "--program" ""; do
	# shellcheck disable=SC2086 # words are meant
	refused tests/mpi/random_programs 1 "accepted\|wanted" $wrong
done
expect "nothing in /dev/shm" shm_is_clean
finish
