# RG_WARNINGS: RG_WARN_CFLAGS for every file of ours; --enable-werror in CI.
AC_DEFUN([RG_WARNINGS], [
AC_ARG_ENABLE([werror], [AS_HELP_STRING([--enable-werror],
	[treat compiler warnings as errors (CI does)])])
RG_WARN_CFLAGS=
m4_foreach_w([rg_flag], [-Wall -Wextra -Wshadow -Wstrict-prototypes
	-Wmissing-prototypes -Wvla -Wpointer-arith -Wundef
	-Wno-unused-parameter -Wno-missing-field-initializers],
	[AX_RG_CFLAG(rg_flag, [RG_WARN_CFLAGS])])
AS_IF([test "x$enable_werror" = xyes], [RG_WARN_CFLAGS="$RG_WARN_CFLAGS -Werror"])
AC_SUBST([RG_WARN_CFLAGS])
])
