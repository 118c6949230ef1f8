/* fabric.c - joining a fabric, leaving it, and the numbers of queue pairs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "object/device.h"
#include "object/fabric.h"
#include "api/inherit.h"
#include "pages/memory.h"
#include "link/memory/mr_table.h"
#include "link/memory/peer.h"
#include "object/qp.h"
#include "random.h"
#include "pages/remap.h"
#include "base/segment.h"

static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
static struct hca_fabric *registry;
unsigned hca_fabric_member;

/* ---- Who is there -------------------------------------------------------- */

static bool slot_alive(const struct hca_shm_slot *s)
{
	return atomic_load(&s->phase) == HCA_PRESENT &&
	       hca_process_alive(s->pid, s->start_time, -1);
}

/* Numbers that a member which is gone has left behind. */
static void free_numbers_of(struct hca_fabric *f, uint32_t slot)
{
	uint32_t i;

	for (i = 0; i < HCA_FABRIC_QPS; i++) {
		uint64_t e = atomic_load_explicit(&f->shm->qp[i], memory_order_relaxed);

		if ((e >> 16 & 0xffff) == slot + 1)
			atomic_compare_exchange_strong(&f->shm->qp[i], &e, e & 0xffff);
	}
}

static void reap_dead(struct hca_fabric *f)
{
	uint32_t i;

	for (i = 0; i < HCA_PROCS_MAX; i++) {
		struct hca_shm_slot *s = &f->shm->slot[i];

		if (atomic_load(&s->phase) == HCA_PRESENT && !slot_alive(s))
			free_numbers_of(f, i);
	}
}

/* A slot that nobody uses; under the rendezvous lock, so that no two take it. */
static int find_slot(struct hca_fabric *f, uint32_t *slot)
{
	uint32_t i;

	for (i = 0; i < HCA_PROCS_MAX; i++)
		if (atomic_load(&f->shm->slot[i].phase) != HCA_PRESENT)
			break;
	if (i == HCA_PROCS_MAX)
		for (i = 0; i < HCA_PROCS_MAX; i++)
			if (!slot_alive(&f->shm->slot[i])) {
				free_numbers_of(f, i);
				break;
			}
	if (i == HCA_PROCS_MAX)
		return hca_fail(EUSERS, "fabric %s: %d processes are on it, which is the most",
				f->name, HCA_PROCS_MAX);
	*slot = i;
	return 0;
}

/* ---- Joining ------------------------------------------------------------- */

static int cannot_map(const char *what)
{
	struct rlimit limit = { .rlim_cur = RLIM_INFINITY };
	int err = errno;

	getrlimit(RLIMIT_AS, &limit);
	if (err == ENOMEM && limit.rlim_cur != RLIM_INFINITY)
		return hca_fail(ENOMEM, "no address space for the %s segment: RLIMIT_AS (ulimit -v) "
				"is %llu bytes; it must be unlimited", what,
				(unsigned long long)limit.rlim_cur);
	return hca_fail(err, "mapping the %s segment: %s", what, strerror(err));
}

static int map_fabric(struct hca_fabric *f)
{
	f->shm = hca_segment_map(f->shm_fd, 0, sizeof(*f->shm));
	return f->shm ? 0 : cannot_map("fabric");
}

static int found_fabric(struct hca_fabric *f)
{
	int rc;

	f->shm_fd = hca_segment_create("softhca-fabric", sizeof(*f->shm));
	if (f->shm_fd < 0)
		return f->shm_fd;
	rc = map_fabric(f);
	if (!rc && hca_segment_reserve(f->shm_fd, 0, offsetof(struct hca_shm_fabric, adapter)))
		rc = hca_fail(ENOMEM, "no memory for the fabric segment");
	if (rc)
		return rc;
	f->shm->abi = HCA_ABI;
	f->shm->nonce = f->nonce;
	memcpy(f->shm->spec, f->spec.text, sizeof(f->shm->spec));
	strcpy(f->shm->name, f->name);
	atomic_store(&f->shm->faulty, f->spec.loss_ppb > 0);
	f->shm->magic = HCA_FABRIC_MAGIC;
	return 0;
}

