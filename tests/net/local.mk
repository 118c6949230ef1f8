# ---- the software HCA over TCP, on hosts as namespaces: make check-net -----------------------
EXTRA_DIST += tests/net/hosts.sh tests/net/between.sh tests/net/mpirun.sh $(net_jobs:=.sh)
net_jobs = tests/net/hello tests/net/input tests/net/found tests/net/nodes tests/net/lost tests/net/faults tests/net/verbs \
	tests/net/matrix tests/net/suites tests/net/each
check_PROGRAMS += tests/net/hello tests/net/reach tests/net/tap
tests_net_hello_LDADD = $(MPI_LIBS)
tests_net_hello_LDFLAGS = $(mpi_program_ldflags) -no-install
check_PROGRAMS += tests/net/end
tests_net_end_LDADD = $(SOFTHCA_KIT)
CLEANFILES += tests/net/*.log tests/net/*.trs
check-net: all
	$(AM_V_at)$(MAKE) $(AM_MAKEFLAGS) $(check_PROGRAMS)
	$(AM_V_at)$(AM_TESTS_ENVIRONMENT) $(SHELL) $(srcdir)/tests/run-jobs.sh "$(NET_ONLY)" $(net_jobs)
.PHONY: check-net
