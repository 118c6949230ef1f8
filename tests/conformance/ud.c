/*
 * ud.c - datagrams: address handles, the GRH, which messages are lost and which
 * are errors (IBTA 9.8.3, 11.2.4).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>

#include "ud.h"
#include "softhca/softhca.h"

/* ---- Queue pairs --------------------------------------------------------- */

struct end ud_make(struct side *s, struct ibv_cq *cq, struct ibv_srq *srq)
{
	struct end_config c = end_defaults;

	c.type = IBV_QPT_UD;
	c.cq = cq;
	c.srq = srq;
	return end_new(s, &c);
}

void ud_init(struct side *s, struct end *e, uint32_t qkey)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = (uint8_t)s->port_num,
				 .qkey = qkey };

	require_equal(ibv_modify_qp(e->qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				    IBV_QP_QKEY), 0);
}

void ud_ready(struct end *e)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RTR };

	require_equal(ibv_modify_qp(e->qp, &a, IBV_QP_STATE), 0);
	a.qp_state = IBV_QPS_RTS;
	require_equal(ibv_modify_qp(e->qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
}

struct end ud_new(struct side *s, uint32_t qkey)
{
	struct end e = ud_make(s, NULL, NULL);

	ud_init(s, &e, qkey);
	ud_ready(&e);
	return e;
}

/* The other side's queue pair of the same call. */
struct peer_address ud_swap(struct side *s, struct end *e)
{
	struct peer_address mine = end_address(s, e), theirs;

	swap(s, &mine, &theirs, sizeof(mine));
	return theirs;
}

static struct ibv_ah_attr attr_to(const struct side *s, const struct peer_address *to)
{
	struct ibv_ah_attr a = { .dlid = to->lid, .port_num = (uint8_t)s->port_num };

	if (s->gid_index >= 0) {
		a.is_global = 1;
		a.grh.dgid = to->gid;
		a.grh.sgid_index = (uint8_t)s->gid_index;
		a.grh.hop_limit = 64;
	}
	return a;
}

struct ibv_ah *ah_to(struct side *s, const struct peer_address *to)
{
	struct ibv_ah_attr a = attr_to(s, to);
	struct ibv_ah *ah = ibv_create_ah(s->pd, &a);

	if (!ah)
		fail("ibv_create_ah: %s", strerror(errno));
	return ah;
}

void ud_post(struct end *e, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey,
		    struct ibv_sge *sge, uint64_t wr_id)
{
	struct ibv_send_wr wr = send_wr(sge, wr_id);

	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = qpn;
	wr.wr.ud.remote_qkey = qkey;
	post(e, wr);
}

void ud_send(struct end *e, struct ibv_ah *ah, uint32_t qpn, struct ibv_sge *sge,
		    uint64_t wr_id)
{
	ud_post(e, ah, qpn, QKEY, sge, wr_id);
	expect(e->cq, wr_id, IBV_WC_SUCCESS);
}

/* ---- What is in front of the message -------------------------------------- */

static bool is_ipv4(const union ibv_gid *gid)
{
	static const unsigned char mapped[12] = { [10] = 0xff, [11] = 0xff };

	return memcmp(gid->raw, mapped, sizeof(mapped)) == 0;
}

int header_sl(const struct side *s)
{
	struct ibv_gid_entry entry;

	/* The packet has an SL itself, here 0. */
	if (!ibv_query_gid_ex(s->ctx, (uint32_t)s->port_num, (uint32_t)s->gid_index, &entry, 0) &&
	    entry.gid_type != IBV_GID_TYPE_ROCE_V2)
		return 0;
	return is_ipv4(&s->gid) ? 2 : 1;
}

static uint16_t ip_checksum(const unsigned char *at)
{
	uint32_t sum = 0;
	int i;

	for (i = 0; i < 20; i += 2)
		sum += (uint32_t)at[i] << 8 | at[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)(sum + (sum >> 16));
}

static void check_grh(const struct side *s, const unsigned char *at, size_t bytes,
		      const union ibv_gid *from, const union ibv_gid *to)
{
	const size_t udp = 8 + 12 + 8 + (bytes + 3) / 4 * 4 + 4;

	if (s->port.link_layer == IBV_LINK_LAYER_ETHERNET && is_ipv4(from)) {
		require_equal(at[20], 0x45);
		require_equal(at[22] << 8 | at[23], 20 + udp);
		require_equal(at[29], 17);
		require_equal(ip_checksum(at + 20), 0xffff);
		require(memcmp(at + 32, from->raw + 12, 4) == 0);
		require(memcmp(at + 36, to->raw + 12, 4) == 0);
		return;
	}
	require_equal(at[0] >> 4, 6);
	if (s->port.link_layer == IBV_LINK_LAYER_ETHERNET)
		require_equal(at[4] << 8 | at[5], udp);
	require(memcmp(at + 8, from, sizeof(*from)) == 0);
	require(memcmp(at + 24, to, sizeof(*to)) == 0);
}

/* ---- Address handles ----------------------------------------------------- */

/* A model's link-local GID is made from the address (EUI-64), which no VLAN has. */
static void check_mac(struct side *s, struct ibv_ah_attr *a)
{
	struct softhca_model model;
	uint8_t eui[8], mac[6];
	union ibv_gid local;
	uint16_t vid = 0;

	require_equal(ibv_query_gid(s->ctx, (uint8_t)s->port_num, 0, &local), 0);
	require_equal(softhca_query_model(s->ctx->device, &model), 0);
	require_equal(ibv_resolve_eth_l2_from_gid(s->ctx, a, mac, &vid), 0);
	require_equal(vid, 0xffff);
	memcpy(eui, (const uint8_t[]){ mac[0] ^ 2, mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4],
				       mac[5] }, sizeof(eui));
	require(model.net || local.raw[0] == 0xfe);
	require(model.net || !memcmp(eui, local.raw + 8, sizeof(eui)));
	a->is_global = 0;
	require_equal(ibv_resolve_eth_l2_from_gid(s->ctx, a, mac, &vid), EINVAL);
	a->is_global = 1;
}

