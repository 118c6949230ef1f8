# ---- tests/softhca, tests/conformance, tests/virtual, tests/fuzz, tests/pyverbs ---------
# What the tests share; a program of one file needs a line for its libraries alone.
check_LTLIBRARIES += tests/softhca/libkit.la
tests_softhca_libkit_la_SOURCES = tests/conformance/side.c tests/softhca/kit.c tests/softhca/kit.h \
	tests/softhca/timed.c tests/softhca/timed.h
SOFTHCA_KIT = tests/softhca/libkit.la libsofthca-core.la librg-util.la
# The same list of cases on any verbs device (real ones through dlopen).
check_PROGRAMS += tests/conformance/conformance
conformance_sources = tests/conformance/conformance.h \
	tests/conformance/main.c tests/conformance/known.c tests/conformance/known.h \
	tests/conformance/machines.c tests/conformance/machines.h \
	tests/conformance/data.c tests/conformance/queues.c \
	tests/conformance/errors.c \
	tests/conformance/states.c \
	tests/conformance/uc.c \
	tests/conformance/srq.c \
	tests/conformance/ud.c tests/conformance/ud.h \
	tests/conformance/group.c \
	tests/conformance/atomic.c \
	tests/conformance/wr.c \
	tests/conformance/attributes.c \
	tests/conformance/flush.c \
	tests/conformance/limits.c \
	tests/conformance/causes.c \
	tests/conformance/events.c tests/conformance/channels.c tests/conformance/cq.c \
	tests/conformance/retries.c \
	tests/conformance/memory.c
tests_conformance_conformance_SOURCES = $(conformance_sources)
tests_conformance_conformance_LDADD = $(SOFTHCA_KIT) $(POPT_LIBS)
# The same list, with both sides as members of one process: for the thread sanitizer (tsan.sh).
check_PROGRAMS += tests/softhca/members
ONE_ADDRESS = -Wl,--wrap=hca_segment_map,--wrap=hca_segment_view,--wrap=hca_segment_create_own,--wrap=munmap
tests_softhca_members_SOURCES = $(conformance_sources) tests/softhca/members.c tests/softhca/one_address.c
tests_softhca_members_LDADD = $(SOFTHCA_KIT) $(POPT_LIBS) -lpthread
tests_softhca_members_LDFLAGS = $(AM_LDFLAGS) $(ONE_ADDRESS) -Wl,--wrap=hca_join,--wrap=exit
EXTRA_DIST += tests/softhca/conformance.sh tests/softhca/bad_input.sh tests/softhca/perftest.sh \
	tests/softhca/pair-lib.sh tests/softhca/matrix.sh tests/softhca/matrix-list.sh tests/softhca/stacks.sh \
	tests/conformance/rxe.txt
TESTS += tests/softhca/bad_input.sh tests/softhca/perftest.sh
check_PROGRAMS += tests/softhca/confine
check_PROGRAMS += tests/softhca/hold
tests_softhca_hold_LDADD = libsofthca-core.la librg-util.la
check_PROGRAMS += tests/softhca/kill
tests_softhca_kill_SOURCES = tests/softhca/kill.c tests/softhca/kill.h tests/softhca/member.c \
	tests/softhca/member.h tests/softhca/tell.c tests/softhca/traffic.c
tests_softhca_kill_LDADD = $(SOFTHCA_KIT)
check_PROGRAMS += tests/softhca/sleepers
tests_softhca_sleepers_LDADD = $(SOFTHCA_KIT)
TESTS += tests/softhca/sleepers
check_PROGRAMS += tests/softhca/withdraw
tests_softhca_withdraw_LDADD = $(SOFTHCA_KIT)
TESTS += tests/softhca/withdraw
check_PROGRAMS += tests/softhca/hostile
tests_softhca_hostile_SOURCES = tests/softhca/hostile.c tests/softhca/hostile.h \
	tests/softhca/attacker.c
