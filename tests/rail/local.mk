# ---- tests/rail, tests/verbs, librail on the virtual clock ------------------------------
# Processes on the software HCA, without MPI.
check_LTLIBRARIES += tests/rail/libjob.la
# A program that shares sources with a library has flags of its own, and so objects of its own.
tests_rail_libjob_la_CPPFLAGS = $(AM_CPPFLAGS)
tests_rail_libjob_la_SOURCES = tests/rail/job.c tests/rail/job.h tests/rail/traffic.c \
	tests/rail/traffic.h tests/capture.c
tests_rail_libjob_la_LIBADD = librail-core.la
check_PROGRAMS += tests/rail/rail_perf
tests_rail_rail_perf_LDADD = tests/rail/libjob.la
if HAVE_CMOCKA
check_PROGRAMS += tests/verbs/test_real tests/verbs/test_absent tests/verbs/test_counters tests/rail/test_ledger tests/rail/test_shared_limit
TESTS += tests/verbs/test_counters tests/rail/test_ledger tests/rail/test_shared_limit
check_PROGRAMS += tests/rail/test_stripe tests/rail/test_ring tests/rail/test_mr \
	tests/rail/test_traffic tests/rail/test_offers tests/rail/test_peer tests/rail/test_demand \
	tests/rail/test_peer_failure tests/rail/test_peer_rules tests/rail/test_refused
TESTS += tests/rail/test_stripe tests/rail/test_ring tests/rail/test_mr \
	tests/rail/test_traffic tests/rail/test_offers tests/rail/test_peer tests/rail/test_demand \
	tests/rail/test_peer_failure tests/rail/test_peer_rules tests/rail/test_refused
check_PROGRAMS += tests/rail/test_rings tests/rail/test_plan
TESTS += tests/rail/test_rings tests/rail/test_plan
check_PROGRAMS += tests/rail/test_policy tests/rail/test_map_choice tests/rail/test_late tests/rail/test_rate_estimate tests/rail/test_scheme tests/rail/test_first tests/rail/test_crossing tests/rail/test_eager_choice tests/rail/test_eager_crossing tests/rail/test_cancel tests/rail/test_net
TESTS += tests/rail/test_policy tests/rail/test_map_choice tests/rail/test_late tests/rail/test_rate_estimate tests/rail/test_scheme tests/rail/test_first tests/rail/test_crossing tests/rail/test_eager_choice tests/rail/test_eager_crossing tests/rail/test_cancel tests/rail/test_net
check_PROGRAMS += tests/rail/test_port_choice tests/rail/test_port_loss tests/verbs/test_sysfs
TESTS += tests/rail/test_port_choice tests/rail/test_port_loss tests/verbs/test_sysfs
endif
tests_verbs_test_sysfs_CPPFLAGS = $(AM_CPPFLAGS)
tests_verbs_test_sysfs_SOURCES = tests/verbs/test_sysfs.c src/verbs/sysfs.c
tests_verbs_test_sysfs_LDADD = $(CMOCKA_LIBS)
made_hosts = tests/rail/made_hosts.c tests/rail/made_hosts.h
tests_rail_test_port_choice_SOURCES = tests/rail/test_port_choice.c $(made_hosts)
tests_rail_test_port_choice_LDADD = tests/rail/libjob.la $(CMOCKA_LIBS)
tests_rail_test_port_loss_SOURCES = tests/rail/test_port_loss.c $(made_hosts)
tests_rail_test_port_loss_LDADD = tests/rail/libjob.la $(CMOCKA_LIBS)
# On a clock of their own, all processes of a job in one.
if HAVE_CMOCKA
VIRTUAL_UNITS = tests/virtual/test_rails tests/virtual/test_lost tests/virtual/test_atomic \
	tests/virtual/test_clock tests/virtual/test_link tests/virtual/test_link_states
