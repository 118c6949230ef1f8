/*
 * attacker.c - a hostile peer's actions on all shared memory: scribbling over its
 * own segment, the victim's and the fabric's, and well-formed false data.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hostile.h"
#include "softhca/link/memory/connect.h"
#include "softhca/link/memory/peer.h"
#include "softhca/link/memory/state.h"
#include "softhca/object/qp.h"

/* ---- The attacker -------------------------------------------------------- */

struct attacker {
	struct hca_fabric *fabric;
	struct hca_peer *peer;
	struct hca_shm_process *victim;
	struct hca_shm_slot was[2];	/* ours, the victim's: the true ones */
	int strange[12];		/* descriptors */
	int strange_count;
};

static void flip(void *base, size_t bytes)
{
	uint64_t *word = (uint64_t *)base + draw(bytes / 8);

	switch (draw(4)) {
	case 0:
		*(volatile uint64_t *)word = draw(UINT64_MAX);
		break;
	case 1:
		*(volatile uint64_t *)word = 0;
		break;
	case 2:
		*(volatile uint64_t *)word ^= 1ull << draw(64);
		break;
	default:
		((volatile uint32_t *)word)[draw(2)] = (uint32_t)draw(70000);
	}
}

static void scribble(struct attacker *a)
{
	struct hca_shm_process *p = draw(2) ? a->victim : a->fabric->self;
	struct hca_shm_fabric *shm = a->fabric->shm;

	switch (draw(11)) {
	case 9:
		flip(shm->member, 8 * sizeof(shm->member[0]));
		flip((void *)&shm->member_epoch, 8);
		break;
	case 0:
		flip(p->qp, 8 * sizeof(p->qp[0]));
		break;
	case 1:
		flip(p->invalidated, 8 * sizeof(p->invalidated[0]));
		flip(a->fabric->table->mr, 8 * sizeof(a->fabric->table->mr[0]));
		break;
	case 2:
	case 3:
	case 4:
		flip(p->heap, 64ull << draw(14));		/* rings and mailboxes */
		break;
	case 5:
		flip(p->bounce, draw(2) ? 64 : sizeof(p->bounce));
		flip((void *)&p->copy_service, 16);
		break;
	case 6:
		flip(p->wakeup, 8 * sizeof(p->wakeup[0]));
		break;
	case 7:
		flip(shm->qp, 64 * sizeof(shm->qp[0]));
		break;
	case 8:
		flip(shm, draw(2) ? sizeof(*shm) - sizeof(shm->adapter) - sizeof(shm->qp) :
			  offsetof(struct hca_shm_fabric, slot));
		break;
	default:
		flip(shm->adapter, 8 * sizeof(shm->adapter[0]));
	}
}

/* ---- Well-made lies ------------------------------------------------------- */

/* A memfd that is right except for one property. */
static int false_memfd(unsigned flags, uint64_t bytes, int seals)
{
	int fd = memfd_create("false", MFD_CLOEXEC | MFD_ALLOW_SEALING | flags);

	if (fd >= 0 && ftruncate(fd, (off_t)bytes) == 0 && seals)
		fcntl(fd, F_ADD_SEALS, seals);
	return fd;
}

static void gather_descriptors(struct attacker *a)
{
	const int cut = F_SEAL_SHRINK | F_SEAL_GROW;
	char path[64];
	int n = 0, pair[2];

	snprintf(path, sizeof(path), "/tmp/hostile.%d", (int)getpid());
	if (mkfifo(path, 0600) == 0) {
		a->strange[n++] = open(path, O_RDWR | O_NONBLOCK);
		unlink(path);
	}
	a->strange[n++] = open("/dev/zero", O_RDWR);
	a->strange[n++] = open("/tmp", O_RDONLY | O_DIRECTORY);
	a->strange[n++] = open("/proc/self/mem", O_RDONLY);
	if (pipe(pair) == 0)
		a->strange[n++] = pair[1];
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0)
		a->strange[n++] = pair[0];
	a->strange[n++] = false_memfd(0, HCA_PROCESS_BYTES, 0);
	a->strange[n++] = false_memfd(0, HCA_PROCESS_BYTES - 4096, cut);
	a->strange[n++] = false_memfd(0, HCA_PROCESS_BYTES, cut | F_SEAL_WRITE);
	a->strange[n++] = false_memfd(0, HCA_PROCESS_BYTES, cut);	/* right, but empty */
	a->strange[n++] = false_memfd(MFD_HUGETLB, HCA_PROCESS_BYTES, cut);
	a->strange[n++] = -1;
	a->strange_count = n;
}

