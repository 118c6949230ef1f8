#!/bin/sh
# Who may include what (HACKING.md): rooms know only the rooms below them.
build=$PWD
cd "$srcdir" || exit 99
failures=0

# only HEADER-PATTERN "PLACES that may include it"
only() {
	found=$(grep -rlE "^[ 	]*#[ 	]*include[ 	]*[<\"]$1[>\"]" --include='*.[ch]' src pt2pt collective \
		apps 2>/dev/null | grep -vE "^($2)")
	[ -z "$found" ] && return
	failures=$((failures + 1))
	echo "$1 may be included only by $2, but is by:"
	echo "$found" | sed 's/^/  /'
}

programs='pt2pt/|collective/|apps/'
only 'mpi\.h' "src/mpi/|src/bench/|src/vbench/|src/cli/|$programs"
only 'infiniband/verbs\.h' 'src/verbs/|src/rail/|src/softhca/'
only 'jansson\.h' 'src/report/|src/bench/|src/cli/'
only 'sodium\.h' 'src/softhca/link/wire/'
only 'popt\.h' 'src/util/cmdline\.c|src/softhca/'
only 'hwloc\.h|hwloc/[a-z-]*\.h' 'src/topo/'
only '(topo/)?topo\.h' 'src/topo/|src/rail/|src/cli/|src/bench/buffers\.c|src/bench/hosts\.c'
only '(verbs/)?vrb\.h' 'src/verbs/|src/rail/|src/vbench/|src/cli/topo_(read|errors)\.c'
only '(vbench/)?vbench\.h' 'src/vbench/|pt2pt/rg_verbs_|pt2pt/rg_pairs\.c'

# ---- Rooms of src: headers of other rooms that the files of a room may include ----

