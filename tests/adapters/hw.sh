#!/bin/sh
# hw.sh - make check-hw on healthy clusters whose adapters need not have all: one subnet for both ports, no UC, no
# atomic operations, no shared receives, at both hosts or at one.  It passes, and leaves one archive.
. "$srcdir/tests/adapters/adapters.sh"
ADAPTERS_PLACE=$place ADAPTERS_MPIRUN=$launcher ADAPTERS_JOB=$$
export ADAPTERS_PLACE ADAPTERS_MPIRUN ADAPTERS_JOB

# check_hw SPEC JOBS: which launch in their own turns
check_hw() {
	rm -f check-hw.tar.gz
	env ADAPTERS_SPEC="$1" HW_ONLY="$2" HOSTS=host0,host1 RG_HW_ADAPTERS=1 RG_HW_FEW=1 \
		RG_HW_MPIRUN="sh $srcdir/tests/adapters/mpirun.sh" sh "$srcdir/tests/hw/run.sh" >"$out" 2>"$err"
	rc=$?
	grep '^[A-Z]*: tests/hw' "$out"
	expect "$1: check-hw passes" passes
	expect "$1: over two ports of each host" [ "$(grep -c '^found ' tests/hw/found)" -eq 4 ]
	tar -tzf check-hw.tar.gz >"$out" 2>"$err"
	for file in about-before about-after found programs.log bad-input.log programs.trs; do
		expect "$1: the archive has $file" grep -qx "tests/hw/$file" "$out"
	done
	rm -f check-hw.tar.gz
}

# One of them is checked at each change, in turn.
turn=0
for spec in like=irdma-e810,link=ib,prefix=7 like=mlx5-roce/bnxt_re,srq=4/0,place=late,inline=96/0,maxsge=3/6 \
	like=mlx4/mlx5-vf,prefix=7,uc=no/yes,atomics=yes/no,rdatom=1/16,order=never/rts,maxwr=512/16351
do
	turn=$((turn + 1))
	[ $draws = yes ] && [ -z "${RG_LONG-}" ] && [ $((${RG_SEED:-1} / 2 % 3 + 1)) -ne $turn ] ||
		check_hw "$spec" "programs bad-input"
done
finish
