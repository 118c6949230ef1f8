# RG_TOOLS: programs that the build or the reports call.
AC_DEFUN([RG_TOOLS], [
AC_PATH_PROG([GNUPLOT], [gnuplot], [gnuplot])
AC_DEFINE_UNQUOTED([RG_GNUPLOT], ["$GNUPLOT"], [plots are drawn by this program])
AC_PATH_PROG([HELP2MAN], [help2man])
AM_CONDITIONAL([HAVE_HELP2MAN], [test -n "$HELP2MAN"])
])
