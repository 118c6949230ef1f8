/* cq_ex.c - extended completion queues: entries read field by field, timestamps. */
#include <string.h>
#include <time.h>

#include "util/clock.h"
#include "softhca/engine/poll.h"
#include "softhca/object/cq.h"
#include "softhca/object/device.h"

enum {
	SUPPORTED_FIELDS = IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_IMM | IBV_WC_EX_WITH_QP_NUM |
			   IBV_WC_EX_WITH_SRC_QP | IBV_WC_EX_WITH_SLID | IBV_WC_EX_WITH_SL |
			   IBV_WC_EX_WITH_DLID_PATH_BITS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
			   IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK,
	TIMESTAMPS = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
		     IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK,
	SUPPORTED_FLAGS = IBV_CREATE_CQ_ATTR_SINGLE_THREADED,
};

static struct hca_cq *cq_of(struct ibv_cq_ex *ibv)
{
	return (struct hca_cq *)(void *)ibv;
}

/* ---- Polling ------------------------------------------------------------- */

/*
 * A poller holds poll_lock from start_poll to end_poll, not the lock of the queue: the
 * program may post in between, and a post may add entries.
 */
static int cq_ex_next(struct ibv_cq_ex *ibv)
{
	struct hca_cq *cq = cq_of(ibv);

	if (!hca_cq_poll_stamped(cq, &cq->current.wc, &cq->current.stamp_ns))
		return ENOENT;
	ibv->wr_id = cq->current.wc.wr_id;
	ibv->status = cq->current.wc.status;
	return 0;
}

static int cq_ex_start_poll(struct ibv_cq_ex *ibv, struct ibv_poll_cq_attr *attr)
{
	struct hca_cq *cq = cq_of(ibv);
	int rc;

	if (attr->comp_mask)
		return EINVAL;
	if (!cq->single_threaded)
		hca_lock(&cq->poll_lock);
	rc = cq_ex_next(ibv);
	if (rc && !cq->single_threaded)
		hca_unlock(&cq->poll_lock);
	return rc;
}

static void end_poll(struct ibv_cq_ex *ibv)
{
	struct hca_cq *cq = cq_of(ibv);

	if (!cq->single_threaded)
		hca_unlock(&cq->poll_lock);
}

/* ---- The entry ----------------------------------------------------------- */

#define READER(type, field)						\
	static type read_##field(struct ibv_cq_ex *ibv)			\
	{								\
		return cq_of(ibv)->current.wc.field;			\
	}

READER(enum ibv_wc_opcode, opcode)
READER(uint32_t, vendor_err)
READER(uint32_t, byte_len)
READER(__be32, imm_data)
READER(uint32_t, qp_num)
READER(uint32_t, src_qp)
READER(unsigned, wc_flags)
READER(uint32_t, slid)
READER(uint8_t, sl)
READER(uint8_t, dlid_path_bits)

/* ---- Time ---------------------------------------------------------------- */

/* The device's clock is CLOCK_MONOTONIC, in nanoseconds. */
static uint64_t read_completion_ts(struct ibv_cq_ex *ibv)
{
	return cq_of(ibv)->current.stamp_ns;
}

static uint64_t read_wallclock_ns(struct ibv_cq_ex *ibv)
{
	struct timespec real;
	uint64_t age;

	clock_gettime(CLOCK_REALTIME, &real);
	age = rg_now_ns() - cq_of(ibv)->current.stamp_ns;
	return (uint64_t)real.tv_sec * 1000000000u + (uint64_t)real.tv_nsec - age;
}

int hca_query_rt_values(struct ibv_context *c, struct ibv_values_ex *values)
{
	uint32_t asked = values->comp_mask;

	if (asked & ~(uint32_t)IBV_VALUES_MASK_RAW_CLOCK)
		return EINVAL;
	values->comp_mask = 0;
	if (asked & IBV_VALUES_MASK_RAW_CLOCK) {
		/* Like the drivers of adapters: the whole count in tv_nsec. */
		values->raw_clock.tv_sec = 0;
		values->raw_clock.tv_nsec = (long)rg_now_ns();
		values->comp_mask |= IBV_VALUES_MASK_RAW_CLOCK;
	}
	return 0;
}

/* ---- Creation ------------------------------------------------------------ */

static void set_readers(struct ibv_cq_ex *ibv, uint64_t fields)
{
	ibv->start_poll = cq_ex_start_poll;
	ibv->next_poll = cq_ex_next;
	ibv->end_poll = end_poll;
	ibv->read_opcode = read_opcode;
	ibv->read_vendor_err = read_vendor_err;
	ibv->read_wc_flags = read_wc_flags;
	if (fields & IBV_WC_EX_WITH_BYTE_LEN)
		ibv->read_byte_len = read_byte_len;
	if (fields & IBV_WC_EX_WITH_IMM)
		ibv->read_imm_data = read_imm_data;
	if (fields & IBV_WC_EX_WITH_QP_NUM)
		ibv->read_qp_num = read_qp_num;
	if (fields & IBV_WC_EX_WITH_SRC_QP)
		ibv->read_src_qp = read_src_qp;
	if (fields & IBV_WC_EX_WITH_SLID)
		ibv->read_slid = read_slid;
	if (fields & IBV_WC_EX_WITH_SL)
		ibv->read_sl = read_sl;
	if (fields & IBV_WC_EX_WITH_DLID_PATH_BITS)
		ibv->read_dlid_path_bits = read_dlid_path_bits;
	if (fields & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)
		ibv->read_completion_ts = read_completion_ts;
	if (fields & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
		ibv->read_completion_wallclock_ns = read_wallclock_ns;
}

struct ibv_cq_ex *hca_cq_create_ex(struct ibv_context *c, struct ibv_cq_init_attr_ex *init)
{
	uint32_t flags = init->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS ? init->flags : 0;
	struct ibv_cq *ibv;
	struct hca_cq *cq;

	if ((init->comp_mask & ~(uint32_t)IBV_CQ_INIT_ATTR_MASK_FLAGS) ||
	    (init->wc_flags & ~(uint64_t)SUPPORTED_FIELDS) ||
	    (flags & ~(uint32_t)SUPPORTED_FLAGS)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if (init->cqe > HCA_CQE_MAX || init->comp_vector > INT32_MAX) {
		errno = EINVAL;
		return NULL;
	}
	ibv = hca_cq_make(c, &(struct hca_cq_config){
		.entries = (int)init->cqe,
		.cq_context = init->cq_context,
		.channel = init->channel,
		.vector = (int)init->comp_vector,
		.stamped = init->wc_flags & TIMESTAMPS,
	});
	if (!ibv)
		return NULL;
	cq = hca_cq_of(ibv);
	cq->single_threaded = flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
	set_readers(&cq->ibv, init->wc_flags);
	return &cq->ibv;
}
