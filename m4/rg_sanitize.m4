# RG_SANITIZE: --enable-sanitize=address,undefined or thread, over everything.
AC_DEFUN([RG_SANITIZE], [
AC_ARG_ENABLE([sanitize], [AS_HELP_STRING([--enable-sanitize=LIST],
	[build with -fsanitize=LIST, such as address,undefined or thread])])
AS_CASE([x$enable_sanitize],
	[x|xno], [enable_sanitize=no],
	[xyes], [enable_sanitize=address,undefined])
RG_SAN_CFLAGS=
AS_IF([test $enable_sanitize != no],
	[RG_SAN_CFLAGS="-fsanitize=$enable_sanitize -fno-omit-frame-pointer -fno-sanitize-recover=all"])
# clang puts the sanitizer's runtime into programs only, so that a library of it has
# symbols that nobody defines at its link.
RG_DEFS_LDFLAGS=-Wl,-z,defs
AS_IF([test $enable_sanitize != no], [RG_DEFS_LDFLAGS=])
AC_SUBST([RG_DEFS_LDFLAGS])
AC_SUBST([RG_SAN_CFLAGS])
AC_SUBST([RG_SANITIZE], [$enable_sanitize])
])
