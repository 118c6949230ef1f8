# ---- src/bench, pt2pt, collective, apps: the harness and its programs --------------
# A program is one line here: pt2pt/rg_x, from pt2pt/rg_x.c.
bin_PROGRAMS += \
	collective/rg_allgather \
	collective/rg_allgatherv \
	collective/rg_allreduce \
	collective/rg_alltoall \
	collective/rg_alltoallv \
	collective/rg_barrier \
	collective/rg_bcast \
	collective/rg_gather \
	collective/rg_reduce \
	collective/rg_reduce_scatter \
	collective/rg_scatter \
	collective/rg_tune \
	pt2pt/rg_bibw \
	pt2pt/rg_bw \
	pt2pt/rg_latency \
	pt2pt/rg_mr \
	pt2pt/rg_pairs

noinst_LTLIBRARIES += librg-bench.la
librg_bench_la_SOURCES = src/bench/acceptance.c src/bench/acceptance.h \
	src/bench/acceptance_rails.c src/bench/acceptance_record.c src/bench/acceptance_round.c src/bench/app.c src/bench/bench.h src/bench/blocks.c src/bench/bound.c \
	src/bench/bound.h src/bench/buffers.c src/bench/carrier.c src/bench/clocks.c \
	src/bench/collective.c src/bench/cores.c src/bench/describe.c \
	src/bench/hosts.c src/bench/interfaces.c \
	src/bench/learned.c src/bench/ledger.c src/bench/main.c src/bench/measure.c src/bench/memory.c \
	src/bench/noise.c src/bench/noise_read.c \
	src/bench/continued.c src/bench/options.c src/bench/options_use.c src/bench/outputs.c \
	src/bench/pattern.c \
	src/bench/pattern.h src/bench/place.c src/bench/preset.c \
	src/bench/rail_baseline.c src/bench/ranks.c src/bench/roundtime.c \
	src/bench/rows.c src/bench/samples.c src/bench/samples.h src/bench/star.c \
	src/bench/timing.c src/bench/tournament.c src/bench/tune.c src/bench/tune_costs.c src/bench/tune_costs.h \
	src/bench/validate.c src/bench/way_coll.c src/bench/ways.c \
	src/bench/app.h src/bench/buffers.h src/bench/carrier.h src/bench/clocks.h \
	src/bench/collective.h src/bench/continued.h src/bench/cores.h src/bench/describe.h \
	src/bench/hosts.h src/bench/interfaces.h \
	src/bench/job.h src/bench/learned.h src/bench/ledger.h src/bench/measure.h src/bench/memory.h \
	src/bench/noise.h src/bench/noise_read.h src/bench/options.h src/bench/options_use.h \
	src/bench/outputs.h src/bench/place.h src/bench/preset.h src/bench/rail_baseline.h \
	src/bench/ranks.h src/bench/roundtime.h src/bench/rows.h src/bench/star.h \
	src/bench/timing.h src/bench/tournament.h src/bench/tune.h src/bench/validate.h \
	src/bench/way_coll.h src/bench/ways.h
librg_bench_la_LIBADD = librg-accept.la librg-report.la librg-cmdline.la librg-topo.la
# Libraries of programs without a line of their own: the layer precedes the MPI library.
# Only programs that name the carrier of src/vbench take parts of it.
LDADD = librg-vbench.la librg-bench.la $(RAILMPI_LIB) $(MPI_LIBS)
RAILMPI_LIB = librailmpi-$(RG_MPI_FLAVOR).la
# The layer's option rows alone, for a command without an MPI library.
noinst_LTLIBRARIES += librg-railmpi-rows.la
librg_railmpi_rows_la_SOURCES = src/mpi/coll/coll.c src/mpi/coll/coll_file.c src/mpi/job/options.c
librg_railmpi_rows_la_LIBADD = librail-core.la
