#!/bin/sh
# as.sh DIRECTORY SPEC PROGRAM ARG... - a rank on a host of its own with adapters of this
# personality: libibverbs is the software HCA in DIRECTORY, so that nothing above it knows.
# CONTAINERS="": ranks of a host are in containers of other names; "-i": with memory of their own.
# SYSFS=DIR: what is in /sys/class; CGROUP=DIR: in /sys/fs/cgroup.
rank=${OMPI_COMM_WORLD_RANK-${PMI_RANK-0}}
LD_LIBRARY_PATH=$1${LD_LIBRARY_PATH+:$LD_LIBRARY_PATH}
SOFTHCA_SPEC=$2
SOFTHCA_NODE=$((rank / ${RANKS_PER_HOST:-1}))
SOFTHCA_EXPOSE=1
name=host$SOFTHCA_NODE${CONTAINERS+-$rank}
export LD_LIBRARY_PATH SOFTHCA_SPEC SOFTHCA_NODE SOFTHCA_EXPOSE
shift 2
# Where there is no limit of locked memory librail tries none (cqmem=).
[ "$(ulimit -l)" != unlimited ] || ulimit -S -l 8192
# shellcheck disable=SC2086 # options, or none
exec unshare -u ${CONTAINERS-} ${SYSFS:+-m} ${CGROUP:+-m} sh -c 'hostname "$0" &&
	{ [ -z "${SYSFS-}" ] || mount --bind "$SYSFS" /sys/class; } &&
	{ [ -z "${CGROUP-}" ] || mount --bind "$CGROUP" /sys/fs/cgroup; } && exec "$@"' "$name" "$@"
