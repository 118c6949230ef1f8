# ---- tests ------------------------------------------------------------------------------
AM_TESTS_ENVIRONMENT = srcdir='$(srcdir)'; MPIRUN='$(MPIRUN)'; \
	RG_MPI_FLAVOR='$(RG_MPI_FLAVOR)'; RG_SANITIZE='$(RG_SANITIZE)'; \
	CC='$(CC)'; MPIFC='$(MPIFC)'; export srcdir MPIRUN RG_MPI_FLAVOR RG_SANITIZE CC MPIFC;
noinst_HEADERS += tests/page.h tests/random.h tests/virtual/counted.h
EXTRA_DIST += tests/chroot.sh tests/chroots.sh tests/run-lib.sh tests/listens.sh tests/results.sh tests/clang.sh tests/coverage.sh tests/house.sh tests/comments.awk tests/split.awk tests/names.txt tests/rooms.txt tests/cycles.txt tests/run-jobs.sh tests/tsan-lib.sh tests/timed.sh \
	tests/bench/die.sh tests/bench/ledger-lib.sh tests/cli/bibtex.awk tests/cli/known_records.sh tests/cli/reframe.py
LOG_COMPILER = $(SHELL) $(top_srcdir)/tests/timed.sh
CLEANFILES += tests/symbols.found tests/cycles.found tests/cycles.known
CLEANFILES += tests/.mpi-lock tests/.mpi-lock-2 tests/softhca/matrix.log tests/softhca/matrix.trs \
	tests/softhca/stacks.log tests/softhca/stacks.trs tests/softhca/tsan.log \
	tests/softhca/tsan.trs

bench_test_scripts = tests/layers.sh tests/words.sh tests/guides.sh tests/install.sh tests/launch.sh tests/bench/bad-input.sh \
	tests/bench/collectives.sh tests/bench/each.sh \
	tests/bench/ledger.sh tests/bench/noise.sh tests/bench/numbers.sh tests/bench/accept.sh tests/bench/pairs.sh tests/bench/programs.sh \
	tests/bench/rails.sh tests/bench/timing.sh tests/bench/validation.sh tests/bench/verbs.sh \
	tests/cli/cite.sh tests/cli/compare.sh tests/cli/exec.sh tests/cli/figures.sh tests/cli/launchers.sh tests/cli/liveness.sh tests/cli/report.sh tests/cli/reproduce.sh tests/cli/sbatch.sh tests/cli/run.sh \
	tests/cli/check.sh tests/cli/reframe.sh tests/report/records.sh tests/topo/nodes.sh
mpi_test_scripts = tests/memory/memory.sh tests/mpi/assumptions.sh tests/mpi/suites.sh tests/mpi/random.sh \
	tests/mpi/collectives.sh tests/mpi/confined.sh tests/mpi/everybody.sh tests/mpi/costs.sh tests/mpi/tune.sh tests/mpi/calls.sh \
	tests/mpi/fortran.sh tests/mpi/ledger.sh tests/mpi/loading.sh tests/mpi/lost.sh tests/mpi/mapping.sh \
	tests/mpi/memcheck.sh tests/mpi/no_memory.sh
EXTRA_DIST += tests/mpi/fortran.F90 tests/stats/pilot.txt
dist_check_SCRIPTS += $(bench_test_scripts) $(mpi_test_scripts)
TESTS += $(bench_test_scripts) $(mpi_test_scripts)
# LISTS_DRAWN=yes (.ci/run): of the long ones each with one MPI library at a change, by RG_SEED, and with
# the other at another change; tests that check-mpi lacks at every second change.
in_turn_0 = tests/mpi/suites.sh tests/mpi/random.sh tests/mpi/collectives.sh tests/mpi/everybody.sh tests/mpi/assumptions.sh \
	tests/bench/verbs.sh
in_turn_1 = tests/mpi/mapping.sh tests/mpi/fortran.sh tests/mpi/memcheck.sh tests/mpi/ledger.sh \
	tests/bench/pairs.sh tests/rail/test_peer_rules
turn_openmpi = $(shell expr $${RG_SEED:-1} % 2)
turn_mpich = $(shell expr $${RG_SEED:-1} % 2 = 0)
not_in_turn = $(if $(filter yes,$(LISTS_DRAWN)),$(filter-out $(in_turn_$(turn_$(RG_MPI_FLAVOR))),$(in_turn_0) $(in_turn_1)))
check-drawn:
	$(MAKE) $(AM_MAKEFLAGS) check TESTS="$(filter-out $(not_in_turn),$(TESTS))"
