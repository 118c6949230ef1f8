#!/bin/sh
# order.sh - eager messages take the ring where the adapter promises order in RTS, to itself, and no
# other way elsewhere.  Data are validated.
. "$srcdir/tests/adapters/adapters.sh"

# polls SPEC N: so many of the two rails of rank 0's record are polled
polls() {
	on "$1" 2 ./pt2pt/rg_latency --validate --over stripe --sizes 1:64K --time-cap 20ms \
		--iterations 100 --warmup 10 --json "$work/order.json"
	row "$1" rg_latency
	expect "$1" passes
	expect "$1: by the adapter" grep -q 'in place of libibverbs, .* 2 rails' "$out"
	got=$(grep -o '"polls_memory": *true' "$work/order.json" | wc -l)
	expect "$1: $2 rails are polled, not $got" [ "$got" -eq "$2" ]
	rm -f "$work/order.json"
}

case $(uname -m) in
x86_64 | i?86) asked=2 ;;
*) asked=0 ;;				# libibverbs answers on x86 alone
esac
polls like=mlx5-ib $asked
polls like=mlx5-roce $asked
polls like=mlx5-vf $asked
polls order=rts,link=ib,lid=0,grh=required $asked
polls order=never 0
polls like=mlx4 0
polls place=late 0
# One end polls, the other sends; and a sender that cannot write a slot in one piece.
polls order=rts/never $asked
polls order=never/rts 0
polls order=rts,inline=64/0 $asked
polls order=rts,place=order/late $asked

# sees SPEC WORDS: how rg_verbs_lat finds a write
sees() {
	on "$1" 2 ./pt2pt/rg_verbs_lat --op write --validate --sizes 64 --iterations 200 --warmup 10
	row "$1" rg_verbs_lat
	expect "$1" passes
	expect "$1: $2" grep -q "$2, inline up to" "$out"
}
never='seen in the completion queue, since an adapter does not promise .* lands last'
[ $asked -eq 0 ] || sees order=rts 'seen in memory'
sees order=never "$never"
sees order=rts/never "$never"
sees place=late "$never"
on order=never 2 ./pt2pt/rg_verbs_lat --op write --arrival memory --sizes 64
expect "memory is refused" refuses '^rg_verbs_lat: --arrival memory: an adapter .* (accepted: auto, cq, event)$'
expect "... once" [ "$(grep -c '^rg_verbs_lat: ' "$err")" -eq 1 ]
finish