tests_softhca_hostile_LDADD = $(SOFTHCA_KIT)
check_PROGRAMS += tests/softhca/windows
tests_softhca_windows_LDADD = $(SOFTHCA_KIT)
TESTS += tests/softhca/windows
check_PROGRAMS += tests/softhca/scribble
tests_softhca_scribble_LDADD = $(SOFTHCA_KIT)
TESTS += tests/softhca/scribble
check_PROGRAMS += tests/softhca/paced
tests_softhca_paced_LDADD = $(SOFTHCA_KIT)
# The same on a clock of their own, both sides in one process: clock.c before librg-util.la's.
virtual_sources = tests/virtual/clock.c tests/virtual/virtual.h
virtual_sides = $(virtual_sources) tests/virtual/sides.c
VIRTUAL = tests/virtual/paced tests/virtual/turns tests/virtual/faults tests/virtual/deferred \
	tests/virtual/stops tests/virtual/served
check_PROGRAMS += tests/virtual/conformance
check_PROGRAMS += $(VIRTUAL)
TESTS += $(VIRTUAL)
tests_virtual_paced_SOURCES = tests/softhca/paced.c $(virtual_sides)
tests_virtual_paced_CPPFLAGS = $(AM_CPPFLAGS) -DVIRTUAL_CLOCK
tests_virtual_paced_LDADD = $(SOFTHCA_KIT)
tests_virtual_turns_SOURCES = tests/softhca/turns.c $(virtual_sides)
tests_virtual_turns_LDADD = $(SOFTHCA_KIT)
tests_virtual_faults_SOURCES = tests/softhca/faults.c $(virtual_sides)
tests_virtual_faults_LDADD = $(SOFTHCA_KIT)
fake_link = tests/softhca/fake_link.c tests/softhca/fake_link.h
tests_virtual_served_SOURCES = tests/softhca/served.c $(fake_link) $(virtual_sides)
tests_virtual_served_CPPFLAGS = $(AM_CPPFLAGS) -DVIRTUAL_CLOCK
tests_virtual_served_LDADD = $(SOFTHCA_KIT)
tests_virtual_deferred_SOURCES = tests/virtual/deferred.c $(virtual_sides)
tests_virtual_deferred_LDADD = $(SOFTHCA_KIT)
tests_virtual_stops_SOURCES = tests/virtual/stops.c tests/virtual/stops.h tests/virtual/stops_at.c \
	tests/virtual/stops_place.c $(virtual_sides)
tests_virtual_stops_LDADD = $(SOFTHCA_KIT)
tests_virtual_conformance_SOURCES = $(conformance_sources) tests/virtual/conformance.c \
	$(virtual_sides)
tests_virtual_conformance_LDADD = $(SOFTHCA_KIT) $(POPT_LIBS)
EXTRA_DIST += tests/virtual/aside.txt
dist_check_SCRIPTS += tests/virtual/conformance.sh
TESTS += tests/virtual/conformance.sh
check_PROGRAMS += tests/softhca/served
tests_softhca_served_SOURCES = tests/softhca/served.c $(fake_link)
tests_softhca_served_LDADD = $(SOFTHCA_KIT) -lpthread
TESTS += tests/softhca/served
check_PROGRAMS += tests/softhca/turns
tests_softhca_turns_LDADD = $(SOFTHCA_KIT)
check_PROGRAMS += tests/softhca/faults
tests_softhca_faults_LDADD = $(SOFTHCA_KIT)
check_PROGRAMS += tests/softhca/bounce
tests_softhca_bounce_LDADD = $(SOFTHCA_KIT)
check_PROGRAMS += tests/softhca/fork
tests_softhca_fork_LDADD = $(SOFTHCA_KIT)
check_PROGRAMS += tests/softhca/scale
tests_softhca_scale_LDADD = $(SOFTHCA_KIT)
TESTS += tests/softhca/fork tests/softhca/scale
check_PROGRAMS += tests/softhca/lifecycle
tests_softhca_lifecycle_LDADD = $(SOFTHCA_KIT) -lpthread
check_PROGRAMS += tests/softhca/gone
tests_softhca_gone_LDADD = $(SOFTHCA_KIT)
TESTS += tests/softhca/lifecycle tests/softhca/gone
check_PROGRAMS += tests/softhca/step
tests_softhca_step_LDADD = $(SOFTHCA_KIT)
check_PROGRAMS += tests/softhca/cut
tests_softhca_cut_SOURCES = tests/softhca/cut.c tests/softhca/cut.h tests/softhca/cut_place.c
tests_softhca_cut_LDADD = $(SOFTHCA_KIT)
TESTS += tests/softhca/cut
check_PROGRAMS += tests/softhca/threads
tests_softhca_threads_LDADD = $(SOFTHCA_KIT) -lpthread
EXTRA_DIST += tests/softhca/user.sh tests/softhca/long.sh tests/softhca/tsan.sh
TESTS += tests/softhca/user.sh
EXTRA_DIST += tests/softhca/confined.sh
TESTS += tests/softhca/confined.sh
TESTS += tests/softhca/kill tests/softhca/step tests/softhca/hostile tests/softhca/threads \
	tests/softhca/bounce

