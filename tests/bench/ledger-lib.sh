# ledger-lib.sh - sourced after run-lib.sh: values of the ledger in a record.

# rows FILE WAY: of each row, "bytes runs" and of each rail "tx rx retries state"
rows() {
	sed -n "/\"type\":\"row\",\"way\":\"$2\"/{
		s/.*\"bytes\":\([0-9]*\),.*\"runs\":\([0-9]*\),\"ledger\":\[\(.*\)\].*/\1 \2 \3/
		s/{[^}]*\"tx_bytes\":\([0-9]*\),[^}]*\"rx_bytes\":\([0-9]*\),[^}]*\"retries\":\([0-9a-z]*\),[^}]*\"state\":\"\([A-Z]*\)\"}/ \1 \2 \3 \4/g
		s/,  */ /g
		p
	}" "$1"
}

# sum FILE WAY WINDOW EACH REST: in every row, the bytes sent over all rails are runs x
# (WINDOW x size x EACH + REST), and as many were received.
sum() {
	rows "$1" "$2" | awk -v w="$3" -v each="$4" -v rest="$5" '
		{ tx = rx = 0; for (i = 3; i < NF; i += 4) { tx += $i; rx += $(i + 1) }
		  if (NF < 6 || tx != $2 * (w * $1 * each + rest) || rx != tx) { print; bad = 1 } }
		END { exit bad || !NR }' >>"$err"
}

# share FILE WAY RAIL: percent of the bytes of the last row
share() {
	rows "$1" "$2" | tail -n 1 | awk -v r="$3" \
		'{ for (i = 3; i < NF; i += 4) all += $i; printf "%.3f", 100 * $(3 + 4 * (r - 1)) / all }'
}
