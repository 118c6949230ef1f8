/* query.c - device, port and address queries: actual properties only. */
#include <endian.h>
#include <stdio.h>
#include <string.h>

#include "config.h"
#include "softhca/object/device.h"
#include "softhca/object/dm.h"
#include "softhca/object/loss.h"
#include "softhca/object/net.h"
#include "softhca/object/qp.h"
#include "softhca/object/query.h"
#include "softhca/object/srq.h"

static const struct hca_spec *spec_of(const struct ibv_context *c)
{
	return &hca_context_of((struct ibv_context *)(uintptr_t)c)->fabric->spec;
}

/* ---- The device ---------------------------------------------------------- */

/* A locally administered EUI-64, of a model's adapter 02-53-48 node hca. */
uint64_t hca_device_guid(const struct hca_device *d)
{
	uint64_t host;

	if (hca_is_net(d->fabric)) {
		memcpy(&host, d->fabric->host, sizeof(host));
		return (be64toh(host) & ~(UINT64_C(3) << 56)) | UINT64_C(2) << 56;
	}
	return 0x025348fffe000000ull | (uint64_t)d->node << 8 | d->hca << 4;
}

int hca_query_device(struct ibv_context *c, struct ibv_device_attr *attr)
{
	const struct hca_personality *p = hca_context_personality(c);
	const struct hca_spec *s = spec_of(c);

	memset(attr, 0, sizeof(*attr));
	snprintf(attr->fw_ver, sizeof(attr->fw_ver), "softhca-%s", PACKAGE_VERSION);
	attr->node_guid = htobe64(hca_device_guid(hca_context_of(c)->device));
	/* The card's is the GUID of its first function. */
	attr->sys_image_guid = p->one_card ? attr->node_guid & ~htobe64(0xf0) : attr->node_guid;
	/* No vendor's: the locally administered prefix of the GUIDs.  vendor_part_id stays 0. */
	attr->vendor_id = 0x025348;
	attr->max_mr_size = HCA_MEMORY_BYTES;
	attr->page_size_cap = HCA_PAGE;
	attr->max_qp = (int)p->qps;
	attr->max_qp_wr = (int)p->wr_max;
	attr->device_cap_flags = IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_CURR_QP_STATE_MOD |
				 IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_UD_AV_PORT_ENFORCE |
				 IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B;
	attr->max_sge = (int)p->sge_max;
	attr->max_sge_rd = (int)p->sge_max;
	attr->max_cq = HCA_QPS_MAX;
	attr->max_cqe = (int)p->cqe_max;
	attr->max_mr = HCA_MRS_MAX - 1;
	attr->max_mw = HCA_MRS_MAX - 1;
	attr->max_pd = INT32_MAX;
	attr->max_qp_rd_atom = (int)hca_rd_atom(s, p);
	attr->max_res_rd_atom = attr->max_qp_rd_atom * HCA_QPS_MAX;
	attr->max_qp_init_rd_atom = (int)hca_rd_init(s, p);
	attr->atomic_cap = p->no_atomics ? IBV_ATOMIC_NONE : IBV_ATOMIC_HCA;
	attr->max_srq = (int)p->srqs;
	attr->max_srq_wr = p->srqs ? (int)p->srq_wr : 0;
	attr->max_srq_sge = p->srqs ? (int)p->sge_max : 0;
	attr->max_ah = INT32_MAX;
	attr->max_mcast_grp = s->nets ? 0 : HCA_MEMBERS_MAX;
	attr->max_mcast_qp_attach = attr->max_total_mcast_qp_attach = attr->max_mcast_grp;
	attr->max_pkeys = p->pkeys[0];
	attr->phys_port_cnt = (uint8_t)s->ports;
	return 0;
}

int hca_query_device_ex(struct ibv_context *c, const struct ibv_query_device_ex_input *in,
			struct ibv_device_attr_ex *attr, size_t size)
{
	struct ibv_device_attr_ex full = { .comp_mask = 0 };

	if (in && in->comp_mask)
		return EINVAL;
	hca_query_device(c, &full.orig_attr);
	full.device_cap_flags_ex = full.orig_attr.device_cap_flags;
	full.completion_timestamp_mask = UINT64_MAX;
	full.hca_core_clock = 1000000;		/* kHz */
	full.max_dm_size = HCA_DM_MAX;
	full.phys_port_cnt_ex = (uint32_t)spec_of(c)->ports;
	memset(attr, 0, size);
	memcpy(attr, &full, size < sizeof(full) ? size : sizeof(full));
	return 0;
}

/* ---- Ports --------------------------------------------------------------- */

/*
 * The encoding of width x speed nearest to a rate.  An adapter's model has InfiniBand's data rates;
 * of Ethernet the codes mean the line rate.
 */