# Two copies of the library in a process; a real libibverbs beside it (a fake one).
check_PROGRAMS += tests/softhca/two_copies tests/softhca/forward
tests_softhca_two_copies_LDADD = $(SOFTHCA_KIT)
tests_softhca_forward_LDADD = $(SOFTHCA_KIT)
check_LTLIBRARIES += fake_verbs.la
fake_verbs_la_SOURCES = tests/softhca/fake_verbs.c
fake_verbs_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -rpath /nowhere
check_PROGRAMS += tests/softhca/dropin
tests_softhca_dropin_LDADD = -ldl
EXTRA_DIST += tests/softhca/abi.sh
TESTS += tests/softhca/two_copies tests/softhca/abi.sh

# Fuzz targets: `make check` runs them on mutated seeds, `make fuzz` builds them with clang's libFuzzer, to be run by
# hand; `make fuzz-sanitized` builds those of what arrives from a network for long runs without it.
SOFTHCA_FUZZ = tests/fuzz/fuzz_spec tests/fuzz/fuzz_registry tests/fuzz/fuzz_segment \
	tests/fuzz/fuzz_frame tests/fuzz/fuzz_handshake tests/fuzz/fuzz_handover tests/fuzz/fuzz_wire
check_PROGRAMS += $(SOFTHCA_FUZZ)
TESTS += $(SOFTHCA_FUZZ)
tests_fuzz_fuzz_spec_SOURCES = tests/fuzz/fuzz_spec.c tests/fuzz/driver.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_spec_LDADD = libsofthca-core.la librg-util.la
tests_fuzz_fuzz_registry_SOURCES = tests/fuzz/fuzz_registry.c tests/fuzz/driver.c \
	tests/fuzz/fuzz.h
tests_fuzz_fuzz_registry_LDADD = libsofthca-core.la librg-util.la
tests_fuzz_fuzz_segment_SOURCES = tests/fuzz/fuzz_segment.c tests/fuzz/driver.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_segment_LDADD = libsofthca-core.la librg-util.la
tests_fuzz_fuzz_frame_SOURCES = tests/fuzz/fuzz_frame.c tests/fuzz/driver.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_frame_LDADD = libsofthca-core.la librg-util.la
tests_fuzz_fuzz_handshake_SOURCES = tests/fuzz/fuzz_handshake.c tests/fuzz/driver.c \
	tests/fuzz/fuzz.h
tests_fuzz_fuzz_handshake_LDADD = libsofthca-core.la librg-util.la
tests_fuzz_fuzz_handover_SOURCES = tests/fuzz/fuzz_handover.c tests/softhca/giver.h tests/fuzz/driver.c \
	tests/fuzz/fuzz.h
