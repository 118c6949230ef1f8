# lib.sh - sourced behind run-lib.sh: launches of lifecycle, each in every way that a layer gets
# into a program.
#
#	lifecycle HOW ARGUMENT...	native, exec (railgauge exec), linked, or late (loaded by
#					the program itself); fails the test if a message was wrong
#	with_allocators ARGUMENT...	linked, under every allocator that is installed
#	heap_kinds			what allocators give
#
# $more: tables of what could be built here (C++, Fortran); $rounds, $max: how much; $seed.
memory=tests/memory
layer=.libs/librailmpi-$RG_MPI_FLAVOR.so
seed=${LIFECYCLE_SEED:-${RG_SEED:-1}} rounds=${rounds:-8} max=${max:-1500000}
more=
for table in containers arrays; do
	if [ -e $memory/$table.so ]; then
		more="$more --more $memory/$table.so"
	else
		echo "skipped: $memory/$table.so is not built: no compiler (C++, Fortran)"
	fi
done
heap_kinds="malloc calloc aligned realloc realloc-early arena churn"
[ ! -e $memory/containers.so ] || heap_kinds="$heap_kinds c++vector c++string c++deque"

right() {
	[ "$rc" -eq 0 ] && grep -q '^seed .*: 0 wrong$' "$out"
}

# What went wrong, first.
tell_wrong() {
	grep ' [1-9][0-9]* wrong' "$out"
	grep -v '^mremap-fixed: mremap loses' "$err" | head -n 40
}

lifecycle() {
	how=$1
	shift
	# shellcheck disable=SC2086 # words are meant
	set -- --seed "$seed" --rounds "$rounds" --max "$max" $more "$@"
	case $how in
	native) launch 2 $memory/lifecycle "$@" ;;
	exec) launch 2 src/cli/railgauge exec --over stripe -- $memory/lifecycle "$@" ;;
	linked) launch 2 env ${preload:+"LD_PRELOAD=$preload"} RAILGAUGE_OVER=stripe \
		$memory/lifecycle_rails "$@" ;;
	late) launch 2 env RAILGAUGE_OVER=stripe $memory/late $layer \
		$memory/.libs/lifecycle_module.so "$@" ;;
	esac
	grep ' skipped: ' "$out"
	right || tell_wrong
	expect "lifecycle $how${preload:+ under ${preload##*/}} $*" right
}

with_allocators() {
	# A sanitizer brings its own.
	[ "$RG_SANITIZE" = no ] || return 0
	for name in libjemalloc.so.2 libtcmalloc_minimal.so.4 libtcmalloc.so.4 \
		libmimalloc.so.3 libmimalloc.so.2; do
		preload=$(PATH=$PATH:/usr/sbin:/sbin ldconfig -p |
			sed -n "s,^[[:space:]]*$name (.*=> ,,p" | head -n 1)
		if [ -n "$preload" ]; then
			lifecycle linked "$@"
		else
			echo "skipped: $name is not installed"
		fi
	done
	preload=
}
