# ---- a real Slurm on hosts as namespaces: make check-slurm -----------------------------------
slurm_jobs = tests/slurm/report tests/slurm/stop tests/slurm/crash tests/slurm/srun
EXTRA_DIST += tests/slurm/cluster.sh $(slurm_jobs:=.sh)
CLEANFILES += tests/slurm/*.log tests/slurm/*.trs
check-slurm: all tests/cli/mpi_plain
	$(AM_V_at)$(AM_TESTS_ENVIRONMENT) $(SHELL) $(srcdir)/tests/run-jobs.sh "$(SLURM_ONLY)" $(slurm_jobs)
.PHONY: check-slurm
