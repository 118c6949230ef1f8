# cluster.sh - a Slurm of its own on hosts as namespaces (tests/net/hosts.sh), in a directory that goes with
# the script.  Sourced behind run-lib.sh.
#
#	cluster			two nodes, host0 and host1, with two rails, and the login host: munged, slurmctld
#				and slurmd run, and the nodes are idle.  Exit code 77, with the reason, where
#				Slurm is not installed or no such hosts can be made
#	slurm COMMAND...	on the login host, in $jobs, a directory that all hosts share
#	submit ARG...		sbatch: its job is $job
#	job_state JOB		RUNNING, COMPLETED, ...; of an array a word for each task
#	comes_to WHAT COMMAND...	until COMMAND succeeds, $patience seconds at most; the test fails else
#	is_state JOB WORD...	one of these is the state of the job, and of all its tasks
#	node_down I		host I ends with all its processes, and Slurm learns that it is down
#	node_up I		it boots, and is idle
#	left_on I		processes on host I that Slurm or a launcher would have left there, and files
#				in shared memory
#	campaign_script FILE ARG...	railgauge sbatch ARG...; of $build, where that is not this one
#	launches DIR		lines of launches that have ended, in the journal of a campaign
#
# Jobs are root's, since root makes the hosts.  Nodes have no cgroups (proctrack/linuxproc), no accounting
# (no sacct) and more processors than the machine.
. "$srcdir/tests/net/hosts.sh"
trap 'cluster_end; hosts_end; rm -rf "$work"' EXIT
patience=120
out=$work/out err=$work/err
: >"$out" >"$err"
slurm_dir=$work/slurm jobs=$work/jobs
# Of a campaign that takes seconds.
quick='-m 64K:256K --over native,stripe'
munge_pid=

cluster_can_be() {
	PATH=$PATH:/usr/sbin:/sbin
	for tool in munged slurmctld slurmd sbatch srun scontrol; do
		command -v $tool >/dev/null || {
			echo "cluster.sh: no Slurm here: no $tool (Debian: slurmctld slurmd slurm-client munge)"
			exit 77
		}
	done
}

# Of munge a key and a socket of its own; all directories on the way are those of its user or open.
cluster_munge() {
	chmod 711 "$work"
	mkdir -p "$slurm_dir/munge/log" "$slurm_dir/etc" "$slurm_dir/state" "$slurm_dir/spool/host0" \
		"$slurm_dir/spool/host1" "$jobs"
	(umask 077 && head -c 128 /dev/urandom >"$slurm_dir/munge/key")
	setpriv --pdeathsig TERM munged --foreground --socket="$slurm_dir/munge/socket" --key-file="$slurm_dir/munge/key" \
		--pid-file="$slurm_dir/munge/pid" --log-file="$slurm_dir/munge/log/munged.log" \
		--seed-file="$slurm_dir/munge/log/seed" >"$slurm_dir/munge/log/out" 2>&1 8>&- 9>&- &
	munge_pid=$!
	until [ -S "$slurm_dir/munge/socket" ]; do
		kill -0 $munge_pid 2>/dev/null || {
			cat "$slurm_dir/munge/log/out"
			echo "cluster.sh: munged does not start"
			exit 99
		}
		sleep 0.05
	done
}

# cred_expire: a job that is requeued waits so long, at least 5 s.  SlurmdTimeout: a crowded machine answers late.
cluster_conf() {
	cat >"$slurm_dir/etc/slurm.conf" <<-END
		ClusterName=railgauge
		SlurmctldHost=login(10.0.0.254)
		SlurmUser=root
		SlurmdUser=root
		AuthType=auth/munge
		AuthInfo=socket=$slurm_dir/munge/socket,cred_expire=5
		StateSaveLocation=$slurm_dir/state
		SlurmdSpoolDir=$slurm_dir/spool/%n
		SlurmctldPidFile=$slurm_dir/slurmctld.pid
		SlurmdPidFile=$slurm_dir/slurmd.%n.pid
		ProctrackType=proctrack/linuxproc
		TaskPlugin=task/none
		JobAcctGatherType=jobacct_gather/none
		AccountingStorageType=accounting_storage/none
		MinJobAge=3600
		SelectType=select/cons_tres
		SelectTypeParameters=CR_Core
		SlurmdParameters=config_overrides
		MpiDefault=none
		ReturnToService=2
		PropagateResourceLimits=NONE
		SlurmdTimeout=300
		MessageTimeout=60
		KillWait=10
		UnkillableStepTimeout=60
		PreemptType=preempt/partition_prio
		PreemptMode=REQUEUE
		SchedulerParameters=batch_sched_delay=0,sched_interval=2,sched_min_interval=10000,bf_interval=5
		NodeName=host0 NodeAddr=10.0.0.1 CPUs=4 RealMemory=1000 State=UNKNOWN
		NodeName=host1 NodeAddr=10.0.0.2 CPUs=4 RealMemory=1000 State=UNKNOWN
		PartitionName=low Nodes=ALL Default=YES MaxTime=60 State=UP PriorityTier=1
		PartitionName=high Nodes=ALL MaxTime=60 State=UP PriorityTier=2 PreemptMode=OFF
	END
	# No cgroups: since version 24 slurmd can be told; before, v1 is not touched until it is used.
	case $(slurmd -V) in
	*" "2[4-9].*) echo CgroupPlugin=disabled ;;
	*) echo CgroupPlugin=cgroup/v1 ;;
	esac >"$slurm_dir/etc/cgroup.conf"
	# PMIx has directories there, which nodes do not share.
	echo PMIxCliTmpDirBase=/dev/shm >"$slurm_dir/etc/mpi.conf"
	SLURM_CONF=$slurm_dir/etc/slurm.conf
	export SLURM_CONF
}

