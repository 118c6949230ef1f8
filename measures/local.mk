# ---- measures: make bench ------------------------------------------------------------------
# Control programs: the same sources, without the layer between them and the MPI library.
bench_programs = measures/rg_latency_bare measures/rg_bw_bare measures/reg_speed \
	measures/buffers measures/copies measures/first measures/patterns measures/waits measures/rg_latency_truth \
	measures/rg_bw_truth measures/rg_bibw_truth
# Built with the tests, so that what no longer builds is noticed.
check_PROGRAMS += $(bench_programs)
measures_copies_LDADD = librg-util.la
measures_reg_speed_LDADD = libsofthca-core.la librg-util.la
CLEANFILES += $(EXTRA_PROGRAMS)
measures_rg_latency_bare_SOURCES = pt2pt/rg_latency.c measures/bare.c
measures_rg_latency_bare_LDADD = librg-bench.la $(MPI_LIBS)
measures_rg_bw_bare_SOURCES = pt2pt/rg_bw.c measures/bare.c
measures_rg_bw_bare_LDADD = librg-bench.la $(MPI_LIBS)
# A stranger to the layer; -no-install: a program, not a script around one.
measures_buffers_LDADD = $(MPI_LIBS) -lpthread
measures_buffers_LDFLAGS = $(mpi_program_ldflags) -no-install
measures_first_LDADD = $(MPI_LIBS)
measures_first_LDFLAGS = $(mpi_program_ldflags) -no-install
measures_patterns_LDADD = $(MPI_LIBS)
measures_patterns_LDFLAGS = $(mpi_program_ldflags) -no-install
measures_waits_LDADD = $(MPI_LIBS)
measures_waits_LDFLAGS = $(mpi_program_ldflags) -no-install
# A benchmark and a plain loop in one process.
truth_sources = measures/truth.c measures/bare.c
truth_ldflags = $(AM_LDFLAGS) -Wl,--wrap=measure_size
measures_rg_latency_truth_SOURCES = pt2pt/rg_latency.c $(truth_sources)
measures_rg_latency_truth_LDADD = librg-bench.la $(MPI_LIBS)
measures_rg_latency_truth_LDFLAGS = $(truth_ldflags)
measures_rg_bw_truth_SOURCES = pt2pt/rg_bw.c $(truth_sources)
measures_rg_bw_truth_LDADD = librg-bench.la $(MPI_LIBS)
measures_rg_bw_truth_LDFLAGS = $(truth_ldflags)
measures_rg_bibw_truth_SOURCES = pt2pt/rg_bibw.c $(truth_sources)
measures_rg_bibw_truth_LDADD = librg-bench.la $(MPI_LIBS)
measures_rg_bibw_truth_LDFLAGS = $(truth_ldflags)
EXTRA_DIST += measures/run.sh measures/collectives.sh measures/schemes.sh measures/waits.sh \
	measures/times.sh measures/patterns.sh
bench: all $(bench_programs) tests/softhca/paced$(EXEEXT) tests/cli/mpi_plain$(EXEEXT)
	@$(MKDIR_P) tests
	@$(AM_TESTS_ENVIRONMENT) $(SHELL) $(srcdir)/measures/run.sh
.PHONY: bench

# The kernel's Soft-RoCE on shaped links, in a virtual cluster.
EXTRA_DIST += measures/cluster.sh measures/rails.sh measures/wan.sh measures/instructions.sh
bench-cluster: all measures/buffers
	@$(AM_TESTS_ENVIRONMENT) $(SHELL) $(srcdir)/measures/cluster.sh
bench-wan: all
	@$(MKDIR_P) tests
	@$(AM_TESTS_ENVIRONMENT) $(SHELL) $(srcdir)/measures/wan.sh
bench-instructions: all measures/pairs measures/pairs_rails
	@$(MKDIR_P) tests
	@$(AM_TESTS_ENVIRONMENT) $(SHELL) $(srcdir)/measures/instructions.sh
.PHONY: bench-cluster bench-wan bench-instructions
# -no-install: a program, not a script around one.
EXTRA_PROGRAMS += measures/pairs measures/pairs_rails
measures_pairs_LDADD = $(MPI_LIBS)
measures_pairs_rails_SOURCES = measures/pairs.c
measures_pairs_rails_LDADD = $(RAILMPI_LIB) $(MPI_LIBS)
measures_pairs_rails_LDFLAGS = $(mpi_program_ldflags) -no-install

# The software HCA over TCP beside what others have over TCP, between hosts as namespaces.
net_programs = measures/net/stream measures/net/mixed measures/net/ranks
EXTRA_DIST += measures/net/run.sh measures/net/lib.sh measures/net/single.sh measures/net/rails.sh \
	measures/net/verbs.sh measures/net/ranks.sh
check_PROGRAMS += $(net_programs)
measures_net_mixed_LDADD = libsofthca-core.la librg-util.la
measures_net_ranks_LDADD = $(MPI_LIBS)
measures_net_ranks_LDFLAGS = $(mpi_program_ldflags) -no-install
bench-net: all $(net_programs)
	@$(MKDIR_P) tests
	@$(AM_TESTS_ENVIRONMENT) $(SHELL) $(srcdir)/measures/net/run.sh
.PHONY: bench-net
