#!/bin/sh
# The conformance list on software devices: each line is one set-up.  `make check` takes six of
# them between processes, with sanitizers two, and two or three of the others, which RG_SEED draws,
# in one process (tests/virtual); RG_LONG=1 (`make check-long`) takes all in both.
# shellcheck disable=SC2086 # words are meant
set -u
program=${CONFORMANCE:-./tests/conformance/conformance}
SOFTHCA_EXPOSE=1
SOFTHCA_FABRIC=conformance.$$
export SOFTHCA_EXPOSE SOFTHCA_FABRIC
failed=0 settings=

run() {
	spec=$1
	shift
	echo "== spec '$spec' $settings $*"
	env SOFTHCA_SPEC="$spec" $settings $program "$@" || failed=1
	if [ -e "/dev/shm/softhca.$(id -u).$SOFTHCA_FABRIC" ]; then
		echo "FAIL: the fabric's file is still there"
		failed=1
	fi
}

# with SETTINGS SPEC OPTION...
with() {
	settings=$1
	shift
	run "$@"
	settings=
}

# Not under sanitizers, to which the code matters and not how often it runs.
more() {
	[ "${RG_SANITIZE:-no}" != no ] || run "$@"
}

timed=rate=1GB/s,latency=2us
rich=rate=10Gb/s,latency=3us,bus=2GB/s/1GB/s:half,cap=1.2GB/s,msg=200ns,pkt=20ns,mtu=1024,window=16,outstanding=4,reads=1

# 2 GiB in one message take more time than all else: once is enough.
brief="--except longest"
[ -z "${RG_LONG-}" ] || brief=

# First what runs between processes in any case.
if [ -n "${RG_LONG-}" ] || [ -z "${CONFORMANCE-}" ]; then
	more ideal
	more $timed --arena $brief
	with SOFTHCA_REMAP=always ideal $brief
	# What cannot be mapped goes by its owner's hands.
	with "SOFTHCA_REMAP=never SOFTHCA_COPY=bounce" ideal $brief
	more hcas=2,ports=2,$rich --device soft1 --port 1 --peer-port 2 $brief
	# Over TCP, even between processes of a host.
	with SOFTHCA_LINK=tcp net=lo $brief $([ -n "${RG_LONG-}" ] || echo "--share 6 --seed ${RG_SEED:-1}")
fi
if [ -z "${RG_LONG-}${CONFORMANCE-}" ]; then
	# Of these, cases that they are for.
	run ideal --lid --only 'ud_*'
	with SOFTHCA_RESERVE=1 $timed --only '*write*'
	exit $failed
fi

# Of these ten every fourth, from a drawn one on.
first=$((${RG_SEED:-1} % 10)) number=0
drawn() {
	number=$((number + 1))
	[ -z "${RG_LONG-}" ] && [ $(((number + first) % 4)) -ne 0 ] || "$@"
}

drawn run ideal --arena $brief
drawn run ideal --lid $brief
drawn with SOFTHCA_REMAP=never ideal $brief
drawn with "SOFTHCA_REMAP=auto SOFTHCA_COPY=bounce" ideal $brief
drawn with "SOFTHCA_REMAP=auto SOFTHCA_COPY=bounce" $timed $brief
drawn with SOFTHCA_RESERVE=1 ideal $brief
drawn run $timed $brief
drawn run $rich $brief
drawn run ports=2 --port 1 --peer-port 2 $brief
drawn run hcas=2,ports=8 --device soft1 --port 8 $brief
echo "RG_SEED=${RG_SEED-1}"
exit $failed