static void test_ah(struct side *s)
{
	struct peer_address me = { .lid = s->port.lid, .gid = s->gid };
	struct ibv_ah_attr a = attr_to(s, &me);
	struct ibv_ah *ah[64];
	int i;

	require(s->dev.max_ah >= 64);
	for (i = 0; i < 64; i++) {
		ah[i] = ibv_create_ah(s->pd, &a);
		require(ah[i] != NULL);
		require(ah[i]->pd == s->pd && ah[i]->context == s->ctx);
	}
	for (i = 0; i < 64; i++)
		require_equal(ibv_destroy_ah(ah[i]), 0);
	if (softhca_is_device(s->ctx->device) && a.is_global &&
	    s->port.link_layer == IBV_LINK_LAYER_ETHERNET)
		check_mac(s, &a);
	a.port_num = (uint8_t)(s->dev.phys_port_cnt + 1);
	require(!ibv_create_ah(s->pd, &a));
}

/* ---- Messages ------------------------------------------------------------ */

static void test_send(struct side *s)
{
	const size_t mtu = (size_t)128 << s->port.active_mtu;
	const size_t sizes[] = { 0, 1, 3, 4, 7, 8, 9, 63, 64, 100, mtu - 9, mtu - 1, mtu };
	struct buffer b = buffer_new(s, GRH + 8192, ACCESS_ALL);
	struct end e = ud_new(s, QKEY);
	struct peer_address to = ud_swap(s, &e);
	struct ibv_ah *ah = ah_to(s, &to);
	size_t i;

	/* Programs send datagrams as long as inline data may be. */
	require(end_granted(&e).max_inline_data <= mtu);
	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		struct ibv_sge sge = sge_of(&b, 0, GRH + sizes[i]);
		struct ibv_wc wc;

		if (s->me == 0) {
			struct ibv_send_wr wr;

			sge = sge_of(&b, 0, sizes[i]);
			wr = send_wr(&sge, i);
			fill(b.at, i, sizes[i]);
			wr.opcode = i % 2 ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND;
			wr.imm_data = (uint32_t)(0x5500 + i);
			wr.wr.ud.ah = ah;
			wr.wr.ud.remote_qpn = to.qpn;
			wr.wr.ud.remote_qkey = QKEY;
			barrier(s);
			post(&e, wr);
			wc = wait_ok(e.cq);
			require_equal(wc.opcode, IBV_WC_SEND);
			require_equal(wc.wr_id, i);
		} else {
			memset(b.at, 0xee, b.bytes);
			post_receive(&e, i, &sge, 1);
			barrier(s);
			wc = wait_ok(e.cq);
			require_equal(wc.wr_id, i);
			require_equal(wc.opcode, IBV_WC_RECV);
			require_equal(wc.byte_len, GRH + sizes[i]);
			require_equal(wc.src_qp, to.qpn);
			require_equal(wc.qp_num, e.qp->qp_num);
			require_equal(wc.pkey_index, 0);
			require_equal(!!(wc.wc_flags & IBV_WC_WITH_IMM), i % 2);
			if (i % 2)
				require_equal(wc.imm_data, 0x5500 + i);
			require_equal(!!(wc.wc_flags & IBV_WC_GRH), s->gid_index >= 0);
			/* UCX finds the receiver's GID in the header by this (ah.h). */
			if (softhca_is_device(s->ctx->device) && s->gid_index >= 0)
				require_equal(wc.sl, header_sl(s));
			if (s->gid_index >= 0)
				check_grh(s, b.at, sizes[i], &to.gid, &s->gid);
			else
				require_equal(wc.slid, to.lid);
			check(b.at + GRH, i, sizes[i], "received");
			check_untouched(b.at + GRH + sizes[i], 0xee, 64, "behind the message");
		}
		barrier(s);
	}
	require_equal(ibv_destroy_ah(ah), 0);
	end_free(&e);
	buffer_free(s, &b);
}

