# ---- src/vbench: programs below MPI ----------------------------------------------
# A program is a line here and one with what it links: pt2pt/rg_verbs_x, from pt2pt/rg_verbs_x.c.
bin_PROGRAMS += \
	pt2pt/rg_verbs_bibw \
	pt2pt/rg_verbs_bw \
	pt2pt/rg_verbs_lat \
	pt2pt/rg_verbs_notify \
	pt2pt/rg_verbs_rate \
	pt2pt/rg_verbs_reuse

noinst_LTLIBRARIES += librg-vbench.la
librg_vbench_la_SOURCES = src/vbench/batch.c src/vbench/ends.c src/vbench/impl.h \
	src/vbench/messages.c src/vbench/options.c src/vbench/vbench.h
VBENCH_LDADD = librg-vbench.la $(LDADD)
pt2pt_rg_verbs_bibw_LDADD = $(VBENCH_LDADD)
pt2pt_rg_verbs_bw_LDADD = $(VBENCH_LDADD)
pt2pt_rg_verbs_lat_LDADD = $(VBENCH_LDADD)
pt2pt_rg_verbs_notify_LDADD = $(VBENCH_LDADD)
pt2pt_rg_verbs_rate_LDADD = $(VBENCH_LDADD)
pt2pt_rg_verbs_reuse_LDADD = $(VBENCH_LDADD)
