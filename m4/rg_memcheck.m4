# RG_MEMCHECK: the requests of valgrind's memcheck; without them it takes messages that a peer has
# written for uninitialised memory.
AC_DEFUN([RG_MEMCHECK], [
AC_CHECK_HEADERS([valgrind/memcheck.h])
])