/* The header may be in a buffer of its own; the data comes from several, or inline. */
static void test_pieces(struct side *s)
{
	struct buffer b = buffer_new(s, 4096, ACCESS_ALL);
	struct end_config c = end_defaults;
	struct peer_address to;
	struct ibv_ah *ah;
	struct end e;

	c.type = IBV_QPT_UD;
	c.send_sge = c.recv_sge = 3;
	c.inline_bytes = 91;
	e = end_new(s, &c);
	ud_init(s, &e, QKEY);
	ud_ready(&e);
	to = ud_swap(s, &e);
	ah = ah_to(s, &to);
	if (s->me == 0) {
		struct ibv_sge sge[3] = { sge_of(&b, 0, 10), sge_of(&b, 10, 1),
					  sge_of(&b, 11, 80) };
		struct ibv_send_wr wr = send_wr(sge, 1);

		fill(b.at, 5, 91);
		wr.num_sge = 3;
		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = to.qpn;
		wr.wr.ud.remote_qkey = QKEY;
		barrier(s);
		post(&e, wr);
		wr.send_flags |= IBV_SEND_INLINE;
		sge[0].lkey = sge[1].lkey = sge[2].lkey = 0;
		post(&e, wr);
		wait_ok(e.cq);
		wait_ok(e.cq);
	} else {
		int i;

		for (i = 0; i < 2; i++) {
			struct ibv_sge sge[3] = { sge_of(&b, (size_t)i * 1000 + 900, GRH),
						  sge_of(&b, (size_t)i * 1000, 30),
						  sge_of(&b, (size_t)i * 1000 + 30, 200) };

			post_receive(&e, (uint64_t)i, sge, 3);
		}
		barrier(s);
		for (i = 0; i < 2; i++) {
			require_equal(wait_ok(e.cq).byte_len, GRH + 91);
			check(b.at + i * 1000, 5, 91, "received");
			check_untouched(b.at + i * 1000 + 91, 0xee, 100, "behind");
			if (s->gid_index >= 0)
				check_grh(s, b.at + i * 1000 + 900, 91, &to.gid, &s->gid);
		}
	}
	barrier(s);
	require_equal(ibv_destroy_ah(ah), 0);
	end_free(&e);
	buffer_free(s, &b);
}

