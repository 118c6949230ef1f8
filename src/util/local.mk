# ---- src/util, src/stats: no dependencies ------------------------------------
# librg-util needs libm only, so that any library of ours may embed it;
# librg-cmdline is for programs.
noinst_LTLIBRARIES += librg-util.la librg-cmdline.la
librg_util_la_SOURCES = src/util/err.c src/util/err.h src/util/clock.c src/util/clock.h \
	src/util/copy.c src/util/copy.h src/util/copy_choice.c src/util/copy_choice.h src/util/compiler.h src/util/host.c src/util/host.h \
	src/util/launcher.c src/util/launcher.h src/util/host_list.c src/util/host_list.h src/util/opt.c src/util/opt.h src/util/random.h src/util/text.c src/util/text.h \
	src/util/told.c src/util/told.h \
	src/util/units.c src/util/units.h src/stats/stats.c src/stats/stats.h \
	src/stats/shift.c src/stats/shift.h src/stats/stop.c src/stats/stop.h
librg_cmdline_la_SOURCES = src/util/cmdline.c
librg_cmdline_la_LIBADD = librg-util.la $(POPT_LIBS)
if HAVE_CMOCKA
check_PROGRAMS += tests/util/test_units tests/util/test_copy tests/util/test_opt tests/util/test_cmdline \
	tests/util/test_err tests/util/test_host tests/util/test_launcher tests/util/test_host_list tests/util/test_text tests/util/test_yield tests/stats/test_stats \
	tests/stats/test_stop tests/stats/test_shift
TESTS += tests/util/test_units tests/util/test_copy tests/util/test_opt tests/util/test_cmdline \
	tests/util/test_err tests/util/test_host tests/util/test_launcher tests/util/test_host_list tests/util/test_text tests/util/test_yield tests/stats/test_stats \
	tests/stats/test_stop tests/stats/test_shift
endif
tests_util_test_copy_LDADD = librg-util.la $(CMOCKA_LIBS)
tests_util_test_units_LDADD = librg-util.la $(CMOCKA_LIBS)
tests_util_test_opt_LDADD = librg-util.la $(CMOCKA_LIBS)
tests_util_test_cmdline_SOURCES = tests/util/test_cmdline.c tests/capture.c
tests_util_test_cmdline_LDADD = librg-cmdline.la $(CMOCKA_LIBS)
tests_util_test_err_SOURCES = tests/util/test_err.c tests/capture.c
tests_util_test_err_LDADD = librg-util.la $(CMOCKA_LIBS)
tests_util_test_host_list_LDADD = librg-util.la $(CMOCKA_LIBS)
tests_util_test_host_LDADD = librg-util.la $(CMOCKA_LIBS)
tests_util_test_launcher_LDADD = librg-util.la $(CMOCKA_LIBS)
tests_util_test_text_LDADD = librg-util.la $(CMOCKA_LIBS)
tests_util_test_yield_LDADD = librg-util.la $(CMOCKA_LIBS) -lpthread
tests_stats_test_stats_LDADD = librg-util.la $(CMOCKA_LIBS)
tests_stats_test_stop_LDADD = librg-util.la $(CMOCKA_LIBS)
tests_stats_test_shift_LDADD = librg-util.la $(CMOCKA_LIBS)
