# ---- src/memwatch: memory that goes away; the C library alone -------------------
noinst_LTLIBRARIES += librg-memwatch.la
librg_memwatch_la_SOURCES = src/memwatch/memwatch.c src/memwatch/memwatch.h \
	src/memwatch/calls.c src/memwatch/calls.h src/memwatch/patch.c src/memwatch/patch.h \
	src/memwatch/raw.h src/memwatch/syscall.c src/memwatch/syscall.h
librg_memwatch_la_LIBADD = -ldl -lpthread
if HAVE_CMOCKA
check_PROGRAMS += tests/memwatch/test_memwatch
TESTS += tests/memwatch/test_memwatch
endif
tests_memwatch_test_memwatch_LDADD = librg-memwatch.la $(CMOCKA_LIBS)
