# rails.sh - sourced by the jobs of check-hw, behind run-lib.sh: over which rails.
#
#	$nodes			how many there are
#	$first_rail		the first port found on the first node
#	well			the launch ended well, over real ports, and every byte was right
#	drawn N WORD...		these words' turn: real adapters have time for all, emulated
#				machines for one in N, by RG_SEED, unless RG_LONG=1 wants all
#
# RG_HW_SOFTWARE=1: the kernel's software devices count as real (virtual cluster).
limit=${RG_HW_SECONDS:-240}
nodes=$(sed -n 's/^found \([^ ]*\) .*/\1/p' tests/hw/found | sort -u | wc -l)
first_rail=$(sed -n 's/^found [^ ]* //p' tests/hw/found | sort | head -n 1)
fabric='^# fabric: hardware, '
[ "${RG_HW_SOFTWARE-}" != 1 ] || fabric='^# fabric: \(hardware\|kernel software\), '

drawn() {
	one_in=$1
	shift
	[ "${RG_HW_SOFTWARE-}" != 1 ] || [ -n "${RG_LONG-}" ] ||
		[ $(($(echo "${RG_SEED:-1} $*" | cksum | cut -d' ' -f1) % one_in)) -eq 0 ]
}

well() {
	[ "$rc" -eq 0 ] && grep -q "$fabric" "$out" && ! grep -q Fail "$out" && grep -q Pass "$out"
}
