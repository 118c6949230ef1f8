/* group.c - datagrams from many senders, and multicast (IBTA 10.5). */
#include <errno.h>
#include <stdlib.h>

#include "ud.h"

enum { MANY = 4 };

/* ---- Many ---------------------------------------------------------------- */

/*
 * Several queue pairs of the other side, and one of our own, send to one; what
 * each sends arrives in order.  Never more are under way than are posted.
 */
static void many_senders(struct side *s, bool shared)
{
	enum { SLOTS = 32, BYTES = 256, COUNT = 400 };
	struct buffer b = buffer_new(s, 2 * SLOTS * BYTES, ACCESS_ALL);
	struct ibv_cq *cq = ibv_create_cq(s->ctx, 256, NULL, NULL, 0);
	struct ibv_srq_init_attr init = { .attr = { .max_wr = SLOTS, .max_sge = 1 } };
	struct ibv_srq *srq;
	uint32_t next[MANY] = { 0 }, total = 0, word[2];
	struct end target, from[MANY];
	struct peer_address to;
	struct ibv_ah *ah;
	uint64_t i, n;

	if (shared)
		want_limit("receives of an SRQ", SLOTS, s->dev.max_srq ? s->dev.max_srq_wr : 0);
	srq = shared ? ibv_create_srq(s->pd, &init) : NULL;
	require(cq != NULL && (!shared || srq));
	target = ud_make(s, cq, srq);
	ud_init(s, &target, QKEY);
	for (i = 0; s->me == 1 && i < SLOTS; i++) {
		struct ibv_sge sge = sge_of(&b, i * BYTES, BYTES);
		struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 }, *bad;

		require_equal(srq ? ibv_post_srq_recv(srq, &wr, &bad)
				  : ibv_post_recv(target.qp, &wr, &bad), 0);
	}
	ud_ready(&target);
	to = ud_swap(s, &target);
	ah = ah_to(s, &to);
	for (i = 0; s->me == 0 && i < MANY; i++)
		from[i] = ud_new(s, QKEY);
	barrier(s);
	for (n = 0; n < COUNT; n++) {
		for (i = 0; i < MANY && s->me == 0; i++) {
			unsigned char *at = b.at + i * BYTES;
			struct ibv_sge sge = sge_of(&b, i * BYTES, 8 + n % 200);

			word[0] = (uint32_t)i;
			word[1] = (uint32_t)n;
			memcpy(at, word, 8);
			fill(at + 8, i << 32 | n, n % 200);
			ud_send(&from[i], ah, to.qpn, &sge, n);
		}
		for (i = 0; i < MANY && s->me == 1; i++) {
			struct ibv_wc wc = wait_ok(cq);
			unsigned char *at = b.at + wc.wr_id * BYTES + GRH;
			struct ibv_sge sge = sge_of(&b, wc.wr_id * BYTES, BYTES);
			struct ibv_recv_wr wr = { .wr_id = wc.wr_id, .sg_list = &sge,
						  .num_sge = 1 }, *bad;

			memcpy(word, at, 8);
			require(word[0] < MANY);
			require_equal(word[1], next[word[0]]++);
			require_equal(wc.byte_len, GRH + 8 + word[1] % 200);
			check(at + 8, (uint64_t)word[0] << 32 | word[1], word[1] % 200, "many");
			total++;
			require_equal(srq ? ibv_post_srq_recv(srq, &wr, &bad)
					  : ibv_post_recv(target.qp, &wr, &bad), 0);
		}
		if (n % 4 == 3)
			barrier(s);
	}
	require(s->me == 0 || total == MANY * COUNT);
	barrier(s);
	for (i = 0; s->me == 0 && i < MANY; i++)
		end_free(&from[i]);
	require_equal(ibv_destroy_ah(ah), 0);
	end_free(&target);
	if (srq)
		require_equal(ibv_destroy_srq(srq), 0);
	require_equal(ibv_destroy_cq(cq), 0);
	buffer_free(s, &b);
}

static void test_many(struct side *s)
{
	many_senders(s, false);
}

static void test_many_srq(struct side *s)
{
	if (!s->dev.max_srq)
		skip("the device has no SRQ");
	many_senders(s, true);
}