/* The fabric's table lies about the identity of this process or the victim. */
static void lie_about_slot(struct attacker *a)
{
	static const int32_t pids[] = { 0, 1, -1, INT32_MAX, INT32_MIN };
	struct hca_fabric *f = a->fabric;
	struct hca_shm_slot *mine = &f->shm->slot[f->slot];
	struct hca_shm_slot *theirs = &f->shm->slot[a->peer->slot];
	struct hca_shm_slot *s = draw(4) ? mine : theirs;

	switch (draw(9)) {
	case 0:
		s->pid = pids[draw(5)];
		break;
	case 1:			/* the victim itself, under our number */
		mine->pid = a->was[1].pid;
		mine->start_time = a->was[1].start_time;
		mine->process_fd = a->was[1].process_fd;
		mine->memory_fd = a->was[1].memory_fd;
		mine->table_fd = a->was[1].table_fd;
		atomic_store(&mine->generation, a->was[1].generation);
		break;
	case 2:
		*(draw(2) ? &s->process_fd : &s->table_fd) =
			a->strange[draw((uint64_t)a->strange_count)];
		break;
	case 3:
		s->memory_fd = a->strange[draw((uint64_t)a->strange_count)];
		break;
	case 4:
		atomic_fetch_add(&s->generation, 1);
		break;
	case 5:
		atomic_store(&s->phase, (uint32_t)draw(5));
		break;
	case 6:
		s->node = (uint32_t)draw(2000);
		s->start_time = draw(2) ? 0 : draw(UINT64_MAX);
		break;
	default:		/* the truth again, for the next lie */
		*mine = a->was[0];
		*theirs = a->was[1];
	}
}

static void lie_about_bells(struct attacker *a)
{
	struct hca_shm_process *p = draw(2) ? a->victim : a->fabric->self;
	struct hca_shm_wakeup *b = &p->wakeup[draw(8)];
	int fd = a->strange[draw((uint64_t)a->strange_count)];
	struct stat st = { 0 };

	if (fd >= 0)
		fstat(fd, &st);
	atomic_store(&b->fd, fd);
	atomic_store(&b->ino, st.st_ino);
	atomic_store(&b->adapter, draw(2) ? 0 : UINT32_MAX);
	atomic_fetch_add(&p->attention, 1);
}

/* Completions that look right, for receives that are not. */
static void lie_about_completions(struct attacker *a)
{
	struct hca_shm_qp *q = &a->victim->qp[draw(8)];
	uint64_t cq = atomic_load(&q->cq);
	uint32_t count = (uint32_t)cq, i;
	struct hca_shm_mailbox *m = (void *)(a->victim->heap + (size_t)(cq >> 32) * HCA_LINE);
	uint32_t kinds[] = { HCA_FULL, HCA_FULL, HCA_FULL, hca_shm_claimed(a->fabric->slot),
			     hca_shm_claimed(a->peer->slot), hca_shm_revoked(a->fabric->slot),
			     HCA_RETURNED, HCA_FREE, hca_shm_claimed(1023) };

	if (!count || count > 4096 || (cq >> 32) * HCA_LINE > 1 << 26)
		return;
	for (i = 0; i < 16; i++) {
		struct hca_shm_cqe *e = &m->slot[draw(count)];

		e->qp_index = (uint32_t)draw(8);
		e->qpn = draw(4) ? q->qpn : (uint32_t)draw(1 << 24);
		e->position = draw(2) ? atomic_load(&q->rq_head) : (uint32_t)draw(64);
		e->bytes = draw(2) ? UINT32_MAX : (uint32_t)draw(10000);
		e->status = (uint8_t)(draw(2) ? 0 : draw(256));
		e->opcode = (uint8_t)(draw(2) ? 128 + draw(3) : draw(256));
		e->flags = (uint8_t)draw(256);
		e->visible_ns = draw(2) ? 0 : draw(UINT64_MAX);
		/* In this lap or the next; sometimes anywhere. */
		atomic_store(&e->state, (draw(8) ? atomic_load(&e->state) & ~0xffffffffull
						 : draw(UINT64_MAX) << 32) | kinds[draw(9)]);
	}
	atomic_store(&m->tail, draw(2) ? (uint32_t)draw(UINT32_MAX) : (uint32_t)draw(count));
	atomic_fetch_add(&a->victim->attention, 1);
}

