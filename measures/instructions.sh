#!/bin/sh
# instructions.sh - `make bench-instructions`: instructions per pair of an 8-byte MPI_Isend and
# MPI_Irecv, ours and the MPI libraries' own; and ours of eight doubles, every second of a vector.
#
# Counted by valgrind --tool=callgrind, in user space, on two ranks of one machine: all that
# runs inside pair_send (MPI_Isend, MPI_Test) and pair_receive (MPI_Irecv, MPI_Test) of
# measures/pairs.c, divided by the rounds.  The message has arrived before pair_receive begins,
# so that nothing polls: an MPI_Test that finds nothing is counted as "in vain", and a row with
# any says so.  Arguments' checks, matching, the look that finds the message, credit that goes
# back and, for ours, what the software HCA does in an adapter's place are inside; of these the
# last is shown apart.  Below each row: the same by room, that is by the source file of the
# instructions ("verbs.h": ibv_post_send and the like, which libibverbs defines in its header),
# or by library where there is none.  Buffers and connections are warm (200 rounds before).
#
# "MPI library": its shared memory.  UCX and MPICH likewise (UCX_TLS=posix,self).
#	RG_MPICH_BUILD=DIR	a build directory with MPICH, for its rows
. "$srcdir/tests/run-lib.sh"
measuring=yes
limit=100
rounds=${INSTRUCTIONS_ROUNDS:-1000}
command -v valgrind >/dev/null || { echo "not measured: no valgrind (Debian: valgrind)"; exit 77; }

