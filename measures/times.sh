# times.sh - a group of measures/run.sh: the time of a default run, which adds samples to its counts.
#
#	RG_BEFORE_BUILD=DIR	another build of Railgauge, whose default run is compared, too

# timed FILE PROGRAM ARG...: a launch of two ranks, its output and its milliseconds, start and end with them
timed() {
	timed_began=$(date +%s%N)
	once "$1" 2 "$2" $3
	echo $((($(date +%s%N) - timed_began) / 1000000)) >"$work/$1.ms"
}

# ms NAME.LAUNCH
ms() {
	cat "$work/$1.ms"
}

# default_run PROGRAM SAMPLES UNTIMED SAMPLES UNTIMED: up to 8 KiB and above.  The counts alone are two
# launches less the start of one.
default_run() {
	name=${1##*/} by=
	case $1 in
	collective/*) by="--timing barrier" ;;
	esac
	for k in $(seq "$launches"); do
		timed all.$k "$1" ""
		[ -z "${RG_BEFORE_BUILD-}" ] || timed before.$k "$RG_BEFORE_BUILD/$1" ""
		ends=$(awk '/^[0-9]/ { if (first == "") first = $1; last = $1 } END { print first, last }' \
			"$work/all.$k")
		timed small.$k "$1" "-m ${ends% *}:8K -i $2 -x $3 $by"
		timed large.$k "$1" "-m 16K:${ends#* } -i $4 -x $5 $by"
		timed start.$k "$1" "-m ${ends% *}:${ends% *} -i 1 -x 0 $by"
	done
	for k in $(seq "$launches"); do
		echo "$(ms all.$k) $(ms small.$k) $(ms large.$k) $(ms start.$k)"
	done | awk '{ print $1 / ($2 + $3 - $4) }' |
		measure "$name: a default run / its counts${by:+ by barriers}" "x <= 2"
	[ -z "${RG_BEFORE_BUILD-}" ] || for k in $(seq "$launches"); do
		echo "$(ms all.$k) $(ms before.$k)"
	done | awk '{ print $1 / $2 }' | measure "$name: a default run / one of the build before" "x <= 2"
}

default_time() {
	default_run pt2pt/rg_latency 10000 200 1000 10
	default_run pt2pt/rg_bw 100 10 20 2
	for name in bcast alltoall allreduce; do
		default_run collective/rg_$name 10000 200 1000 10
	done
}