/* ---- Multicast ----------------------------------------------------------- */

/* Multicast over IPv6 addresses, where the port has one. */
static int ipv6_index(struct side *s)
{
	union ibv_gid gid;
	int i;

	if (s->gid_index < 0)
		skip("multicast needs a GRH");
	for (i = 0; i < s->port.gid_tbl_len; i++)
		if (!ibv_query_gid(s->ctx, (uint8_t)s->port_num, i, &gid) && gid.raw[0] == 0xfe)
			return i;
	skip("no link-local GID");
}

static void test_multicast(struct side *s)
{
	static const union ibv_gid group = { .raw = { 0xff, 0x0e, [11] = 0x77, [15] = 1 } };
	static const union ibv_gid unicast = { .raw = { 0xfe, 0x80, [15] = 1 } };
	struct buffer b = buffer_new(s, 4096, ACCESS_ALL);
	struct end e = ud_new(s, QKEY), member = ud_new(s, QKEY), other = ud_new(s, QKEY + 1);
	struct ibv_ah_attr a = { .is_global = 1, .port_num = (uint8_t)s->port_num,
				 .grh = { .dgid = group, .hop_limit = 1,
					  .sgid_index = (uint8_t)ipv6_index(s) } };
	struct ibv_sge in = sge_of(&b, 0, GRH + 64), out = sge_of(&b, 2048, 50);
	struct ibv_ah *ah;
	struct end rc;
	struct ibv_wc wc;

	if (!s->dev.max_mcast_grp)
		skip("the device has no multicast");
	ah = ibv_create_ah(s->pd, &a);
	if (!ah)
		fail("ibv_create_ah to a group: %s", strerror(errno));
	rc = end_new(s, NULL);
	require(ibv_attach_mcast(rc.qp, &group, 0) != 0);
	require(ibv_attach_mcast(e.qp, &unicast, 0) != 0);
	end_free(&rc);
	require_equal(ibv_attach_mcast(member.qp, &group, 0), 0);
	require_equal(ibv_attach_mcast(other.qp, &group, 0), 0);
	require_equal(ibv_destroy_qp(member.qp), EBUSY);
	post_receive(&member, 1, &in, 1);
	post_receive(&other, 2, &in, 1);
	barrier(s);
	/* From one that is no member to those of both sides; not where the key is another. */
	if (s->me == 0) {
		fill(b.at + 2048, 8, 50);
		ud_post(&e, ah, 0xffffff, QKEY, &out, 3);
		expect(e.cq, 3, IBV_WC_SUCCESS);
	}
	wc = wait_ok(member.cq);
	require_equal(wc.wr_id, 1);
	require_equal(wc.byte_len, GRH + 50);
	require(wc.wc_flags & IBV_WC_GRH);
	require(memcmp(b.at + 24, &group, sizeof(group)) == 0);
	check(b.at + GRH, 8, 50, "multicast");
	expect_nothing(other.cq, 20);
	barrier(s);
	/* A member that sends gets it too; who has left does not. */
	if (s->me == 1)
		require_equal(ibv_detach_mcast(member.qp, &group, 0), 0);
	require_equal(ibv_detach_mcast(other.qp, &group, 0), 0);
	require(ibv_detach_mcast(other.qp, &group, 0) != 0);
	post_receive(&member, 4, &in, 1);
	barrier(s);
	if (s->me == 0) {
		int i, seen = 0;

		ud_post(&member, ah, 0xffffff, QKEY, &out, 5);
		for (i = 0; i < 2; i++)
			seen |= 1 << wait_ok(member.cq).wr_id;
		require_equal(seen, 1 << 4 | 1 << 5);
		require_equal(ibv_detach_mcast(member.qp, &group, 0), 0);
	} else {
		expect_nothing(member.cq, 50);
	}
	barrier(s);
	require_equal(ibv_destroy_ah(ah), 0);
	end_free(&e);
	end_free(&member);
	end_free(&other);
	buffer_free(s, &b);
}

const struct test group_tests[] = {
	{ "ud_many", test_many },
	{ "ud_many_srq", test_many_srq },
	{ "ud_multicast", test_multicast },
	{ NULL, NULL },
};
