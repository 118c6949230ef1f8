/* mcast.c - multicast groups. */
#include <string.h>

#include "softhca/base/gid.h"
#include "softhca/object/mcast.h"
#include "softhca/object/link.h"
#include "softhca/object/net.h"
#include "softhca/object/qp.h"

enum { FREE, FILLING, MEMBER };

/* An entry's owner word: count of ownership changes, claimer, state. */
static uint64_t owner_word(uint64_t before, uint32_t claim, uint32_t state)
{
	return ((before >> 32) + 1) << 32 | claim << 8 | state;
}

static uint32_t member_state(uint64_t owner)
{
	return (uint32_t)owner & 0xff;
}

static uint32_t claim_of(uint64_t owner)
{
	return (uint32_t)owner >> 8;
}

static void groups_changed(struct hca_fabric *f)
{
	atomic_fetch_add_explicit(&f->shm->member_epoch, 1, memory_order_release);
}

static uint32_t top_of(const struct hca_fabric *f)
{
	uint32_t top = atomic_load_explicit(&f->shm->member_top, memory_order_acquire);

	return top < HCA_MEMBERS_MAX ? top : HCA_MEMBERS_MAX;
}

/* ---- Entries of this process: no other writes to them; its threads do ----- */

/* The words of a group's address. */
struct group {
	uint64_t word[2];
};

static struct group group_of(const union ibv_gid *gid)
{
	struct group g;

	memcpy(g.word, gid, sizeof(g.word));
	return g;
}

static bool is_group(const struct hca_shm_member *m, const struct group *g)
{
	return hca_get(m->gid[0]) == g->word[0] && hca_get(m->gid[1]) == g->word[1];
}

static bool is_of(const struct hca_shm_member *m, const struct hca_qp *qp)
{
	uint64_t owner = atomic_load_explicit(&m->owner, memory_order_acquire);

	return member_state(owner) == MEMBER && claim_of(owner) == qp->fabric->claim &&
	       hca_get(m->qpn) == hca_qpn(qp);
}

/* The next entry of a queue pair after `after` (NULL: the first), in a group (NULL: any). */
static struct hca_shm_member *next_of(const struct hca_qp *qp, const union ibv_gid *gid,
				      const struct hca_shm_member *after)
{
	struct hca_shm_member *m = qp->fabric->shm->member;
	uint32_t i = after ? (uint32_t)(after - m) + 1 : 0, top = top_of(qp->fabric);
	const struct group group = gid ? group_of(gid) : (struct group){ { 0 } };

	for (; i < top; i++)
		if (is_of(&m[i], qp) && (!gid || is_group(&m[i], &group)))
			return &m[i];
	return NULL;
}

static void member_take_out(struct hca_fabric *f, struct hca_shm_member *m)
{
	uint64_t owner = atomic_load_explicit(&m->owner, memory_order_relaxed);

	atomic_store_explicit(&m->owner, owner_word(owner, 0, FREE), memory_order_release);
	groups_changed(f);
}

bool hca_mcast_attached(const struct hca_qp *qp)
{
	return qp->datagram && next_of(qp, NULL, NULL);
}

void hca_mcast_leave(struct hca_qp *qp)
{
	struct hca_shm_member *m;

	while (qp->datagram && (m = next_of(qp, NULL, NULL)))
		member_take_out(qp->fabric, m);
}

void hca_mcast_moved(struct hca_qp *qp)
{
	struct hca_shm_member *m = NULL;

	while ((m = next_of(qp, NULL, m))) {
		atomic_store_explicit(&m->address, qp->address, memory_order_release);
		groups_changed(qp->fabric);
	}
}

int hca_mcast_detach(struct ibv_qp *ibv, const union ibv_gid *gid)
{
	struct hca_qp *qp = hca_qp_of(ibv);
	struct hca_shm_member *m;
	int rc = 0;

	if (!qp->datagram)
		return EINVAL;
	hca_lock(&qp->lock);
	m = next_of(qp, gid, NULL);
	if (m)
		member_take_out(qp->fabric, m);
	else
		rc = EINVAL;
	hca_unlock(&qp->lock);
	return rc;
}

/* ---- Entries of other processes ------------------------------------------- */

