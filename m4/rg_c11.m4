# RG_C11: the language is C11 with GNU/Linux interfaces.
AC_DEFUN([RG_C11], [
AX_RG_CFLAG([-std=gnu11], [CFLAGS])
AC_CACHE_CHECK([for C11 atomics], [rg_cv_c11_atomics],
	[AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <stdatomic.h>
		#include <stdint.h>]],
		[[_Atomic uint64_t a = 0; return (int)atomic_fetch_add(&a, 1);]])],
		[rg_cv_c11_atomics=yes], [rg_cv_c11_atomics=no])])
AS_IF([test $rg_cv_c11_atomics = no],
	[RG_MISSING([a C11 compiler with 64-bit atomics], [gcc])])
])

# AX_RG_CFLAG(flag, variable): append the flag if the compiler takes it.
AC_DEFUN([AX_RG_CFLAG], [
AS_VAR_PUSHDEF([rg_var], [rg_cv_cflag_$1])
AC_CACHE_CHECK([whether $CC takes $1], [rg_var], [
	rg_save_CFLAGS=$CFLAGS
	CFLAGS="$CFLAGS -Werror $1"
	AC_COMPILE_IFELSE([AC_LANG_PROGRAM()],
		[AS_VAR_SET([rg_var], [yes])], [AS_VAR_SET([rg_var], [no])])
	CFLAGS=$rg_save_CFLAGS])
AS_VAR_IF([rg_var], [yes], [AS_VAR_APPEND([$2], [" $1"])])
AS_VAR_POPDEF([rg_var])
])
