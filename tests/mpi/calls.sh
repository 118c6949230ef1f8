#!/bin/sh
# calls.sh - no call passes by: every function that the MPI library exports is ours, or is the
# library's for a reason (calls.txt); and both kinds behave in a job over rails.
. "$srcdir/tests/run-lib.sh"

# ---- The lists ---------------------------------------------------------------------------

layer=.libs/librailmpi-$RG_MPI_FLAVOR.so

# exports FILE: names of MPI functions, profiling names as the others.
exports() {
	nm -D --defined-only "$1" |
		sed -n 's/^[0-9a-f]* [TWi] \(P\{0,1\}MPIX\{0,1\}_[A-Za-z0-9_]*\).*/\1/p'
}

if command -v nm >/dev/null; then
	library=$(ldd "$layer" | awk '$3 ~ "^/" { print $3 }' | while read -r file; do
		exports "$file" | grep -qx PMPI_Send && echo "$file"
	done | head -n 1)
	expect "the MPI library behind $layer" [ -n "$library" ]
	exports "$layer" | sort -u >"$work/layer"
	exports "$library" | sed 's/^P//' | sort -u >"$work/library"
	# "native NAME" or "refused NAME" a line.
	awk -v flavor="$RG_MPI_FLAVOR" '
	     /^(native|refused)( mpich)?( \[.*\])?:/ {
		kind = $1; sub(/:$/, "", kind)
		if (/^native mpich:/ && flavor != "mpich") kind = "else"
	     }
	     kind != "else" && /^\t\t/ { for (i = 1; i <= NF; i++) print kind, $i }' \
		"$srcdir/src/mpi/abi/calls.txt" |
		sed 's/^\(.*\)(_c)$/\1\n\1_c/' >"$work/list"
	# What is wrong, a line for each function.
	awk -v layer="$work/layer" -v list="$work/list" '
		BEGIN {
			while ((getline name <layer) > 0) ours[name] = 1
			while ((getline <list) > 0) {
				n = split($0, word, " ")
				if (word[2] ~ /\*$/) beginning[substr(word[2], 1, length(word[2]) - 1)] = 1
				else kind[word[2]] = word[1]
			}
			for (name in ours) {
				other = name ~ /^P/ ? substr(name, 2) : "P" name
				if (!(other in ours)) print "only half of it is ours: " name
			}
		}
		function listed_as(name, b) {
			if (name in kind) return kind[name]
			for (b in beginning) if (index(name, b) == 1) return "some"
			return "no"
		}
		{
			seen++
			as = listed_as($1)
			is = $1 in ours
			if (is && as == "native") print "ours, and listed as native: " $1
			if (!is && as == "refused") print "listed as refused, and not ours: " $1
			if (!is && as == "no") print "neither ours nor in calls.txt: " $1
		}
		END { if (seen < 300) print "only " seen + 0 " functions found" }' \
		"$work/library" >"$out"
	: >"$err"
	rc=none
	expect "every function of $library is ours or in calls.txt, for a reason" [ ! -s "$out" ]
	echo "$(wc -l <"$work/library") functions, $(grep -c ^M "$work/layer") of them ours"
else
	echo "no nm: the lists are not compared"
fi

# ---- What they do ---------------------------------------------------------------------------

passes() {
	[ "$rc" -eq 0 ] && grep -q 'cases passed$' "$out"
}

export MPIR_CVAR_CH4_RESERVE_VCIS=1
for suite in calls_suite beside_suite; do
	launch 3 tests/mpi/$suite native single stripe
	expect "$suite" passes
done
SUITE_MULTIPLE=1 launch 3 tests/mpi/calls_suite stripe
expect "calls_suite with threads" passes
SUITE_MULTIPLE=1 launch 2 tests/mpi/beside_suite stripe
expect "beside_suite with threads" passes
# A library whose progress the layer cannot reach.
RG_CASE=unasked launch 2 env LD_PRELOAD="$PWD/tests/mpi/.libs/unreached.so" \
	tests/mpi/beside_suite stripe
expect "the progress thread alone serves who waits in the library" passes
# Processes that are spawned have rails of their own, and none to those that spawned them.
case $RG_MPI_FLAVOR in
openmpi)
	# Open MPI 5 has TCP alone between them, and no way from the one rank's interface to itself.
	export OMPI_MCA_btl_tcp_if_include=lo
	launch 2 src/cli/railgauge exec --over stripe --soft ports=2 -- tests/mpi/spawn
	unset OMPI_MCA_btl_tcp_if_include
	right=$(grep -c 'over rails: right$' "$out")
	expect "processes that are spawned" [ "$rc" -eq 0 -a "$right" -eq 4 ]
	;;
*) echo "MPI_Comm_spawn fails without rails, too: not tried" ;;
esac
export RAILGAUGE_COLL=native
launch 2 tests/mpi/beside_suite stripe,rendezvous=read
expect "beside_suite with the library's collectives" passes
unset RAILGAUGE_COLL
expect "nothing in /dev/shm" shm_is_clean
finish