# MPI itself uses mgmt, as does the launchers' own traffic.
cluster_mpi() {
	export OMPI_MCA_pml=ob1 OMPI_MCA_btl=tcp,self OMPI_MCA_btl_tcp_if_include=mgmt \
		OMPI_MCA_oob_tcp_if_include=mgmt OMPI_MCA_hwloc_base_binding_policy=none
	export UCX_TLS=tcp,self UCX_NET_DEVICES=mgmt HYDRA_IFACE=mgmt
	export RAILGAUGE_SOFT=net=eth0+eth1
}

cluster_daemon() {
	start "$1" "$2" -D -f "$SLURM_CONF" $3 >"$slurm_dir/$2.$1.out" 2>&1
}

nodes_are_idle() {
	[ "$(slurm sinfo -h -N -t idle -o %N 2>/dev/null | sort -u | wc -l)" -eq 2 ]
}

cluster() {
	cluster_can_be
	hosts 2 2
	cluster_munge
	cluster_conf
	cluster_mpi
	cluster_daemon login slurmctld
	cluster_daemon 0 slurmd "-N host0"
	cluster_daemon 1 slurmd "-N host1"
	comes_to "the nodes are idle" nodes_are_idle
	[ $failures -eq 0 ] || {
		tail -n 20 "$slurm_dir"/*.out
		exit 1
	}
}

# slurmctld, slurmd and all that they have started end with the hosts.
cluster_end() {
	[ -n "$munge_pid" ] || return 0
	kill $munge_pid 2>/dev/null
	wait $munge_pid 2>/dev/null
	munge_pid=
}

slurm() {
	(cd "$jobs" && limited on login "$@")
}
limited() {
	command=$1 where=$2
	shift 2
	$command "$where" timeout -k 5 100 "$@" </dev/null
}

submit() {
	job=$(slurm sbatch --parsable "$@" 2>"$err")
	rc=$?
	expect "sbatch $*" [ $rc -eq 0 ]
}

# Slurm still knows all jobs of the test (MinJobAge).
job_state() {
	slurm scontrol -o show job "$1" 2>/dev/null | sed -n 's/.* JobState=\([A-Z_]*\).*/\1/p' | sort -u |
		paste -sd ' '
}

comes_to() {
	awaited=$1
	shift
	end=$(($(date +%s) + patience))
	until "$@"; do
		[ "$(date +%s)" -lt $end ] || break
		sleep 0.2
	done
	expect "$awaited, within $patience s" "$@"
}

is_state() {
	state=$(job_state "$1")
	shift
	case " $* " in *" ${state:-none} "*) return 0 ;; esac
	return 1
}

node_down() {
	host_crash "$1"
	slurm scontrol update nodename="host$1" state=down reason=test
}

node_up() {
	host_boot "$1"
	cluster_daemon "$1" slurmd "-N host$1"
	comes_to "both nodes are idle" nodes_are_idle
}

# Also that of this shell, seen from inside.
left_on() {
	on "$1" sh -c '
		for process in /proc/[0-9]*; do
			{
				read -r name <"$process/comm"
				read -r pid rest <"$process/stat"
			} 2>/dev/null || continue
			case $name in
			sh | sleep | slurmd | nsenter | setpriv) ;;
			*) echo "$name" ;;
			esac
		done
		ls /dev/shm'
}

campaign_script() {
	script=$jobs/$1
	shift
	"${build:-.}/src/cli/railgauge" sbatch "$@" >"$script" 2>"$err"
	rc=$?
	expect "railgauge sbatch $*" [ $rc -eq 0 ]
}

launches() {
	cat "$jobs/$1/campaign.jsonl" 2>/dev/null | grep -c '"type": *"launch"'
}
# done_well JOURNAL: the lines of launches that ended well.  A launch whose node or job is taken away may have a
# line with another exit code, and is repeated.
done_well() {
	sed -n '/"type": *"launch".*"exit": *0[,}]/p' "$1"
}