# What depends on the MPI library: for a second one.  `make check` has the rest.
check-mpi:
	$(MAKE) $(AM_MAKEFLAGS) check TESTS="$(filter-out tests/mpi/costs.sh tests/mpi/tune.sh $(not_in_turn),$(mpi_test_scripts)) \
		tests/cli/exec.sh tests/cli/launchers.sh tests/cli/sbatch.sh tests/cli/liveness.sh tests/bench/each.sh tests/topo/nodes.sh" \
		check_PROGRAMS="$(mpi_suites) $(memory_programs) tests/mpi/assumptions tests/softhca/confine \
		tests/cli/mpi_plain tests/cli/send_then_wait tests/bench/rg_broken measures/waits"
# What sanitizers may find: not again what programs print and refuse; and no memory can be watched
# beside them, so none is mapped.  `make check` has the rest.
unsanitized = tests/stats/test_pilot tests/virtual/test_rails tests/virtual/conformance.sh tests/virtual/paced \
	tests/virtual/stops $(filter-out tests/bench/each.sh tests/cli/cite.sh tests/cli/compare.sh tests/cli/figures.sh tests/cli/report.sh,$(bench_test_scripts)) \
	tests/apps/apps.sh tests/mpi/assumptions.sh tests/mpi/confined.sh tests/mpi/everybody.sh tests/mpi/fortran.sh \
	tests/mpi/loading.sh tests/mpi/mapping.sh tests/mpi/memcheck.sh tests/mpi/costs.sh tests/mpi/tune.sh
# SANITIZE_DRAWN=yes (.ci/run): of these lists one, by RG_SEED.
sanitized_in_turn_0 = tests/mpi/suites.sh tests/mpi/random.sh tests/mpi/lost.sh tests/virtual/test_lost
sanitized_in_turn_1 = tests/mpi/collectives.sh tests/mpi/calls.sh tests/accept/test_accept
sanitized_in_turn_2 = tests/mpi/ledger.sh tests/memory/memory.sh tests/rail/test_peer_rules \
	tests/stats/test_shift tests/fuzz/fuzz_result
drawn = $(sanitized_in_turn_$(shell expr $${RG_SEED:-1} % 3))
not_drawn = $(if $(filter yes,$(SANITIZE_DRAWN)),$(filter-out $(drawn),$(sanitized_in_turn_0) \
	$(sanitized_in_turn_1) $(sanitized_in_turn_2)))
check-sanitize:
	$(MAKE) $(AM_MAKEFLAGS) check TESTS="$(filter-out $(unsanitized) $(not_drawn),$(TESTS))"
.PHONY: check-drawn check-mpi check-sanitize
coverage:
	@$(AM_TESTS_ENVIRONMENT) $(SHELL) $(srcdir)/tests/coverage.sh
house:
	@$(AM_TESTS_ENVIRONMENT) $(SHELL) $(srcdir)/tests/house.sh "$(abs_builddir)"
# clang's warnings are errors, at the flags of this build; -W: every source has a compile to tell.
check-clang: $(BUILT_SOURCES) config.h
	@$(MAKE) -n V=1 CC=clang: CFLAGS= $(addprefix -W $(srcdir)/,$(filter %.c,$(SOURCES))) \
		$(PROGRAMS) $(LTLIBRARIES) $(check_PROGRAMS) $(check_LTLIBRARIES) $(EXTRA_PROGRAMS) | \
		srcdir='$(srcdir)' $(SHELL) $(srcdir)/tests/clang.sh \
		$(DEFS) $(DEFAULT_INCLUDES) $(AM_CPPFLAGS) $(CPPFLAGS) $(AM_CFLAGS)
.PHONY: coverage house check-clang

# Scripts that launch MPI programs take turns (run-lib.sh): one at a time, of Open MPI two; more would
# only wait.  So `make -j check` has as many lanes for them, in which each begins when the one before
# it has ended, and for all else as many as there are processors; -jN of two more than those keeps all
# lanes busy.
# in_lanes LOGS,N WORDS: each behind the one N places before it.
in_lanes = $(foreach pair,$(join $(addsuffix :|,$(wordlist $(words x $(2)),999,$(1))),$(wordlist 1, \
	$(words $(wordlist $(words x $(2)),999,$(1))),$(1))),$(eval $(subst :|,: | ,$(pair))))
launching = $(addsuffix .log,tests/apps/apps.sh $(mpi_test_scripts) \
	$(filter-out tests/layers.sh tests/words.sh tests/guides.sh tests/install.sh tests/launch.sh tests/cli/cite.sh tests/cli/compare.sh tests/cli/figures.sh tests/cli/sbatch.sh,$(bench_test_scripts)))
lanes: $(call in_lanes,$(filter $(launching),$(TEST_LOGS)),$(if $(filter openmpi,$(RG_MPI_FLAVOR)),x x,x)) \
	$(call in_lanes,$(filter-out $(launching),$(TEST_LOGS)),$(shell seq `nproc`))
