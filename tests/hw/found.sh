#!/bin/sh
# found.sh [1] - on one node: what it has, then a line for each ACTIVE port that check-hw takes
# (1: also of software), "found HOST DEVICE:PORT"; all at once, since several nodes write.
# No environment of run.sh's need reach it.
# Each rank its own node: started by a launcher, topo would report all nodes at once.
unset OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE PMI_RANK PMI_SIZE PMIX_RANK SLURM_PROCID SLURM_STEP_NUM_TASKS
text=$(
	src/cli/railgauge topo 2>&1
	src/cli/railgauge topo --json 2>/dev/null |
		awk -F'"' -v host="$(hostname)" -v software="${1-}" '
		/^ *"device":/ { device = $4 }
		/^ *"port":/ { port = $3; gsub(/[^0-9]/, "", port) }
		/^ *"kind":/ { kind = $4 }
		/^ *"state": "ACTIVE"/ {
			if (kind == "hardware" || (software && kind == "kernel software"))
				print "found " host " " device ":" port
		}'
)
printf '%s\n\n' "$text"
