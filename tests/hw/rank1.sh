#!/bin/sh
# rank1.sh NAME=VALUE COMMAND... - COMMAND; on rank 1 with this in its environment.
rank=${OMPI_COMM_WORLD_RANK-${PMI_RANK-${PMIX_RANK-${SLURM_PROCID-}}}}
[ "$rank" != 1 ] || export "$1"
shift
exec "$@"
