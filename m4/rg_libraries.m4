# RG_LIBRARIES: everything else that is linked.
AC_DEFUN([RG_LIBRARIES], [
PKG_CHECK_MODULES([HWLOC], [hwloc >= 2.0], [], [RG_MISSING([hwloc 2], [libhwloc-dev])])
PKG_CHECK_MODULES([JANSSON], [jansson >= 2.7], [], [RG_MISSING([jansson], [libjansson-dev])])
PKG_CHECK_MODULES([SODIUM], [libsodium >= 1.0.12], [], [RG_MISSING([libsodium], [libsodium-dev])])
PKG_CHECK_MODULES([POPT], [popt], [], [RG_MISSING([popt], [libpopt-dev])])
PKG_CHECK_MODULES([CMOCKA], [cmocka], [rg_have_cmocka=yes], [rg_have_cmocka=no])
AM_CONDITIONAL([HAVE_CMOCKA], [test $rg_have_cmocka = yes])
AC_SEARCH_LIBS([dlsym], [dl])
AC_SEARCH_LIBS([pthread_create], [pthread])
AC_SEARCH_LIBS([lround], [m])
])
