#!/bin/sh
# mpirun.sh - mpirun inside the virtual cluster, as tests/run-lib.sh calls it: ranks in
# blocks over the nodes.  VC_MPIRUN is the real one.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
[ "$1" != --oversubscribe ] || shift
count=$2
shift 2
each=$(((count + VC_NODES - 1) / VC_NODES)) hosts=
for node in $(seq 0 $((VC_NODES - 1))); do
	[ $((node * each)) -lt "$count" ] && hosts=$hosts${hosts:+,}node$node
done
case $RG_MPI_FLAVOR in
openmpi)
	hosts=$(echo "$hosts" | sed "s/\(node[0-9]*\)/\1:$each/g")
	exec $VC_MPIRUN --host "$hosts" --map-by slot -np "$count" \
		--mca plm_rsh_agent /usr/local/bin/ssh --mca pml ob1 --mca btl tcp,vader,self \
		--mca btl_tcp_if_include eth0 --mca oob_tcp_if_include eth0 "$@"
	;;
*)
	exec $VC_MPIRUN -hosts "$hosts" -n "$count" -ppn $each -launcher-exec /usr/local/bin/ssh \
		-iface eth0 -genv UCX_TLS tcp,self -genv UCX_NET_DEVICES eth0 "$@"
	;;
esac
