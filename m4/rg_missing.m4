# RG_MISSING(what, debian-package): remember a missing dependency.
AC_DEFUN([RG_MISSING], [rg_missing="$rg_missing
  $1 (Debian: apt-get install $2)"])

# RG_MISSING_REPORT: end configure with one list of all that is missing.
AC_DEFUN([RG_MISSING_REPORT], [
AS_IF([test -n "$rg_missing"],
	[AC_MSG_ERROR([missing dependencies:$rg_missing
or let ./bootstrap --run install them.])])
])
