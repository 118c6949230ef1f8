# ---- adapters of other personalities, without one: make check-adapters -------------------------
EXTRA_DIST += tests/adapters/adapters.sh tests/adapters/as.sh tests/adapters/tree.sh tests/adapters/mpirun.sh $(adapters_jobs:=.sh)
adapters_jobs = tests/adapters/sets tests/adapters/keys tests/adapters/ports tests/adapters/events tests/adapters/order tests/adapters/absent \
	tests/adapters/hw tests/adapters/programs tests/adapters/topo tests/adapters/table
check_PROGRAMS += tests/adapters/ring
tests_adapters_ring_LDADD = $(MPI_LIBS)
tests_adapters_ring_LDFLAGS = $(mpi_program_ldflags) -no-install
check_PROGRAMS += tests/adapters/late
tests_adapters_late_LDADD = librail.la $(MPI_LIBS)
tests_adapters_late_LDFLAGS = $(mpi_program_ldflags) -no-install
check_LTLIBRARIES += tests/adapters/spy.la
tests_adapters_spy_la_SOURCES = tests/adapters/spy.c
tests_adapters_spy_la_LIBADD = libsofthca.la
tests_adapters_spy_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -rpath /nowhere
CLEANFILES += tests/adapters/*.log tests/adapters/*.trs
check-adapters: all
	$(AM_V_at)$(MAKE) $(AM_MAKEFLAGS) $(check_PROGRAMS)
	$(AM_V_at)$(AM_TESTS_ENVIRONMENT) $(SHELL) $(srcdir)/tests/run-jobs.sh "$(ADAPTERS_ONLY)" $(adapters_jobs)
.PHONY: check-adapters
