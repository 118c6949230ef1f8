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
AC_SUBST([RG_SAN_CFLAGS])
AC_SUBST([RG_SANITIZE], [$enable_sanitize])
])