/* Free an entry whose owner has gone without freeing it. */
static bool reap(struct hca_fabric *f, struct hca_shm_member *m)
{
	uint64_t owner = atomic_load_explicit(&m->owner, memory_order_acquire);

	if (member_state(owner) == FREE ||
	    (claim_of(owner) == f->claim ||
	     f->link->claim_fate(f, claim_of(owner)) == HCA_FATE_ALIVE))
		return false;
	return atomic_compare_exchange_strong(&m->owner, &owner, owner_word(owner, 0, FREE));
}

static struct hca_shm_member *claim_entry(struct hca_fabric *f, bool reaping)
{
	struct hca_shm_member *m = f->shm->member;
	uint32_t i;

	for (i = 0; i < HCA_MEMBERS_MAX; i++) {
		uint64_t owner;

		if (reaping)
			reap(f, &m[i]);
		owner = atomic_load_explicit(&m[i].owner, memory_order_relaxed);
		if (member_state(owner) == FREE &&
		    atomic_compare_exchange_strong(&m[i].owner, &owner,
						   owner_word(owner, f->claim, FILLING)))
			return &m[i];
	}
	return NULL;
}

/* Readers do not read entries at or above the top. */
static void raise_top(struct hca_fabric *f, uint32_t top)
{
	uint32_t now = atomic_load(&f->shm->member_top);

	while (now < top && !atomic_compare_exchange_weak(&f->shm->member_top, &now, top))
		;
}

int hca_mcast_check(const struct hca_fabric *f)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;

	if (!hca_is_net(f))
		return 0;
	if (!atomic_flag_test_and_set(&said))
		hca_say("fabric %s: multicast is not supported on network interfaces (net=): "
			"EOPNOTSUPP", f->name);
	return EOPNOTSUPP;
}

/* The entry is FILLING, which readers find when they look again. */
static void member_fill(struct hca_shm_member *m, const struct hca_qp *qp, const union ibv_gid *gid)
{
	const struct group group = group_of(gid);

	hca_put(m->gid[0], group.word[0]);
	hca_put(m->gid[1], group.word[1]);
	hca_put(m->qpn, hca_qpn(qp));
	hca_put(m->address, qp->address);
}

int hca_mcast_attach(struct ibv_qp *ibv, const union ibv_gid *gid)
{
	struct hca_qp *qp = hca_qp_of(ibv);
	struct hca_fabric *f = qp->fabric;
	struct hca_shm_member *m;
	uint64_t owner;
	int rc = 0;

	if (!qp->datagram || !hca_gid_is_multicast(gid))
		return EINVAL;
	rc = hca_mcast_check(f);
	if (rc)
		return rc;
	hca_lock(&qp->lock);
	if (next_of(qp, gid, NULL))
		goto out;
	m = claim_entry(f, false);
	if (!m)
		m = claim_entry(f, true);
	if (!m) {
		rc = ENOMEM;
		goto out;
	}
	member_fill(m, qp, gid);
	raise_top(f, (uint32_t)(m - f->shm->member) + 1);
	owner = atomic_load_explicit(&m->owner, memory_order_relaxed);
	atomic_store_explicit(&m->owner, owner_word(owner, f->claim, MEMBER),
			      memory_order_release);
	groups_changed(f);
out:
	hca_unlock(&qp->lock);
	return rc;
}

static bool read_member(struct hca_fabric *f, struct hca_shm_member *m, const union ibv_gid *gid,
			struct hca_member_address *out)
{
	uint64_t owner = atomic_load_explicit(&m->owner, memory_order_acquire);
	const struct group group = group_of(gid);
	bool in_group;

	if (member_state(owner) != MEMBER)
		return false;
	in_group = is_group(m, &group);
	out->qpn = hca_get(m->qpn);
	out->address = hca_get(m->address);
	return atomic_load_explicit(&m->owner, memory_order_relaxed) == owner &&
	       in_group && hca_address_exists(&f->spec, out->address);
}

uint32_t hca_mcast_members(struct hca_fabric *f, const union ibv_gid *gid,
			   struct hca_member_address *list)
{
	uint32_t count = 0, i, top = top_of(f);

	for (i = 0; i < top; i++) {
		struct hca_shm_member *m = &f->shm->member[i];

		if (read_member(f, m, gid, &list[count]) && !reap(f, m))
			count++;
	}
	return count;
}
