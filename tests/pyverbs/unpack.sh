# unpack.sh - sourced: rdma-core's Python tests to $work/tests, and $python to run them
# with; exits 77 with the reason where there are none.
#
# Those of rdma-core 56 ask `rdma` (iproute2) for the network interface of each port, and a kernel
# without RDMA answers with an error: then $PATH begins with an rdma that knows of no port.
carrier=/usr/share/doc/rdma-core/tests python=
for candidate in python3 /usr/bin/python3; do
	$candidate -c 'import pyverbs.device' 2>/dev/null || continue
	python=$(command -v $candidate)
	break
done
[ -n "$python" ] || {
	echo "skipped: no pyverbs for Python (Debian: python3-pyverbs)"
	exit 77
}
# Small images leave documentation out, and with it these tests: from the package, then.
if [ ! -f $carrier/run_tests.py ]; then
	(
		cd "$work" || exit
		apt-get download -qq python3-pyverbs ||
			{ apt-get update -qq && apt-get download -qq python3-pyverbs; }
		dpkg -x python3-pyverbs_*.deb package
	) >/dev/null 2>&1
	carrier=$work/package$carrier
fi
[ -f $carrier/run_tests.py ] || {
	echo "skipped: no $carrier, and python3-pyverbs cannot be fetched"
	exit 77
}
cp -r $carrier "$work/tests" && chmod -R u+w "$work/tests" || exit 99
find "$work/tests" -name '*.gz' -exec gunzip {} +
rdma link show -j >/dev/null 2>&1 || {
	mkdir "$work/bin" && printf '#!/bin/sh\necho "[]"\n' >"$work/bin/rdma" && chmod +x "$work/bin/rdma" ||
		exit 99
	PATH=$work/bin:$PATH
	export PATH
}