tests_fuzz_fuzz_handover_LDADD = libsofthca-core.la librg-util.la $(SODIUM_LIBS)
tests_fuzz_fuzz_wire_SOURCES = tests/fuzz/fuzz_wire.c tests/fuzz/driver.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_wire_LDADD = libsofthca-core.la librg-util.la
FUZZ_CC = clang -g -O1 $(FUZZ_FLAGS)
FUZZ_FLAGS = -fno-sanitize-recover=all -std=gnu11 -D_GNU_SOURCE -I. $(AM_CPPFLAGS) $(SODIUM_CFLAGS)
fuzzed = $(filter %.c,$(libsofthca_core_la_SOURCES) $(librg_memwatch_la_SOURCES)) src/util/clock.c src/util/copy.c \
	src/util/copy_choice.c src/util/text.c src/util/units.c
fuzz: config.h
	@rm -rf fuzz.o && $(MKDIR_P) fuzz.o
	@for f in $(fuzzed); do \
		$(FUZZ_CC) -fsanitize=fuzzer-no-link,address,undefined -c $(srcdir)/$$f \
			-o fuzz.o/`echo $$f | tr / _`.o || exit 1; \
	done
	@for t in $(SOFTHCA_FUZZ); do \
		$(FUZZ_CC) -fsanitize=fuzzer,address,undefined $(srcdir)/$$t.c \
			$(srcdir)/tests/fuzz/libfuzzer.c fuzz.o/*.o \
			-lpthread -ldl $(SODIUM_LIBS) -o `basename $$t`.libfuzzer || exit 1; \
	done
CLEANFILES += fuzz_spec.libfuzzer fuzz_registry.libfuzzer fuzz_segment.libfuzzer \
	fuzz_frame.libfuzzer fuzz_handshake.libfuzzer fuzz_handover.libfuzzer fuzz_wire.libfuzzer
EXTRA_DIST += tests/fuzz/libfuzzer.c
SANITIZED_CC = $(CC) -g -O2 -fsanitize=address,undefined $(FUZZ_FLAGS)
fuzz-sanitized: config.h
	@rm -rf fuzz.s && $(MKDIR_P) fuzz.s
	@for f in $(fuzzed) tests/fuzz/driver.c; do \
		$(SANITIZED_CC) -c $(srcdir)/$$f -o fuzz.s/`echo $$f | tr / _`.o || exit 1; \
	done
	@for t in $(fuzz_of_networks); do \
		$(SANITIZED_CC) $(srcdir)/tests/fuzz/$$t.c fuzz.s/*.o -lpthread -ldl $(SODIUM_LIBS) \
			-o $$t.sanitized || exit 1; \
	done
fuzz_of_networks = fuzz_frame fuzz_handshake fuzz_handover fuzz_wire
CLEANFILES += $(fuzz_of_networks:=.sanitized)
# What takes long, and what needs a build of its own; the whole of what CI takes a part of.
check-long: all
	@$(MAKE) $(AM_MAKEFLAGS) $(check_PROGRAMS) $(memory_modules) tests/memory/lifecycle_module.la
	@test -n "$$LONG_SECONDS" || RG_LONG=1 $(MAKE) $(AM_MAKEFLAGS) check
	@test -n "$$LONG_SECONDS" || RG_LONG=1 $(MAKE) $(AM_MAKEFLAGS) check-verbs
	@test -n "$$LONG_SECONDS" || RG_LONG=1 $(MAKE) $(AM_MAKEFLAGS) check-adapters
	@test -n "$$LONG_SECONDS" || RG_LONG=1 $(MAKE) $(AM_MAKEFLAGS) check-net
	@test -n "$$LONG_SECONDS" || test -z "$$RG_MPICH_BUILD" || RG_LONG=1 $(MAKE) -C "$$RG_MPICH_BUILD" check-net
	@test -n "$$LONG_SECONDS" || RG_LONG=1 $(MAKE) $(AM_MAKEFLAGS) check-cluster
	@test -n "$$LONG_SECONDS" || RG_LONG=1 $(MAKE) $(AM_MAKEFLAGS) check-arm
	@test -n "$$LONG_SECONDS" || RG_LONG=1 $(MAKE) $(AM_MAKEFLAGS) check-threads
	@test -n "$$LONG_SECONDS" || $(MAKE) $(AM_MAKEFLAGS) check-clang
	@$(AM_TESTS_ENVIRONMENT) $(SHELL) $(srcdir)/tests/softhca/long.sh
	@$(AM_TESTS_ENVIRONMENT) $(SHELL) $(srcdir)/tests/apps/long.sh
	@$(AM_TESTS_ENVIRONMENT) $(SHELL) $(srcdir)/tests/mpi/long.sh
	@$(AM_TESTS_ENVIRONMENT) test -n "$$LONG_SECONDS" || $(SHELL) $(srcdir)/tests/apps/packages.sh || \
		test $$? -eq 77
	@$(AM_TESTS_ENVIRONMENT) $(SHELL) $(srcdir)/tests/memory/long.sh
	@test -n "$$LONG_SECONDS" || $(SHELL) $(srcdir)/tests/chroots.sh trixie:mpich bookworm:openmpi || \
		test $$? -eq 77
EXTRA_DIST += tests/apps/long.sh tests/mpi/long.sh tests/apps/packages.sh
check-threads:
	@$(AM_TESTS_ENVIRONMENT) $(SHELL) $(srcdir)/tests/run-jobs.sh "$(THREADS_ONLY)" tests/softhca/tsan tests/rail/tsan tests/mpi/tsan
.PHONY: fuzz fuzz-sanitized check-long check-threads
if HAVE_CMOCKA
SOFTHCA_UNITS = tests/softhca/test_spec tests/softhca/test_model tests/softhca/test_mailbox \
	tests/softhca/test_memory tests/softhca/test_remap tests/softhca/test_remap_fork \
	tests/softhca/test_fabric tests/softhca/test_loopback tests/softhca/test_personality tests/softhca/test_atomic \
	tests/softhca/test_shared tests/softhca/test_mr_table tests/softhca/test_descriptors \
	tests/softhca/test_fidelity tests/softhca/test_responder tests/softhca/test_landing \
	tests/softhca/test_frame tests/softhca/test_stream tests/softhca/test_handshake tests/softhca/test_secret \
	tests/softhca/test_meet tests/softhca/test_meet_hostile tests/softhca/test_meet_net tests/softhca/test_handover tests/softhca/test_handover_hostile \
	tests/softhca/test_net tests/softhca/test_netif tests/softhca/test_wire \
	tests/softhca/test_wire_requester tests/softhca/test_wire_bounds tests/softhca/test_wire_breaches \
	tests/softhca/test_wire_lives tests/softhca/test_wire_more tests/softhca/test_wire_turns \
	tests/softhca/test_wire_withdrawn tests/softhca/test_wire_refusals tests/softhca/test_wire_datagrams
SOFTHCA_UNITS += tests/softhca/test_netif_list tests/softhca/test_probe tests/softhca/test_kern tests/softhca/test_like
check_PROGRAMS += $(SOFTHCA_UNITS)
TESTS += $(SOFTHCA_UNITS)
endif
SOFTHCA_TEST_LDADD = libsofthca-core.la librg-util.la $(CMOCKA_LIBS)
tests_softhca_test_spec_LDADD = $(SOFTHCA_TEST_LDADD)
tests_softhca_test_frame_LDADD = $(SOFTHCA_TEST_LDADD)
tests_softhca_test_stream_LDADD = $(SOFTHCA_TEST_LDADD)
tests_softhca_test_stream_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=sendmsg -Wl,--wrap=recvmsg
tests_softhca_test_handshake_LDADD = $(SOFTHCA_TEST_LDADD)
tests_softhca_test_secret_LDADD = $(SOFTHCA_TEST_LDADD)
WIRE_KIT = tests/softhca/wire_end.c tests/softhca/wire_end.h tests/softhca/meet_end.c \
	tests/softhca/meet_end.h tests/capture.c tests/capture.h
tests_softhca_test_meet_SOURCES = tests/softhca/test_meet.c tests/softhca/meet_end.c \
	tests/softhca/meet_end.h
tests_softhca_test_meet_LDADD = $(SOFTHCA_TEST_LDADD)
tests_softhca_test_meet_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=rg_now_ns
tests_softhca_test_meet_hostile_SOURCES = tests/softhca/test_meet_hostile.c \
	tests/softhca/meet_end.c tests/softhca/meet_end.h
tests_softhca_test_meet_hostile_LDADD = $(SOFTHCA_TEST_LDADD)
tests_softhca_test_meet_hostile_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=rg_now_ns
HANDOVER_KIT = tests/softhca/handover_end.c tests/softhca/handover_end.h tests/softhca/giver.h tests/softhca/meet_end.c \
	tests/softhca/meet_end.h
tests_softhca_test_handover_SOURCES = tests/softhca/test_handover.c $(HANDOVER_KIT)
tests_softhca_test_handover_LDADD = $(SOFTHCA_TEST_LDADD)
tests_softhca_test_handover_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=rg_now_ns
tests_softhca_test_handover_hostile_SOURCES = tests/softhca/test_handover_hostile.c $(HANDOVER_KIT)
tests_softhca_test_handover_hostile_LDADD = $(SOFTHCA_TEST_LDADD)
tests_softhca_test_handover_hostile_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=rg_now_ns
tests_softhca_test_wire_SOURCES = tests/softhca/test_wire.c $(WIRE_KIT)
tests_softhca_test_wire_LDADD = $(SOFTHCA_TEST_LDADD)
tests_softhca_test_wire_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=rg_now_ns
tests_softhca_test_wire_requester_SOURCES = tests/softhca/test_wire_requester.c $(WIRE_KIT)
tests_softhca_test_wire_requester_LDADD = $(SOFTHCA_TEST_LDADD)
tests_softhca_test_wire_requester_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=rg_now_ns
tests_softhca_test_wire_breaches_SOURCES = tests/softhca/test_wire_breaches.c $(WIRE_KIT)
tests_softhca_test_wire_breaches_LDADD = $(SOFTHCA_TEST_LDADD)
tests_softhca_test_wire_breaches_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=rg_now_ns
tests_softhca_test_wire_bounds_SOURCES = tests/softhca/test_wire_bounds.c $(WIRE_KIT)
tests_softhca_test_wire_bounds_LDADD = $(SOFTHCA_TEST_LDADD)
tests_softhca_test_wire_bounds_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=rg_now_ns
tests_softhca_test_wire_lives_SOURCES = tests/softhca/test_wire_lives.c $(WIRE_KIT)
tests_softhca_test_wire_lives_LDADD = $(SOFTHCA_TEST_LDADD)
tests_softhca_test_wire_lives_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=rg_now_ns -Wl,--wrap=connect
tests_softhca_test_wire_turns_SOURCES = tests/softhca/test_wire_turns.c $(WIRE_KIT)
tests_softhca_test_wire_turns_LDADD = $(SOFTHCA_TEST_LDADD)
tests_softhca_test_wire_turns_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=rg_now_ns
tests_softhca_test_wire_refusals_SOURCES = tests/softhca/test_wire_refusals.c $(WIRE_KIT)
tests_softhca_test_wire_refusals_LDADD = $(SOFTHCA_TEST_LDADD)
tests_softhca_test_wire_refusals_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=rg_now_ns
tests_softhca_test_wire_withdrawn_SOURCES = tests/softhca/test_wire_withdrawn.c $(WIRE_KIT)
tests_softhca_test_wire_withdrawn_LDADD = $(SOFTHCA_TEST_LDADD)
tests_softhca_test_wire_withdrawn_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=rg_now_ns
tests_softhca_test_wire_datagrams_SOURCES = tests/softhca/test_wire_datagrams.c $(WIRE_KIT)
tests_softhca_test_wire_datagrams_LDADD = $(SOFTHCA_TEST_LDADD)
tests_softhca_test_wire_datagrams_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=rg_now_ns
tests_softhca_test_wire_more_SOURCES = tests/softhca/test_wire_more.c $(WIRE_KIT)
tests_softhca_test_wire_more_LDADD = $(SOFTHCA_TEST_LDADD)
tests_softhca_test_wire_more_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=rg_now_ns -Wl,--wrap=send -Wl,--wrap=sendmsg \
	-Wl,--wrap=setsockopt
tests_softhca_test_net_SOURCES = tests/softhca/test_net.c tests/softhca/namespace.h tests/capture.c \
	tests/capture.h
tests_softhca_test_net_LDADD = $(SOFTHCA_TEST_LDADD)
tests_softhca_test_netif_SOURCES = tests/softhca/test_netif.c tests/softhca/namespace.h
tests_softhca_test_netif_LDADD = $(SOFTHCA_TEST_LDADD)
tests_softhca_test_netif_list_SOURCES = tests/softhca/test_netif_list.c tests/softhca/namespace.h
tests_softhca_test_netif_list_LDADD = $(SOFTHCA_TEST_LDADD)
tests_softhca_test_kern_LDADD = $(SOFTHCA_TEST_LDADD)
tests_softhca_test_probe_SOURCES = tests/softhca/test_probe.c tests/softhca/namespace.h
tests_softhca_test_probe_LDADD = $(SOFTHCA_TEST_LDADD)
tests_softhca_test_probe_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=rg_now_ns
tests_softhca_test_meet_net_SOURCES = tests/softhca/test_meet_net.c tests/softhca/meet_end.c \
	tests/softhca/meet_end.h
tests_softhca_test_meet_net_LDADD = $(SOFTHCA_TEST_LDADD)
tests_softhca_test_meet_net_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=rg_now_ns -Wl,--wrap=setsockopt
tests_softhca_test_model_LDADD = $(SOFTHCA_TEST_LDADD)
tests_softhca_test_shared_LDADD = $(SOFTHCA_TEST_LDADD)
tests_softhca_test_mr_table_LDADD = $(SOFTHCA_TEST_LDADD)
tests_softhca_test_descriptors_LDADD = $(SOFTHCA_TEST_LDADD)
tests_softhca_test_mailbox_LDADD = $(SOFTHCA_TEST_LDADD)
tests_softhca_test_remap_LDADD = $(SOFTHCA_TEST_LDADD)
tests_softhca_test_remap_fork_LDADD = $(SOFTHCA_TEST_LDADD) -lpthread
tests_softhca_test_fidelity_LDADD = $(SOFTHCA_TEST_LDADD)
tests_softhca_test_atomic_LDADD = $(SOFTHCA_TEST_LDADD)
tests_softhca_test_responder_SOURCES = tests/softhca/test_responder.c tests/softhca/responder.h
tests_softhca_test_responder_LDADD = $(SOFTHCA_TEST_LDADD) -lpthread
tests_softhca_test_landing_SOURCES = tests/softhca/test_landing.c tests/softhca/responder.h
tests_softhca_test_landing_LDADD = $(SOFTHCA_TEST_LDADD) -lpthread
tests_softhca_test_memory_LDADD = $(SOFTHCA_TEST_LDADD)
tests_softhca_test_fabric_LDADD = $(SOFTHCA_TEST_LDADD)
tests_softhca_test_loopback_LDADD = $(SOFTHCA_TEST_LDADD)
tests_softhca_test_personality_LDADD = $(SOFTHCA_TEST_LDADD)
tests_softhca_test_like_LDADD = $(SOFTHCA_TEST_LDADD)
tests_softhca_test_loopback_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=hca_proc_link
TESTS += tests/softhca/conformance.sh
dist_check_SCRIPTS += tests/net/ports.sh
TESTS += tests/net/ports.sh
# rdma-core's own tests, as a distribution carries them.
EXTRA_DIST += tests/pyverbs/pyverbs.sh tests/pyverbs/run.py tests/pyverbs/rxe.txt \
	tests/pyverbs/unpack.sh
TESTS += tests/pyverbs/pyverbs.sh
