/*
 * qp_state.c - which attributes each transition of a queue pair needs and
 * takes (IBTA 1.5, 11.2.5.2, table 91 "QP State Transition Properties").
 */
#include "qp.h"

struct transition {
	enum ibv_qp_state from, to;
	int need, take;
};

#define ANY_CHANGE (IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER | IBV_QP_ALT_PATH | \
		    IBV_QP_PATH_MIG_STATE | IBV_QP_CUR_STATE)

static const struct transition rc[] = {
	{ IBV_QPS_RESET, IBV_QPS_INIT,
	  IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0 },
	{ IBV_QPS_INIT, IBV_QPS_INIT,
	  0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS },
	{ IBV_QPS_INIT, IBV_QPS_RTR,
	  IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
	  IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX },
	{ IBV_QPS_RTR, IBV_QPS_RTS,
	  IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
		  IBV_QP_MAX_QP_RD_ATOMIC,
	  ANY_CHANGE },
	{ IBV_QPS_RTS, IBV_QPS_RTS, 0, ANY_CHANGE },
	{ IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY },
	{ IBV_QPS_SQD, IBV_QPS_RTS, 0, ANY_CHANGE },
	{ IBV_QPS_SQD, IBV_QPS_SQD, 0,
	  ANY_CHANGE | IBV_QP_PKEY_INDEX | IBV_QP_AV | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
		  IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC },
};

int hca_qp_state_check(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to,
		       int mask)
{
	unsigned i;

	mask &= ~IBV_QP_STATE;
	if (type != IBV_QPT_RC)
		return EINVAL;
	if (to == IBV_QPS_RESET || to == IBV_QPS_ERR)
		return mask & ~IBV_QP_CUR_STATE ? EINVAL : 0;
	for (i = 0; i < sizeof(rc) / sizeof(*rc); i++) {
		const struct transition *t = &rc[i];

		if (t->from == from && t->to == to)
			return (mask & t->need) != t->need || (mask & ~(t->need | t->take)) ? EINVAL
											    : 0;
	}
	return EINVAL;
}
