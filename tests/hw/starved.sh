#!/bin/sh
# starved.sh COMMAND... - with hardly any memory that may be locked.  Root may lock all the
# same, so it goes without that capability.
[ "$(id -u)" != 0 ] || exec setpriv --bounding-set=-ipc_lock prlimit --memlock=65536 "$@"
exec prlimit --memlock=65536 "$@"
