/* loss.c - see loss.h. */
#include "softhca/model/loss.h"

#include "util/clock.h"
#include "softhca/model/model.h"

/* Before the first queue pair is ready, the schedule is checked again after this time. */
enum { NOT_STARTED_NS = 1000000 };

/* ---- Ports --------------------------------------------------------------- */

struct hca_shm_port *hca_shm_port_of(struct hca_shm_fabric *shm, const struct hca_spec *s,
				     const struct hca_port_name *name)
{
	return &shm->adapter[name->node * HCA_HCAS_MAX + name->hca].fault[name->port - 1];
}

struct hca_shm_port *hca_shm_port_at(struct hca_shm_fabric *shm, const struct hca_spec *s,
				     uint32_t address)
{
	uint32_t port;
	struct hca_shm_adapter *a = hca_adapter(shm, s, address, &port);

	return &a->fault[port - 1];
}

bool hca_port_change(struct hca_shm_fabric *shm, struct hca_shm_port *p, bool down,
		     uint64_t when_ns)
{
	uint64_t state = atomic_load(&p->state);

	if (down)
		atomic_store(&shm->faulty, 1);
	do {
		if (hca_port_is_down(state) == down || state >> 1 > when_ns)
			return false;
	} while (!atomic_compare_exchange_weak(&p->state, &state, when_ns << 1 | down));
	return true;
}

void hca_port_lose(struct hca_shm_fabric *shm, struct hca_shm_port *p, uint32_t loss_ppb)
{
	if (loss_ppb)
		atomic_store(&shm->faulty, 1);
	atomic_store(&p->loss_ppb, loss_ppb < HCA_ALL_PPB ? loss_ppb : HCA_ALL_PPB);
}

bool hca_port_up(struct hca_shm_fabric *shm, const struct hca_spec *s, uint32_t address)
{
	return !hca_port_is_down(atomic_load_explicit(&hca_shm_port_at(shm, s, address)->state,
						      memory_order_relaxed));
}

static uint32_t loss_at(struct hca_shm_fabric *shm, const struct hca_spec *s, uint32_t address)
{
	uint32_t ppb = atomic_load_explicit(&hca_shm_port_at(shm, s, address)->loss_ppb,
					    memory_order_relaxed);

	return ppb < HCA_ALL_PPB ? ppb : HCA_ALL_PPB;	/* any process may have written it */
}

uint32_t hca_loss_ppb(struct hca_shm_fabric *shm, const struct hca_spec *s, uint32_t from,
		      uint32_t to)
{
	const uint64_t all = HCA_ALL_PPB;
	uint64_t kept = all - s->loss_ppb;

	kept = kept * (all - loss_at(shm, s, from)) / all;
	kept = kept * (all - loss_at(shm, s, to)) / all;
	return (uint32_t)(all - kept);
}

/* ---- The schedule -------------------------------------------------------- */

/* Events alone change no port; an adapter that fails takes all its ports along. */
static void carry_out(struct hca_shm_fabric *shm, const struct hca_spec *s,
		      const struct hca_change *c, uint64_t when_ns)
{
	struct hca_port_name at = c->at;

	if (c->kind == HCA_CHANGE_DOWN || c->kind == HCA_CHANGE_UP)
		hca_port_change(shm, hca_shm_port_of(shm, s, &at), !c->up, when_ns);
	for (at.port = 1; c->kind == HCA_CHANGE_FATAL && at.port <= s->ports; at.port++)
		hca_port_change(shm, hca_shm_port_of(shm, s, &at), true, when_ns);
}

/*
 * Each change is written before it is counted: if the process dies in between, another writes
 * it again, without effect.
 */
uint64_t hca_schedule_advance(struct hca_shm_fabric *shm, const struct hca_spec *spec,
			      uint64_t now_ns, uint32_t *counted)
{
	const struct hca_schedule *s = &spec->schedule;
	uint32_t done = atomic_load(&shm->changes_done);
	uint64_t start = atomic_load(&shm->started_ns);
	unsigned looks;

	/* Bounded, even if other processes write anything to the count. */
	for (looks = 0; start && done < s->count && looks < 2 * HCA_CHANGES_MAX; looks++) {
		const struct hca_change *c = &s->change[done];

		if (!rg_reached(start + c->when_ns, now_ns))
			break;
		carry_out(shm, spec, c, start + c->when_ns);
		atomic_compare_exchange_strong(&shm->changes_done, &done, done + 1);
		done = atomic_load(&shm->changes_done);
	}
	*counted = done;
	if (done >= s->count)
		return UINT64_MAX;
	return start ? start + s->change[done].when_ns - now_ns : NOT_STARTED_NS;
}

/* ---- Random numbers ------------------------------------------------------ */

/* splitmix64 (Steele, Lea, Flood 2014): each state gives one well-mixed number. */
static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

uint64_t hca_rng_first(const struct hca_spec *s, uint32_t from, uint32_t to, uint32_t number)
{
	return mix(mix(mix(s->seed + 1) ^ ((uint64_t)from << 32 | to)) ^ number) | 1;
}

uint32_t hca_rng_next(uint64_t *state)
{
	*state += 0x9e3779b97f4a7c15ull;
	return (uint32_t)(mix(*state) >> 32);
}
