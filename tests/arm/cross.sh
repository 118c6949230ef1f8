#!/bin/sh
# cross.sh - a build of this tree for arm64, with all that its tests need.
#
#	cross.sh ROOT BUILD MPI		ROOT: of root.sh; BUILD: a directory; MPI: openmpi or mpich
#
# BUILD/bin has the compilers by the names that configure looks for.  There ROOT's files are behind
# them; a machine of that architecture puts its own compilers and launchers in their place (guest.sh).
set -u
root=$(cd "$1" && pwd) || exit 99
build=$2 mpi=$3
top=$(cd "$(dirname "$0")/../.." && pwd) || exit 99
mkdir -p "$build/bin" && cd "$build" || exit 99
machine=aarch64-linux-gnu

script() {
	printf '#!/bin/sh\n%s\n' "$2" >"bin/$1" && chmod +x "bin/$1"
}
# The host's own compilers of other languages are of no use: theirs, or none.  Without bin in PATH, where
# ccache would find this script as the compiler.
for compiler in gcc g++ gfortran; do
	path=$(command -v $machine-$compiler) && script $machine-$compiler "PATH='$PATH' exec $path --sysroot='$root' \"\$@\""
done
ac_cv_prog_CXX=$([ ! -e bin/$machine-g++ ] || echo $machine-g++)
ac_cv_prog_FC=$([ ! -e bin/$machine-gfortran ] || echo $machine-gfortran)
export ac_cv_prog_CXX ac_cv_prog_FC
# Tests know the host's compilers by these names (tests/local.mk), and configure would take them.
unset CC MPIFC MPIRUN
case $mpi in
openmpi) flags="-I=/usr/lib/$machine/openmpi/include" libs=-lmpi ;;
mpich) flags="-I=/usr/include/$machine/mpich" libs=-lmpich ;;
esac
# What configure asks: Open MPI answers two options, MPICH two others.
script mpicc.$mpi "case \$1 in
--showme:compile) [ $mpi = openmpi ] && echo '$flags' ;;
--showme:link) [ $mpi = openmpi ] && echo '$libs' ;;
-compile-info) echo '$flags' ;;
-link-info) echo '$libs' ;;
*) exec '$PWD/bin/$machine-gcc' $flags \"\$@\" $libs ;;
esac"
script mpirun.$mpi "exit 1"

PATH=$PWD/bin:$PATH
export PATH
[ -f Makefile ] || PKG_CONFIG_LIBDIR="$root/usr/lib/$machine/pkgconfig:$root/usr/share/pkgconfig" \
	ac_cv_path_HELP2MAN= "$top/configure" --host=$machine --with-mpi="$mpi" \
	PKG_CONFIG="$(command -v pkg-config)" >configure.out 2>&1 || { tail -n 20 configure.out; exit 1; }
make -s -j"$(nproc)" >make.out 2>&1 && make -s -j"$(nproc)" check TESTS= >>make.out 2>&1 || { tail -n 20 make.out; exit 1; }
