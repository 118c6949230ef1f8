#!/bin/sh
# The conformance list on software devices: each line is one set-up.
set -u
program=./tests/conformance/conformance
SOFTHCA_EXPOSE=1
SOFTHCA_FABRIC=conformance.$$
export SOFTHCA_EXPOSE SOFTHCA_FABRIC
failed=0

run() {
	spec=$1
	shift
	echo "== spec '$spec' $*"
	SOFTHCA_SPEC=$spec $program "$@" || failed=1
	if [ -e "/dev/shm/softhca.$(id -u).$SOFTHCA_FABRIC" ]; then
		echo "FAIL: the fabric's file is still there"
		failed=1
	fi
}

run ideal
run ideal --arena
run ideal --lid
for SOFTHCA_REMAP in never always; do
	export SOFTHCA_REMAP
	echo "== remap $SOFTHCA_REMAP"
	run ideal
done
# What cannot be mapped goes by its owner's hands.
SOFTHCA_COPY=bounce
export SOFTHCA_COPY
for SOFTHCA_REMAP in never auto; do
	echo "== remap $SOFTHCA_REMAP, copy bounce"
	run ideal
done
run rate=1GB/s,latency=2us
unset SOFTHCA_REMAP SOFTHCA_COPY
echo "== memory reserved"
SOFTHCA_RESERVE=1 SOFTHCA_SPEC=ideal $program >/dev/null || failed=1
run rate=1GB/s,latency=2us
run rate=1GB/s,latency=2us --arena
run rate=10Gb/s,latency=3us,bus=2GB/s/1GB/s:half,cap=1.2GB/s,msg=200ns,pkt=20ns,mtu=1024,window=16,outstanding=4,reads=1
run ports=2 --port 1 --peer-port 2
run hcas=2,ports=8 --device soft1 --port 8
exit $failed