/* The answer goes to where the question came from. */
static void test_reply(struct side *s)
{
	struct buffer b = buffer_new(s, 4096, ACCESS_ALL);
	struct end e = ud_new(s, QKEY);
	struct peer_address to = ud_swap(s, &e);
	struct ibv_sge in = sge_of(&b, 0, GRH + 100), out = sge_of(&b, 2048, 100);
	struct ibv_ah *ah;
	struct ibv_wc wc;

	post_receive(&e, 7, &in, 1);
	barrier(s);
	if (s->me == 0) {
		ah = ah_to(s, &to);
		fill(b.at + 2048, 1, 100);
		ud_send(&e, ah, to.qpn, &out, 1);
		wc = wait_ok(e.cq);
		require_equal(wc.src_qp, to.qpn);
		check(b.at + GRH, 2, 100, "the answer");
	} else {
		struct ibv_ah_attr attr;

		wc = wait_ok(e.cq);
		check(b.at + GRH, 1, 100, "the question");
		require_equal(ibv_init_ah_from_wc(s->ctx, (uint8_t)s->port_num, &wc,
						  (struct ibv_grh *)(void *)b.at, &attr), 0);
		require_equal(attr.port_num, s->port_num);
		require_equal(attr.is_global, s->gid_index >= 0);
		if (s->gid_index >= 0) {
			require_equal(attr.grh.sgid_index, s->gid_index);
			require(memcmp(&attr.grh.dgid, &to.gid, sizeof(to.gid)) == 0);
		} else {
			require_equal(attr.dlid, to.lid);
		}
		ah = ibv_create_ah_from_wc(s->pd, &wc, (struct ibv_grh *)(void *)b.at,
					   (uint8_t)s->port_num);
		require(ah != NULL);
		fill(b.at + 2048, 2, 100);
		ud_send(&e, ah, wc.src_qp, &out, 2);
	}
	barrier(s);
	require_equal(ibv_destroy_ah(ah), 0);
	end_free(&e);
	buffer_free(s, &b);
}

/* A queue pair may send to itself. */
static void test_self(struct side *s)
{
	struct buffer b = buffer_new(s, 4096, ACCESS_ALL);
	struct end e = ud_new(s, QKEY);
	struct peer_address me = end_address(s, &e);
	struct ibv_ah *ah = ah_to(s, &me);
	struct ibv_sge in = sge_of(&b, 0, GRH + 100), out = sge_of(&b, 2048, 77);
	int i, sent = 0, received = 0;

	fill(b.at + 2048, 3, 77);
	post_receive(&e, 1, &in, 1);
	ud_post(&e, ah, me.qpn, QKEY, &out, 2);
	for (i = 0; i < 2; i++) {
		struct ibv_wc wc = wait_ok(e.cq);

		sent += wc.wr_id == 2;
		received += wc.wr_id == 1 && wc.src_qp == me.qpn;
	}
	require(sent == 1 && received == 1);
	check(b.at + GRH, 3, 77, "from itself");
	require_equal(ibv_destroy_ah(ah), 0);
	end_free(&e);
	buffer_free(s, &b);
}

/* ---- Lost ---------------------------------------------------------------- */

/* One message that arrives, to show that nothing came before it. */
static void arrives(struct side *s, struct end *e, struct buffer *b, struct ibv_ah *ah,
		    uint32_t qpn, uint64_t wr_id)
{
	struct ibv_sge out = sge_of(b, 2048, 32);

	if (s->me == 0) {
		fill(b->at + 2048, wr_id, 32);
		ud_send(e, ah, qpn, &out, wr_id);
	} else {
		struct ibv_wc wc = wait_ok(e->cq);

		require_equal(wc.wr_id, wr_id);
		require_equal(wc.byte_len, GRH + 32);
		check(b->at + GRH, wr_id, 32, "what arrives");
	}
	barrier(s);
}

