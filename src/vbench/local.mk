# ---- src/vbench: programs below MPI ----------------------------------------------
# A program is one line here: pt2pt/rg_verbs_x, from pt2pt/rg_verbs_x.c.
bin_PROGRAMS += \
	pt2pt/rg_verbs_bibw \
	pt2pt/rg_verbs_bw \
	pt2pt/rg_verbs_host \
	pt2pt/rg_verbs_hotspot \
	pt2pt/rg_verbs_lat \
	pt2pt/rg_verbs_notify \
	pt2pt/rg_verbs_overhead \
	pt2pt/rg_verbs_rate \
	pt2pt/rg_verbs_reuse

noinst_LTLIBRARIES += librg-vbench.la
librg_vbench_la_SOURCES = src/vbench/batch.c src/vbench/cell_data.c src/vbench/cell_meet.c src/vbench/cells.c src/vbench/cells.h src/vbench/compute.c src/vbench/die.c src/vbench/ends.c src/vbench/held.c \
	src/vbench/host.c src/vbench/lanes.c src/vbench/messages.c src/vbench/options.c src/vbench/register.c src/vbench/vbench.h \
	src/vbench/batch.h src/vbench/compute.h src/vbench/die.h src/vbench/ends.h src/vbench/held.h src/vbench/lanes.h \
	src/vbench/messages.h src/vbench/options.h src/vbench/register.h
