# calls.awk - from calls.txt: what the MPI library carries by itself, as C.
# A group of functions of which the ledger tells has a name: native [name]: reason.
BEGIN { print "/* From calls.txt, by calls.awk. */\nstatic const char *const calls_not_ours[] = {" }
/^native \[/ {
	sub(/^native \[/, "")
	sub(/\]:.*/, "")
	print "\t\"" $0 "\","
}
END { print "\t0,\n};" }