static void test_lost(struct side *s)
{
	struct buffer b = buffer_new(s, 16384, ACCESS_ALL);
	struct end e = ud_new(s, QKEY), gone = ud_new(s, QKEY);
	struct peer_address to = ud_swap(s, &e), nobody = ud_swap(s, &gone);
	struct ibv_ah *ah = ah_to(s, &to);
	struct ibv_sge in = sge_of(&b, 0, GRH + 64), out = sge_of(&b, 2048, 64);
	struct ibv_sge much = sge_of(&b, 4096, ((size_t)128 << s->port.active_mtu) + 1);
	struct ibv_sge shorter = sge_of(&b, 0, GRH + 32);

	end_free(&gone);
	barrier(s);
	/* Nothing is posted: lost, at the sender all is well.  (On a wire it may arrive late.) */
	if (s->me == 0 && !s->options->wire)
		ud_send(&e, ah, to.qpn, &out, 10);
	barrier(s);
	if (s->me == 1)
		post_receive(&e, 1, &in, 1);
	barrier(s);
	if (s->me == 0) {
		ud_send(&e, ah, nobody.qpn, &out, 11);
		ud_post(&e, ah, to.qpn, QKEY + 1, &out, 12);
		expect(e.cq, 12, IBV_WC_SUCCESS);
		if (s->port.active_mtu < IBV_MTU_4096 || b.bytes > 4096 + 4097)
			ud_send(&e, ah, to.qpn, &much, 13);	/* C10-93.1.1 */
	}
	barrier(s);
	arrives(s, &e, &b, ah, to.qpn, 1);
	/* Longer than the receive, which waits for another one. */
	if (s->me == 1)
		post_receive(&e, 2, &shorter, 1);
	barrier(s);
	if (s->me == 0)
		ud_send(&e, ah, to.qpn, &out, 14);
	barrier(s);
	arrives(s, &e, &b, ah, to.qpn, 2);
	require_equal(end_state(&e), IBV_QPS_RTS);
	require_equal(ibv_destroy_ah(ah), 0);
	end_free(&e);
	buffer_free(s, &b);
}

/* Datagrams to more numbers than a device may remember are lost, and the others arrive in between. */
static void test_strangers(struct side *s)
{
	enum { STRANGERS = 1100, EVERY = 275 };
	struct buffer b = buffer_new(s, 16384, ACCESS_ALL);
	struct end e = ud_new(s, QKEY);
	struct peer_address to = ud_swap(s, &e);
	struct ibv_ah *ah = ah_to(s, &to);
	struct ibv_sge in = sge_of(&b, 0, GRH + 64), out = sge_of(&b, 2048, 64);
	uint32_t qpn = to.qpn;

	for (uint64_t i = 1; i <= STRANGERS; i++) {
		qpn = qpn < 0xfffff0 ? qpn + 1 : 2;
		/* Under a key of their own, if a number is in use. */
		if (s->me == 0) {
			ud_post(&e, ah, qpn, QKEY + 1, &out, i);
			expect(e.cq, i, IBV_WC_SUCCESS);
		}
		if (i % EVERY)
			continue;
		if (s->me == 1)
			post_receive(&e, i, &in, 1);
		barrier(s);
		arrives(s, &e, &b, ah, to.qpn, i);
	}
	require_equal(ibv_destroy_ah(ah), 0);
	end_free(&e);
	buffer_free(s, &b);
}