static void speed_of(uint64_t rate, bool ethernet, struct ibv_port_attr *attr)
{
	static const struct {
		uint16_t data, line;	/* per lane, in 100 Mb/s */
		uint8_t speed;
	} speeds[] = {
		{ 20, 25, 1 }, { 40, 50, 2 }, { 80, 100, 4 }, { 136, 140, 16 }, { 250, 250, 32 },
		{ 500, 500, 64 }, { 1000, 1000, 128 },
	};
	static const struct {
		uint8_t lanes, width;
	} widths[] = { { 1, 1 }, { 4, 2 }, { 8, 4 }, { 12, 8 } };
	uint64_t best = UINT64_MAX, want = rate * 8;
	unsigned w, s;

	for (w = 0; w < sizeof(widths) / sizeof(*widths); w++)
		for (s = 0; s < sizeof(speeds) / sizeof(*speeds); s++) {
			uint64_t lane = ethernet ? speeds[s].line : speeds[s].data;
			uint64_t have = widths[w].lanes * lane * 100000000ull;
			uint64_t off = have > want ? have - want : want - have;

			if (off < best) {
				best = off;
				attr->active_width = widths[w].width;
				attr->active_speed = speeds[s].speed;
			}
		}
}

enum { NEW_LID = 256 };			/* a change adds so much; the old one still leads to the port */

/* A model's port; an untimed one is 4X HDR. */
static void model_port(struct hca_fabric *f, uint32_t address, struct ibv_port_attr *attr)
{
	const struct hca_spec *s = &f->spec;
	uint64_t rate = s->rate[address % s->ports];
	uint32_t port;
	const struct hca_personality *p = hca_personality_at(s, address, &port);

	attr->lid = hca_lid_of(s, address);
	if (attr->lid)
		attr->lid = (uint16_t)(attr->lid + NEW_LID * hca_port_moves(f, address, IBV_EVENT_LID_CHANGE));
	attr->pkey_tbl_len = p->pkeys[port];
	if (p->link[port] == HCA_LINK_IB) {
		attr->link_layer = IBV_LINK_LAYER_INFINIBAND;
		attr->port_cap_flags &= ~(uint32_t)IBV_PORT_IP_BASED_GIDS;
		attr->flags = p->grh[port] ? IBV_QPF_GRH_REQUIRED : 0;
	}
	attr->active_width = 2;
	attr->active_speed = 64;
	if (rate)
		speed_of(rate, false, attr);
}

/* An interface has no LID.  An unknown speed and width are 0, unless the spec declares a rate. */
static void net_port(const struct hca_fabric *f, uint32_t port, struct ibv_port_attr *attr)
{
	uint64_t rate = f->spec.rate[port - 1];

	if (!rate)
		rate = f->netif[port - 1].rate;
	attr->active_width = attr->active_speed = 0;
	if (rate)
		speed_of(rate, true, attr);
}

enum { PHYS_DISABLED = 3, PHYS_LINK_UP = 5 };	/* IBTA, PortInfo:PortPhysicalState */

int hca_query_port(struct ibv_context *c, uint8_t port, struct ibv_port_attr *attr, size_t size)
{
	struct hca_fabric *f = hca_context_of(c)->fabric;
	struct ibv_port_attr full = {
		.max_mtu = IBV_MTU_4096,
		.gid_tbl_len = HCA_GIDS_MAX,
		.port_cap_flags = IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS,
		.max_msg_sz = HCA_MESSAGE_MAX,
		.pkey_tbl_len = 1,
		.max_vl_num = 1,
		.link_layer = IBV_LINK_LAYER_ETHERNET,
	};

	if (port < 1 || port > f->spec.ports)
		return EINVAL;
	full.state = hca_port_state(f, hca_context_address(c, port));
	full.phys_state = full.state == IBV_PORT_ACTIVE ? PHYS_LINK_UP : PHYS_DISABLED;
	full.active_mtu = (enum ibv_mtu)(hca_log2(hca_port_mtu(f, port)) - 7);
	if (hca_is_net(f))
		net_port(f, port, &full);
	else
		model_port(f, hca_context_address(c, port), &full);
	memset(attr, 0, size);
	memcpy(attr, &full, size < sizeof(full) ? size : sizeof(full));
	return 0;
}

int hca_query_pkey(struct ibv_context *c, uint8_t port, int index, __be16 *pkey)
{
	const struct hca_personality *p = hca_context_personality(c);

	if (port < 1 || port > spec_of(c)->ports || index < 0 || index >= p->pkeys[port - 1]) {
		errno = EINVAL;
		return -1;
	}
	*pkey = htobe16(p->pkey[port - 1][index]);
	return 0;
}
