#!/bin/sh
# packages.sh - of make check-long: MPI programs of Debian's packages have the results over rails that
# they have with the MPI library alone.  A program that is not installed is named with its package.
#
#	RG_CASE=NAME	one of them
. "$srcdir/tests/run-lib.sh"
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
railgauge=$PWD/src/cli/railgauge
scalapack=/usr/lib/$(gcc -print-multiarch)/scalapack/$RG_MPI_FLAVOR-tests
dir=$work/run
mkdir "$dir" || exit 99

cat >"$dir/melt.in" <<'END'
units lj
atom_style atomic
lattice fcc 0.8442
region box block 0 12 0 12 0 12
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 1.44 87287 loop geom
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
neighbor 0.3 bin
neigh_modify delay 5 every 1
fix 1 all nve
thermo 20
run 100
END
cat >"$dir/solve.py" <<'END'
import sys, petsc4py
petsc4py.init(sys.argv)
from petsc4py import PETSc
n = 200
A = PETSc.Mat().createAIJ([n * n, n * n], nnz=5)
A.setUp()
for row in range(*A.getOwnershipRange()):
    i, j = divmod(row, n)
    A[row, row] = 4
    if i > 0: A[row, row - n] = -1
    if i < n - 1: A[row, row + n] = -1
    if j > 0: A[row, row - 1] = -1
    if j < n - 1: A[row, row + 1] = -1
A.assemble()
x, b = A.createVecs()
b.set(1)
for pc in ('jacobi', 'gamg', 'bjacobi'):
    ksp = PETSc.KSP().create()
    ksp.setOperators(A)
    ksp.setType('cg')
    ksp.getPC().setType(pc)
    ksp.setTolerances(rtol=1e-8)
    x.set(0)
    ksp.solve(b, x)
    PETSc.Sys.Print('solved', pc, ksp.getIterationNumber(), '%.8e' % x.norm())
END
cat >"$dir/transform.py" <<'END'
from mpi4py import MPI
from mpi4py_fft import PFFT, newDistArray
import numpy
for dims in ((64, 64, 64), (48, 40, 56)):
    for slab in (True, False):
        fft = PFFT(MPI.COMM_WORLD, dims, axes=(0, 1, 2), dtype=float, slab=slab)
        u = newDistArray(fft, False)
        u[:] = numpy.random.random(u.shape)
        before = u.copy()
        assert numpy.allclose(fft.backward(fft.forward(u)), before)
if MPI.COMM_WORLD.rank == 0:
    print('solved', dims)
END
cat >"$dir/file.py" <<'END'
from mpi4py import MPI
import h5py, numpy
world = MPI.COMM_WORLD
with h5py.File('t.h5', 'w', driver='mpio', comm=world) as f:
    d = f.create_dataset('x', (world.size, 300000), dtype='f8', chunks=(1, 10000))
    with d.collective:
        d[world.rank, :] = numpy.arange(300000) * (world.rank + 1)
with h5py.File('t.h5', 'r', driver='mpio', comm=world) as f:
    other = (world.rank + 1) % world.size
    with f['x'].collective:
        assert (f['x'][other, :] == numpy.arange(300000) * (other + 1)).all()
if world.rank == 0:
    print('solved', world.size)
END

# told PATTERN: the lines by which launches are compared, without times
told() {
	cat "$out" "$dir"/*.out 2>/dev/null | grep -aE "$1" | sort
}

# same NAME PACKAGE PATTERN COMMAND...: natively and over rails; a script of python3 needs the module NAME
same() {
	name=$1 package=$2 pattern=$3
	shift 3
	[ "${RG_CASE:-$name}" = "$name" ] || return 0
	case $1 in
	*/python3) "$1" -c "import $name" 2>/dev/null ;;
	*) command -v "$1" >/dev/null ;;
	esac || { echo "absent: $name ($package)" && return; }
	rm -f "$dir"/*.out
	launch 4 env -C "$dir" "$@"
	told "$pattern" >"$work/native"
	expect "$name: results of the MPI library alone" [ -s "$work/native" ]
	native=$rc
	for way in single stripe weighted; do
		rm -f "$dir"/*.out
		launch 4 "$railgauge" exec --over $way --soft ports=2 -- env -C "$dir" "$@"
		told "$pattern" >"$work/over"
		expect "$name over $way: exit code $native" [ "$rc" -eq "$native" ]
		expect "$name over $way: it ran over rails" grep -q '^railgauge exec: 4 ranks, 2 rails' "$err"
		expect "$name over $way: the same results" cmp -s "$work/native" "$work/over"
	done
}

cp "$scalapack"/*.dat /usr/share/scalapack/BLACS/*.dat "$dir" 2>/dev/null
for program in xCbtest xFbtest; do
	same $program scalapack-mpi-test 'TESTS;' "$scalapack/$program"
done
for program in xdlu xzqr xdnep xcinv; do
	same $program scalapack-mpi-test 'tests completed' "$scalapack/$program"
done
# Debian has these for its own MPI library only.
if [ "$RG_MPI_FLAVOR" = openmpi ]; then
	same lammps lammps '^ +[0-9]+ +[0-9.-]+ +[0-9.-]+ +[0-9.-]+ +[0-9.-]+ +[0-9.-]+ *$' lmp -in melt.in -log none
	same petsc4py python3-petsc4py '^solved' /usr/bin/python3 solve.py
	same mpi4py_fft python3-mpi4py-fft '^solved' /usr/bin/python3 transform.py
	same h5py python3-h5py-mpi '^solved' /usr/bin/python3 file.py
fi
[ "$checks" -gt 0 ] || { echo "skipped: none of the programs is installed" && exit 77; }
finish
