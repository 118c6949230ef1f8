#!/bin/sh
# mpirun.sh N PROGRAM ARG... - mpirun over the hosts of hosts.sh, ranks in blocks: as run-lib.sh calls it.
#
#	RG_HOSTS_MPI=NAME	the interface that MPI itself uses (mgmt)
#
# RAILGAUGE_, SOFTHCA_ and SUITE_ variables reach all ranks.
count=$1
shift
each=$(((count + RG_HOSTS_COUNT - 1) / RG_HOSTS_COUNT))
hosts=$(seq -f host%.0f 0 $(((count + each - 1) / each - 1)) | paste -sd , -)
read -r login <"$RG_HOSTS/login" || exit 99
HOME=$RG_HOSTS/home
export HOME
case $RG_MPI_FLAVOR in
openmpi)
	daemons="--map-by slot --oversubscribe --mca plm_rsh_agent $RG_HOSTS/enter --mca oob_tcp_if_include mgmt"
	memory=vader
	case $("$MPIRUN" --version) in
	*"(Open MPI) "[5-9]*)
		# PRRTE launches, with options of its own (from its documentation: not tried).
		daemons="--map-by slot:oversubscribe --prtemca plm_ssh_agent $RG_HOSTS/enter --prtemca prte_if_include mgmt"
		memory=sm
		;;
	esac
	# shellcheck disable=SC2046,SC2086 # words are meant
	set -- "$MPIRUN" -np "$count" --host "$(echo "$hosts" | sed "s/\([^,][^,]*\)/\1:$each/g")" \
		$daemons --bind-to none \
		--mca pml ob1 --mca btl tcp,$memory,self --mca btl_tcp_if_include "${RG_HOSTS_MPI:-mgmt}" \
		$(env | sed -n 's/^\(\(RAILGAUGE\|SOFTHCA\|SUITE\)_[A-Z_]*\)=.*/-x \1/p') "$@"
	;;
*)
	set -- "$MPIRUN" -launcher ssh -launcher-exec "$RG_HOSTS/enter" -iface mgmt -n "$count" \
		-ppn "$each" -hosts "$hosts" \
		-genv UCX_TLS tcp,self -genv UCX_NET_DEVICES "${RG_HOSTS_MPI:-mgmt}" "$@"
	;;
esac
exec nsenter -t "$login" -n -m -u sh -c 'cd "$1" && shift && exec "$@"' sh "$PWD" "$@"
