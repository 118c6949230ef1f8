# tsan-lib.sh - sourced by jobs of `make check-threads`: what is built with a thread sanitizer, in
# tsan/, where the job goes on.
#
#	build PROGRAM...	with the MPI library of the build itself
#	check COMMAND...	fails the job, whose end is `exit $failed`, unless COMMAND succeeds
set -u
srcdir=$(cd "$srcdir" && pwd)
mkdir -p tsan && cd tsan || exit 1
failed=0

build() {
	if [ ! -f Makefile ]; then
		# As in bootstrap: faster in dash; built once.
		[ -n "${CONFIG_SHELL-}" ] || [ ! -x /bin/dash ] || export CONFIG_SHELL=/bin/dash
		# shellcheck disable=SC2046 # nothing, where the build has the default
		${CONFIG_SHELL-} "$srcdir/configure" --enable-sanitize=thread --disable-dependency-tracking \
			$(../config.status --config | tr -d "'" | tr ' ' '\n' | grep '^--with-mpi=') \
			CFLAGS='-g1 -O1 -Wno-tsan' >configure.out 2>&1 ||
			{ tail -n 20 configure.out; exit 1; }
	fi
	# No dependencies are tracked: a changed header rebuilds all.
	[ -z "$(find "$srcdir/src" "$srcdir/tests" -name '*.h' -newer configure.out | head -n 1)" ] ||
		{ make clean && touch configure.out; } >/dev/null
	make -j"$(nproc)" "$@" >make.out 2>&1 || { tail -n 20 make.out; exit 1; }
}

TSAN_OPTIONS=ignore_noninstrumented_modules=1:exitcode=66
export TSAN_OPTIONS

check() {
	echo "== $*"
	timeout 900 "$@" >check.out 2>&1 && { tail -n 2 check.out; return; }
	cat check.out
	echo "FAIL: $*"
	failed=1
}
