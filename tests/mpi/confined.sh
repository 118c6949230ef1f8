#!/bin/sh
# confined.sh - ranks in containers: in namespaces of their own, without memfd_create, /dev/shm or
# /proc; and ranks that give up their rights, or their root, before the first message.
. "$srcdir/tests/run-lib.sh"
confine=$PWD/tests/softhca/confine
program=tests/mpi/assumptions

# The MPI libraries' own transports within a host do not get through.  Open MPI 5 finds no way from an
# interface's own address to itself, but for the loopback.
export OMPI_MCA_btl=tcp,self OMPI_MCA_btl_tcp_if_include=lo UCX_TLS=tcp,self

if ! "$confine" user -- true >"$out" 2>&1; then
	echo "skipped: $(cat "$out")"
	exit 77
fi
mounts=yes
"$confine" pid proc -- true >"$out" 2>&1 || {
	echo "not tried: what needs a pid or mount namespace ($(cat "$out"))"
	mounts=
}

over() {
	echo "src/cli/railgauge exec --over stripe --soft ports=2 $* --"
}

# UCX, of MPICH's Debian package, ends a program without /sys in MPI_Finalize, natively as well.
holds_all() {
	case $RG_MPI_FLAVOR:$group in
	mpich:chroot)	grep -q '^holds: chroot' "$out" ;;
	*)		[ "$rc" -eq 0 ] && grep -q "^$group: .* cases hold, layer: yes" "$out" ;;
	esac
}

# in_ GROUP "WORDS" OPTION...: each rank confined by the words of confine.c
in_() {
	group=$1 words=$2
	shift 2
	# shellcheck disable=SC2046,SC2086 # words are meant
	launch 2 "$confine" $words -- $(over "$@") $program $group
	expect "$group, confined by '$words', $*" holds_all
}

denied="deny=memfd_create deny=process_vm_readv deny=process_vm_writev deny=membarrier
	deny=userfaultfd $(for call in pidfd_open pidfd_getfd; do
		"$confine" deny=$call -- true 2>/dev/null && echo deny=$call; done)"

in_ confined user
in_ confined "$(echo $denied)" --map-buffers
for alone in $(long memfd_create process_vm_readv process_vm_writev membarrier userfaultfd pidfd_open \
	pidfd_getfd); do
	in_ confined deny=$alone
done

# Files where the user wants them, of which none stays.
mkdir "$work/files" && chmod 1777 "$work/files"
export SOFTHCA_DIR="$work/files"
in_ confined deny=memfd_create --soft ports=2,rate=1GB/s
expect "no file stays in SOFTHCA_DIR" [ -z "$(ls -A "$work/files")" ]
OMPI_MCA_orte_abort_print_stack=0 launch 2 "$confine" user deny=memfd_create -- $(over) $program end killed
expect "a killed rank ends the job" ended_by_a_kill 2
expect "nor does a killed rank leave one" [ -z "$(ls -A "$work/files")" ]
unset SOFTHCA_DIR

if [ -n "$mounts" ]; then
	in_ confined "user pid proc" --map-buffers
	TMPDIR=$work/files in_ confined "ro=/dev/shm deny=memfd_create"
	expect "no file stays in TMPDIR" [ -z "$(ls -A "$work/files")" ]
	[ -z "${RG_LONG-}" ] || for words in pid "pid proc" hidepid "user pid"; do
		in_ confined "$words"
	done
	# railgauge finds its libraries by the path of its call, and by PATH.
	if "$confine" noproc -- true 2>/dev/null; then
		for call in "$PWD/src/cli/railgauge" "env PATH=$PWD/src/cli:$PATH railgauge"; do
			# shellcheck disable=SC2016,SC2086 # words are meant; the inner shell expands
			"$confine" noproc -- $call exec -- /bin/sh -c 'echo "$LD_PRELOAD"' >"$out" 2>"$err"
			expect "$call without /proc: its libraries" \
				grep -q "^$(cd .libs && pwd -P)/librailmpi-$RG_MPI_FLAVOR.so.*:.*/libsofthca.so" "$out"
		done
	fi
	# MPICH itself wants /proc, and a common /dev/shm.
	[ "$RG_MPI_FLAVOR" = mpich ] || for words in "user pid proc own=/dev/shm" $(long noproc); do
		in_ confined "$words"
	done
fi

# Before the first message.
if [ "$(id -u)" -eq 0 ]; then
	for group in setuid chroot $(long setuid-one); do
		in_ $group ""
	done
fi

# Nothing in common: one line, on no rank a hang.
launch 2 sh -c 'mkdir -p "$0/${OMPI_COMM_WORLD_RANK-$PMI_RANK}"
	SOFTHCA_DIR=$0/${OMPI_COMM_WORLD_RANK-$PMI_RANK} exec "$@"' \
	"$work/apart" $(over) $program confined
judge_refusal assumptions 3 3 "another fabric of the software HCA.*SOFTHCA_DIR" "no directory in common"
expect "nothing in /dev/shm" shm_is_clean
finish
