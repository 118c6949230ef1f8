# ---- src/cli: the railgauge command --------------------------------------------------
bin_PROGRAMS += src/cli/railgauge
src_cli_railgauge_SOURCES = src/cli/cli.h src/cli/check.c src/cli/check_judge.c src/cli/check_print.c \
	src/cli/check_records.c src/cli/check_rules.c src/cli/check_state.c src/cli/cite.c \
	src/cli/compare.c src/cli/compare.h src/cli/compare_json.c src/cli/compare_judge.c src/cli/compare_judge.h src/cli/compare_text.c \
	src/cli/exec.c src/cli/launch.c src/cli/library.c src/cli/main.c \
	src/cli/program.c src/cli/report.c src/cli/reproduce.c src/cli/reproduce_run.c src/cli/run.c src/cli/run_answer.c \
	src/cli/run_command.c src/cli/run_journal.c src/cli/run_launches.c src/cli/run_ledger.c src/cli/run_plan.c src/cli/run_record.c \
	src/cli/run_settings.c src/cli/run_summary.c src/cli/run_why.c src/cli/show.c \
	src/cli/gather.c src/cli/topo.c src/cli/topo_diff.c src/cli/topo_errors.c src/cli/topo_group.c src/cli/topo_json.c src/cli/topo_nodes.c src/cli/topo_path.c src/cli/topo_read.c src/cli/topo_report.h src/cli/topo_text.c \
	src/cli/topo_warn.c src/cli/watch.c \
	src/cli/check.h src/cli/check_judge.h src/cli/check_print.h src/cli/check_records.h \
	src/cli/check_rules.h src/cli/check_state.h src/cli/cite.h src/cli/exec.h src/cli/launch.h src/cli/library.h src/cli/program.h src/cli/report.h \
	src/cli/reproduce.h src/cli/reproduce_run.h src/cli/run.h src/cli/run_answer.h \
	src/cli/run_command.h src/cli/run_journal.h src/cli/run_launches.h src/cli/run_ledger.h src/cli/run_plan.h src/cli/run_record.h \
	src/cli/run_settings.h src/cli/run_summary.h src/cli/run_why.h src/cli/show.h src/cli/topo.h src/cli/topo_json.h src/cli/topo_path.h \
	src/cli/gather.h src/cli/gather_mpi.h src/cli/topo_diff.h src/cli/topo_errors.h src/cli/topo_group.h src/cli/topo_nodes.h \
	src/cli/topo_read.h src/cli/topo_text.h src/cli/topo_warn.h src/cli/watch.h
src_cli_railgauge_CPPFLAGS = $(AM_CPPFLAGS) -DRG_LIBDIR='"$(libdir)"' \
	-DRG_BINDIR='"$(bindir)"' -DRG_MPIRUN='"$(MPIRUN)"' \
	-DRG_PKGLIBEXECDIR='"$(pkglibexecdir)"'
src_cli_railgauge_LDADD = librg-topo.la librg-report.la librg-cmdline.la librg-railmpi-rows.la
src_cli_railgauge_SOURCES += src/cli/tune.c src/cli/tune.h
# railgauge sbatch
src_cli_railgauge_SOURCES += src/cli/batch_launcher.c src/cli/batch_launcher.h src/cli/batch_script.c \
	src/cli/batch_script.h src/cli/sbatch.c src/cli/sbatch.h
if HAVE_CMOCKA
check_PROGRAMS += tests/cli/test_run_plan tests/cli/test_run_why
TESTS += tests/cli/test_run_plan tests/cli/test_run_why
endif
tests_cli_test_run_plan_CPPFLAGS = $(AM_CPPFLAGS)
tests_cli_test_run_plan_SOURCES = tests/cli/test_run_plan.c src/cli/run_plan.c tests/capture.c
tests_cli_test_run_plan_LDADD = librg-util.la $(JANSSON_LIBS) $(CMOCKA_LIBS)
tests_cli_test_run_why_CPPFLAGS = $(AM_CPPFLAGS)
tests_cli_test_run_why_SOURCES = tests/cli/test_run_why.c src/cli/run_ledger.c src/cli/run_why.c
tests_cli_test_run_why_LDADD = librg-topo.la librg-railmpi-rows.la librg-util.la $(CMOCKA_LIBS)
# The MPI program of a command without an MPI library: one for each library.
pkglibexec_PROGRAMS =
if MPI_OPENMPI
pkglibexec_PROGRAMS += src/cli/railgauge-gather-openmpi
src_cli_railgauge_gather_openmpi_SOURCES = src/mpi/abi/endpoints_stay.h src/cli/gather_mpi.c src/cli/gather_mpi.h
src_cli_railgauge_gather_openmpi_LDADD = $(MPI_LIBS)
endif
if MPI_MPICH
pkglibexec_PROGRAMS += src/cli/railgauge-gather-mpich
src_cli_railgauge_gather_mpich_SOURCES = src/mpi/abi/endpoints_stay.h src/cli/gather_mpi.c src/cli/gather_mpi.h
src_cli_railgauge_gather_mpich_LDADD = $(MPI_LIBS)
endif
if HAVE_CMOCKA
check_PROGRAMS += tests/cli/test_check
TESTS += tests/cli/test_check
endif
tests_cli_test_check_CPPFLAGS = $(AM_CPPFLAGS)
tests_cli_test_check_SOURCES = tests/cli/test_check.c tests/capture.c src/cli/check_judge.c src/cli/check_rules.c \
	src/cli/topo_diff.c src/cli/topo_group.c
tests_cli_test_check_LDADD = librg-util.la $(JANSSON_LIBS) $(CMOCKA_LIBS)
# Test classes for ReFrame.
reframedir = $(pkgdatadir)/reframe
dist_reframe_DATA = data/reframe/railgauge.py