/*
 * A member lives and its segment was not opened.  0: because it has none any
 * more; else the reason is ours, and the fabric must not be begun anew.
 */
static int cannot_open(const struct hca_fabric *f, const struct hca_member *m, int err)
{
	if (!hca_member_alive(m))
		return 0;		/* it has ended meanwhile */
	if (err == -EACCES)
		return hca_fail(EACCES, "fabric %s: its member %d does not let this process see its "
				"descriptors (another user namespace, hidepid, setuid or not "
				"dumpable); choose another SOFTHCA_FABRIC", f->name, (int)m->pid);
	if (err == -ENOENT || err == -EPERM || err == -EBADF)
		return 0;
	return hca_fail(-err, "fabric %s: opening the segment of its member %d: %s", f->name,
			(int)m->pid, strerror(-err));
}

/* The fabric segment, from the first member that still has it; -ENOENT: from none. */
static int join_fabric(struct hca_fabric *f, const struct hca_rendezvous_image *image)
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
		f->shm_fd = hca_segment_open(m->pid, m->fabric_fd, sizeof(*f->shm));
		rc = f->shm_fd < 0 ? cannot_open(f, m, f->shm_fd) : map_fabric(f);
		if (rc)
			return rc;
		if (f->shm_fd < 0)
			continue;
		if (f->shm->magic == HCA_FABRIC_MAGIC && f->shm->abi == HCA_ABI &&
		    f->shm->nonce == image->nonce)
			return 0;
		munmap(f->shm, sizeof(*f->shm));
		f->shm = NULL;
		close(f->shm_fd);
		f->shm_fd = -1;
	}
	return -ENOENT;
}

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
	f->self->nonce = f->nonce;
	f->self->magic = HCA_PROCESS_MAGIC;
	hca_heap_init(&f->heap, f->self->heap, HCA_HEAP_BYTES, f->self_fd,
		      offsetof(struct hca_shm_process, heap));
	return 0;
}