/* Receives with any address; registrations in the victim's memory. */
static void lie_about_memory(struct attacker *a)
{
	struct hca_shm_process *p = a->fabric->self;
	struct hca_shm_mr *mr = &a->fabric->table->mr[draw(8)];
	struct hca_shm_qp *q = &p->qp[draw(8)];

	switch (draw(4)) {
	case 0:
		mr->addr = draw(2) ? draw(UINT64_MAX) : (uintptr_t)&draw & ~0xfffull;
		mr->length = draw(UINT64_MAX);
		break;
	case 1:
		mr->mapped = draw(HCA_MEMORY_BYTES);
		mr->mapped_end = mr->mapped + draw(1ull << 40);
		mr->addr = mr->mapped - draw(4096);
		mr->length = draw(UINT64_MAX);
		break;
	case 2:
		q->rq_line = (uint32_t)draw(UINT32_MAX);
		q->rq_count = 1u << draw(32);
		atomic_store(&q->cq, draw(UINT64_MAX) << 32 | 1u << draw(32));
		break;
	default:
		q->rq_stride = (uint32_t)(64 * draw(20));
		atomic_store(&q->rnr_timer, (uint32_t)draw(UINT32_MAX));
		atomic_store(&q->access_section, (uint32_t)draw(UINT32_MAX));
	}
}

static void lie_about_time(struct attacker *a)
{
	struct hca_shm_adapter *ad = &a->fabric->shm->adapter[draw(8)];
	uint64_t when = draw(2) ? UINT64_MAX - draw(100) : now_ns() + draw(1ull << 40);

	atomic_store(&ad->bus_read.busy, when);
	atomic_store(&ad->port[draw(2)].tx.busy, when);
	atomic_store(&ad->atomics, draw(2) ? draw(UINT64_MAX) :
		     (uint64_t)a->was[1].generation << 32 | (a->peer->slot + 1));
	atomic_store(&ad->fault[draw(2)].state, draw(3) ? 0 : draw(UINT64_MAX));
	atomic_store(&ad->fault[draw(2)].loss_ppb, (uint32_t)draw(UINT32_MAX));
}

static void tell_lies(struct attacker *a)
{
	switch (draw(6)) {
	case 0:
		lie_about_slot(a);
		break;
	case 1:
		lie_about_bells(a);
		break;
	case 2:
		lie_about_memory(a);
		break;
	case 3:
		lie_about_time(a);
		break;
	default:
		lie_about_completions(a);
	}
}

/* Attempts at things that no process can do to another. */
static void try_to_cut(struct hca_fabric *f, struct hca_peer *p)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)p->pid, f->shm->slot[p->slot].process_fd);
	fd = open(path, O_RDWR);
	require(fd >= 0);
	require(ftruncate(fd, 0) != 0);
	require(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) != 0);
	close(fd);
	require(ftruncate(f->link_state->shm_fd, 0) != 0);
	require(ftruncate(f->self_fd, 0) != 0);
	if (p->memory_fd >= 0)
		require(ftruncate(p->memory_fd, 0) != 0);
}

void attack(struct side *s, struct end *e)
{
	struct hca_qp *qp = hca_qp_of(e->qp);
	struct pollfd done = { .fd = s->sock, .events = POLLIN };
	struct attacker a = { .fabric = qp->fabric };
	bool lies = draw(2);
	int times;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* Held for good: what happens to our queue pair does not matter. */
	require_equal(hca_conn_resolve(qp, &qp->conn), 0);
	require_equal(hca_peer_get(qp->fabric, qp->conn.peer->slot, &a.peer), 0);
	a.victim = a.peer->shm;
	a.was[0] = a.fabric->shm->slot[a.fabric->slot];
	a.was[1] = a.fabric->shm->slot[a.peer->slot];
	try_to_cut(a.fabric, a.peer);
	gather_descriptors(&a);
	barrier(s);
	while (poll(&done, 1, 0) == 0)
		for (times = 1 + (int)draw(20); times; times--)
			(lies ? tell_lies : scribble)(&a);
	_exit(0);
}
