/* join.c - joining a fabric and leaving it. */
#include "link/memory/join.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/proc.h"
#include "base/segment.h"
#include "link/memory/mr_table.h"
#include "link/memory/numbers.h"
#include "link/memory/peer.h"
#include "link/memory/registry.h"
#include "link/memory/state.h"
#include "object/qp.h"
#include "pages/memory.h"
#include "random.h"

/* ---- Joining ------------------------------------------------------------- */

/* A free slot; under the lock of the member registry, so that no two processes claim it. */
static int find_slot(struct hca_fabric *f, uint32_t *slot)
{
	uint32_t i;

	for (i = 0; i < HCA_PROCS_MAX; i++)
		if (atomic_load(&f->shm->slot[i].phase) != HCA_PRESENT)
			break;
	if (i == HCA_PROCS_MAX)
		for (i = 0; i < HCA_PROCS_MAX; i++)
			if (!hca_slot_alive(&f->shm->slot[i])) {
				hca_numbers_free_of(f, i);
				break;
			}
	if (i == HCA_PROCS_MAX)
		return hca_fail(EUSERS, "fabric %s: %d processes are on it, which is the most",
				f->name, HCA_PROCS_MAX);
	*slot = i;
	return 0;
}

static int cannot_map(const char *what)
{
	struct rlimit limit = { .rlim_cur = RLIM_INFINITY };
	int err = errno;

	getrlimit(RLIMIT_AS, &limit);
	if (err == ENOMEM && limit.rlim_cur != RLIM_INFINITY)
		return hca_fail(ENOMEM,
				"no address space for the %s segment: RLIMIT_AS (ulimit -v) "
				"is %llu bytes; it must be unlimited",
				what, (unsigned long long)limit.rlim_cur);
	return hca_fail(err, "mapping the %s segment: %s", what, strerror(err));
}

static int map_fabric(struct hca_fabric *f)
{
	f->shm = hca_segment_map(f->link_state->shm_fd, 0, sizeof(*f->shm));
	return f->shm ? 0 : cannot_map("fabric");
}

static int found_fabric(struct hca_fabric *f)
{
	int rc;

	f->link_state->shm_fd = hca_segment_create("softhca-fabric", sizeof(*f->shm));
	if (f->link_state->shm_fd < 0)
		return f->link_state->shm_fd;
	rc = map_fabric(f);
	if (!rc &&
	    hca_segment_reserve(f->link_state->shm_fd, 0, offsetof(struct hca_shm_fabric, adapter)))
		rc = hca_fail(ENOMEM, "no memory for the fabric segment");
	if (rc)
		return rc;
	f->shm->abi = HCA_ABI;
	f->shm->nonce = f->link_state->nonce;
	memcpy(f->shm->spec, f->spec.text, sizeof(f->shm->spec));
	strcpy(f->shm->name, f->name);
	atomic_store(&f->shm->faulty, f->spec.loss_ppb > 0);
	f->shm->magic = HCA_FABRIC_MAGIC;
	return 0;
}

/*
 * A member lives and its segment was not opened.  0: it no longer has one; else the
 * cause is in this process, and the fabric must not be begun anew.
 */
static int cannot_open(const struct hca_fabric *f, const struct hca_member *m, int err)
{
	if (!hca_member_alive(m))
		return 0;		/* it has ended meanwhile */
	if (err == -EACCES)
		return hca_fail(EACCES,
				"fabric %s: its member %d does not let this process see its "
				"descriptors (another user namespace, hidepid, setuid or not "
				"dumpable); choose another SOFTHCA_FABRIC",
				f->name, (int)m->pid);
	if (err == -ENOENT || err == -EPERM || err == -EBADF)
		return 0;
	return hca_fail(-err, "fabric %s: opening the segment of its member %d: %s", f->name,
			(int)m->pid, strerror(-err));
}

