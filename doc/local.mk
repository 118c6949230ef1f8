# ---- man pages: from --help, made again when its sources change ---------------------------
# Each program of the suite has one: rg_x.1, by the rule of its directory.
SUITE = $(patsubst %$(EXEEXT),%,$(filter pt2pt/% collective/% apps/%,$(bin_PROGRAMS)))
suite_mans = $(addsuffix .1,$(addprefix man/,$(notdir $(SUITE))))
COMMANDS = check cite compare exec report reproduce run sbatch show topo tune
command_mans = $(COMMANDS:%=man/railgauge-%.1)
if HAVE_MAN
dist_man1_MANS = $(suite_mans) man/railgauge.1 $(command_mans) man/softhca.1
dist_man7_MANS = man/libsofthca.7
endif
MAINTAINERCLEANFILES = $(dist_man1_MANS) $(dist_man7_MANS)

HELP2MAN_RUN = $(MKDIR_P) man && ASAN_OPTIONS=detect_leaks=0 $(HELP2MAN) --no-info --output=$@
# NAME(1) begins in lower case, but for names of MPI.
SUMMARY = sed -n '2{s/^[A-Z][a-z]/\l&/;s/\.$$//;p}'
define SUITE_MAN
	$(AM_V_GEN)$(HELP2MAN_RUN) --name="`./$(firstword $|) --help | $(SUMMARY)`" ./$(firstword $|)
endef
# The program is an order-only prerequisite: the pages of a tarball must not look
# old because a program has just been linked.
BENCH_HELP = src/bench/options.c src/util/cmdline.c
man/%.1: pt2pt/%.c $(BENCH_HELP) | pt2pt/%$(EXEEXT)
	$(SUITE_MAN)
man/%.1: collective/%.c $(BENCH_HELP) | collective/%$(EXEEXT)
	$(SUITE_MAN)
man/%.1: apps/%.c apps/nas_program.h $(BENCH_HELP) | apps/%$(EXEEXT)
	$(SUITE_MAN)
$(filter man/rg_verbs_%,$(dist_man1_MANS)): src/vbench/vbench.h src/vbench/options.c
man/railgauge-%.1: src/cli/%.c src/util/cmdline.c | src/cli/railgauge$(EXEEXT)
	$(AM_V_GEN)$(HELP2MAN_RUN) --help-option="$* --help" \
		--name="`./src/cli/railgauge $* --help | $(SUMMARY)`" ./src/cli/railgauge && \
	sed -i "s/^railgauge .- /railgauge-$* \\\\- /; s/^\.TH RAILGAUGE /.TH RAILGAUGE-`\
		echo $* | tr a-z A-Z` /" $@
man/railgauge-check.1: src/cli/check_rules.c
man/railgauge.1: src/cli/main.c | src/cli/railgauge$(EXEEXT)
	$(AM_V_GEN)$(HELP2MAN_RUN) --name='what several network rails bring to MPI' \
		./src/cli/railgauge
man/softhca.1: src/softhca/tool/cmd.c doc/softhca.h2m src/util/cmdline.c | softhca$(EXEEXT)
	$(AM_V_GEN)$(HELP2MAN_RUN) --name='a software HCA for programs that use libibverbs' \
		--include=$(srcdir)/doc/softhca.h2m ./softhca
# Its keys, profiles and equations are those of the tables and of model.h.
man/libsofthca.7: doc/libsofthca.7.in doc/softhca-man.sh src/softhca/model/model.h src/softhca/model/spec.c \
		src/softhca/model/profile.c | softhca$(EXEEXT)
	$(AM_V_GEN)$(MKDIR_P) man && ASAN_OPTIONS=detect_leaks=0 SOFTHCA_PROFILES= \
		./softhca profiles | \
		$(SHELL) $(srcdir)/doc/softhca-man.sh '$(VERSION)' $(srcdir)/src/softhca/model/model.h \
			$(srcdir)/doc/libsofthca.7.in >$@.tmp && mv $@.tmp $@
