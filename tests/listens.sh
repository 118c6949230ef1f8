# listens.sh - sourced by scripts that start a server for clients which do not retry.

# listens PORT PID: wait until that process does, 60 s at most
listens() {
	for i in $(seq 1200); do
		kill -0 "$2" 2>/dev/null || return 1
		! grep -q "$(printf ':%04X 0*:0000 0A' "$1")" /proc/net/tcp /proc/net/tcp6 \
			2>/dev/null || return 0
		sleep 0.05
	done
	return 1
}
