#!/bin/sh
# table.sh - the table personality x program: sets of like=, and personalities that are drawn by RG_SEED:
# keys with values at their limits, put together at random, hosts of two kinds.  A cell is "ok",
# "refused" with a line that is due to a key, without which there is no such line, or FAIL.  CI draws
# one personality; RG_LONG=1 takes all sets and draws RG_DRAWS (40).
#
# ADAPTERS_SPECS="SPEC SPEC...": these alone.
. "$srcdir/tests/adapters/adapters.sh"
limit=${ADAPTERS_SECONDS:-120}
short="--time-cap 20ms --iterations 200 --warmup 10"
sets=$(more like=mlx5-ib like=mlx5-roce like=mlx5-vf like=mlx4 like=irdma-e810 like=bnxt_re like=hns-hip08)
draws=${RG_DRAWS:-40}
[ -n "${RG_LONG-}" ] || sets= draws=1

# ---- Personalities ---------------------------------------------------------------

# pick WORD...: one of them, in $picked
pick() {
	random=$(((random * 1103515245 + 12345) % 2147483648))
	shift $((random / 65536 % $#))
	picked=$1
}

# value WORD...: one that fits the number of ports
value() {
	pick "$@"
	case $ports:$picked in
	1:*+*) picked=${picked%+*} ;;
	esac
}

# key NAME VALUE...: in one of three personalities; of two nodes in one of four.
key() {
	pick yes no no
	[ $picked = yes ] || return 0
	name=$1
	shift
	value "$@"
	spec=$spec,$name=$picked
	pick yes no no no
	[ $picked = yes ] || return 0
	value "$@"
	spec=$spec/$picked
}

draw() {
	random=$((($(echo "${RG_SEED:-1} $1" | cksum | cut -d' ' -f1)) % 2147483648))
	pick hcas=1,ports=1 hcas=1,ports=2 hcas=2,ports=1 hcas=1,ports=4 hcas=2,ports=2
	spec=$picked ports=${picked#*ports=}
	value "" "" "" ,rate=8GB/s+4GB/s ,rate=8GB/s+1GB/s ,rate=2GB/s,latency=2us ,mtu=1024 ,reads=1
	spec=$spec$picked
	pick link link link=eth link=ib like
	case $picked in
	link) key link model eth ib ib+eth eth+ib ;;
	like)
		pick "mlx5-ib mlx5-vf" "mlx5-roce bnxt_re irdma-e810" "mlx5-roce bnxt_re irdma-e810" mlx4
		like=$picked
		# shellcheck disable=SC2086 # names of one link layer
		pick $like
		spec=$spec,like=$picked
		# shellcheck disable=SC2086
		pick $like
		spec=$spec/$picked
		;;
	*) spec=$spec,$picked ;;
	esac
	key order memory never rts
	key place late late order
	key srq 0 0 1 2
	key srqwr 1 4 16 64 512 4096
	key ud yes yes yes yes yes yes yes no
	key uc no
	key atomics no
	key card one
	key inline 0 1 16 32 101 828
	key maxwr 128 129 160 256 300 512 1024 2048 4063
	key maxsge 2 2 2 3 4 6 13
	key qps 3 5 7 9 16 17 33 64 128
	key maxcqe 160 300 600 1000 2000 4096 65536 65536
	key cqmem 128KiB 512KiB 1MiB 2MiB 4MiB 8MiB 8MiB
	key rdatom 1 2 16 128
	key rdinit 1 2 16 128
	key lid 0 1 100+7 32768
	key prefix fe80000000000000 1 1+2
	key grh required optional required+optional
	key pkeys ffff 7fff:8001 8001:ffff ffff:8001:8002 0001:ffff 8001
	key gids ll.v1:ll.v2:ip4.v1:ip4.v2 ll.v1:ll.v2:gap:alt4.v1:ip4.v2 gap:gap:ip6.v2 ip4.v1:ip4.v2!:gap:ip6.v2 \
		ll.v2 ip4.v2+ip6.v2:ip4.v2 alt4.v2:gap:gap:gap:ip4.v2:ip6.v2
	pick "" "" "" ,reach=0/soft0:1-1/soft0:1 ,reach=1/soft0:1-3/soft0:1+2/soft0:1-3/soft0:1
	case $spec in
	hcas=1,ports=1,*) ;;			# nothing is left to take its place, for a minute
	*) spec=$spec$picked ;;
	esac
}

# ---- Cells -----------------------------------------------------------------------

