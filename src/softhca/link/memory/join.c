/* join.c - joining a fabric and leaving it. */
#include "softhca/link/memory/join.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "softhca/base/checked.h"
#include "softhca/base/proc.h"
#include "softhca/base/segment.h"
#include "softhca/base/spare.h"
#include "softhca/link/memory/descriptors.h"
#include "softhca/link/memory/mr_table.h"
#include "softhca/link/memory/numbers.h"
#include "softhca/link/memory/peer.h"
#include "softhca/link/memory/registry.h"
#include "softhca/link/memory/state.h"
#include "softhca/object/qp.h"
#include "softhca/pages/memory.h"
#include "softhca/link/memory/ask.h"
#include "softhca/link/memory/service.h"
#include "util/random.h"

enum {
	PAUSE_NS = 1000000,
	NAME_NS = 1000000000,		/* a process that has the name listens or ends within it */
};
#define SLOTS_NS 60000000000ull

/* ---- The segment ----------------------------------------------------------- */

/* A free slot; under lock_slots. */
static int find_slot(struct hca_fabric *f, uint32_t *slot)
{
	uint32_t i;

	for (i = 0; i < HCA_PROCS_MAX; i++)
		if (atomic_load(&f->shm->slot[i].phase) != HCA_PRESENT)
			break;
	if (i == HCA_PROCS_MAX)
		for (i = 0; i < HCA_PROCS_MAX; i++)
			if (!hca_slot_alive(&f->link_state->me, f->shm, i)) {
				hca_numbers_free_of(f, i);
				break;
			}
	if (i == HCA_PROCS_MAX)
		return hca_fail(EUSERS, "fabric %s is full, with %d processes",
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

static int cannot_reserve(const char *what)
{
	return hca_fail(ENOMEM, "no memory for the %s segment%s", what, hca_segments_are_files() ?
			", a file: its directory is full (accepted: more room in /dev/shm, another directory "
			"in SOFTHCA_DIR, or memfd_create permitted)" : "");
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
		rc = cannot_reserve("fabric");
	if (rc)
		return rc;
	f->shm->abi = HCA_ABI;
	f->shm->nonce = f->link_state->nonce;
	f->shm->id = rg_random();
	f->shm->place = hca_address_place();
	if (f->spec.nets)	/* hosts of a network cannot guess its numbers */
		atomic_store(&f->shm->qp_cursor, (uint32_t)rg_random());
	memcpy(f->shm->spec, f->spec.text, sizeof(f->shm->spec));
	strcpy(f->shm->name, f->name);
	atomic_store(&f->shm->faulty, f->spec.loss_ppb > 0 || f->spec.divided);
	f->shm->magic = HCA_FABRIC_MAGIC;
	return 0;
}

/* ---- Finding it ------------------------------------------------------------ */

static int other_kind(const struct hca_fabric *f, int pid)
{
	const bool files = hca_segments_are_files();

	return hca_fail(EMEDIUMTYPE, "fabric %s: its member %d shares memory by %s and this process by %s; "
			"allow memfd_create to all processes, or set SOFTHCA_MEMORY=file for all",
			f->name, pid, files ? "memfd_create" : "files",
			files ? "files" : "memfd_create");
}

static int map_found(struct hca_fabric *f, int fd)
{
	int rc;

	f->link_state->shm_fd = fd;
	rc = map_fabric(f);
	if (rc)
		return rc;
	if (f->shm->magic == HCA_FABRIC_MAGIC && f->shm->abi == HCA_ABI &&
	    (!f->link_state->nonce || f->shm->nonce == f->link_state->nonce))
		return 0;
	munmap(f->shm, sizeof(*f->shm));
	f->shm = NULL;
	close(fd);
	f->link_state->shm_fd = -1;
	return -ENOENT;
}

/* Ask for the fabric segment: its descriptor, or -errno. */
static int ask_for_fabric(struct hca_fabric *f, const struct hca_address *a)
{
	int fd[HCA_ANSWER_MAX], rc;
	int count = hca_ask(&f->link_state->me, a, f->link_state->nonce, HCA_ASK_FABRIC, 0, fd);

	if (count < 0)
		return count;
	rc = count == 1 ? hca_segment_check(fd[0], sizeof(*f->shm), 0) : -EPERM;
	if (!rc)
		return fd[0];
	while (count)
		close(fd[--count]);
	return rc;
}

/* Join by this member: 0; -ENOENT: it has no segment now; or another -errno, with the line set. */
static int join_member(struct hca_fabric *f, const struct hca_registry_image *image, uint32_t i)
{
	const struct hca_identity *me = &f->link_state->me;
	const struct hca_member *m = &image->member[i];
	int near = -EXDEV, far = m->address ? -EXDEV : -ENOENT;
	struct hca_address a;
	char why[512];

	if (hca_is_near(me, m->pid_ns))
		near = hca_segment_open(m->pid, m->fabric_fd, sizeof(*f->shm));
	if (near >= 0)
		return map_found(f, near);
	if (near != -EMEDIUMTYPE && hca_member_address(me, image, i, f->name, &a))
		far = ask_for_fabric(f, &a);
	if (far >= 0)
		return map_found(f, far);
	switch (hca_member_look(me, image, i, f->name)) {
	case HCA_MEMBER_NONE:
	case HCA_MEMBER_DEAD:
		return -ENOENT;			/* the member has ended meanwhile */
	default:
		break;
	}
	if (near == -EMEDIUMTYPE || far == -EMEDIUMTYPE)
		return other_kind(f, m->pid);
	if (near == -ENOENT || near == -EPERM || near == -EBADF)
		return -ENOENT;
	/* The cause is in this process or in its surroundings: the fabric must not be begun anew. */
	hca_unreachable(why, sizeof(why), f->name, m->pid, near, far);
	return hca_fail(near == -EMFILE || near == -ENFILE ? -near : EACCES, "%s", why);
}

/* Join by the first member that still has the fabric segment; -ENOENT: none has. */
static int join_members(struct hca_fabric *f, const struct hca_registry_image *image)
{
	int rc = -ENOENT;
	uint32_t i;

	for (i = 0; i < HCA_PROCS_MAX && rc == -ENOENT; i++)
		if (image->member[i].pid > 0)
			rc = join_member(f, image, i);
	return rc;
}

/*
 * No registry here names the fabric, but another directory may have one: the process that begins a
 * fabric takes the address by name, or finds it taken, and joins.  0: joined; -ENOENT: this process
 * begins the fabric, and has the address if possible; or another -errno, with the line set.
 */
static int join_by_name(struct hca_fabric *f)
{
	const uint64_t deadline = rg_now_ns() + NAME_NS;
	struct hca_link_state *state = f->link_state;
	struct hca_address a;
	int rc, fd;

	hca_address_by_name(hca_address_place(), f->name, &a);
	for (;;) {
		rc = state->me.net_ns ? hca_service_listen(&state->service, HCA_BY_NAME, &a) : -EPERM;
		if (rc != -EADDRINUSE)
			return -ENOENT;
		fd = ask_for_fabric(f, &a);
		if (fd >= 0)
			rc = map_found(f, fd);
		if (fd == -EMEDIUMTYPE)
			return other_kind(f, 0);
		if (fd >= 0 && rc != -ENOENT)
			return rc;
		/* Another user's; or about to listen, or to end. */
		if (fd == -EACCES || rg_reached(deadline, rg_now_ns()))
			return -ENOENT;
		rg_sleep_ns(PAUSE_NS);
	}
}

/* ---- Entering it ----------------------------------------------------------- */

/* Outside the lock of the member registry, since the mapping is large. */
static int make_process_segment(struct hca_fabric *f)
{
	const uint64_t heap = hca_is_checked() ? HCA_HEAP_CHECKED_BYTES : HCA_HEAP_BYTES;

	f->self_fd = hca_segment_create("softhca-process", HCA_PROCESS_BYTES);
	if (f->self_fd < 0)
		return f->self_fd;
	f->self = hca_segment_map(f->self_fd, 0, sizeof(*f->self) + heap);
	if (!f->self)
		return cannot_map("process");
	f->self_bytes = sizeof(*f->self) + heap;
	if (hca_segment_reserve(f->self_fd, 0, offsetof(struct hca_shm_process, invalidated)))
		return cannot_reserve("process");
	f->self->abi = HCA_ABI;
	f->self->heap_bytes = heap;
	f->self->magic = HCA_PROCESS_MAGIC;
	hca_heap_init(&f->heap, f->self->heap, heap, f->self_fd,
		      offsetof(struct hca_shm_process, heap));
	return 0;
}

/*
 * Only one process at a time claims a slot, also among processes without a common directory.  The
 * lock is the process's (not the open file's, which a member may have handed over); the kernel
 * releases it with its holder.
 */
static int lock_slots(struct hca_fabric *f, bool on)
{
	struct flock whole = { .l_type = on ? F_WRLCK : F_UNLCK, .l_whence = SEEK_SET };
	const uint64_t deadline = rg_now_ns() + SLOTS_NS;

	while (fcntl(f->link_state->shm_fd, F_SETLK, &whole)) {
		if (errno != EAGAIN && errno != EACCES && errno != EINTR)
			return hca_fail(errno, "fabric %s: fcntl: %s", f->name, strerror(errno));
		if (rg_reached(deadline, rg_now_ns()))
			return hca_fail(ETIMEDOUT, "fabric %s: locked by another process for 60 s "
					"(stopped?)", f->name);
		rg_sleep_ns(PAUSE_NS);
	}
	return 0;
}

static void listen_by_number(struct hca_fabric *f)
{
	struct hca_link_state *state = f->link_state;
	struct hca_address a;

	if (state->service.fd >= 0 || !state->me.net_ns)
		return;
	hca_address_by_number(f->shm->id, f->slot, &a);
	hca_service_listen(&state->service, HCA_BY_NUMBER, &a);
}

static int fill_slot(struct hca_fabric *f, struct hca_member *me)
{
	struct hca_link_state *state = f->link_state;
	int rc = find_slot(f, &f->slot);
	struct hca_shm_slot *s;

	if (rc)
		return rc;
	s = &f->shm->slot[f->slot];
	atomic_store(&s->phase, HCA_ABSENT);
	f->generation = atomic_fetch_add(&s->generation, 1) + 1;
	f->claim = hca_shm_claim(f->slot, f->generation);
	f->self->nonce = state->nonce;
	f->self->slot = f->slot;
	f->self->generation = f->generation;
	hca_table_name(f, me->pid, me->start_time);
	if (hca_quiesce_prepare())
		atomic_store(&f->shm->unfenced, 1);
	listen_by_number(f);
	hca_service_start(f);
	me->address = state->service.kind;
	hca_put(s->pid, me->pid);
	hca_put(s->start_time, me->start_time);
	hca_put(s->pid_ns, me->pid_ns);
	hca_put(s->net_ns, me->net_ns);
	hca_put(s->address, me->address);
	hca_put(s->process_fd, f->self_fd);
	hca_put(s->table_fd, f->table_fd);
	hca_put(s->memory_fd, hca_memory_fd());
	hca_put(s->memory_bits, hca_log2_64(hca_memory.bytes));
	hca_put(s->node, me->node);
	atomic_store(&s->phase, HCA_PRESENT);
	return 0;
}

static int slot_enter(struct hca_fabric *f, struct hca_registry *r, uint32_t node)
{
	struct hca_link_state *state = f->link_state;
	struct hca_member me = { .pid = getpid(), .fabric_fd = state->shm_fd,
				 .start_time = hca_process_start_time(getpid()),
				 .pid_ns = state->me.pid_ns, .net_ns = state->me.net_ns,
				 .node = node };
	int rc = lock_slots(f, true);

	if (rc)
		return rc;
	rc = fill_slot(f, &me);
	lock_slots(f, false);
	if (!rc && !me.pid_ns && !me.address) {
		rc = hca_fail(ENOENT, "/proc/self: no peer finds this process; /proc must be mounted, or "
			      "sockets (AF_UNIX) allowed");
		atomic_store(&f->shm->slot[f->slot].phase, HCA_LEFT);
	}
	if (!rc && r->fd >= 0) {
		rc = hca_registry_put(r, f->slot, &me);
		if (rc)
			atomic_store(&f->shm->slot[f->slot].phase, HCA_LEFT);
	}
	return rc;
}

/* Write the registry of this directory; the fabric is there. */
static int begin_registry(struct hca_fabric *f, struct hca_registry *r,
			  struct hca_registry_image *image)
{
	image->nonce = f->shm->nonce;
	image->id = f->shm->id;
	image->place = f->shm->place;
	memset(image->spec, 0, sizeof(image->spec));
	strcpy(image->spec, f->spec.text);
	return r->fd < 0 ? 0 : hca_registry_begin(r, image);
}

/* Another process can write to it: a copy, with an end. */
static int compare_spec(const struct hca_fabric *f)
{
	char text[HCA_SPEC_MAX];

	memcpy(text, f->shm->spec, sizeof(text));
	text[sizeof(text) - 1] = '\0';
	if (strcmp(text, f->spec.text) == 0)
		return 0;
	return hca_fail(EEXIST, "fabric %s exists with spec %s; this process has spec %s", f->name, text,
			f->spec.text);
}

/* The registry's fabric, another directory's, or a new one; *fresh: the registry is to be begun. */
static int find_or_found(struct hca_fabric *f, const struct hca_registry *r,
			 const struct hca_registry_image *image, bool *fresh)
{
	struct hca_link_state *state = f->link_state;
	int rc = -ENOENT;

	*fresh = false;
	state->nonce = image->nonce;
	if (state->nonce)
		rc = join_members(f, image);
	if (rc != -ENOENT)
		return rc ? rc : compare_spec(f);
	*fresh = true;
	state->nonce = 0;
	rc = join_by_name(f);
	if (!rc) {
		state->nonce = f->shm->nonce;
		return compare_spec(f);
	}
	if (rc != -ENOENT)
		return rc;
	if (r->fd < 0 && state->service.fd < 0)
		return -EROFS;			/* no process would find it; the line says why */
	state->nonce = rg_random() | 1;		/* not 0 */
	return found_fabric(f);
}

static int attach(struct hca_fabric *f, uint32_t node)
{
	struct hca_registry_image *image = calloc(1, sizeof(*image));
	struct hca_registry r = { .fd = -1 };
	int rc = -ENOMEM, memory;
	bool fresh = false;
	char host[9] = "";

	if (!image)
		return hca_fail(ENOMEM, "no memory");
	if (f->spec.nets)
		snprintf(host, sizeof(host), "%02x%02x%02x%02x", f->host[0], f->host[1], f->host[2],
			 f->host[3]);
	memory = hca_memory_fd();		/* decides the kind of all segments */
	rc = memory < 0 ? memory : hca_spare_hold();
	f->link_state->holds_spares = !rc;
	if (!rc)
		rc = make_process_segment(f);
	if (!rc)
		rc = hca_registry_open(f->name, host, &r);
	if (rc == HCA_NO_PLACE)
		rc = 0;
	else if (!rc)
		rc = hca_registry_read(&r, image);
	if (!rc)
		rc = find_or_found(f, &r, image, &fresh);
	if (!rc && fresh)
		rc = begin_registry(f, &r, image);
	if (!rc)
		rc = hca_table_create(f);
	if (!rc)
		rc = slot_enter(f, &r, node);
	if (!rc && r.fd >= 0)
		snprintf(f->link_state->registry, sizeof(f->link_state->registry), "%s", r.path);
	if (rc && fresh && r.fd >= 0)
		hca_registry_remove(&r);	/* nothing half-written stays */
	hca_registry_close(&r);
	free(image);
	return rc;
}

/* ---- Leaving ------------------------------------------------------------- */

static bool has_other_members(const struct hca_fabric *f, const struct hca_registry_image *image)
{
	enum hca_member_state state;
	uint32_t i;

	for (i = 0; i < HCA_PROCS_MAX; i++) {
		if (i == f->slot)
			continue;
		state = hca_member_look(&f->link_state->me, image, i, f->name);
		if (state == HCA_MEMBER_ALIVE || state == HCA_MEMBER_UNKNOWN)
			return true;
	}
	return false;
}

void hca_sign_off(struct hca_fabric *f, bool at_once)
{
	struct hca_registry_image *image = calloc(1, sizeof(*image));
	const struct hca_member none = { 0 };
	struct hca_registry r = { .fd = -1 };

	if (at_once)
		atomic_store(&f->link_state->service.closed, true);
	if (!image || !*f->link_state->registry ||
	    hca_registry_open_at(f->link_state->registry, &r) || hca_registry_read(&r, image) ||
	    image->nonce != f->link_state->nonce)
		goto out;		/* the name is gone or another fabric's by now */
	if (at_once || !has_other_members(f, image))
		hca_registry_remove(&r);
	else
		hca_registry_put(&r, f->slot, &none);
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
	/* The slot stays this member's until its entry in the registry, at the same place, is gone. */
	hca_sign_off(f, false);
	atomic_store(&f->shm->slot[f->slot].phase, HCA_LEFT);
}

/* Undo attach, complete or not. */
static void detach(struct hca_fabric *f)
{
	hca_service_stop(&f->link_state->service);
	hca_copy_service_stop(f);
	if (f->self)
		munmap(f->self, f->self_bytes);
	if (f->self_fd >= 0)
		close(f->self_fd);
	hca_table_free(f);
	if (f->shm)
		munmap(f->shm, sizeof(*f->shm));
	if (f->link_state->shm_fd >= 0)
		close(f->link_state->shm_fd);
	if (f->link_state->holds_spares)
		hca_spare_release();
	pthread_mutex_destroy(&f->link_state->copy_service.lock);
	free(f->link_state);
	f->link_state = NULL;
}

void hca_leave(struct hca_fabric *f)
{
	hca_say_goodbye(f);
	hca_peers_forget(f);
	detach(f);
}

void hca_forget_in_child(struct hca_fabric *f)
{
	close(f->self_fd);
	close(f->table_fd);
	close(f->link_state->shm_fd);
	hca_spare_in_child();
	f->link_state->holds_spares = false;
	if (f->link_state->service.fd >= 0)
		close(f->link_state->service.fd);
}

/* At every attachment, since a child of fork needs it as well. */
static void link_prepare_process(enum hca_copy_method copy)
{
#ifdef PR_SET_PTRACER
	/*
	 * Under Yama's scope 1 peers may copy only from and to a process that permits it.  The
	 * permission lets every process of the user trace this one: only on request.
	 */
	if (copy == HCA_COPY_KERNEL)
		prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
#endif
}

int hca_join(struct hca_fabric *f, enum hca_copy_method copy, uint32_t node)
{
	int rc;

	f->link_state = calloc(1, sizeof(*f->link_state));
	if (!f->link_state)
		return hca_fail(ENOMEM, "no memory");
	f->link = &hca_memory_link;
	f->link_state->shm_fd = f->link_state->service.fd = -1;
	f->link_state->copy = copy;
	hca_identity_get(&f->link_state->me);
	pthread_mutex_init(&f->link_state->copy_service.lock, NULL);
	link_prepare_process(copy);
	rc = attach(f, node);
	if (rc)
		detach(f);
	return rc;
}