check_PROGRAMS += $(VIRTUAL_UNITS)
TESTS += $(VIRTUAL_UNITS)
endif
tests_virtual_test_clock_SOURCES = tests/virtual/test_clock.c $(virtual_sources)
tests_virtual_test_clock_LDADD = $(SOFTHCA_TEST_LDADD)
one_qp = tests/softhca/one_qp.c tests/softhca/one_qp.h $(fake_link) $(virtual_sources)
tests_virtual_test_link_SOURCES = tests/softhca/test_link.c $(one_qp)
tests_virtual_test_link_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests/virtual
tests_virtual_test_link_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=hca_route
tests_virtual_test_link_LDADD = $(SOFTHCA_TEST_LDADD)
tests_virtual_test_link_states_SOURCES = tests/softhca/test_link_states.c $(one_qp)
tests_virtual_test_link_states_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests/virtual
tests_virtual_test_link_states_LDADD = $(SOFTHCA_TEST_LDADD)
tests_virtual_test_atomic_SOURCES = tests/softhca/test_atomic.c $(virtual_sources)
tests_virtual_test_atomic_CPPFLAGS = $(AM_CPPFLAGS) -DVIRTUAL_CLOCK
tests_virtual_test_atomic_LDADD = $(SOFTHCA_TEST_LDADD)
tests_virtual_test_rails_SOURCES = tests/virtual/test_rails.c tests/virtual/seats.c \
	$(virtual_sources)
tests_virtual_test_lost_SOURCES = tests/virtual/test_lost.c tests/virtual/seats.c \
	$(virtual_sources)
