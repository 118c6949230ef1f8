# ---- other people's verbs programs, all of them: make check-verbs ----------------------------
check-verbs: all
	$(AM_V_at)$(AM_TESTS_ENVIRONMENT) $(SHELL) $(srcdir)/tests/run-jobs.sh "$(VERBS_ONLY)" \
		tests/softhca/matrix tests/softhca/stacks
.PHONY: check-verbs

# ---- the virtual cluster: make check-cluster -------------------------------------------------
EXTRA_DIST += tests/cluster/guest.sh tests/cluster/init.sh tests/cluster/mpirun.sh \
	tests/cluster/run.sh tests/cluster/jobs.sh tests/cluster/vcluster \
	tests/cluster/beside.sh tests/cluster/down.sh tests/cluster/env.sh \
	tests/cluster/pyverbs.sh tests/cluster/shaped.sh tests/cluster/wan.sh tests/cluster/yama.sh \
	tests/cluster/four.sh tests/cluster/iwarp.sh tests/cluster/siw.sh tests/cluster/probe.sh tests/cluster/topo.sh tests/cluster/two-rails.sh tests/cluster/vlan.sh tests/cluster/wire.sh
# A program like any other: it knows libibverbs only, and needs it where it runs.
EXTRA_PROGRAMS += tests/cluster/beside
tests_cluster_beside_LDADD = -libverbs
CLEANFILES += tests/cluster/*.log tests/cluster/*.trs tests/hw/*.log tests/hw/*.trs
check-cluster: all
	$(AM_V_at)$(MAKE) $(AM_MAKEFLAGS) $(check_PROGRAMS) $(memory_modules) tests/memory/lifecycle_module.la tests/cluster/beside
	$(AM_V_at)$(AM_TESTS_ENVIRONMENT) $(SHELL) $(srcdir)/tests/cluster/run.sh
.PHONY: check-cluster

# ---- the same over real adapters: make check-hw ----------------------------------------------
EXTRA_DIST += tests/hw/run.sh tests/hw/about.sh tests/hw/mpirun.sh tests/hw/found.sh tests/hw/rails.sh \
	tests/hw/conformance.sh tests/hw/conformance-here.sh tests/hw/loopback.sh \
	tests/hw/memory.sh tests/hw/programs.sh tests/hw/suites.sh tests/hw/collectives.sh tests/hw/bad-input.sh \
	tests/hw/rank1.sh \
	tests/hw/starved.sh
CLEANFILES += tests/hw/found tests/hw/found.err tests/hw/about-before tests/hw/about-after check-hw.tar.gz
check-hw: all
	$(AM_V_at)$(MAKE) $(AM_MAKEFLAGS) $(check_PROGRAMS) $(memory_modules) tests/memory/lifecycle_module.la
	$(AM_V_at)$(AM_TESTS_ENVIRONMENT) $(SHELL) $(srcdir)/tests/hw/run.sh || test $$? -eq 77
.PHONY: check-hw
