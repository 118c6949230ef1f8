/*
 * personality.h - the properties by which the adapters of vendors differ, apart from their speed:
 * keys of a spec (spec.h).  PERSONALITIES.md has the source of each set that like= names.
 *
 * A value may differ by node: A/B is A on node 0 and B on all others, A/B/C likewise.  Values of
 * ports are lists A+B, of port 1 and of all further ports.  P_Keys and GIDs are tables A:B:C of
 * such a port.
 */
#ifndef HCA_PERSONALITY_H
#define HCA_PERSONALITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "softhca/base/layout.h"

enum {
	HCA_PERSONALITIES = 4,		/* of nodes 0, 1, 2; of all others */
	HCA_PKEYS_MAX = 8,
	HCA_GIDS_MAX = 16,
};

#define HCA_NONE UINT64_MAX		/* a value that was not given */

/* HCA_ORDER_TIMED: of a timed model, too, which withholds the end of a write. */
enum hca_order { HCA_ORDER_MEMORY, HCA_ORDER_NEVER, HCA_ORDER_RTS, HCA_ORDER_TIMED };
enum hca_link_layer { HCA_LINK_MODEL, HCA_LINK_ETH, HCA_LINK_IB };

enum hca_gid_kind {
	HCA_GID_GAP, HCA_GID_LL, HCA_GID_IP4, HCA_GID_ALT4, HCA_GID_IP6,
	HCA_GID_SAME4,			/* of one network for all rails */
	HCA_GID_IB,
};

/* An entry of a GID table. */
struct hca_gid_entry {
	uint8_t kind;			/* enum hca_gid_kind */
	bool v2;			/* RoCE v2 */
	bool fails;			/* no address handle can be made from it */
};

/* Scalars are 64 bits, so that one parser serves them; of ports: index port - 1. */
struct hca_personality {
	uint64_t order;			/* enum hca_order: what ibv_query_qp_data_in_order says */
	uint64_t late;			/* the end of a message is written first */
	uint64_t no_ud, no_uc, no_atomics;
	uint64_t one_card;		/* all adapters of a node are functions of it */
	uint64_t srqs, srq_wr;		/* limits; srqs 0: EOPNOTSUPP */
	uint64_t inline_max;		/* bytes; HCA_NONE: as a model has it */
	uint64_t wr_max, sge_max, qps, cqe_max;
	uint64_t cq_memory;		/* locked bytes of all CQs of a process; HCA_NONE */
	uint64_t rd_atom;		/* READs and atomics that it answers at once; HCA_NONE: as reads */
	uint64_t rd_init;		/* the same, that it asks */
	uint64_t link[HCA_PORTS_MAX];	/* enum hca_link_layer */
	uint64_t lid[HCA_PORTS_MAX];	/* of address 0; 0: no port has one */
	uint64_t prefix[HCA_PORTS_MAX];	/* of the InfiniBand subnet */
	uint64_t grh[HCA_PORTS_MAX];	/* required, of an InfiniBand port */
	uint16_t pkey[HCA_PORTS_MAX][HCA_PKEYS_MAX];
	uint8_t pkeys[HCA_PORTS_MAX];
	struct hca_gid_entry gid[HCA_PORTS_MAX][HCA_GIDS_MAX];	/* Ethernet */
	uint8_t gids[HCA_PORTS_MAX];
};

/* ---- Sets of like= (like.c) ----------------------------------------------- */

#define HCA_LIKE_NAMES "mlx5-ib, mlx5-roce, mlx5-vf, mlx4, irdma-e810, bnxt_re, hns-hip08"

/* Set number i: its name and its keys.  False at the end. */
bool hca_like_set(unsigned i, const char **name, const char **spec);

#endif