tests_virtual_test_lost_LDADD = tests/rail/libjob.la $(CMOCKA_LIBS)
tests_virtual_test_rails_LDADD = tests/rail/libjob.la $(CMOCKA_LIBS)
tests_rail_test_late_CPPFLAGS = $(AM_CPPFLAGS)
tests_rail_test_late_SOURCES = tests/rail/test_late.c src/rail/message/late.c
tests_rail_test_late_LDADD = librg-util.la $(CMOCKA_LIBS)
tests_rail_test_map_choice_CPPFLAGS = $(AM_CPPFLAGS)
tests_rail_test_map_choice_SOURCES = tests/rail/test_map_choice.c src/rail/memory/map_choice.c src/rail/message/scheme.c src/rail/message/scheme_expect.c src/rail/message/scheme_look.c src/rail/message/scheme_race.c
tests_rail_test_map_choice_LDADD = $(CMOCKA_LIBS)
tests_rail_test_scheme_CPPFLAGS = $(AM_CPPFLAGS)
tests_rail_test_scheme_SOURCES = tests/rail/test_scheme.c tests/rail/scheme_machines.h src/rail/message/scheme.c src/rail/message/scheme_expect.c src/rail/message/scheme_look.c src/rail/message/scheme_race.c
tests_rail_test_scheme_LDADD = $(CMOCKA_LIBS)
tests_rail_test_first_CPPFLAGS = $(AM_CPPFLAGS)
tests_rail_test_first_SOURCES = tests/rail/test_first.c tests/rail/scheme_machines.h src/rail/message/scheme.c src/rail/message/scheme_expect.c src/rail/message/scheme_look.c src/rail/message/scheme_race.c
tests_rail_test_first_LDADD = $(CMOCKA_LIBS)
tests_rail_test_crossing_CPPFLAGS = $(AM_CPPFLAGS)
tests_rail_test_crossing_SOURCES = tests/rail/test_crossing.c tests/rail/crossing_machines.h src/rail/message/scheme.c src/rail/message/scheme_expect.c src/rail/message/scheme_look.c src/rail/message/scheme_race.c
tests_rail_test_crossing_LDADD = $(CMOCKA_LIBS) -lm
tests_rail_test_eager_choice_CPPFLAGS = $(AM_CPPFLAGS)
tests_rail_test_eager_choice_SOURCES = tests/rail/test_eager_choice.c tests/rail/eager_machines.h src/rail/message/eager_choice.c
tests_rail_test_eager_choice_LDADD = $(CMOCKA_LIBS)
tests_rail_test_eager_crossing_CPPFLAGS = $(AM_CPPFLAGS)
tests_rail_test_eager_crossing_SOURCES = tests/rail/test_eager_crossing.c tests/rail/eager_machines.h src/rail/message/eager_choice.c
tests_rail_test_eager_crossing_LDADD = $(CMOCKA_LIBS)
tests_rail_test_rate_estimate_CPPFLAGS = $(AM_CPPFLAGS)
tests_rail_test_rate_estimate_SOURCES = tests/rail/test_rate_estimate.c src/rail/message/rate_estimate.c
tests_rail_test_rate_estimate_LDADD = $(CMOCKA_LIBS) -lm
tests_rail_test_net_LDADD = tests/rail/libjob.la $(CMOCKA_LIBS)
tests_rail_test_net_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=softhca_query_model
tests_rail_test_policy_LDADD = tests/rail/libjob.la $(CMOCKA_LIBS)
tests_rail_test_cancel_LDADD = tests/rail/libjob.la $(CMOCKA_LIBS)
tests_verbs_test_real_LDADD = tests/rail/libjob.la $(CMOCKA_LIBS)
tests_verbs_test_absent_LDADD = tests/rail/libjob.la $(CMOCKA_LIBS)
dist_check_SCRIPTS += tests/verbs/real.sh
TESTS += tests/verbs/real.sh
tests_verbs_test_counters_CPPFLAGS = $(AM_CPPFLAGS)
tests_verbs_test_counters_SOURCES = tests/verbs/test_counters.c src/verbs/counters.c
tests_verbs_test_counters_LDADD = $(CMOCKA_LIBS)
tests_rail_test_shared_limit_LDADD = tests/rail/libjob.la $(CMOCKA_LIBS)
tests_rail_test_ledger_LDADD = tests/rail/libjob.la $(CMOCKA_LIBS)
tests_rail_test_stripe_CPPFLAGS = $(AM_CPPFLAGS)
tests_rail_test_stripe_SOURCES = tests/rail/test_stripe.c src/rail/policy.c src/rail/message/stripe.c
tests_rail_test_stripe_LDADD = $(CMOCKA_LIBS)
tests_rail_test_ring_CPPFLAGS = $(AM_CPPFLAGS)
tests_rail_test_ring_SOURCES = tests/rail/test_ring.c src/rail/message/table.c
tests_rail_test_ring_LDADD = $(CMOCKA_LIBS)
tests_rail_test_mr_CPPFLAGS = $(AM_CPPFLAGS)
tests_rail_test_mr_SOURCES = tests/rail/test_mr.c tests/capture.c src/rail/memory/mr.c
tests_rail_test_mr_LDADD = librg-memwatch.la librg-util.la $(CMOCKA_LIBS)
tests_rail_test_rings_LDADD = tests/rail/libjob.la $(CMOCKA_LIBS)
tests_rail_test_plan_LDADD = tests/rail/libjob.la $(CMOCKA_LIBS)
tests_rail_test_offers_LDADD = tests/rail/libjob.la $(CMOCKA_LIBS)
tests_rail_test_traffic_LDADD = tests/rail/libjob.la $(CMOCKA_LIBS)
if HAVE_CMOCKA
check_PROGRAMS += tests/rail/members
endif
EXTRA_DIST += tests/rail/tsan.sh
CLEANFILES += tests/rail/tsan.log tests/rail/tsan.trs
tests_rail_members_CPPFLAGS = $(AM_CPPFLAGS)
tests_rail_members_SOURCES = tests/rail/test_traffic.c tests/rail/members.c tests/softhca/one_address.c
tests_rail_members_LDFLAGS = $(AM_LDFLAGS) $(ONE_ADDRESS)
tests_rail_members_LDADD = tests/rail/libjob.la $(CMOCKA_LIBS) -lpthread
tests_rail_test_peer_LDADD = tests/rail/libjob.la $(CMOCKA_LIBS)
tests_rail_test_demand_LDADD = tests/rail/libjob.la $(CMOCKA_LIBS)
tests_rail_test_peer_failure_LDADD = tests/rail/libjob.la $(CMOCKA_LIBS)
tests_rail_test_peer_rules_LDADD = tests/rail/libjob.la $(CMOCKA_LIBS)
tests_rail_test_refused_LDADD = tests/rail/libjob.la $(CMOCKA_LIBS)
dist_check_SCRIPTS += tests/rail/test_exports
TESTS += tests/rail/test_exports
check_PROGRAMS += tests/fuzz/fuzz_costs
TESTS += tests/fuzz/fuzz_costs
tests_fuzz_fuzz_costs_SOURCES = tests/fuzz/fuzz_costs.c tests/fuzz/driver.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_costs_LDADD = librail-core.la