static int enter(struct hca_fabric *f, struct hca_rendezvous *r, uint32_t node)
{
	struct hca_member me = { .pid = getpid(), .fabric_fd = f->shm_fd,
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
	rc = hca_rendezvous_put(r, f->slot, &me);
	if (rc)
		atomic_store(&s->phase, HCA_LEFT);
	return rc;
}

static int attach(struct hca_fabric *f, uint32_t node)
{
	struct hca_rendezvous_image *image = calloc(1, sizeof(*image));
	struct hca_rendezvous r = { .fd = -1 };
	bool fresh = false;
	int rc;

	if (!image)
		return hca_fail(ENOMEM, "no memory");
	rc = hca_rendezvous_open(f->name, true, &r);
	if (rc)
		goto out;
	rc = hca_rendezvous_read(&r, image);
	if (rc)
		goto out;
	f->nonce = image->nonce;
	rc = f->nonce ? join_fabric(f, image) : -ENOENT;
	if (rc == 0 && strcmp(image->spec, f->spec.text) != 0) {
		rc = hca_fail(EEXIST, "fabric %s exists with spec %s; this process has spec %s",
			      f->name, image->spec, f->spec.text);
		goto out;
	}
	if (rc == -ENOENT) {
		fresh = true;
		f->nonce = rg_random() | 1;	/* not 0 */
		rc = found_fabric(f);
		if (!rc)
			rc = hca_rendezvous_begin(&r, f->nonce, f->spec.text);
	}
	if (!rc)
		rc = make_process_segment(f);
	if (!rc)
		rc = hca_table_create(f);
	if (!rc)
		rc = enter(f, &r, node);
	if (rc && fresh)
		hca_rendezvous_remove(&r);	/* nothing half-written stays */
out:
	hca_rendezvous_close(&r);
	free(image);
	return rc;
}

/* ---- Leaving ------------------------------------------------------------- */

static bool anyone_else(const struct hca_rendezvous_image *image, uint32_t but)
{
	uint32_t i;

	for (i = 0; i < HCA_PROCS_MAX; i++)
		if (i != but && image->member[i].pid &&
		    (hca_member_foreign(&image->member[i]) || hca_member_alive(&image->member[i])))
			return true;
	return false;
}

/* With `everyone`, the name goes although members stay. */
static void sign_off(struct hca_fabric *f, bool everyone)
{
	struct hca_rendezvous_image *image = calloc(1, sizeof(*image));
	const struct hca_member nobody = { 0 };
	struct hca_rendezvous r = { .fd = -1 };

	if (!image || hca_rendezvous_open(f->name, false, &r) || hca_rendezvous_read(&r, image) ||
	    image->nonce != f->nonce)
		goto out;		/* the name is gone or somebody else's by now */
	if (everyone || !anyone_else(image, f->slot))
		hca_rendezvous_remove(&r);
	else
		hca_rendezvous_put(&r, f->slot, &nobody);
out:
	hca_rendezvous_close(&r);
	free(image);
}

static void release(struct hca_fabric *f)
{
	if (f->self)
		munmap(f->self, HCA_PROCESS_BYTES);
	if (f->self_fd >= 0)
		close(f->self_fd);
	hca_table_free(f);
	if (f->shm)
		munmap(f->shm, sizeof(*f->shm));
	if (f->shm_fd >= 0)
		close(f->shm_fd);
	hca_heap_destroy(&f->heap);
	free(f->qp);
	free(f->mr);
	free(f->mr_generation);
	free(f->mr_freed);
	pthread_mutex_destroy(&f->slow);
	pthread_mutex_destroy(&f->porter.lock);
	free(f);
}

/* In good order: peers see a departure, not a death. */
static void say_goodbye(struct hca_fabric *f)
{
	uint32_t i, top = atomic_load(&f->qp_top);

	/* Once: the slot may be another's afterwards. */
	if (atomic_exchange(&f->left, true))
		return;
	for (i = 0; i < top; i++) {
		struct hca_qp *qp = atomic_load(&f->qp[i]);

		if (!qp)
			continue;
		atomic_store(&f->self->qp[i].gate, 0);
		hca_fabric_give_qpn(f, hca_qpn(qp));
	}
	atomic_store(&f->shm->slot[f->slot].phase, HCA_LEFT);
	sign_off(f, false);
}

static void leave(struct hca_fabric *f)
{
	hca_attend_stop(f);
	hca_porter_stop(f);
	say_goodbye(f);
	hca_peers_forget(f);
	hca_devices_free(f);
	release(f);
}

/* ---- The registry -------------------------------------------------------- */

/* The parent is the member, not its child: which may join on its own. */
static void forget_in_child(void)
{
	struct hca_fabric *f;

	hca_memory_after_fork();	/* before the heap is touched */
	pthread_mutex_init(&registry_lock, NULL);
	for (f = registry; f; f = f->next) {
		hca_inherit(f);
		close(f->self_fd);
		close(f->table_fd);
		close(f->shm_fd);
	}
	registry = NULL;
	hca_contexts_forget();
}

static void leave_all_at_exit(void) __attribute__((destructor));
static void leave_all_at_exit(void)
{
	struct hca_fabric *f;

	/* Objects may still be in use by other threads: only say goodbye. */
	for (f = registry; f; f = f->next)
		say_goodbye(f);
}

static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, forget_in_child);
}

/* Before a fork: no peer uses a mapping of memory that its owner has taken back. */
static void quiesce_all(void)
{
	struct hca_fabric *f;

	pthread_mutex_lock(&registry_lock);
	for (f = registry; f; f = f->next)
		hca_quiesce(f, NULL);
	pthread_mutex_unlock(&registry_lock);
}

/* At every attachment: a child of fork has to do it for itself. */
static void prepare_process(enum hca_copy_way copy)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, watch_forks);
	hca_remap_quiesce = quiesce_all;
#ifdef PR_SET_PTRACER
	/*
	 * Under Yama's scope 1 peers may copy only from and to who says so.  That
	 * lets every process of the user trace this one: only if asked for.
	 */
	if (copy == HCA_COPY_KERNEL)
		prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
#endif
	hca_quiesce_prepare();
}

