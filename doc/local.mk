# ---- man pages: from --help, made again when its sources change ---------------------------
collective_mans = man/rg_allgather.1 man/rg_allgatherv.1 man/rg_allreduce.1 man/rg_alltoall.1 \
	man/rg_alltoallv.1 man/rg_barrier.1 man/rg_bcast.1 man/rg_gather.1 \
	man/rg_reduce.1 man/rg_reduce_scatter.1 man/rg_scatter.1 man/rg_tune.1
verbs_mans = man/rg_verbs_bibw.1 man/rg_verbs_bw.1 man/rg_verbs_host.1 man/rg_verbs_hotspot.1 \
	man/rg_verbs_lat.1 man/rg_verbs_notify.1 man/rg_verbs_overhead.1 man/rg_verbs_rate.1 man/rg_verbs_reuse.1
if HAVE_MAN
dist_man_MANS += man/rg_ft.1 man/rg_is.1
dist_man_MANS += man/rg_bibw.1 man/rg_bw.1 man/rg_latency.1 man/rg_mr.1 man/rg_pairs.1 \
	$(collective_mans) $(verbs_mans) \
	man/railgauge.1 man/railgauge-exec.1 man/railgauge-report.1 \
	man/railgauge-reproduce.1 man/railgauge-topo.1 \
	man/softhca.1 man/libsofthca.7
endif
MAINTAINERCLEANFILES = $(dist_man_MANS)
# The program is an order-only prerequisite: the pages of a tarball must not look
# old because a program has just been linked.
BENCH_HELP = src/bench/options.c src/util/cmdline.c
man/rg_bibw.1: pt2pt/rg_bibw.c $(BENCH_HELP) | pt2pt/rg_bibw$(EXEEXT)
man/rg_bw.1: pt2pt/rg_bw.c $(BENCH_HELP) | pt2pt/rg_bw$(EXEEXT)
man/rg_latency.1: pt2pt/rg_latency.c $(BENCH_HELP) | pt2pt/rg_latency$(EXEEXT)
man/rg_mr.1: pt2pt/rg_mr.c $(BENCH_HELP) | pt2pt/rg_mr$(EXEEXT)
man/rg_pairs.1: pt2pt/rg_pairs.c $(BENCH_HELP) | pt2pt/rg_pairs$(EXEEXT)
VBENCH_HELP = $(BENCH_HELP) src/vbench/vbench.h src/vbench/options.c
man/rg_verbs_bibw.1: pt2pt/rg_verbs_bibw.c $(VBENCH_HELP) | pt2pt/rg_verbs_bibw$(EXEEXT)
man/rg_verbs_bw.1: pt2pt/rg_verbs_bw.c $(VBENCH_HELP) | pt2pt/rg_verbs_bw$(EXEEXT)
man/rg_verbs_host.1: pt2pt/rg_verbs_host.c $(VBENCH_HELP) | pt2pt/rg_verbs_host$(EXEEXT)
man/rg_verbs_hotspot.1: pt2pt/rg_verbs_hotspot.c $(VBENCH_HELP) | pt2pt/rg_verbs_hotspot$(EXEEXT)
man/rg_verbs_rate.1: pt2pt/rg_verbs_rate.c $(VBENCH_HELP) | pt2pt/rg_verbs_rate$(EXEEXT)
man/rg_verbs_reuse.1: pt2pt/rg_verbs_reuse.c $(VBENCH_HELP) | pt2pt/rg_verbs_reuse$(EXEEXT)
man/rg_verbs_notify.1: pt2pt/rg_verbs_notify.c $(VBENCH_HELP) | pt2pt/rg_verbs_notify$(EXEEXT)
man/rg_verbs_overhead.1: pt2pt/rg_verbs_overhead.c $(VBENCH_HELP) | pt2pt/rg_verbs_overhead$(EXEEXT)
man/rg_verbs_lat.1: pt2pt/rg_verbs_lat.c $(VBENCH_HELP) | pt2pt/rg_verbs_lat$(EXEEXT)
man/rg_allgather.1: collective/rg_allgather.c $(BENCH_HELP) | collective/rg_allgather$(EXEEXT)
man/rg_allgatherv.1: collective/rg_allgatherv.c $(BENCH_HELP) | collective/rg_allgatherv$(EXEEXT)
man/rg_allreduce.1: collective/rg_allreduce.c $(BENCH_HELP) | collective/rg_allreduce$(EXEEXT)
man/rg_alltoall.1: collective/rg_alltoall.c $(BENCH_HELP) | collective/rg_alltoall$(EXEEXT)
man/rg_alltoallv.1: collective/rg_alltoallv.c $(BENCH_HELP) | collective/rg_alltoallv$(EXEEXT)
man/rg_barrier.1: collective/rg_barrier.c $(BENCH_HELP) | collective/rg_barrier$(EXEEXT)
man/rg_bcast.1: collective/rg_bcast.c $(BENCH_HELP) | collective/rg_bcast$(EXEEXT)
man/rg_gather.1: collective/rg_gather.c $(BENCH_HELP) | collective/rg_gather$(EXEEXT)
man/rg_reduce.1: collective/rg_reduce.c $(BENCH_HELP) | collective/rg_reduce$(EXEEXT)
man/rg_reduce_scatter.1: collective/rg_reduce_scatter.c $(BENCH_HELP) | collective/rg_reduce_scatter$(EXEEXT)
man/rg_scatter.1: collective/rg_scatter.c $(BENCH_HELP) | collective/rg_scatter$(EXEEXT)
man/rg_tune.1: collective/rg_tune.c $(BENCH_HELP) | collective/rg_tune$(EXEEXT)
man/rg_ft.1: apps/rg_ft.c apps/nas_program.h $(BENCH_HELP) | apps/rg_ft$(EXEEXT)
man/rg_is.1: apps/rg_is.c apps/nas_program.h $(BENCH_HELP) | apps/rg_is$(EXEEXT)
man/railgauge.1: src/cli/main.c | src/cli/railgauge$(EXEEXT)
man/railgauge-exec.1: src/cli/exec.c src/util/cmdline.c | src/cli/railgauge$(EXEEXT)
man/railgauge-report.1: src/cli/report.c src/util/cmdline.c | src/cli/railgauge$(EXEEXT)
man/railgauge-reproduce.1: src/cli/reproduce.c src/util/cmdline.c | src/cli/railgauge$(EXEEXT)
man/railgauge-topo.1: src/cli/topo.c src/util/cmdline.c | src/cli/railgauge$(EXEEXT)
man/softhca.1: src/softhca/tool/cmd.c doc/softhca.h2m src/util/cmdline.c | softhca$(EXEEXT)

