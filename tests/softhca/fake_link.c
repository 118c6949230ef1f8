/* fake_link.c - see fake_link.h. */
#include "fake_link.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "softhca/engine/engine.h"

struct fake_link fake = { .fd = -1 };

/* ---- What the test says ---------------------------------------------------- */

struct saying {
	struct hca_qp *qp;
	enum fake_what what;
	int value;
};

static struct {
	pthread_mutex_t lock;
	struct saying saying[64];
	unsigned count;
} said = { .lock = PTHREAD_MUTEX_INITIALIZER };

void fake_tell(struct ibv_qp *qp, enum fake_what what, int value)
{
	pthread_mutex_lock(&said.lock);
	if (said.count == 64)
		abort();
	said.saying[said.count++] = (struct saying){ hca_qp_of(qp), what, value };
	pthread_mutex_unlock(&said.lock);
}

static bool take(struct saying *s)
{
	bool any;

	pthread_mutex_lock(&said.lock);
	any = said.count;
	if (any) {
		*s = said.saying[0];
		memmove(said.saying, said.saying + 1, --said.count * sizeof(*s));
	}
	pthread_mutex_unlock(&said.lock);
	return any;
}

void fake_answer(unsigned count, int result)
{
	if (fake.answered == fake.answers)
		fake.answered = fake.answers = 0;
	for (; count; count--) {
		if (fake.answers == FAKE_ANSWERS)
			abort();
		fake.answer[fake.answers++] = result;
	}
}

void fake_ring(void)
{
	const uint64_t one = 1;

	if (write(fake.fd, &one, sizeof(one)) < 0)
		abort();
}

/* ---- The operations -------------------------------------------------------- */

static void fake_look(struct hca_fabric *f)
{
	(void)f;
	fake.looked++;
}

static bool fake_quiesce(struct hca_fabric *f, struct hca_qp *only)
{
	(void)f, (void)only;
	fake.quiesced++;
	return true;
}

static bool nobody(struct hca_qp *qp)
{
	(void)qp;
	return false;
}

static void fake_published(struct hca_fabric *f, const struct hca_mr *mr)
{
	(void)f, (void)mr;
	fake.published++;
}

static void fake_withdrawn(struct hca_fabric *f)
{
	(void)f;
	fake.withdrawn++;
}

static int fake_make(struct hca_qp *qp)
{
	(void)qp;
	fake.made++;
	return 0;
}

static void fake_free(struct hca_qp *qp)
{
	(void)qp;
	fake.freed++;
}

static int fake_connect(struct hca_qp *qp)
{
	(void)qp;
	fake.connected++;
	return fake.connect_error;
}

static void fake_stop(struct hca_qp *qp)
{
	(void)qp;
	fake.stopped++;
}

static void fake_reset(struct hca_qp *qp)
{
	(void)qp;
	fake.reset++;
}

static uint32_t fake_rnr_timer(const struct hca_qp *qp)
{
	(void)qp;
	return fake.rnr_timer;
}

static int fake_transfer(struct hca_qp *qp, const struct ibv_send_wr *wr, uint32_t bytes)
{
	unsigned at = atomic_load(&fake.handed_count);

	(void)qp;
	if (at == FAKE_LOG)
		abort();
	fake.handed[at] = (struct fake_handed){ wr->wr_id, wr->opcode, bytes, wr };
	atomic_store(&fake.handed_count, at + 1);
	return fake.answered < fake.answers ? fake.answer[fake.answered++] : fake.usual;
}

static void fake_say(const struct saying *s)
{
	const struct hca_link_upcalls *up = fake.fabric->upcalls;

	hca_lock(&s->qp->lock);
	switch (s->what) {
	case FAKE_ENDED:
		up->ended(s->qp, (uint32_t)s->value);
		break;
	case FAKE_FAILED:
		up->failed(s->qp, s->value);
		break;
	case FAKE_REWOUND:
		up->rewound(s->qp, s->value);
		break;
	case FAKE_RESUME:
		up->resume(s->qp);
		break;
	case FAKE_LOST:
		up->lost(s->qp);
		break;
	}
	hca_unlock(&s->qp->lock);
	atomic_fetch_add(&fake.told, 1);
}

static uint64_t fake_progress(struct hca_fabric *f)
{
	struct saying s;
	uint64_t rung;

	(void)f;
	atomic_fetch_add(&fake.progressed, 1);
	if (read(fake.fd, &rung, sizeof(rung)) < 0)
		rung = 0;
	while (take(&s))
		fake_say(&s);
	return rg_now_ns();
}

static int fake_wait_fd(struct hca_fabric *f)
{
	(void)f;
	atomic_fetch_add(&fake.waits, 1);
	return fake.fd;
}

static void fake_sleep_begins(struct hca_fabric *f)
{
	(void)f;
	atomic_fetch_add(&fake.sleepers, 1);
}

static void fake_sleep_ends(struct hca_fabric *f)
{
	(void)f;
	atomic_fetch_sub(&fake.sleepers, 1);
}

static uint64_t fake_next_ns(struct hca_fabric *f)
{
	(void)f;
	return fake.next_ns;
}

static const struct hca_link_operations fake_operations = {
	.look = fake_look,
	.quiesce = fake_quiesce,
	.peer_in_access_section = nobody,
	.mr_published = fake_published,
	.mr_withdrawn = fake_withdrawn,
	.qp_make = fake_make,
	.qp_free = fake_free,
	.qp_connect = fake_connect,
	.qp_stop = fake_stop,
	.qp_reset = fake_reset,
	.peer_lost = nobody,
	.rnr_timer = fake_rnr_timer,
	.transfer_whole = fake_transfer,
	.progress = fake_progress,
	.wait_fd = fake_wait_fd,
	.sleep_begins = fake_sleep_begins,
	.sleep_ends = fake_sleep_ends,
	.next_ns = fake_next_ns,
};

void fake_install(struct hca_fabric *f, bool always)
{
	memset(&fake, 0, sizeof(fake));
	fake.fabric = f;
	fake.usual = HCA_UNDERWAY;
	fake.next_ns = UINT64_MAX;
	fake.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	said.count = 0;
	f->wire = &fake_operations;
	f->wire_always = always;
	if (fake.fd < 0 || hca_engine_serve_wire(f))
		abort();
}

void fake_remove(void)
{
	close(fake.fd);
	fake.fd = -1;
}