static struct hca_fabric *fabric_new(const char *name, const struct hca_spec *spec,
				     enum softhca_remap remap, enum hca_copy_way copy)
{
	struct hca_fabric *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->shm_fd = f->self_fd = f->table_fd = -1;
	f->spec = *spec;
	f->remap = remap;
	f->copy = copy;
	pthread_mutex_init(&f->porter.lock, NULL);
	strcpy(f->name, name);
	pthread_mutex_init(&f->slow, NULL);
	/* Large and mostly untouched: the kernel gives pages as they are used. */
	f->qp = calloc(HCA_QPS_MAX, sizeof(*f->qp));
	f->mr = calloc(HCA_MRS_MAX, sizeof(*f->mr));
	f->mr_generation = calloc(HCA_MRS_MAX, sizeof(*f->mr_generation));
	f->mr_freed = calloc(HCA_MRS_MAX, sizeof(*f->mr_freed));
	if (f->qp && f->mr && f->mr_generation && f->mr_freed)
		return f;
	release(f);
	return NULL;
}

static int get_spec(const struct softhca_config *cfg, struct hca_spec *spec)
{
	const char *text = cfg ? cfg->spec : NULL;
	char why[320];

	if (!text)
		text = getenv("SOFTHCA_SPEC");
	if (hca_spec_parse(text ? text : "", spec, why, sizeof(why)))
		return hca_fail(EINVAL, "%s", why);
	return 0;
}

static int get_remap(const struct softhca_config *cfg, enum softhca_remap *remap)
{
	static const char *const names[] = { "default", "never", "auto", "always" };
	const char *text = getenv("SOFTHCA_REMAP");
	int i;

	*remap = cfg ? cfg->remap : SOFTHCA_REMAP_DEFAULT;
	if (!text || !*text)
		return 0;
	for (i = SOFTHCA_REMAP_NEVER; i <= SOFTHCA_REMAP_ALWAYS; i++)
		if (strcmp(text, names[i]) == 0) {
			*remap = (enum softhca_remap)i;
			return 0;
		}
	return hca_fail(EINVAL, "SOFTHCA_REMAP: '%.40s' (accepted: never, auto, always)", text);
}

/* As the member that this process is just now; registry_lock held. */
static struct hca_fabric *find(const char *name)
{
	struct hca_fabric *f;

	for (f = registry; f; f = f->next)
		if (f->member == hca_fabric_member && strcmp(f->name, name) == 0)
			return f;
	return NULL;
}

static int get_locked(const struct softhca_config *cfg, struct hca_fabric **out)
{
	char name[HCA_NAME_MAX + 1];
	enum softhca_remap remap;
	enum hca_copy_way copy;
	struct hca_spec spec;
	struct hca_fabric *f;
	uint32_t node;
	int rc;

	rc = hca_rendezvous_name(cfg ? cfg->fabric : NULL, name);
	if (!rc)
		rc = get_spec(cfg, &spec);
	if (!rc)
		rc = hca_fabric_node(cfg, &spec, &node);
	if (!rc)
		rc = get_remap(cfg, &remap);
	if (!rc)
		rc = hca_copy_way(&copy);
	if (rc)
		return rc;
	f = find(name);
	if (f && strcmp(f->spec.text, spec.text) != 0)
		return hca_fail(EEXIST, "fabric %s exists with spec %s; asked for spec %s", name,
				f->spec.text, spec.text);
	if (!f) {
		prepare_process(copy);
		f = fabric_new(name, &spec, remap, copy);
		if (!f)
			return hca_fail(ENOMEM, "no memory");
		rc = attach(f, node);
		if (rc) {
			release(f);
			return rc;
		}
		f->member = hca_fabric_member;
		f->next = registry;
		registry = f;
		if (spec.schedule.count)
			hca_attend(f);		/* ports change whatever the program does */
	}
	f->references++;
	*out = f;
	return 0;
}

int hca_fabric_get(const struct softhca_config *cfg, struct hca_fabric **out)
{
	int rc;

	pthread_mutex_lock(&registry_lock);
	rc = get_locked(cfg, out);
	pthread_mutex_unlock(&registry_lock);
	return rc;
}

void hca_fabric_ref(struct hca_fabric *f)
{
	pthread_mutex_lock(&registry_lock);
	f->references++;
	pthread_mutex_unlock(&registry_lock);
}