# Self cost of what was collected: lines "ROOM INSTRUCTIONS".  A room of ours by the source file,
# so that what is inlined counts where it is written; what has none, by its library.
by_room() {
	awk '
	function name(names, text,   id) {
		id = text
		sub(/\).*/, ")", id)
		sub(/^\([0-9]*\) */, "", text)
		if (text != "") names[id] = text
		return names[id]
	}
	function room(file, object) {
		if (object ~ /railmpi|softhca/ &&
		    (match(file, /\/src\/softhca\/link\/[a-z]+\//) ||
		     match(file, /\/src\/softhca\/[a-z]+\//) || match(file, /\/src\/[a-z]+\//)))
			return substr(file, RSTART + 1, RLENGTH - 2)
		if (file ~ /\/infiniband\//)
			return "verbs.h"
		if (file ~ /\/measures\//)
			return "program"
		if (object ~ /\/(libc|ld-linux[^\/]*|libpthread)(\.|-)/)
			return "libc"
		if (object ~ /railmpi/)
			return "other"
		return "MPI-library"
	}
	/^ob=/ { object = name(objects, substr($0, 4)); next }
	/^cob=/ { name(objects, substr($0, 5)); next }
	/^(fl|fi|fe)=/ { file = name(files, substr($0, 4)); next }
	/^(cfi|cfl)=/ { name(files, substr($0, 5)); next }
	/^calls=/ { skip = 1; next }
	/^[-+*0-9]/ { if (!skip) cost[room(file, object)] += $2; skip = 0 }
	END { for (r in cost) print r, cost[r] }' "$1"
}

# count TEXT PROGRAM FLAVOR MPIRUN-WORDS [NAME=VALUE...]; of $doubles every second, if set
doubles=
count() {
	text=$1 program=$2
	case $3 in
	openmpi) rank=OMPI_COMM_WORLD_RANK launcher="$4 --oversubscribe -np" ;;
	*) rank=PMI_RANK launcher="$4 -n" ;;
	esac
	shift 4
	: >"$work/turn"
	rm -f "$work"/cg.*
	launch 2 env "$@" valgrind --tool=callgrind --callgrind-out-file="$work/cg.%q{$rank}" \
		--toggle-collect=pair_send --toggle-collect=pair_receive \
		"$program" "$work/turn" "$rounds" $doubles
	vain=$(sed -n 's/^[0-9]* rounds, \([0-9]*\) looks in vain$/\1/p' "$out")
	if [ "$rc" -ne 0 ] || [ -z "$vain" ]; then
		echo "  $text: not measured (exit code $rc)"
		grep -v '^==' "$err" | head -n 5 | sed 's/^/    /'
		return
	fi
	for side in 0 1; do
		by_room "$work/cg.$side" | sed "s/^/$side /"
	done | sort -k 2 | awk -v text="$text" -v n="$rounds" -v vain="$vain" '
		{ all[$1] += $3 }
		$2 ~ /softhca/ { hca[$1] += $3 }
		$2 != last { room[++rooms] = last = $2 }
		{ of[$1, $2] += $3 }
		END {
			printf "  %-44s %8.0f %8.0f %8.0f   %8.0f %8.0f   %s\n", text, all[0] / n,
				all[1] / n, (all[0] + all[1]) / n, (hca[0] + hca[1]) / n,
				(all[0] + all[1] - hca[0] - hca[1]) / n,
				(vain > 0 ? vain " looks in vain" : "")
			for (i = 1; i <= rooms; i++)
				printf "      %-40s %8.0f %8.0f %8.0f\n", room[i], of[0, room[i]] / n,
					of[1, room[i]] / n, (of[0, room[i]] + of[1, room[i]]) / n
		}'
}

echo "Instructions per pair of an 8-byte MPI_Isend and MPI_Irecv, $rounds rounds:"
printf '  %-44s %8s %8s %8s   %8s %8s\n' "" send receive pair "soft HCA" rest
ours() {
	count "ours, one rail ($1)" "$2/measures/pairs_rails" "$3" "$4" RAILGAUGE_OVER=single \
		RAILGAUGE_SOFT=ideal
	count "ours, striped over two rails ($1)" "$2/measures/pairs_rails" "$3" "$4" \
		RAILGAUGE_OVER=stripe RAILGAUGE_SOFT=ports=2
	doubles=8
	count "ours, one rail, 8 doubles ($1)" "$2/measures/pairs_rails" "$3" "$4" \
		RAILGAUGE_OVER=single RAILGAUGE_SOFT=ideal
	doubles=
}
if [ "$RG_MPI_FLAVOR" = openmpi ]; then
	ours "Open MPI" "$PWD" openmpi "$MPIRUN"
	count "Open MPI, ob1, shared memory" "$PWD/measures/pairs" openmpi \
		"$MPIRUN --mca pml ob1 --mca btl vader,self"
	# Not of eight doubles: there ob1's MPI_Isend is complete only when its receiver has looked.
	count "8 bytes with the layer, native" "$PWD/measures/pairs_rails" openmpi \
		"$MPIRUN --mca pml ob1 --mca btl vader,self" RAILGAUGE_OVER=native
	count "Open MPI, UCX, shared memory" "$PWD/measures/pairs" openmpi \
		"$MPIRUN --mca pml ucx --mca pml_ucx_tls any --mca pml_ucx_devices any" UCX_TLS=posix,self
fi
mpich=${RG_MPICH_BUILD-}
[ "$RG_MPI_FLAVOR" = openmpi ] || mpich=$PWD
if [ -x "$mpich/measures/pairs_rails" ]; then
	mpirun=$(sed -n 's/^MPIRUN = //p' "$mpich/Makefile")
	ours MPICH "$mpich" mpich "$mpirun"
	count "MPICH, shared memory" "$mpich/measures/pairs" mpich "$mpirun" UCX_TLS=posix,self
	count "the same with the layer, native" "$mpich/measures/pairs_rails" mpich "$mpirun" \
		UCX_TLS=posix,self RAILGAUGE_OVER=native
else
	echo "  MPICH: not measured (RG_MPICH_BUILD=DIR: a build with it, where" \
		"make measures/pairs measures/pairs_rails was run)"
fi
exit 0
