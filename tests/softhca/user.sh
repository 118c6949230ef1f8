#!/bin/sh
# Users: everything works for an ordinary one; another one cannot attach, nor be
# in the way with more than one line's notice; what was killed leaves a name that
# `softhca reap` removes, and nothing else.
set -u
. "$srcdir/tests/listens.sh"
work=$(mktemp -d) || exit 1
failed=0
holder=
trap '[ -z "$holder" ] || kill -9 "$holder" 2>/dev/null; rm -rf "$work"' EXIT
SOFTHCA_EXPOSE=1
SOFTHCA_FABRIC=user.$$
export SOFTHCA_EXPOSE SOFTHCA_FABRIC

fail() {
	echo "FAIL: $*"
	failed=1
}

# $(as UID) COMMAND...: with nothing of root's.
as() {
	echo "setpriv --reuid $1 --regid $1 --clear-groups --bounding-set=-all --inh-caps=-all" \
		"env HOME=/"
}

file_of() {
	echo "/dev/shm/softhca.$1.$SOFTHCA_FABRIC"
}

# hold USER: somebody on the fabric, until killed; sets holder.
hold() {
	: >"$work/ready"
	if [ "$1" = "$(id -u)" ]; then
		"$work/hold" >"$work/ready" &
	else
		$(as "$1") "$work/hold" >"$work/ready" &
	fi
	holder=$!
	for i in $(seq 1200); do
		[ -s "$work/ready" ] && return
		sleep 0.05
	done
	fail "user $1 cannot join"
}

end_holder() {
	kill -9 "$holder"
	wait "$holder" 2>/dev/null
	holder=
}

cp tests/softhca/hold tests/conformance/conformance softhca "$work" || exit 1
cp .libs/libsofthca.so.0 "$work" || exit 1
chmod 0755 "$work" "$work"/*

echo "== what was killed"
me=$(id -u)
hold "$me"
end_holder
[ -e "$(file_of "$me")" ] || fail "no name is left: what is there to reap?"
"$work/softhca" list | grep -q 'dead$' || fail "list does not say who is dead"
others=$(ls /dev/shm | grep -v "softhca\.$me\." | sort)
"$work/softhca" reap | grep -q "$SOFTHCA_FABRIC: removed" || fail "reap"
[ ! -e "$(file_of "$me")" ] || fail "reap left the name"
[ "$others" = "$(ls /dev/shm | grep -v "softhca\.$me\." | sort)" ] || echo "(others were at /dev/shm)"
hold "$me"
"$work/softhca" reap >/dev/null
[ -e "$(file_of "$me")" ] || fail "reap took a living fabric"
end_holder
# The next who comes starts anew, and leaves nothing.
"$work/conformance" --only loopback >/dev/null || fail "a fabric of the dead is in the way"
[ ! -e "$(file_of "$me")" ] || fail "a name was left behind"

if [ "$me" -ne 0 ] || ! command -v setpriv >/dev/null; then
	echo "not root, or no setpriv: other users are not tried"
	exit $failed
fi
user=65534
other=65533
user=65534
other=65533
echo "== an ordinary user"
brief="--share 4 --except longest"
[ -z "${RG_LONG-}" ] || brief=
# shellcheck disable=SC2086 # words are meant
$(as $user) "$work/conformance" $brief >"$work/out" 2>&1 || { tail -n 20 "$work/out"; fail "conformance"; }
tail -n 1 "$work/out"
if command -v ibv_rc_pingpong >/dev/null && [ "${RG_SANITIZE:-no}" = no ]; then
	port=$((20000 + $$ % 10000))
	$(as $user) "$work/softhca" -n 0 ibv_rc_pingpong -g 0 -p $port >"$work/server" 2>&1 &
	server=$!
	listens $port $server || fail "ibv_rc_pingpong does not listen"
	$(as $user) "$work/softhca" -n 1 ibv_rc_pingpong -g 0 -p $port localhost >"$work/client" 2>&1 ||
		{ cat "$work/server" "$work/client"; fail "ibv_rc_pingpong"; }
	wait $server || fail "ibv_rc_pingpong's server"
else
	echo "no ibv_rc_pingpong, or a sanitizer: not tried"
fi
[ ! -e "$(file_of $user)" ] || fail "a name was left behind"

echo "== another user"
hold $user
$(as $other) cat "$(file_of $user)" >/dev/null 2>&1 && fail "another user can read the name"
$(as $other) ls -l "/proc/$holder/fd/" >/dev/null 2>&1 && fail "another user sees descriptors"
$(as $other) "$work/softhca" list | grep -q "$SOFTHCA_FABRIC" && fail "another user's list shows it"
$(as $other) "$work/softhca" reap | grep -q "$SOFTHCA_FABRIC" && fail "another user reaps it"
$(as $other) "$work/softhca" port 0/soft0:1 down >/dev/null 2>&1 && fail "another user commands it"
# The same name means another fabric.
$(as $other) "$work/conformance" --only loopback >/dev/null 2>&1 || fail "another user's own fabric"
[ -e "$(file_of $user)" ] || fail "the name is gone"
end_holder
$(as $user) "$work/softhca" reap >/dev/null
[ ! -e "$(file_of $user)" ] || fail "reap"

# refused WHAT: user joins what other has put there: one line, no more harm.
refused() {
	timeout 60 $(as $user) "$work/conformance" \
		--only loopback >"$work/out" 2>&1 && fail "$1: joined"
	sed -i '/^FAIL\|passed\|\.c:[0-9]/d' "$work/out"
	grep -qE '^softhca: .*(belongs to another user|Permission denied|symbolic links)' \
		"$work/out" || { cat "$work/out"; fail "$1: no line that says why"; }
	rm -f "$(file_of $user)"
}
echo "== what another user has put there"
$(as $other) sh -c "umask 0; echo mine >$(file_of $user)"
refused "a file"
echo precious >"$work/precious"
chown $user "$work/precious"
$(as $other) ln -s "$work/precious" "$(file_of $user)"
refused "a link"
[ "$(cat "$work/precious")" = precious ] || fail "a link was followed"
$(as $other) mkfifo -m 0666 "$(file_of $user)"
refused "a FIFO"
$(as $other) mkdir "$(file_of $user)"
timeout 60 $(as $user) "$work/conformance" \
	--only loopback >"$work/out" 2>&1 && fail "a directory: joined"
grep -q '^softhca: ' "$work/out" || fail "a directory: no line that says why"
rmdir "$(file_of $user)"
exit $failed
