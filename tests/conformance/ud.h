/* ud.h - what cases about datagrams have in common. */
#ifndef CONFORMANCE_UD_H
#define CONFORMANCE_UD_H

#include "conformance.h"

enum { GRH = 40, QKEY = 0x11223344 };

/* Made, with a CQ (NULL: its own) and an SRQ (NULL: none); brought up; both. */
struct end ud_make(struct side *s, struct ibv_cq *cq, struct ibv_srq *srq);
void ud_init(struct side *s, struct end *e, uint32_t qkey);
void ud_ready(struct end *e);
struct end ud_new(struct side *s, uint32_t qkey);

/* The other side's queue pair of the same call; a way to it. */
struct peer_address ud_swap(struct side *s, struct end *e);
struct ibv_ah *ah_to(struct side *s, const struct peer_address *to);

/* Posted; and over, with success, whatever became of it. */
void ud_post(struct end *e, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey,
	struct ibv_sge *sge, uint64_t wr_id);
void ud_send(struct end *e, struct ibv_ah *ah, uint32_t qpn, struct ibv_sge *sge,
	uint64_t wr_id);

#endif
