#!/bin/sh
# tune.sh - rg_tune writes tables that --coll @FILE takes and obeys; what both refuse.
. "$srcdir/tests/run-lib.sh"
top=$PWD table=$work/table

tuned() {
	launch "$@" --collectives bcast,alltoall,alltoallv,allreduce -m 1K:64K -i 4 -x 1 --out "$table"
}
has_rules() {
	[ "$(grep -c " $1 0 [a-z-]*$" "$table")" -eq 4 ] &&
		[ "$(grep -cv '^#\|^cost\|^cell' "$table")" -eq "$(grep -c "^[a-z]* $1 [0-9.]*[KMG]* [a-z-]*$" "$table")" ]
}

for np in 2 3; do
	tuned $np collective/rg_tune --over stripe
	expect "rg_tune on $np ranks ends well" [ $rc -eq 0 ]
	expect "it names its fabric" grep -q '^# fabric: software HCA' "$out"
	expect "it has a row for each size" [ "$(grep -c '^alltoall ' "$out")" -eq 7 ]
	expect "its file names fabric, ranks, way" sh -c \
		"grep -q '^# fabric: software HCA' '$table' && grep -q '^# $np ranks .* over stripe' '$table'"
	expect "it ends each collective with a rule for all other sizes" has_rules $np
	RAILGAUGE_COLL=@$table SUITE_ROUNDS=15
	export RAILGAUGE_COLL SUITE_ROUNDS
	launch $np tests/mpi/coll_suite stripe
	expect "coll_suite passes with it" grep -q 'cases passed$' "$out"
	unset RAILGAUGE_COLL SUITE_ROUNDS
done
launch 2 collective/rg_alltoall --over stripe -c -m 1K:64K -i 4 --coll "@$table,bcast=chain"
expect "a benchmark takes it" [ $rc -eq 0 ]

# What a table says is done: rg_tune marks what is used without it being asked for.
marks() {
	echo "$1" >"$work/rule"
	launch 2 collective/rg_tune -m 1K -i 4 --collectives alltoall --coll "@$work/rule$3"
	expect "$1$3: $2" grep -q "^alltoall .* $2\* " "$out"
}
marks 'alltoall 0 0 bruck' bruck
marks 'alltoall 0 512 bruck' pairwise
marks 'bcast 0 0 chain' pairwise
marks 'alltoall 2 1K linear' linear

# Damage, and no file at all: one line of rank 0's.
damaged() {
	printf '%s\n' "$1" >"$work/bad"
	refused collective/rg_bcast 2 "--coll @$work/bad: line $2" --coll "@$work/bad" -m 8
}
damaged 'bcast 0 0 bruck' "1: no bcast 'bruck' (accepted: binomial"
damaged 'bcast 0 0' '1: too few words (accepted: COLLECTIVE RANKS BYTES ALGORITHM)'
refused collective/rg_bcast 2 'cannot be read: No such file' --coll "@$work/none" -m 8
refused collective/rg_bcast 2 'is no regular file' --coll "@$work" -m 8
refused collective/rg_bcast 2 '--coll @: @ without a name (accepted: @FILE)' --coll @ -m 8
RAILGAUGE_COLL=@$work/bad
export RAILGAUGE_COLL
launch 2 tests/mpi/coll_suite stripe
judge_refusal coll_suite 3 3 'line 1: too few words' "a program that is linked"
unset RAILGAUGE_COLL

# Each rank in a directory of its own: the same name, another file.
cat >"$work/apart" <<'END'
#!/bin/sh
rank=${OMPI_COMM_WORLD_RANK-${PMI_RANK-${PMIX_RANK-0}}}
cd "$(dirname "$0")/$rank" && exec "$@"
END
chmod +x "$work/apart"
mkdir "$work/0" "$work/1"
echo 'bcast 0 0 chain' >"$work/0/table"
echo 'bcast 0 0 chain # the same' >"$work/1/table"
launch 2 "$work/apart" "$top/collective/rg_bcast" -m 8 -i 4 --coll @table
expect "files that say the same" [ $rc -eq 0 ]
echo 'bcast 0 64K chain' >"$work/1/table"
launch 2 "$work/apart" "$top/collective/rg_bcast" -m 8 -i 4 --coll @table
judge_refusal rg_bcast 3 3 '--coll .*contents of @FILE.*: rank 1 has another value than rank 0' \
	"files that differ"
rm "$work/1/table"
launch 2 "$work/apart" "$top/collective/rg_bcast" -m 8 -i 4 --coll @table
judge_refusal rg_bcast 3 3 'rank 1: --coll @table: cannot be read' "a file on rank 0 only"

# Where no table can be written, nothing is measured; nothing is left beside one.
refused collective/rg_tune 2 'cannot be written: No such file' --out "$work/none/table" -m 8
refused collective/rg_tune 2 'the file exists and is no regular file' --out /dev/full -m 8
refused collective/rg_tune 2 '--over native,single: makes no table (accepted: one way' --over native,single
expect "nothing is left beside tables" [ -z "$(find "$work" -name '*.new.*')" ]
expect "nothing in /dev/shm" shm_is_clean
finish