# FILE ROOM HEADER, by path below src.  config.h and build-info.h are made by the build.
includes() {
	grep -rnE '^[ 	]*#[ 	]*include[ 	]*"' --include='*.[ch]' src pt2pt collective apps |
		awk -F: '
		{
			split($3, part, "\"")
			room = $1
			if (part[2] == "config.h" || part[2] == "build-info.h")
				next
			if (!sub(/^src\//, "", room))
				room = "programs"
			sub(/\/.*/, "", room)
			print $1, room, part[2]
		}'
}
upwards=$(includes | awk '
	FNR == NR {
		may[$1] = "^(" $1
		for (i = 2; i <= NF; i++)
			may[$1] = may[$1] "|" $i
		may[$1] = may[$1] ")/"
		next
	}
	{ count++ }
	$3 !~ "/" && $2 == "programs" { next }
	$3 !~ "/" { print "  " $1 " includes " $3 " without its room"; next }
	!($2 in may) || $3 "/" !~ may[$2] { print "  " $1 " includes " $3 }
	END { if (count < 1000) print "  " count " includes: too few" }' tests/rooms.txt -)
[ -z "$upwards" ] || { failures=$((failures + 1)); echo "not in tests/rooms.txt:"; echo "$upwards"; }

# softhca stands alone: of src/util its library may use units and text only; its command is a program.
found=$(grep -rlE '#include "((util|stats|report|rail|mpi|bench)/)?(err|opt|stats|report|rail|railmpi|bench)\.h"' src/softhca \
	--include='*.[ch]' | grep -v '^src/softhca/tool/')
[ -z "$found" ] || { failures=$((failures + 1)); echo "src/softhca reaches out: $found"; }

# ---- Rooms of libsofthca, by includes and by the symbols of objects (HACKING.md has the order) ----

# below ROOM: what it may know, itself included.  The engine and a link meet in object/link.h only.
below() {
	case $1 in
	base) echo base ;;
	pages) echo base pages ;;
	model) echo base model ;;
	object) echo base pages model object ;;
	link/memory) echo base pages model object link/memory ;;
	link/wire) echo base pages model object link/wire ;;
	engine) echo base pages model object engine ;;
	api) echo base pages model object link/memory link/wire engine api ;;
	tool) echo base pages model object link/memory link/wire engine api tool ;;
	esac
}
rooms='base pages model object link/memory link/wire engine api tool'
files=0
for room in $rooms; do
	allowed=" $(below $room) "
	for file in src/softhca/$room/*.[ch]; do
		[ -f "$file" ] || continue
		files=$((files + 1))
		for header in $(sed -n 's/^#[ 	]*include "softhca\/\(.*\/[^/]*\)"$/\1/p' "$file"); do
			case $allowed in
			*" ${header%/*} "*) ;;
			*)
				failures=$((failures + 1))
				echo "$file includes $header, which $room may not know"
				;;
			esac
		done
	done
done
[ $files -ge 100 ] || { failures=$((failures + 1)); echo "src/softhca: $files files in rooms: too few"; }
found=$(find src/softhca -name '*.c' | grep -vE "^src/softhca/($(echo $rooms | tr ' ' '|'))/[a-z_]*\.c$")
[ -z "$found" ] || { failures=$((failures + 1)); echo "in no room: $found"; }

# In the build directory: which object defines a symbol, and which ones want it.
objects=$(find "$build/src/softhca" -path '*/.libs/libsofthca_core_la-*.o' -o -name 'softhca-*.o')
count=0
symbols=$(for room in $rooms; do
	for of in $(below $room); do
		echo "may $room $of"
	done
done
for object in $objects; do
	room=${object#"$build/src/softhca/"}
	room=${room%/*} room=${room%/.libs} name=${object##*-}
	# What an earlier build has left has no source.
	[ -f "src/softhca/$room/${name%.o}.c" ] && nm "$object" |
		awk -v of="$room ${name%.o}" '$1 == "U" { print "wants", of, $2 }
			NF == 3 && $2 ~ /[TDBRVWC]/ { print "has", of, $3 }'
done)
count=$(echo "$symbols" | awk '$1 == "has" { print $2, $3 }' | sort -u | wc -l)
[ "$count" -ge 60 ] || { failures=$((failures + 1)); echo "src/softhca: $count objects: too few"; }
found=$(echo "$symbols" | awk '
	$1 == "may" { may[$2, $3] = 1 }
	$1 == "has" { room[$4] = $2 }
	$1 == "wants" { who[++n] = $2 "/" $3; from[n] = $2; what[n] = $4 }
	END {
		for (i = 1; i <= n; i++)
			if (what[i] in room && !((from[i], room[what[i]]) in may))
				print "  " who[i] ".c calls " what[i] " of " room[what[i]]
	}')
[ -z "$found" ] || { failures=$((failures + 1)); echo "upwards in src/softhca:"; echo "$found"; }

# ---- Cycles of objects within a room: those of tests/cycles.txt, and no others ----

# "has" or "wants" FILE SYMBOL; "empty" FILE, if nothing of it is compiled with this MPI library.
symbols_of_src() {
	find "$build/src" -name '*.o' | while read -r object; do
		path=${object#"$build/"}
		dir=${path%/*} name=${path##*/}
		dir=${dir%/.libs} name=${name##*-}
		file=$dir/${name%.o}
		# What an earlier build has left has no source.
		[ -f "$file.c" ] || continue
		nm "$object" 2>/dev/null | awk -v file="${file#src/}" '$1 == "U" { print "wants", file, $2 }
			NF == 3 && $2 ~ /[TDBRVWC]/ { print "has", file, $3 }
			END { if (!NR) print "empty", file }'
	done | sort -u
}
# FILE... a line: files that reach one another through symbols.
cycles() {
	awk '
		$1 == "empty" { next }
		{ split($2, part, "/"); room[$2] = part[1] }
		$1 == "has" { place[$3] = $2 }
		$1 == "wants" { who[++n] = $2; what[n] = $3 }
		END {
			for (i = 1; i <= n; i++)
				if (what[i] in place && room[place[what[i]]] == room[who[i]])
					edge[who[i], place[what[i]]] = 1
			for (file in room)
				files[room[file]] = files[room[file]] " " file
			for (r in files)
				print_cycles(split(files[r], v, " "))
		}
		# Which file reaches which; two that reach each other are in one cycle.
		function print_cycles(c, i, j, k, line) {
			for (i = 1; i <= c; i++)
				for (j = 1; j <= c; j++)
					p[i, j] = i != j && (v[i], v[j]) in edge
			for (k = 1; k <= c; k++)
				for (i = 1; i <= c; i++)
					for (j = 1; p[i, k] && j <= c; j++)
						if (p[k, j])
							p[i, j] = 1
			for (i = 1; i <= c; i++) {
				if (!p[i, i] || told[v[i]])
					continue
				line = ""
				for (j = 1; j <= c; j++)
					if (p[i, j] && p[j, i]) {
						told[v[j]] = 1
						print v[j], v[i]
					}
			}
		}' | sort -k 2,2 -k 1,1 | awk '
		$2 != last { if (last) print line; line = ""; last = $2 }
		{ line = line (line ? " " : "") $1 }
		END { if (last) print line }' | sort
}
# tests/cycles.txt without files that are empty here: fortran.c with MPICH.
cycles_known() {
	awk '
		FNR == NR { if ($1 == "empty") empty[$2] = 1; next }
		{
			line = ""
			for (i = 1; i <= NF; i++)
				if (!($i in empty))
					line = line (line ? " " : "") $i
			if (line ~ / /)
				print line
		}' "$build/tests/symbols.found" tests/cycles.txt | sort
}
symbols_of_src >"$build/tests/symbols.found"
cycles <"$build/tests/symbols.found" >"$build/tests/cycles.found"
cycles_known >"$build/tests/cycles.known"
# A sanitizer optimises less, and so leaves more edges.
if [ "${RG_SANITIZE:-no}" = no ] && ! diff "$build/tests/cycles.known" "$build/tests/cycles.found" >/dev/null; then
	failures=$((failures + 1))
	echo "cycles of objects that are not those of tests/cycles.txt:"
	diff "$build/tests/cycles.known" "$build/tests/cycles.found" | grep '^[<>]'
fi

# Time and waiting are clock.c's, so that tests/virtual may put another in its place.
word='(clock_)?nanosleep|usleep|sched_yield|ppoll|epoll_pwait2?|epoll_wait2|pselect|pthread_create'
word="$word|pthread_cond_(timed|clock)wait|sem_(timed|clock)?wait|gettimeofday|P?MPI_Wtime"
word="$word|(SYS|__NR)_futex[a-z0-9_]*|FUTEX_[A-Z_]+|clock_gettime\(CLOCK_(MONOTONIC|BOOTTIME)[A-Z_]*"
call='(sleep|select|pthread_join)\(|poll\(([^,]*,){2} *[^ 0]|epoll_wait\(([^,]*,){3} *[^ 0]'
found=$(grep -rnE "\b($word)\b|\b($call)" src/mpi src/rail src/verbs src/softhca --include='*.[ch]')
[ -z "$found" ] || { failures=$((failures + 1)); echo "waits without src/util/clock.h:"; echo "$found"; }

[ $failures -eq 0 ]
