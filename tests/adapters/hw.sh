#!/bin/sh
# hw.sh - make check-hw on healthy clusters whose adapters need not have all: one subnet for both ports, no UC, no
# atomic operations, no shared receives, at both hosts or at one.  It passes, and leaves one archive; so it does
# where it finds nothing to run on.  RG_LONG=1: all of its jobs.
. "$srcdir/tests/adapters/adapters.sh"
ADAPTERS_PLACE=$place ADAPTERS_MPIRUN=$launcher ADAPTERS_JOB=$$
export ADAPTERS_PLACE ADAPTERS_MPIRUN ADAPTERS_JOB

# check_hw SPEC JOBS: which launch in their own turns
check_hw() {
	env ADAPTERS_SPEC="$1" HW_ONLY="$2" HOSTS=host0,host1 RG_HW_ADAPTERS=1 RG_HW_FEW=1 \
		RG_HW_MPIRUN="sh $srcdir/tests/adapters/mpirun.sh" sh "$srcdir/tests/hw/run.sh" >"$out" 2>"$err"
	rc=$?
	grep '^[A-Z]*: tests/hw' "$out"
	expect "$1: check-hw passes" passes
	expect "$1: over two ports of each host" [ "$(grep -c '^found ' tests/hw/found)" -eq 4 ]
	archived "$1" about-before about-after found programs.log bad-input.log programs.trs
}

# archived LABEL FILE...
archived() {
	label=$1
	shift
	tar -tzf check-hw.tar.gz >"$out" 2>"$err"
	for file do
		expect "$label: the archive has $file" grep -qx "tests/hw/$file" "$out"
	done
	rm -f check-hw.tar.gz
}

# nothing LABEL VARIABLE...: who has nothing to run on is told so, and has something to send.
nothing() {
	label=$1
	shift
	env HOSTS=host0,host1 HW_ONLY=programs RG_HW_MPIRUN="sh $srcdir/tests/adapters/mpirun.sh" "$@" \
		sh "$srcdir/tests/hw/run.sh" >"$out" 2>"$err"
	rc=$?
	expect "$label: skipped" [ $rc -eq 77 ]
	expect "$label: what each host tells" [ "$(grep -c '^== ' tests/hw/about-before)" -ge 1 ]
	archived "$label" about-before programs.log programs.trs
}
nothing "one host" HOSTS=host0
nothing "a launcher that starts nothing" RG_HW_MPIRUN=false
nothing "no device" ADAPTERS_PLACE=/nonexistent ADAPTERS_SPEC=
rm -f tests/hw/programs.trs tests/hw/programs.log

jobs="programs bad-input"
[ -z "${RG_LONG-}" ] || jobs=
# One of them is checked at each change, in turn.
turn=0
for spec in like=irdma-e810,link=ib,prefix=7 like=mlx5-roce/bnxt_re,srq=4/0,place=late,inline=96/0,maxsge=3/6 \
	like=mlx4/mlx5-vf,prefix=7,uc=no/yes,atomics=yes/no,rdatom=1/16,order=never/rts,maxwr=512/16351
do
	turn=$((turn + 1))
	[ $draws = yes ] && [ -z "${RG_LONG-}" ] && [ $((${RG_SEED:-1} / 2 % 3 + 1)) -ne $turn ] ||
		check_hw "$spec" "$jobs"
done

finish
