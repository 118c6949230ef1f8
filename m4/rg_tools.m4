# RG_TOOLS: programs that the build or the reports call.
AC_DEFUN([RG_TOOLS], [
AC_PATH_PROG([GNUPLOT], [gnuplot], [gnuplot])
AC_DEFINE_UNQUOTED([RG_GNUPLOT], ["$GNUPLOT"], [plots are drawn by this program])
AC_PATH_PROG([HELP2MAN], [help2man])
# A release tarball brings its man pages; a checkout needs help2man for them.
AM_CONDITIONAL([HAVE_MAN], [test -n "$HELP2MAN" || test -f "$srcdir/man/rg_bw.1"])
])
