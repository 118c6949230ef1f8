# ---- the software HCA over TCP, on hosts as namespaces: make check-net -----------------------
EXTRA_DIST += tests/net/hosts.sh tests/net/between.sh tests/net/mpirun.sh $(net_jobs:=.sh)
net_jobs = tests/net/hello tests/net/input tests/net/handover tests/net/found tests/net/probes tests/net/secret tests/net/idle tests/net/nodes tests/net/lost tests/net/faults tests/net/verbs \
	tests/net/matrix tests/net/suites tests/net/each
check_PROGRAMS += tests/net/hello tests/net/reach tests/net/tap
tests_net_hello_LDADD = $(MPI_LIBS)
tests_net_hello_LDFLAGS = $(mpi_program_ldflags) -no-install
check_LTLIBRARIES += tests/net/connects.la tests/net/drawn.la
tests_net_connects_la_SOURCES = tests/net/connects.c
tests_net_connects_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -rpath /nowhere
tests_net_drawn_la_SOURCES = tests/net/drawn.c
tests_net_drawn_la_LDFLAGS = $(tests_net_connects_la_LDFLAGS)
check_PROGRAMS += tests/net/end
tests_net_end_LDADD = $(SOFTHCA_KIT)
CLEANFILES += tests/net/*.log tests/net/*.trs
check-net: all
	$(AM_V_at)$(MAKE) $(AM_MAKEFLAGS) $(check_PROGRAMS) $(check_LTLIBRARIES)
	$(AM_V_at)$(AM_TESTS_ENVIRONMENT) $(SHELL) $(srcdir)/tests/run-jobs.sh "$(NET_ONLY)" $(net_jobs)
.PHONY: check-net
