# ---- src/report: jansson, gnuplot ---------------------------------------------
noinst_LTLIBRARIES += librg-report.la
librg_report_la_SOURCES = src/report/acceptance.c src/report/acceptance.h src/report/app.c src/report/axis.c src/report/campaign.c src/report/campaign.h src/report/check.c src/report/citable.c \
	src/report/disturbance.c src/report/experiment.c \
	src/report/experiment.h src/report/files.c src/report/launches.c src/report/launches.h src/report/lookup.c src/report/matrix.c src/report/merge.c \
	src/report/metric.c src/report/output.c src/report/cite.c src/report/cite_bibtex.c src/report/cite_facts.c src/report/cite_method.c \
	src/report/cite.h src/report/cite_bibtex.h src/report/cite_facts.h src/report/cite_method.h \
	src/report/plot.c src/report/plot_bars.c src/report/plot_curve.c src/report/plot_files.c \
	src/report/plot_matrix.c src/report/plot_rows.c src/report/plot_style.c src/report/plot_svg.c \
	src/report/plot_text.c src/report/plot_ticks.c \
	src/report/plot_rows.h src/report/plot_files.h src/report/plot_kind.h src/report/plot_style.h \
	src/report/plot_svg.h src/report/plot_text.h src/report/plot_ticks.h \
	src/report/learned.c src/report/print.c src/report/provenance.c \
	src/report/reader.c src/report/record.c src/report/redact.c src/report/report.c src/report/report.h \
	src/report/sheet.c src/report/text.c src/report/unlike.c src/report/unlike.h src/report/versions.c \
	src/report/app.h src/report/axis.h src/report/check.h src/report/citable.h \
	src/report/disturbance.h src/report/files.h src/report/lookup.h \
	src/report/learned.h src/report/matrix.h src/report/merge.h src/report/metric.h src/report/output.h src/report/print.h \
	src/report/record.h src/report/redact.h src/report/sheet.h src/report/source.h src/report/text.h
nodist_librg_report_la_SOURCES = build-info.h
librg_report_la_CPPFLAGS = $(AM_CPPFLAGS) \
	-DRG_EXPERIMENTS_DIR='"$(experimentsdir)"'
# Experiments of papers, a file each.
experimentsdir = $(pkgdatadir)/experiments
dist_pkgdata_DATA = data/railgauge-result.schema.json
dist_experiments_DATA = data/p1.json data/p3.json data/p4.json data/p5.json
librg_report_la_LIBADD = librg-util.la $(JANSSON_LIBS) -ldl -lm

BUILT_SOURCES += build-info.h
CLEANFILES += build-info.h
EXTRA_DIST += src/report/build-info.sh tests/report/records.py tests/report/schema1.jsonl
# Of several makes in this directory each has a file of its own.
build-info.h: build-info-always
	$(AM_V_GEN)new=$@.$$$$; $(SHELL) $(srcdir)/src/report/build-info.sh '$(srcdir)' '$(CC)' '$(CFLAGS)' \
		'$(RG_SANITIZE)' > $$new && \
		if cmp -s $$new $@; then rm -f $$new; else mv -f $$new $@; fi
build-info-always:
.PHONY: build-info-always
# The tarball has no git to ask.
dist-hook:
	sed -n 's/^#define RG_BUILD_COMMIT "\(.*\)"/\1/p' build-info.h > $(distdir)/COMMIT

if HAVE_CMOCKA
REPORT_UNITS = tests/report/test_app tests/report/test_campaign tests/report/test_citable tests/report/test_experiment tests/report/test_learned tests/report/test_report \
	tests/report/test_matrix tests/report/test_merge tests/report/test_reader tests/stats/test_pilot
check_PROGRAMS += $(REPORT_UNITS)
TESTS += $(REPORT_UNITS)
endif
tests_report_test_app_SOURCES = tests/report/test_app.c tests/capture.c
tests_report_test_app_LDADD = librg-report.la $(CMOCKA_LIBS)
tests_report_test_campaign_SOURCES = tests/report/test_campaign.c tests/capture.c
tests_report_test_campaign_LDADD = librg-report.la $(CMOCKA_LIBS)
tests_report_test_learned_SOURCES = tests/report/test_learned.c
tests_report_test_learned_LDADD = librg-report.la $(CMOCKA_LIBS)
tests_report_test_citable_SOURCES = tests/report/test_citable.c tests/capture.c
tests_report_test_citable_LDADD = librg-report.la $(CMOCKA_LIBS)
tests_report_test_experiment_SOURCES = tests/report/test_experiment.c tests/capture.c
tests_report_test_experiment_LDADD = librg-report.la $(CMOCKA_LIBS)
tests_report_test_report_SOURCES = tests/report/test_report.c tests/capture.c
tests_report_test_report_LDADD = librg-report.la $(CMOCKA_LIBS)
tests_report_test_matrix_SOURCES = tests/report/test_matrix.c tests/capture.c
tests_report_test_matrix_LDADD = librg-report.la $(CMOCKA_LIBS)
tests_report_test_reader_SOURCES = tests/report/test_reader.c tests/capture.c
tests_report_test_reader_LDADD = librg-report.la $(CMOCKA_LIBS) -lm
tests_report_test_merge_SOURCES = tests/report/test_merge.c tests/capture.c
tests_report_test_merge_LDADD = librg-report.la $(CMOCKA_LIBS) -lm
tests_stats_test_pilot_LDADD = librg-report.la $(CMOCKA_LIBS) -lm
check_PROGRAMS += tests/fuzz/fuzz_campaign tests/fuzz/fuzz_result
TESTS += tests/fuzz/fuzz_campaign tests/fuzz/fuzz_result
tests_fuzz_fuzz_campaign_SOURCES = tests/fuzz/fuzz_campaign.c tests/fuzz/driver.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_campaign_LDADD = librg-report.la -lm
tests_fuzz_fuzz_result_SOURCES = tests/fuzz/fuzz_result.c tests/fuzz/driver.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_result_LDADD = librg-report.la -lm
