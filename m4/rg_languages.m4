# RG_LANGUAGES: C++ and Fortran, for tests of what their programs do; nothing that is installed
# needs them.
AC_DEFUN([RG_LANGUAGES], [
AC_CHECK_PROGS([CXX], [g++ c++ clang++])
AC_CHECK_PROGS([FC], [gfortran])
AM_CONDITIONAL([HAVE_CXX], [test -n "$CXX"])
AM_CONDITIONAL([HAVE_FC], [test -n "$FC"])
])