/* A privileged key in the request stands for the queue pair's own. */
static void test_qkey(struct side *s)
{
	struct buffer b = buffer_new(s, 4096, ACCESS_ALL);
	struct end e = ud_new(s, QKEY), other = ud_new(s, QKEY + 5);
	struct peer_address to = ud_swap(s, &e);
	struct ibv_ah *ah = ah_to(s, &to);
	struct ibv_sge in = sge_of(&b, 0, GRH + 64), out = sge_of(&b, 2048, 64);

	if (s->me == 1)
		post_receive(&e, 1, &in, 1);
	barrier(s);
	if (s->me == 0) {
		ud_post(&other, ah, to.qpn, 0x80000000u | QKEY, &out, 2);
		expect(other.cq, 2, IBV_WC_SUCCESS);
		ud_post(&e, ah, to.qpn, 0x80000001u, &out, 3);
		expect(e.cq, 3, IBV_WC_SUCCESS);
	} else {
		struct ibv_wc wc = wait_ok(e.cq);

		require_equal(wc.src_qp, to.qpn);
		expect_nothing(e.cq, 20);
	}
	barrier(s);
	/* A new key counts from now on. */
	if (s->me == 1) {
		struct ibv_qp_attr a = { .qkey = 99 };

		require_equal(ibv_modify_qp(e.qp, &a, IBV_QP_QKEY), 0);
		post_receive(&e, 4, &in, 1);
	}
	barrier(s);
	if (s->me == 0) {
		ud_send(&e, ah, to.qpn, &out, 5);
		ud_post(&e, ah, to.qpn, 99, &out, 6);
		expect(e.cq, 6, IBV_WC_SUCCESS);
	} else {
		expect(e.cq, 4, IBV_WC_SUCCESS);
		expect_nothing(e.cq, 20);
	}
	barrier(s);
	require_equal(ibv_destroy_ah(ah), 0);
	end_free(&e);
	end_free(&other);
	buffer_free(s, &b);
}

/* ---- Errors -------------------------------------------------------------- */

/* Our own mistake stops sending; receiving goes on, and sending may be taken up again. */
static void test_local_error(struct side *s)
{
	struct buffer b = buffer_new(s, 4096, ACCESS_ALL);
	struct end e = ud_new(s, QKEY);
	struct peer_address to = ud_swap(s, &e);
	struct ibv_ah *ah = ah_to(s, &to);
	struct ibv_sge in = sge_of(&b, 0, GRH + 64), out = sge_of(&b, 2048, 64), bad = out;

	bad.lkey ^= 0x5a5a5a;
	post_receive(&e, 1, &in, 1);
	barrier(s);
	if (s->me == 0) {
		ud_post(&e, ah, to.qpn, QKEY, &bad, 2);
		expect(e.cq, 2, IBV_WC_LOC_PROT_ERR);
		require_equal(end_state(&e), IBV_QPS_SQE);
		ud_post(&e, ah, to.qpn, QKEY, &out, 3);
		expect(e.cq, 3, IBV_WC_WR_FLUSH_ERR);
		barrier(s);
		expect(e.cq, 1, IBV_WC_SUCCESS);
		require_equal(end_to(&e, IBV_QPS_RTS), 0);
		ud_send(&e, ah, to.qpn, &out, 4);
	} else {
		barrier(s);
		ud_send(&e, ah, to.qpn, &out, 2);
		expect(e.cq, 1, IBV_WC_SUCCESS);
	}
	barrier(s);
	require_equal(ibv_destroy_ah(ah), 0);
	end_free(&e);
	buffer_free(s, &b);
}

/* Receives whose buffers are not theirs to use fail where they were posted. */
static void test_bad_receive(struct side *s)
{
	struct buffer b = buffer_new(s, 4096, ACCESS_ALL);
	struct end e = ud_new(s, QKEY);
	struct peer_address to = ud_swap(s, &e);
	struct ibv_ah *ah = ah_to(s, &to);
	struct ibv_sge in = sge_of(&b, 0, GRH + 64), out = sge_of(&b, 2048, 64), bad = in;

	bad.lkey ^= 0x5a5a5a;
	if (s->me == 1) {
		post_receive(&e, 1, &bad, 1);
		post_receive(&e, 2, &in, 1);
		barrier(s);
		expect(e.cq, 1, IBV_WC_LOC_PROT_ERR);
		expect(e.cq, 2, IBV_WC_WR_FLUSH_ERR);
		require_equal(end_state(&e), IBV_QPS_ERR);
	} else {
		barrier(s);
		ud_send(&e, ah, to.qpn, &out, 1);
		require_equal(end_state(&e), IBV_QPS_RTS);
	}
	barrier(s);
	require_equal(ibv_destroy_ah(ah), 0);
	end_free(&e);
	buffer_free(s, &b);
}

