#!/bin/sh
# make check-threads: librail's processes as members of one process (members.c), built with a thread
# sanitizer in tsan/: records in rings, payloads, credit, landings, as the HCA writes them.
. "$srcdir/tests/tsan-lib.sh"
build tests/rail/members
SOFTHCA_EXPOSE=1
export SOFTHCA_EXPOSE
if [ -n "${RG_LONG-}" ]; then
	check tests/rail/members
	SOFTHCA_COPY=bounce check tests/rail/members
else
	for case in test_edges_2_rails test_flood_small test_flood_eager test_trailing_marks \
		test_flood_slices test_accept_last_first; do
		check tests/rail/members $case
	done
fi
exit $failed
