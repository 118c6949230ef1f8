/*
 * verbs_names.h - verbs.h wraps some functions in macros of the same name; files
 * that define these functions or take their address include this header.
 */
#ifndef HCA_VERBS_NAMES_H
#define HCA_VERBS_NAMES_H

#include <infiniband/verbs.h>

#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova
#undef ibv_get_device_list

#endif