/* The fabric segment, from the first member that still has it; -ENOENT: from none. */
static int join_fabric(struct hca_fabric *f, const struct hca_registry_image *image)
{
	uint32_t i;
	int rc;

	for (i = 0; i < HCA_PROCS_MAX; i++) {
		const struct hca_member *m = &image->member[i];

		if (hca_member_foreign(m))
			return hca_fail(EBUSY, "fabric %s: in use from another pid namespace; "
					"choose another SOFTHCA_FABRIC", f->name);
		if (!hca_member_alive(m))
			continue;
		f->link_state->shm_fd = hca_segment_open(m->pid, m->fabric_fd, sizeof(*f->shm));
		rc = f->link_state->shm_fd < 0 ? cannot_open(f, m, f->link_state->shm_fd)
					       : map_fabric(f);
		if (rc)
			return rc;
		if (f->link_state->shm_fd < 0)
			continue;
		if (f->shm->magic == HCA_FABRIC_MAGIC && f->shm->abi == HCA_ABI &&
		    f->shm->nonce == image->nonce)
			return 0;
		munmap(f->shm, sizeof(*f->shm));
		f->shm = NULL;
		close(f->link_state->shm_fd);
		f->link_state->shm_fd = -1;
	}
	return -ENOENT;
}

/*
 * Outside the lock of the member registry: valgrind --track-origins needs ten seconds for so large a
 * mapping.
 */
static int make_process_segment(struct hca_fabric *f)
{
	f->self_fd = hca_segment_create("softhca-process", HCA_PROCESS_BYTES);
	if (f->self_fd < 0)
		return f->self_fd;
	f->self = hca_segment_map(f->self_fd, 0, HCA_PROCESS_BYTES);
	if (!f->self)
		return cannot_map("process");
	if (hca_segment_reserve(f->self_fd, 0, offsetof(struct hca_shm_process, taken)))
		return hca_fail(ENOMEM, "no memory for the process segment");
	f->self->abi = HCA_ABI;
	f->self->magic = HCA_PROCESS_MAGIC;
	hca_heap_init(&f->heap, f->self->heap, HCA_HEAP_BYTES, f->self_fd,
		      offsetof(struct hca_shm_process, heap));
	return 0;
}

static int enter(struct hca_fabric *f, struct hca_registry *r, uint32_t node)
{
	struct hca_member me = { .pid = getpid(), .fabric_fd = f->link_state->shm_fd,
				 .pid_ns = hca_pid_namespace(), .node = node };
	struct hca_shm_slot *s;
	int memory_fd = hca_memory_fd();
	int rc;

	me.start_time = hca_process_start_time(me.pid);
	if (memory_fd < 0)
		return memory_fd;
	if (!me.start_time)
		return hca_fail(ENOENT, "/proc/self/stat: cannot be read; /proc must be mounted");
	rc = find_slot(f, &f->slot);
	if (rc)
		return rc;
	s = &f->shm->slot[f->slot];
	atomic_store(&s->phase, HCA_ABSENT);
	f->generation = atomic_fetch_add(&s->generation, 1) + 1;
	f->claim = hca_shm_claim(f->slot, f->generation);
	f->self->nonce = f->link_state->nonce;
	f->self->slot = f->slot;
	f->self->generation = f->generation;
	hca_table_name(f, me.pid, me.start_time);
	s->pid = me.pid;
	s->start_time = me.start_time;
	s->process_fd = f->self_fd;
	s->table_fd = f->table_fd;
	s->memory_fd = memory_fd;
	s->node = node;
	atomic_store(&s->phase, HCA_PRESENT);
	rc = hca_registry_put(r, f->slot, &me);
	if (rc)
		atomic_store(&s->phase, HCA_LEFT);
	return rc;
}

static int attach(struct hca_fabric *f, uint32_t node)
{
	struct hca_registry_image *image = calloc(1, sizeof(*image));
	struct hca_registry r = { .fd = -1 };
	bool fresh = false;
	int rc;

	if (!image)
		return hca_fail(ENOMEM, "no memory");
	rc = make_process_segment(f);		/* decides of which kind all segments are */
	if (rc)
		goto out;
	rc = hca_registry_open(f->name, true, &r);
	if (rc)
		goto out;
	rc = hca_registry_read(&r, image);
	if (rc)
		goto out;
	f->link_state->nonce = image->nonce;
	rc = f->link_state->nonce ? join_fabric(f, image) : -ENOENT;
	if (rc == 0 && strcmp(image->spec, f->spec.text) != 0) {
		rc = hca_fail(EEXIST, "fabric %s exists with spec %s; this process has spec %s",
			      f->name, image->spec, f->spec.text);
		goto out;
	}
	if (rc == -ENOENT) {
		fresh = true;
		f->link_state->nonce = rg_random() | 1;	/* not 0 */
		rc = found_fabric(f);
		if (!rc)
			rc = hca_registry_begin(&r, f->link_state->nonce, f->spec.text);
	}
	if (!rc)
		rc = hca_table_create(f);
	if (!rc)
		rc = enter(f, &r, node);
	if (rc && fresh)
		hca_registry_remove(&r);	/* nothing half-written stays */
out:
	hca_registry_close(&r);
	free(image);
	return rc;
}