HELP2MAN_RUN = $(MKDIR_P) man && ASAN_OPTIONS=detect_leaks=0 $(HELP2MAN) --no-info --output=$@
man/rg_bibw.1 man/rg_bw.1 man/rg_latency.1 man/rg_mr.1 man/rg_pairs.1 $(verbs_mans):
	$(AM_V_GEN)program=./pt2pt/`basename $@ .1`; $(HELP2MAN_RUN) \
		--name="`$$program --help | sed -n 2p | tr A-Z a-z`" $$program
$(collective_mans):
	$(AM_V_GEN)program=./collective/`basename $@ .1`; $(HELP2MAN_RUN) \
		--name="`$$program --help | sed -n 2p | tr A-Z a-z`" $$program
man/rg_ft.1 man/rg_is.1:
	$(AM_V_GEN)program=./apps/`basename $@ .1`; $(HELP2MAN_RUN) \
		--name="`$$program --help | sed -n '2s/^./\l&/p'`" $$program
man/railgauge.1:
	$(AM_V_GEN)$(HELP2MAN_RUN) --name='what several network rails bring to MPI' \
		./src/cli/railgauge
man/softhca.1:
	$(AM_V_GEN)$(HELP2MAN_RUN) --name='a software HCA for programs that use libibverbs' \
		--include=$(srcdir)/doc/softhca.h2m ./softhca
# Its keys, profiles and equations are those of the tables and of model.h.
man/libsofthca.7: doc/libsofthca.7.in doc/softhca-man.sh src/softhca/model/model.h src/softhca/model/spec.c \
		src/softhca/model/profile.c | softhca$(EXEEXT)
	$(AM_V_GEN)$(MKDIR_P) man && ASAN_OPTIONS=detect_leaks=0 SOFTHCA_PROFILES= \
		./softhca profiles | \
		$(SHELL) $(srcdir)/doc/softhca-man.sh '$(VERSION)' $(srcdir)/src/softhca/model/model.h \
			$(srcdir)/doc/libsofthca.7.in >$@.tmp && mv $@.tmp $@
man/railgauge-exec.1 man/railgauge-report.1 man/railgauge-reproduce.1 man/railgauge-topo.1:
	$(AM_V_GEN)command=`basename $@ .1 | sed s/.*-//`; $(HELP2MAN_RUN) \
		--help-option="$$command --help" --name="`./src/cli/railgauge $$command --help | \
			sed -n '2s/\.$$//p'`" ./src/cli/railgauge && \
	sed -i "s/^railgauge .- /railgauge-$$command \\\\- /; s/^\.TH RAILGAUGE /.TH RAILGAUGE-`\
		echo $$command | tr a-z A-Z` /" $@