.PHONY: lanes
check_PROGRAMS += tests/bench/rg_away tests/bench/rg_broken tests/bench/rg_clockwork tests/bench/rg_clockwork_rate \
	tests/bench/rg_counted tests/bench/rg_example tests/bench/rg_limp tests/bench/rg_shifted \
	tests/bench/rg_together tests/bench/rg_verbs_known_bibw \
	tests/bench/rg_verbs_known_bw tests/bench/rg_verbs_known_host \
	tests/bench/rg_verbs_known_hotspot tests/bench/rg_verbs_known_lat \
	tests/bench/rg_verbs_known_notify tests/bench/rg_verbs_known_overhead tests/cli/mpi_plain \
	tests/cli/send_then_wait
tests_cli_mpi_plain_LDADD = $(MPI_LIBS)
tests_cli_send_then_wait_LDADD = $(MPI_LIBS)
# Programs of known times: known_clock.h.
KNOWN_CLOCK = tests/bench/known_clock.c tests/bench/known_clock.h tests/bench/clock_waits.c
tests_bench_rg_shifted_SOURCES = tests/bench/rg_shifted.c tests/bench/clock_waits.c
tests_bench_rg_clockwork_SOURCES = tests/bench/rg_clockwork.c $(KNOWN_CLOCK)
tests_bench_rg_clockwork_rate_SOURCES = $(tests_bench_rg_clockwork_SOURCES)
tests_bench_rg_clockwork_rate_CPPFLAGS = $(AM_CPPFLAGS) -DCLOCKWORK_RATE
tests_bench_rg_verbs_known_bibw_SOURCES = tests/bench/rg_verbs_known.c $(KNOWN_CLOCK)
tests_bench_rg_verbs_known_bibw_CPPFLAGS = $(AM_CPPFLAGS) -DRG_PROGRAM='"pt2pt/rg_verbs_bibw.c"' \
	-I$(top_srcdir)
tests_bench_rg_verbs_known_bw_SOURCES = $(tests_bench_rg_verbs_known_bibw_SOURCES)
tests_bench_rg_verbs_known_bw_CPPFLAGS = $(AM_CPPFLAGS) -DRG_PROGRAM='"pt2pt/rg_verbs_bw.c"' \
	-I$(top_srcdir)
tests_bench_rg_verbs_known_host_SOURCES = tests/bench/rg_verbs_known_host.c $(KNOWN_CLOCK)
tests_bench_rg_verbs_known_host_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)
tests_bench_rg_verbs_known_host_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=vbench_post \
	-Wl,--wrap=vbench_arrive -Wl,--wrap=vbench_complete -Wl,--wrap=vb_compute
tests_bench_rg_verbs_known_hotspot_SOURCES = $(tests_bench_rg_verbs_known_bibw_SOURCES)
tests_bench_rg_verbs_known_hotspot_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir) \
	-DRG_PROGRAM='"pt2pt/rg_verbs_hotspot.c"'
tests_bench_rg_verbs_known_lat_SOURCES = $(tests_bench_rg_verbs_known_bibw_SOURCES)
tests_bench_rg_verbs_known_lat_CPPFLAGS = $(AM_CPPFLAGS) -DRG_PROGRAM='"pt2pt/rg_verbs_lat.c"' \
	-I$(top_srcdir)
tests_bench_rg_verbs_known_notify_SOURCES = $(tests_bench_rg_verbs_known_bibw_SOURCES)
tests_bench_rg_verbs_known_notify_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir) \
	-DRG_PROGRAM='"pt2pt/rg_verbs_notify.c"'
tests_bench_rg_verbs_known_overhead_SOURCES = tests/bench/rg_verbs_known_overhead.c $(KNOWN_CLOCK)
tests_bench_rg_verbs_known_overhead_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)
tests_bench_rg_verbs_known_overhead_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=vbench_run \
	-Wl,--wrap=vbench_finish
