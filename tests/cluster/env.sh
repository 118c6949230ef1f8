# env.sh - sourced on a node of the virtual cluster: how check-hw's jobs reach the others.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
case $RG_MPI_FLAVOR in
openmpi)
	RG_HW_MPIRUN_ARGS="--mca plm_rsh_agent /usr/local/bin/ssh --mca pml ob1 --mca btl tcp,vader,self
		--mca btl_tcp_if_include eth0 --mca oob_tcp_if_include eth0"
	;;
*)
	RG_HW_MPIRUN_ARGS="-launcher-exec /usr/local/bin/ssh -iface eth0 -genv UCX_TLS tcp,self
		-genv UCX_NET_DEVICES eth0"
	;;
esac
HOSTS=$(seq -f node%.0f 0 $((VC_NODES - 1)) | paste -sd , -)
RG_HW_MPIRUN=$VC_MPIRUN
# The kernel's software devices are taken for hardware.
RG_HW_SOFTWARE=1
# The devices of all nodes are one driver: the conformance list on one of them.
RG_HW_PORTS=rxe0:1
export HOSTS RG_HW_MPIRUN RG_HW_MPIRUN_ARGS RG_HW_SOFTWARE RG_HW_PORTS
