# collectives.sh - groups of measures/run.sh: collectives and the NAS-style programs.
#
#	RG_MPICH_BUILD=DIR	a build with MPICH, for the better of two libraries
moving="alltoall bcast allgather"

# Launches of Open MPI and of MPICH take turns.  Samples begin at the barrier of the library whose
# launch it is, which small ones show: ours within a library over that library's, and the better
# of ours over the better of theirs.
collectives_ideal() {
	mpich=no
	[ ! -x "${RG_MPICH_BUILD-}/collective/rg_bcast" ] || mpich=yes
	for coll in $moving allreduce; do
		for k in $(seq "$launches"); do
			once coll.$k 2 collective/rg_$coll --over native,single,stripe --soft ideal \
				--buffers malloc -m 8:1M
			[ $mpich = no ] || in_mpich once mpich.$k 2 collective/rg_$coll \
				--over native,single,stripe --soft ideal --buffers malloc -m 8:1M
		done
		for size in 8 4096 65536 1048576; do
			wanted="x <= $([ $size = 8 ] && echo 1.0 || echo 0.9)"
			for way in 2:single 3:stripe; do
				ideal_rows "rg_$coll, $size, ${way#*:}" $size "${way%:*}"
			done
		done
	done
	[ $mpich = yes ] || echo "  (Open MPI only: no RG_MPICH_BUILD)"
}

# ideal_rows TEXT SIZE COLUMN: against each library, and against the better of both
ideal_rows() {
	ratios coll "$2" "$3" coll "$2" 1 | measure "$1: ours / Open MPI's" "$wanted"
	[ $mpich = yes ] || return 0
	ratios mpich "$2" "$3" mpich "$2" 1 | measure "$1: ours / MPICH's" "$wanted"
	for k in $(seq "$launches"); do
		cat "$work/coll.$k" "$work/mpich.$k" | awk -v s="$2" -v c="$3" '
			$1 == s { if (!n || $2 < theirs) theirs = $2; v = $(c + 1); if (!n++ || v < ours) ours = v }
			END { print ours / theirs }'
	done | measure "$1: ours / the better library's" "$wanted"
}

# Microseconds by the formula in src/mpi/coll/coll.h of what the table chooses for four ranks:
# (up to 256 KiB alltoall is linear, whose formula is the same but for a)
# cost NAME BYTES A, with A the time of a message of 8 bytes, two ports of 10 MB/s.
cost() {
	awk -v name="$1" -v m="$2" -v a="$3" 'BEGIN {
		b = 1 / 20
		if (name == "bcast") {
			s = m / 131072
			print (m > 524288 ? (2 + s) * (a + m / s * b) : 5 * a + 1.5 * m * b)
		} else
			print 3 * (a + m * b)
	}'
}

# Rates so low that it does not matter that four ranks share cores.  Packets are the smallest that
# connections are made over; a control message may still wait for one and a half, which shows
# at 64 KiB.
slow_ports=ports=2,rate=10MB/s,latency=2us,mtu=1024

# over_ucx COLLECTIVE: by Open MPI over UCX on both rails of the same model, a node per rank.
over_ucx() {
	[ "$RG_MPI_FLAVOR" = openmpi ] || return
	ours=$launcher
	launcher="$MPIRUN --oversubscribe --mca pml ucx --mca pml_ucx_tls any
		--mca pml_ucx_devices any -x UCX_TLS=rc_verbs,ud_verbs,self
		-x UCX_NET_DEVICES=soft0:1,soft0:2 -x UCX_MAX_RNDV_RAILS=2 -np"
	for k in $(seq "$launches"); do
		launch 4 sh -c "exec ./softhca --fabric measure.$$ --soft $slow_ports \
			--node \$OMPI_COMM_WORLD_RANK -- collective/rg_$1 --over native -m 1M:1M -i 3 -x 1"
		[ "$rc" -eq 0 ] || break
		cp "$out" "$work/ucx.$k"
	done
	launcher=$ours
	[ "$rc" -eq 0 ] || echo "  (Open MPI over UCX does not run here)"
	return "$rc"
}

# Every rank is a node of its own.
collectives_rails() {
	slow="--soft $slow_ports --nodes 4 -i 3 -x 1"
	run a 2 $pt2pt/rg_latency --over stripe --soft $slow_ports -m 8:8
	for coll in $moving; do
		run rails 4 collective/rg_$coll --over single,stripe $slow -m 64K:1M
		ratios rails 1048576 1 rails 1048576 2 |
			measure "rg_$coll, 1 MiB: one rail / two" "x >= 1.9"
		for size in 65536 262144 1048576; do
			for k in $(seq "$launches"); do
				a=$(awk '$1 == 8 { print $2 }' "$work/a.$k")
				awk -v s=$size -v c="$(cost $coll $size "$a")" \
					'$1 == s { print $3 / c }' "$work/rails.$k"
			done | measure "rg_$coll, $size: two rails / cost formula" "x <= 1.1"
		done
		over_ucx $coll && ratios rails 1048576 2 ucx 1048576 1 |
			measure "rg_$coll, 1 MiB: ours / Open MPI over UCX, two rails" "x <= 1.0"
		case $coll in
		alltoall) algorithms="pairwise pairwise-rails linear bruck" ;;
		bcast) algorithms="binomial scatter-ring chain" ;;
		*) algorithms="ring ring-rails doubling bruck" ;;
		esac
		for algorithm in $algorithms; do
			run forced-$algorithm 4 collective/rg_$coll --over stripe $slow -m 64K:1M \
				--coll $coll=$algorithm
		done
		for size in 65536 262144 1048576; do
			for algorithm in $algorithms; do
				ratios rails $size 2 forced-$algorithm $size 1 | sed "s/^/$algorithm /" |
					sort -g -k 2 | awk '{ v[NR] = $2 } END { print v[int((NR + 1) / 2)], $1 }'
			done | sort -g | tail -n 1 >"$work/best"
			read -r _ best <"$work/best"
			ratios rails $size 2 forced-$best $size 1 |
				measure "rg_$coll, $size: chosen / best ($best)" "x <= 1.05"
		done
	done
}

# communication FILE WAY: its time summed up over ranks, from the comparison of ways
communication() {
	awk -v way="$2" '$1 == "#" && $2 == way { print $3 }' "$1"
}

# Waiting for others counts as communication.
nas_rails() {
	for program in "is -C A" "ft -C A"; do
		run nas 4 apps/rg_$program --over single,stripe --soft ports=2,rate=100MB/s,latency=2us --nodes 4
		for k in $(seq "$launches"); do
			echo "$(communication "$work/nas.$k" stripe) $(communication "$work/nas.$k" single)"
		done | awk '{ print $1 / $2 }' |
			measure "rg_$program, 4x1: communication, two rails / one" "x <= 0.6"
	done
}

# Class B once, natively and over rails: it verifies, or the launch fails.
nas_b() {
	for program in is ft; do
		once nas 2 apps/rg_$program -C B --over native,stripe --soft ideal
		awk -v p=rg_$program '$1 == "#" && ($2 == "native" || $2 == "stripe") && NF > 6 {
			printf "  %s -C B, 2 ranks, %s: %s s, of which communication %s s in all; %s Mop/s\n",
				p, $2, $6, $3, $NF }' "$work/nas"
	done
}