static void test_flush(struct side *s)
{
	struct buffer b = buffer_new(s, 4096, ACCESS_ALL);
	struct end e = ud_new(s, QKEY);
	struct peer_address to = ud_swap(s, &e);
	struct ibv_ah *ah = ah_to(s, &to);
	struct ibv_sge in = sge_of(&b, 0, GRH + 64), out = sge_of(&b, 2048, 64);
	uint64_t i;

	for (i = 0; i < 40; i++)
		post_receive(&e, i, &in, 1);
	require_equal(end_to(&e, IBV_QPS_ERR), 0);
	for (i = 0; i < 40; i++)
		expect(e.cq, i, IBV_WC_WR_FLUSH_ERR);
	post_receive(&e, 50, &in, 1);
	expect(e.cq, 50, IBV_WC_WR_FLUSH_ERR);
	ud_post(&e, ah, to.qpn, QKEY, &out, 51);
	expect(e.cq, 51, IBV_WC_WR_FLUSH_ERR);
	/* And from the beginning again; what was posted is forgotten. */
	require_equal(end_to(&e, IBV_QPS_RESET), 0);
	ud_init(s, &e, QKEY);
	for (i = 0; i < 64; i++)
		post_receive(&e, 100 + i, &in, 1);
	require_equal(end_to(&e, IBV_QPS_RESET), 0);
	ud_init(s, &e, QKEY);
	for (i = 0; i < 64; i++)
		post_receive(&e, 200 + i, &in, 1);
	ud_ready(&e);
	barrier(s);
	if (s->me == 0)
		ud_send(&e, ah, to.qpn, &out, 52);
	else
		expect(e.cq, 200, IBV_WC_SUCCESS);
	barrier(s);
	require_equal(ibv_destroy_ah(ah), 0);
	end_free(&e);
	buffer_free(s, &b);
}

/* What is still sent to a queue pair that is gone does not reach the one after it. */
static void test_old_number(struct side *s)
{
	enum { NEW = 4 };
	struct buffer b = buffer_new(s, (NEW + 1) * 256, ACCESS_ALL);
	struct end e = ud_new(s, QKEY);
	struct peer_address old = ud_swap(s, &e), to;
	struct ibv_ah *ah = ah_to(s, &old);
	struct ibv_sge sge[NEW + 1];
	uint64_t i;

	for (i = 0; i <= NEW; i++)
		sge[i] = sge_of(&b, i * 256, GRH + 64);
	if (s->me == 1)
		post_receive(&e, 0, &sge[0], 1);
	barrier(s);
	if (s->me == 0) {
		sge[0].length = 64;
		ud_send(&e, ah, old.qpn, &sge[0], 1);
	} else {
		expect(e.cq, 0, IBV_WC_SUCCESS);
		end_free(&e);
		e = ud_new(s, QKEY);
		for (i = 1; i <= NEW; i++)
			post_receive(&e, i, &sge[i], 1);
	}
	to = ud_swap(s, &e);
	if (s->me == 0) {
		for (i = 1; i <= 2 * NEW && to.qpn != old.qpn; i++)
			ud_send(&e, ah, old.qpn, &sge[0], i);
		for (i = 1; i <= NEW; i++) {
			fill(b.at, i, 64);
			ud_send(&e, ah, to.qpn, &sge[0], i);
		}
	}
	barrier(s);
	for (i = 1; s->me == 1 && i <= NEW; i++) {
		expect(e.cq, i, IBV_WC_SUCCESS);
		check(b.at + i * 256 + GRH, i, 64, "of the new one");
	}
	barrier(s);
	require_equal(ibv_destroy_ah(ah), 0);
	end_free(&e);
	buffer_free(s, &b);
}

const struct test ud_tests[] = {
	{ "ud_ah", test_ah },
	{ "ud_send", test_send },
	{ "ud_pieces", test_pieces },
	{ "ud_reply", test_reply },
	{ "ud_self", test_self },
	{ "ud_lost", test_lost },
	{ "ud_strangers", test_strangers },
	{ "ud_qkey", test_qkey },
	{ "ud_local_error", test_local_error },
	{ "ud_bad_receive", test_bad_receive },
	{ "ud_flush", test_flush },
	{ "ud_old_number", test_old_number },
	{ NULL, NULL },
};
