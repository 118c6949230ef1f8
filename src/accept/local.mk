# ---- src/accept: who measures whom, who is accused; pure -------------------------------
noinst_LTLIBRARIES += librg-accept.la
librg_accept_la_SOURCES = src/accept/accept.h src/accept/again.c src/accept/check.c src/accept/fit.c \
	src/accept/leaf.c src/accept/plan.c src/accept/rounds.c src/accept/rounds.h src/accept/run.c src/accept/state.h \
	src/accept/suspect.c src/accept/verdict.c src/accept/words.c
librg_accept_la_LIBADD = librg-util.la -lm
ACCEPT_UNITS = tests/accept/test_accept tests/accept/test_rounds
if HAVE_CMOCKA
check_PROGRAMS += $(ACCEPT_UNITS)
TESTS += $(ACCEPT_UNITS)
endif
tests_accept_test_accept_LDADD = librg-accept.la $(CMOCKA_LIBS)
tests_accept_test_rounds_LDADD = librg-accept.la $(CMOCKA_LIBS)