/* ---- Leaving ------------------------------------------------------------- */

static bool anyone_else(const struct hca_registry_image *image, uint32_t but)
{
	uint32_t i;

	for (i = 0; i < HCA_PROCS_MAX; i++)
		if (i != but && image->member[i].pid &&
		    (hca_member_foreign(&image->member[i]) || hca_member_alive(&image->member[i])))
			return true;
	return false;
}

void hca_sign_off(struct hca_fabric *f, bool at_once)
{
	struct hca_registry_image *image = calloc(1, sizeof(*image));
	const struct hca_member nobody = { 0 };
	struct hca_registry r = { .fd = -1 };

	if (!image || hca_registry_open(f->name, false, &r) || hca_registry_read(&r, image) ||
	    image->nonce != f->link_state->nonce)
		goto out;		/* the name is gone or another fabric's by now */
	if (at_once || !anyone_else(image, f->slot))
		hca_registry_remove(&r);
	else
		hca_registry_put(&r, f->slot, &nobody);
out:
	hca_registry_close(&r);
	free(image);
}

void hca_say_goodbye(struct hca_fabric *f)
{
	uint32_t i, top = atomic_load(&f->qp_top);

	/* Once: the slot may be another's afterwards. */
	if (atomic_exchange(&f->link_state->left, true))
		return;
	for (i = 0; i < top; i++) {
		struct hca_qp *qp = atomic_load(&f->qp[i]);

		if (!qp)
			continue;
		atomic_store(&f->self->qp[i].accept, 0);
		hca_number_release(f, hca_qpn(qp));
	}
	atomic_store(&f->shm->slot[f->slot].phase, HCA_LEFT);
	hca_sign_off(f, false);
}

/* Free what attach has made, in whole or in part. */
static void detach(struct hca_fabric *f)
{
	if (f->self)
		munmap(f->self, HCA_PROCESS_BYTES);
	if (f->self_fd >= 0)
		close(f->self_fd);
	hca_table_free(f);
	if (f->shm)
		munmap(f->shm, sizeof(*f->shm));
	if (f->link_state->shm_fd >= 0)
		close(f->link_state->shm_fd);
	pthread_mutex_destroy(&f->link_state->copy_service.lock);
	free(f->link_state);
	f->link_state = NULL;
}

void hca_leave(struct hca_fabric *f)
{
	hca_copy_service_stop(f);
	hca_say_goodbye(f);
	hca_peers_forget(f);
	detach(f);
}

void hca_forget_in_child(struct hca_fabric *f)
{
	close(f->self_fd);
	close(f->table_fd);
	close(f->link_state->shm_fd);
}

/* At every attachment, since a child of fork needs it as well. */
static void prepare_process(enum hca_copy_method copy)
{
#ifdef PR_SET_PTRACER
	/*
	 * Under Yama's scope 1 peers may copy only from and to a process that permits it.  That
	 * lets every process of the user trace this one: only on request.
	 */
	if (copy == HCA_COPY_KERNEL)
		prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
#endif
	hca_quiesce_prepare();
}

int hca_join(struct hca_fabric *f, enum hca_copy_method copy, uint32_t node)
{
	int rc;

	f->link_state = calloc(1, sizeof(*f->link_state));
	if (!f->link_state)
		return hca_fail(ENOMEM, "no memory");
	f->link = &hca_memory_link;
	f->link_state->shm_fd = -1;
	f->link_state->copy = copy;
	pthread_mutex_init(&f->link_state->copy_service.lock, NULL);
	prepare_process(copy);
	rc = attach(f, node);
	if (rc)
		detach(f);
	return rc;
}