# key_of REASON: the key of the personality that a refusal is due to.  Nothing else ends a program.
key_of() {
	case $1 in
	*'the device has none of type UD'*) echo ud ;;
	*'pieces of a request needed'*) echo maxsge ;;
	*' requests needed, the device has'*) echo maxwr ;;
	*'entries of 64 bytes'*) echo cqmem ;;
	*'entries needed, the device has'*) echo maxcqe ;;
	*queue\ pairs*) echo qps ;;
	*'MTU of 512 bytes'*) echo mtu ;;
	*'no partition key in common'*) echo pkeys ;;
	*' is of RoCE'* | *' is of InfiniBand'*) echo link ;;
	*'is on another subnet'*) echo prefix ;;
	*'has no GID of its kind'* | *'no GIDs by which'* | *'no address handle can be made'*) echo gids ;;
	*'nothing passes between'* | *'does not answer over'* | *'no answer over'*) echo reach ;;
	esac
}

# judge PROGRAM: $said of the last launch, and why
judge() {
	reason= key=
	if [ "$rc" -eq 0 ] && [ "$1" = conformance -o "$(grep -c 'in place of libibverbs' "$out")" -gt 0 ]; then
		said=ok
		return
	fi
	reason=$(cat "$err" "$out" | grep -E '^[a-z_]*: ' | grep -v ': warning: ' |
		grep -E 'no rail in common|cannot make a|needed, the device has|MTU of|no answer over' | tail -n 1)
	key=$(key_of "$reason")
	case $rc:$key:,$of in
	[34]:?*:*,$key=* | [34]:?*:*,like=*) said=refused ;;
	*) said="FAIL($rc)" reason=$(cat "$err" "$out" | grep -E '^(rg_|FAIL|launch)|^softhca: ' | tail -n 1) ;;
	esac
}

# The refusal names a key of $of: without it there is none, or it names another one.  Each key once.
proven() {
	case $said:" $proven " in
	refused:*" $key "*) return 0 ;;
	refused:*) ;;
	*) return 0 ;;
	esac
	proven="$proven $key" blamed=$key refusal=$reason whole=$of
	of=$(echo "$of" | sed "s/,$key=[^,]*//g")
	case $blamed in
	ud) of=$of,ud=yes ;;
	gids) of=$(echo "$of" | sed 's/,link=[^,]*//g; s/,like=[^,]*//g') ;;
	esac
	on "$of" "$@"
	judge "$2"
	expect "$whole: due to $blamed, not: $said $reason" [ "${said%(*}" != FAIL -a "$key" != "$blamed" ]
	of=$whole said=refused reason=$refusal
}

cell() {
	[ -z "$reason" ] || reasons=$(printf '%s\n        %s' "$reasons" "$reason")
	row=$row$(printf ' %-12s' "$said")
	expect "$of: $1" [ "${said%(*}" != FAIL ]
}

program() {
	ranks=$1
	shift
	on "$of" "$ranks" "$@"
	judge "$1"
	proven "$ranks" "$@"
	cell "$1"
}

# The conformance list takes the first ports of like hosts and as many queue pairs as a case wants: paths between hosts,
# and how much an adapter has in all, are not its concern.
alike() {
	echo "$1" | sed 's/,\(gids\|reach\|pkeys\|prefix\|lid\|qps\|maxcqe\|cqmem\)=[^,]*//g; s/,link=[^,]*\/[^,]*//
		s/,\(maxsge\|maxwr\|srq\|srqwr\|rdatom\|rdinit\|inline\)=\([^,/]*\)\/[^,]*/,\1=\2/g; s/,grh=\([^,/]*\)\/[^,]*/,grh=\1/; s/,like=\([^,/]*\)\/[^,]*/,like=\1/'
}

personality() {
	of=$1 row= reasons= proven=
	conforms "$(alike "$of")" --share 8
	judge conformance
	cell conformance
	program 2 ./pt2pt/rg_latency --validate --over stripe --sizes 64:1K $short
	program 2 ./pt2pt/rg_bw --validate --over stripe --sizes 32K:256K --window 8 $short
	program 4 ./collective/rg_alltoall --validate --over stripe --sizes 1K:16K --time-cap 20ms --iterations 50 --warmup 5
	RANKS_PER_HOST=2
	export RANKS_PER_HOST
	program 4 ./apps/rg_is --over stripe --class S
	unset RANKS_PER_HOST
	program 2 ./pt2pt/rg_verbs_lat --op write --validate --sizes 64 $short
	row="$row  $of$(echo "$reasons" | uniq)"
	echo "$row"
	table=$(printf '%s\n%s' "$table" "$row")
}

table=$(printf ' %-12s %-12s %-12s %-12s %-12s %-12s  %s' conformance rg_latency rg_bw alltoall IS verbs personality)
if [ -n "${ADAPTERS_SPECS-}" ]; then
	for spec in $ADAPTERS_SPECS; do
		personality "$spec"
	done
else
	for spec in $sets; do
		personality "$spec"
	done
	for n in $(seq "$draws"); do
		draw "$n"
		personality "$spec"
	done
fi
echo "seed ${RG_SEED:-1}"
echo "$table"
finish
