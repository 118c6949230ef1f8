#!/bin/sh
# launch.sh - run-lib.sh ends a launcher that stays after it has told the exit code of its ranks, and one whose
# ranks still run is left alone.
. "$srcdir/tests/run-lib.sh"
[ "$RG_MPI_FLAVOR" = openmpi ] || {
	echo "skipped: Open MPI's launcher stays, MPICH's does not"
	exit 77
}
patience=2 turns=no

# prterun: it tells as Open MPI's, and stays; with a word, a process of its own stays for some seconds, too.
launcher="$work/prterun"
cat >"$launcher" <<'EOT' && chmod +x "$launcher"
#!/bin/sh
echo "prterun detected that one or more processes exited with non-zero status" >&2
echo "  Exit code:    3" >&2
[ $# -lt 2 ] || { sleep 6; exit 5; }
read -r line
EOT
mkfifo "$work/never"
exec 7<>"$work/never"

launch 2 <&7
expect "the exit code that it told" [ "$rc" -eq 3 ]
launch 2 rank <&7
expect "ranks that run are left alone" [ "$rc" -eq 5 ]
expect "no process is left" [ -z "$(launch_processes)" ]
finish
