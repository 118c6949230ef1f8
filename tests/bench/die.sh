#!/bin/sh
# die.sh RECORDS PROGRAM ARG... - under a launcher: rank 1 is killed when the program, which has
# --json RECORDS, has been measuring for a second at least.
records=$1
shift
if [ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 1 ]; then
	"$@" &
	pid=$!
	until [ -s "$records" ] || ! kill -0 $pid; do sleep 0.1; done
	sleep 1
	kill -9 $pid
	wait $pid
	exit 137
fi
exec "$@"
