/* ud.h - functions that cases about datagrams share. */
#ifndef CONFORMANCE_UD_H
#define CONFORMANCE_UD_H

#include "conformance.h"

enum { GRH = 40, QKEY = 0x11223344 };

/* Create one, with a CQ (NULL: its own) and an SRQ (NULL: none); bring it up; both. */
struct end ud_make(struct side *s, struct ibv_cq *cq, struct ibv_srq *srq);
void ud_init(struct side *s, struct end *e, uint32_t qkey);
void ud_ready(struct end *e);
struct end ud_new(struct side *s, uint32_t qkey);

/* The other side's queue pair of the same call; an address handle to it. */
struct peer_address ud_swap(struct side *s, struct end *e);
struct ibv_ah *ah_to(struct side *s, const struct peer_address *to);

/* A software HCA's wc.sl: 1 of an IPv6 header, 2 of an IPv4 one (src/softhca/object/ah.h). */
int header_sl(const struct side *s);

/* Post it; the latter also waits for its completion, which is a success in any case. */
void ud_post(struct end *e, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey,
	struct ibv_sge *sge, uint64_t wr_id);
void ud_send(struct end *e, struct ibv_ah *ah, uint32_t qpn, struct ibv_sge *sge,
	uint64_t wr_id);

#endif
