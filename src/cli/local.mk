# ---- src/cli: the railgauge command --------------------------------------------------
bin_PROGRAMS += src/cli/railgauge
src_cli_railgauge_SOURCES = src/cli/cli.h src/cli/cite.c \
	src/cli/compare.c src/cli/compare.h src/cli/compare_json.c src/cli/compare_judge.c src/cli/compare_judge.h src/cli/compare_text.c \
	src/cli/exec.c src/cli/launch.c src/cli/library.c src/cli/main.c \
	src/cli/program.c src/cli/report.c src/cli/reproduce.c src/cli/reproduce_run.c src/cli/show.c \
	src/cli/topo.c src/cli/topo_json.c src/cli/topo_path.c src/cli/topo_report.h src/cli/topo_text.c \
	src/cli/topo_warn.c src/cli/watch.c \
	src/cli/cite.h src/cli/exec.h src/cli/launch.h src/cli/library.h src/cli/program.h src/cli/report.h \
	src/cli/reproduce.h src/cli/reproduce_run.h src/cli/show.h src/cli/topo.h src/cli/topo_json.h src/cli/topo_path.h \
	src/cli/topo_text.h src/cli/topo_warn.h src/cli/watch.h
src_cli_railgauge_CPPFLAGS = $(AM_CPPFLAGS) -DRG_LIBDIR='"$(libdir)"' \
	-DRG_BINDIR='"$(bindir)"' -DRG_MPIRUN='"$(MPIRUN)"'
src_cli_railgauge_LDADD = librg-topo.la librg-report.la librg-cmdline.la librg-railmpi-rows.la
# railgauge sbatch
src_cli_railgauge_SOURCES += src/cli/batch_launcher.c src/cli/batch_launcher.h src/cli/batch_script.c \
	src/cli/batch_script.h src/cli/sbatch.c src/cli/sbatch.h
