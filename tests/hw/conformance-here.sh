#!/bin/sh
# conformance-here.sh SRCDIR SOFTWARE SHARE SEED [PORT...] - conformance.sh's part on one node.
srcdir=$1 software=$2 share=$3 seed=$4
shift 4
[ $# -gt 0 ] || set -- $(sh "$srcdir/tests/hw/found.sh" "$software" | sed -n 's/^found [^ ]* //p')
log=$(mktemp) || exit 99
trap 'rm -f "$log"' EXIT
failed=0
for port do
	set -- -d "${port%:*}" -i "${port##*:}" --share "$share" --seed "$seed"
	case $(cat "/sys/class/infiniband/${port%:*}/parent" 2>/dev/null) in
	?*) set -- "$@" --known "$srcdir/tests/conformance/rxe.txt" ;;
	esac
	{
		./tests/conformance/conformance "$@" 2>&1
		rc=$?
		echo "conformance of $port on $(hostname): exit code $rc"
	} >"$log"
	# printed at once: several nodes write
	grep -q ': exit code 0$' "$log" || failed=1
	printf '%s\n' "$(cat "$log")" | if [ $failed = 0 ]; then grep -v '^ok'; else cat; fi
done
exit $failed
