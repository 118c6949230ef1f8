# RG_VERBS: the headers of libibverbs.  Nothing links to the library: libsofthca
# (embedded in librail) defines the same API and opens the real one at run time.
AC_DEFUN([RG_VERBS], [
RG_VERBS_VERSION=none
AC_CHECK_HEADER([infiniband/verbs.h],
	[RG_VERBS_VERSION=`$PKG_CONFIG --modversion libibverbs 2>/dev/null || echo headers only`],
	[RG_MISSING([libibverbs headers], [libibverbs-dev])])
AC_CHECK_DECLS([ibv_query_qp_data_in_order, ibv_reg_dmabuf_mr, ibv_query_ece],
	[], [], [[#include <infiniband/verbs.h>]])
])