void hca_fabric_put(struct hca_fabric *f)
{
	struct hca_fabric **at;

	pthread_mutex_lock(&registry_lock);
	if (--f->references == 0) {
		for (at = &registry; *at && *at != f; at = &(*at)->next)
			;
		if (*at) {		/* not one inherited through fork */
			*at = f->next;
			leave(f);
		}
	}
	pthread_mutex_unlock(&registry_lock);
}

int hca_fabric_node(const struct softhca_config *cfg, const struct hca_spec *spec, uint32_t *node)
{
	uint32_t most = hca_spec_nodes(spec);
	const char *text = getenv("SOFTHCA_NODE");
	char *end = NULL;
	long n = 0;

	if (cfg && cfg->node >= 0) {
		n = cfg->node;
	} else if (text) {
		errno = 0;
		n = strtol(text, &end, 10);
		if (errno || end == text || *end)
			n = -1;
	}
	if (n < 0 || n >= (long)most)
		return hca_fail(EINVAL, "node: %s%ld is not a node (accepted: 0 to %u)",
				end ? "SOFTHCA_NODE " : "", n, most - 1);
	*node = (uint32_t)n;
	return 0;
}

HCA_EXPORT int softhca_fabric_close(const struct softhca_config *cfg)
{
	char name[HCA_NAME_MAX + 1];
	struct hca_fabric *f;
	int rc = hca_rendezvous_name(cfg ? cfg->fabric : NULL, name);

	if (rc)
		return rc;
	pthread_mutex_lock(&registry_lock);
	f = find(name);
	if (f)
		sign_off(f, true);
	else
		rc = hca_fail(ENOENT, "fabric %s: this process is not on it", name);
	pthread_mutex_unlock(&registry_lock);
	return rc;
}

/* ---- Queue pair numbers -------------------------------------------------- */

static uint32_t take_qpn_once(struct hca_fabric *f, uint32_t index)
{
	uint32_t tries, at;

	for (tries = 0; tries < HCA_FABRIC_QPS; tries++) {
		uint64_t e;

		at = atomic_fetch_add_explicit(&f->shm->qp_cursor, 1, memory_order_relaxed) %
		     HCA_FABRIC_QPS;
		if (at == 0 || at == HCA_FABRIC_QPS - 1)
			continue;	/* 0 and 1 are reserved, 0xffffff is multicast */
		e = atomic_load_explicit(&f->shm->qp[at], memory_order_relaxed);
		if (e >> 16 & 0xffff)
			continue;
		if (atomic_compare_exchange_strong(&f->shm->qp[at], &e,
						   hca_shm_qp_entry(index, f->slot,
								    (uint32_t)e + 1)))
			return at << HCA_QPN_GEN_BITS |
			       (((uint32_t)e + 1) & ((1 << HCA_QPN_GEN_BITS) - 1));
	}
	return 0;
}

uint32_t hca_fabric_take_qpn(struct hca_fabric *f, uint32_t index)
{
	uint32_t qpn = take_qpn_once(f, index);

	if (qpn)
		return qpn;
	reap_dead(f);
	return take_qpn_once(f, index);
}

void hca_fabric_give_qpn(struct hca_fabric *f, uint32_t qpn)
{
	_Atomic uint64_t *entry = &f->shm->qp[qpn >> HCA_QPN_GEN_BITS];
	uint64_t e = atomic_load(entry);

	if ((e >> 16 & 0xffff) == f->slot + 1)
		atomic_compare_exchange_strong(entry, &e, e & 0xffff);
}

int hca_fabric_find_qpn(const struct hca_fabric *f, uint32_t qpn, uint32_t *slot, uint32_t *index)
{
	uint32_t mask = (1 << HCA_QPN_GEN_BITS) - 1;
	uint64_t e;

	if (qpn >> HCA_QPN_GEN_BITS >= HCA_FABRIC_QPS)
		return -ENOENT;
	e = atomic_load(&f->shm->qp[qpn >> HCA_QPN_GEN_BITS]);
	*slot = (uint32_t)(e >> 16 & 0xffff) - 1;
	*index = (uint32_t)(e >> 32);
	if (*slot >= HCA_PROCS_MAX || *index >= HCA_QPS_MAX || ((uint32_t)e & mask) != (qpn & mask))
		return -ENOENT;
	return 0;
}
