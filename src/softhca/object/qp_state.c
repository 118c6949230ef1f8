/*
 * qp_state.c - required and optional attributes of each transition of a queue
 * pair (IBTA 1.5, 11.2.5.2, table 91 "QP State Transition Properties").
 */
#include "softhca/object/qp.h"

enum { NEVER = 1 << 30 };	/* no such attribute exists: the transition is not allowed */

struct attributes {
	int need, take;
};

struct transition {
	enum ibv_qp_state from, to;
	struct attributes rc, uc, ud;
};

#define ADDRESSED	(IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define ADDRESSED_UD	(IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY)
#define CONNECTED	(IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
#define LATER_UC	(IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE)
#define LATER		(LATER_UC | IBV_QP_MIN_RNR_TIMER)

static const struct transition table[] = {
	{ IBV_QPS_RESET, IBV_QPS_INIT,
	  .rc = { ADDRESSED, 0 },
	  .uc = { ADDRESSED, 0 },
	  .ud = { ADDRESSED_UD, 0 } },
	{ IBV_QPS_INIT, IBV_QPS_INIT,
	  .rc = { 0, ADDRESSED },
	  .uc = { 0, ADDRESSED },
	  .ud = { 0, ADDRESSED_UD } },
	{ IBV_QPS_INIT, IBV_QPS_RTR,
	  .rc = { CONNECTED | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
		  IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX },
	  .uc = { CONNECTED, IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX },
	  .ud = { 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY } },
	{ IBV_QPS_RTR, IBV_QPS_RTS,
	  .rc = { IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		  IBV_QP_MAX_QP_RD_ATOMIC, LATER | IBV_QP_CUR_STATE },
	  .uc = { IBV_QP_SQ_PSN, LATER_UC | IBV_QP_CUR_STATE },
	  .ud = { IBV_QP_SQ_PSN, IBV_QP_QKEY | IBV_QP_CUR_STATE } },
	{ IBV_QPS_RTS, IBV_QPS_RTS,
	  .rc = { 0, LATER | IBV_QP_CUR_STATE },
	  .uc = { 0, LATER_UC | IBV_QP_CUR_STATE },
	  .ud = { 0, IBV_QP_QKEY | IBV_QP_CUR_STATE } },
	{ IBV_QPS_RTS, IBV_QPS_SQD,
	  .rc = { 0, IBV_QP_EN_SQD_ASYNC_NOTIFY },
	  .uc = { 0, IBV_QP_EN_SQD_ASYNC_NOTIFY },
	  .ud = { 0, IBV_QP_EN_SQD_ASYNC_NOTIFY } },
	{ IBV_QPS_SQD, IBV_QPS_RTS,
	  .rc = { 0, LATER | IBV_QP_CUR_STATE },
	  .uc = { 0, LATER_UC | IBV_QP_CUR_STATE },
	  .ud = { 0, IBV_QP_QKEY | IBV_QP_CUR_STATE } },
	{ IBV_QPS_SQD, IBV_QPS_SQD,
	  .rc = { 0, LATER | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_AV | IBV_QP_TIMEOUT |
		     IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC |
		     IBV_QP_MAX_DEST_RD_ATOMIC },
	  .uc = { 0, LATER_UC | IBV_QP_PKEY_INDEX | IBV_QP_AV },
	  .ud = { 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY } },
	/* Only unacknowledged service types can resume after a send error. */
	{ IBV_QPS_SQE, IBV_QPS_RTS,
	  .rc = { NEVER, 0 },
	  .uc = { 0, IBV_QP_ACCESS_FLAGS | IBV_QP_CUR_STATE },
	  .ud = { 0, IBV_QP_QKEY | IBV_QP_CUR_STATE } },
};

static const struct attributes *attributes_of(const struct transition *t, enum ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_RC:
		return &t->rc;
	case IBV_QPT_UC:
		return &t->uc;
	case IBV_QPT_UD:
		return &t->ud;
	default:
		return NULL;
	}
}

int hca_qp_state_check(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to,
		       int mask)
{
	unsigned i;

	mask &= ~IBV_QP_STATE;
	if (to == IBV_QPS_RESET || to == IBV_QPS_ERR)
		return mask ? EINVAL : 0;
	for (i = 0; i < sizeof(table) / sizeof(*table); i++) {
		const struct attributes *a = attributes_of(&table[i], type);

		if (a && table[i].from == from && table[i].to == to)
			return (mask & a->need) != a->need || (mask & ~(a->need | a->take))
				? EINVAL : 0;
	}
	return EINVAL;
}

uint32_t hca_operations(enum ibv_qp_type type)
{
	const uint32_t sends = 1u << IBV_WR_SEND | 1u << IBV_WR_SEND_WITH_IMM;
	const uint32_t writes = 1u << IBV_WR_RDMA_WRITE | 1u << IBV_WR_RDMA_WRITE_WITH_IMM;
	const uint32_t answered = 1u << IBV_WR_RDMA_READ | 1u << IBV_WR_ATOMIC_CMP_AND_SWP |
				  1u << IBV_WR_ATOMIC_FETCH_AND_ADD;
	const uint32_t windows = 1u << IBV_WR_BIND_MW | 1u << IBV_WR_LOCAL_INV |
				 1u << IBV_WR_SEND_WITH_INV;

	switch (type) {
	case IBV_QPT_RC:
		return sends | writes | answered | windows;
	case IBV_QPT_UD:
		return 1u << IBV_WR_SEND | 1u << IBV_WR_SEND_WITH_IMM;
	case IBV_QPT_UC:
		return sends | writes;
	default:
		return 0;
	}
}
