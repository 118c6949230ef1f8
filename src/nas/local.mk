# ---- src/nas, apps: NAS-style kernels, without MPI and with it -------------------------------
noinst_LTLIBRARIES += librg-nas.la
librg_nas_la_SOURCES = src/nas/class.c src/nas/fft.c src/nas/fft.h src/nas/ft.c src/nas/ft.h \
	src/nas/ft_class.c src/nas/ft_class.h src/nas/is.c src/nas/is.h src/nas/lcg.c src/nas/lcg.h \
	src/nas/nas.h src/nas/tile.c src/nas/tile.h
bin_PROGRAMS += apps/rg_ft apps/rg_is
apps_rg_ft_SOURCES = apps/rg_ft.c apps/nas_program.h
apps_rg_ft_LDADD = librg-nas.la $(LDADD)
apps_rg_is_SOURCES = apps/rg_is.c apps/nas_program.h
apps_rg_is_LDADD = librg-nas.la $(LDADD)
if HAVE_CMOCKA
NAS_UNITS = tests/nas/test_class tests/nas/test_fft tests/nas/test_ft tests/nas/test_is \
	tests/nas/test_lcg
check_PROGRAMS += $(NAS_UNITS)
TESTS += $(NAS_UNITS)
endif
NAS_TEST_LDADD = librg-nas.la librg-util.la $(CMOCKA_LIBS) -lm
tests_nas_test_class_LDADD = $(NAS_TEST_LDADD)
tests_nas_test_fft_LDADD = $(NAS_TEST_LDADD)
tests_nas_test_ft_LDADD = $(NAS_TEST_LDADD) -lpthread
tests_nas_test_is_LDADD = $(NAS_TEST_LDADD)
tests_nas_test_lcg_LDADD = $(NAS_TEST_LDADD)
check_PROGRAMS += tests/apps/rg_dud tests/apps/rg_is_lossy
tests_apps_rg_is_lossy_SOURCES = apps/rg_is.c tests/apps/lossy.c
tests_apps_rg_is_lossy_CPPFLAGS = $(AM_CPPFLAGS) -DMPI_Alltoallv=lossy_Alltoallv
tests_apps_rg_is_lossy_LDADD = librg-nas.la $(LDADD)
dist_check_SCRIPTS += tests/apps/apps.sh
TESTS += tests/apps/apps.sh