tests_bench_rg_limp_SOURCES = tests/bench/rg_limp.c $(KNOWN_CLOCK)
tests_bench_rg_together_SOURCES = tests/bench/rg_together.c $(KNOWN_CLOCK)
tests_apps_rg_dud_SOURCES = tests/apps/rg_dud.c $(KNOWN_CLOCK)
check_LTLIBRARIES += tests/bench/late_error.la
tests_bench_late_error_la_SOURCES = tests/bench/late_error.c
# -rpath: else no shared library is made of what is not installed.
tests_bench_late_error_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -rpath /nowhere
if HAVE_CMOCKA
check_PROGRAMS += tests/mpi/test_coll tests/mpi/test_coll_kept tests/mpi/test_coll_learn tests/mpi/test_early tests/mpi/test_match tests/mpi/test_places tests/mpi/test_domains
TESTS += tests/mpi/test_coll tests/mpi/test_coll_kept tests/mpi/test_coll_learn tests/mpi/test_early tests/mpi/test_match tests/mpi/test_places tests/mpi/test_domains
tests_mpi_test_domains_CPPFLAGS = $(AM_CPPFLAGS)
tests_mpi_test_domains_SOURCES = tests/mpi/test_domains.c src/mpi/job/domains.c
tests_mpi_test_domains_LDADD = $(CMOCKA_LIBS)
tests_mpi_test_places_CPPFLAGS = $(AM_CPPFLAGS)
tests_mpi_test_places_SOURCES = tests/mpi/test_places.c src/mpi/job/places.c tests/capture.c
tests_mpi_test_places_LDADD = librg-util.la $(CMOCKA_LIBS)
check_PROGRAMS += tests/mpi/test_wait
TESTS += tests/mpi/test_wait
tests_mpi_test_wait_CPPFLAGS = $(AM_CPPFLAGS)
tests_mpi_test_wait_SOURCES = tests/mpi/test_wait.c src/mpi/job/library.c src/mpi/job/progress.c src/mpi/job/start_coll.c
tests_mpi_test_wait_LDADD = librg-util.la $(MPI_LIBS) $(CMOCKA_LIBS)
# The layer finds the functions of the library by name.
tests_mpi_test_wait_LDFLAGS = $(AM_LDFLAGS) -export-dynamic
check_PROGRAMS += tests/mpi/test_rail_choice
TESTS += tests/mpi/test_rail_choice
tests_mpi_test_rail_choice_CPPFLAGS = $(AM_CPPFLAGS)
tests_mpi_test_rail_choice_SOURCES = tests/mpi/test_rail_choice.c src/mpi/job/rail_choice.c \
	src/mpi/job/rail_choice_text.c
tests_mpi_test_rail_choice_LDADD = libsofthca-core.la librg-util.la $(CMOCKA_LIBS)
tests_mpi_test_match_CPPFLAGS = $(AM_CPPFLAGS)
tests_mpi_test_match_SOURCES = tests/mpi/test_match.c src/mpi/p2p/match_order.c
tests_mpi_test_match_LDADD = $(CMOCKA_LIBS)
check_PROGRAMS += tests/bench/test_bound tests/bench/test_clocks tests/bench/test_noise tests/bench/test_pattern
TESTS += tests/bench/test_bound tests/bench/test_clocks tests/bench/test_noise tests/bench/test_pattern
endif
tests_mpi_test_coll_learn_CPPFLAGS = $(AM_CPPFLAGS)
tests_mpi_test_coll_learn_SOURCES = tests/mpi/test_coll_learn.c src/mpi/coll/coll_learn.c
tests_mpi_test_coll_learn_LDADD = librg-railmpi-rows.la $(CMOCKA_LIBS)
tests_mpi_test_coll_kept_CPPFLAGS = $(AM_CPPFLAGS)
tests_mpi_test_coll_kept_SOURCES = tests/mpi/test_coll_kept.c src/mpi/coll/coll_kept.c src/mpi/coll/coll_learn.c
tests_mpi_test_coll_kept_LDADD = librg-railmpi-rows.la $(CMOCKA_LIBS)
tests_mpi_test_coll_SOURCES = tests/mpi/test_coll.c
tests_mpi_test_coll_LDADD = librg-railmpi-rows.la $(CMOCKA_LIBS)
tests_mpi_test_early_LDADD = $(RAILMPI_LIB) $(MPI_LIBS) $(CMOCKA_LIBS)
tests_mpi_test_early_LDFLAGS = $(mpi_program_ldflags)
# A program that shares sources with a library has flags of its own, and so objects of its own.
tests_bench_test_pattern_CPPFLAGS = $(AM_CPPFLAGS)
tests_bench_test_pattern_SOURCES = tests/bench/test_pattern.c src/bench/pattern.c
tests_bench_test_pattern_LDADD = $(CMOCKA_LIBS)
tests_bench_test_noise_CPPFLAGS = $(AM_CPPFLAGS)
tests_bench_test_noise_SOURCES = tests/bench/test_noise.c src/bench/noise_read.c src/bench/cores.c
tests_bench_test_noise_LDADD = $(CMOCKA_LIBS)
tests_bench_test_bound_CPPFLAGS = $(AM_CPPFLAGS)
tests_bench_test_bound_SOURCES = tests/bench/test_bound.c src/bench/bound.c
tests_bench_test_bound_LDADD = $(CMOCKA_LIBS) -lm
tests_bench_test_clocks_CPPFLAGS = $(AM_CPPFLAGS)
tests_bench_test_clocks_SOURCES = tests/bench/test_clocks.c src/bench/clocks.c \
	src/bench/roundtime.c src/util/clock.c
tests_bench_test_clocks_LDADD = $(CMOCKA_LIBS)
