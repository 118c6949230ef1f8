# ---- src/topo: hwloc ---------------------------------------------------------------
# A library that embeds it also links librg-util.la.
noinst_LTLIBRARIES += librg-topo.la
librg_topo_la_SOURCES = src/topo/topo.h src/topo/link.h src/topo/list.h src/topo/near.h src/topo/open.c src/topo/list.c \
	src/topo/path.c src/topo/memory.c src/topo/near.c src/topo/link.c src/topo/share.c src/topo/port.c
librg_topo_la_LIBADD = $(HWLOC_LIBS)
EXTRA_DIST += tests/topo/dual.xml tests/topo/far.xml tests/topo/none.xml tests/topo/slot.xml \
	tests/topo/dual.txt tests/topo/far.txt tests/topo/none.txt tests/topo/slot.txt
dist_check_SCRIPTS += tests/topo/topo.sh
TESTS += tests/topo/topo.sh
if HAVE_CMOCKA
check_PROGRAMS += tests/topo/test_topo tests/topo/test_json
TESTS += tests/topo/test_topo tests/topo/test_json
endif
tests_topo_test_topo_SOURCES = tests/topo/test_topo.c tests/capture.c
tests_topo_test_topo_LDADD = librg-topo.la librg-util.la $(CMOCKA_LIBS)
tests_topo_test_json_LDADD = $(JANSSON_LIBS) $(CMOCKA_LIBS)
