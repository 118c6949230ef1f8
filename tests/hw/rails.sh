# rails.sh - sourced by the jobs of check-hw, after run-lib.sh: the rails to use.
#
#	$nodes			how many there are
#	$first_rail		the first port found on the first node
#	well			the launch ended well, over real ports, and every byte was right
#	lacks			it was refused for what adapters need not have: UC, atomic operations
#
# Real adapters have time for all that emulated machines draw (run-lib.sh).
# RG_HW_SOFTWARE=1: the kernel's software devices count as real (virtual cluster).
limit=${RG_HW_SECONDS:-240}
nodes=$(sed -n 's/^found \([^ ]*\) .*/\1/p' tests/hw/found | sort -u | wc -l)
first_rail=$(sed -n 's/^found [^ ]* //p' tests/hw/found | sort | head -n 1)
fabric='^# fabric: hardware, '
[ "${RG_HW_SOFTWARE-}" != 1 ] || fabric='^# fabric: \(hardware\|kernel software\), '
[ "${RG_HW_SOFTWARE-}" = 1 ] || draws=no
# tests/adapters/hw.sh: the software HCA is the adapter.
[ "${RG_HW_ADAPTERS-}" != 1 ] || fabric='^# fabric: software HCA in place of libibverbs, '

well() {
	[ "$rc" -eq 0 ] && grep -q "$fabric" "$out" && ! grep -q Fail "$out" && grep -q Pass "$out"
}

lacks() {
	[ "$rc" -eq 3 -o "$rc" -eq 4 ] && grep -q 'has no atomic operations\|the device has none of type UC' "$err"
}
