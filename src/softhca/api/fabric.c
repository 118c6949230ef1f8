/* fabric.c - the fabrics of this process: finding, joining, leaving, dropping in a child. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "softhca/api/fabric.h"
#include "softhca/api/inherit.h"
#include "softhca/base/fd.h"
#include "softhca/base/proc.h"
#include "softhca/engine/engine.h"
#include "softhca/engine/under_way.h"
#include "softhca/link/memory/join.h"
#include "softhca/link/memory/registry.h"
#include "softhca/link/wire/link.h"
#include "softhca/object/device.h"
#include "softhca/object/link.h"
#include "softhca/object/net.h"
#include "softhca/pages/memory.h"
#include "softhca/pages/remap.h"

/* Membership of a fabric, with all its layers from objects to engine. */
struct membership {
	struct hca_engine engine;	/* first, as the fabric is in it */
	struct membership *next;
	unsigned member;		/* hca_fabric_member at that time */
	int references;			/* under registry_lock */
};

static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
static struct membership *registry;
_Thread_local unsigned hca_fabric_member;

static struct hca_fabric *membership_fabric(struct membership *m)
{
	return &m->engine.fabric;
}

static struct membership *membership_of(struct hca_fabric *f)
{
	return (struct membership *)(void *)hca_engine_of(f);
}

/* ---- Forks, exit --------------------------------------------------------- */

/* The parent is the member, not its child; the child may join by itself. */
static void forget_in_child(void)
{
	struct membership *m;

	hca_memory_after_fork();	/* before the heap is touched */
	hca_fd_after_fork();
	pthread_mutex_init(&registry_lock, NULL);
	hca_wire_forget();
	for (m = registry; m; m = m->next) {
		hca_inherit(membership_fabric(m));
		hca_net_close(membership_fabric(m));
		hca_forget_in_child(membership_fabric(m));
	}
	registry = NULL;
	hca_contexts_forget();
}

static void leave_all_at_exit(void) __attribute__((destructor));
static void leave_all_at_exit(void)
{
	struct membership *m;

	/* Objects may still be in use by other threads: only say goodbye. */
	for (m = registry; m; m = m->next)
		hca_say_goodbye(membership_fabric(m));
}

static void membership_watch_forks(void)
{
	pthread_atfork(NULL, NULL, forget_in_child);
}

/* Before a fork: wait until no peer uses a mapping of memory that this process has withdrawn. */
static void quiesce_all(void)
{
	struct membership *m;

	pthread_mutex_lock(&registry_lock);
	for (m = registry; m; m = m->next)
		hca_links_quiesce(membership_fabric(m), NULL);
	pthread_mutex_unlock(&registry_lock);
}

/* At every join, since a child of fork must do it again. */
static void membership_prepare(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, membership_watch_forks);
	hca_remap_quiesce = quiesce_all;
}

static void leave(struct membership *m)
{
	struct hca_fabric *f = membership_fabric(m);

	hca_progress_thread_stop(f);
	hca_wire_stop(f);
	hca_leave(f);
	hca_fabric_destroy(f);
	free(m);
}

static int get_spec(const struct softhca_config *cfg, struct hca_spec *spec)
{
	const char *text = cfg ? cfg->spec : NULL;
	char why[HCA_WHY_MAX];

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

/* Find by name and the current hca_fabric_member; registry_lock held. */
static struct membership *membership_find(const char *name)
{
	struct membership *m;

	for (m = registry; m; m = m->next)
		if (m->member == hca_fabric_member && strcmp(membership_fabric(m)->name, name) == 0)
			return m;
	return NULL;
}

/* The configuration of a membership. */
struct terms {
	const char *name;
	struct hca_spec spec;
	enum softhca_remap remap;
	enum hca_copy_method copy;
	uint32_t node;
	const char *secret;		/* NULL: a file's */
};

static int membership_begin(struct hca_fabric *f, const struct terms *t)
{
	int rc = hca_join(f, t->copy, t->node);

	f->upcalls = &hca_engine_upcalls;
	if (rc || !t->spec.nets)
		return rc;
	rc = hca_wire_start(f, t->secret);
	if (!rc)
		rc = hca_engine_serve_wire(f);
	if (rc) {
		hca_wire_stop(f);
		hca_leave(f);
	}
	return rc;
}

static int membership_join(const struct terms *t, struct membership **out)
{
	struct membership *m = calloc(1, sizeof(*m));
	int rc = -ENOMEM;

	if (!m)
		return hca_fail(ENOMEM, "no memory");
	membership_prepare();
	rc = hca_fabric_init(membership_fabric(m), t->name, &t->spec, t->remap);
	if (rc)
		hca_fail(ENOMEM, "no memory");
	else
		rc = hca_net_open(membership_fabric(m));
	if (!rc)
		rc = membership_begin(membership_fabric(m), t);
	if (rc) {
		hca_fabric_destroy(membership_fabric(m));
		free(m);
		return rc;
	}
	/* Events before it joined are not this process's. */
	membership_fabric(m)->changes_told = atomic_load(&membership_fabric(m)->shm->changes_done);
	m->member = hca_fabric_member;
	m->next = registry;
	registry = m;
	hca_net_start(membership_fabric(m));
	if (t->spec.schedule.count || t->spec.nets)
		hca_progress_thread_wake(membership_fabric(m));	/* ports change without verbs */
	*out = m;
	return 0;
}

/* The terms of a configuration; the name is kept in `name`. */
static int get_terms(const struct softhca_config *cfg, char *name, struct terms *t)
{
	int rc = hca_registry_name(cfg ? cfg->fabric : NULL, name);

	t->name = name;
	t->secret = cfg ? cfg->secret : NULL;
	if (!rc)
		rc = get_spec(cfg, &t->spec);
	if (!rc)
		rc = hca_fabric_node(cfg, &t->spec, &t->node);
	if (!rc)
		rc = get_remap(cfg, &t->remap);
	return rc ? rc : hca_copy_method(&t->copy);
}

static int get_locked(const struct softhca_config *cfg, struct hca_fabric **out)
{
	char name[HCA_NAME_MAX + 1];
	struct membership *m;
	struct terms t;
	int rc = get_terms(cfg, name, &t);

	if (rc)
		return rc;
	m = membership_find(name);
	if (m && strcmp(membership_fabric(m)->spec.text, t.spec.text) != 0)
		return hca_fail(EEXIST, "fabric %s exists with spec %s; asked for spec %s", name,
				membership_fabric(m)->spec.text, t.spec.text);
	if (!m)
		rc = membership_join(&t, &m);
	if (rc)
		return rc;
	m->references++;
	*out = membership_fabric(m);
	return 0;
}

int hca_fabric_get(const struct softhca_config *cfg, struct hca_fabric **out)
{
	int rc;

	if (hca_proc_emulated())
		return hca_fail(ENOTSUP, "this process runs under an emulation of system calls "
				"(qemu-user?), without get_robust_list; the software HCA needs the kernel "
				"itself (accepted: an emulation of the whole machine, as qemu-system)");
	pthread_mutex_lock(&registry_lock);
	rc = get_locked(cfg, out);
	pthread_mutex_unlock(&registry_lock);
	return rc;
}

void hca_fabric_ref(struct hca_fabric *f)
{
	pthread_mutex_lock(&registry_lock);
	membership_of(f)->references++;
	pthread_mutex_unlock(&registry_lock);
}

void hca_fabric_put(struct hca_fabric *f)
{
	struct membership *m = membership_of(f), **at;

	pthread_mutex_lock(&registry_lock);
	if (--m->references == 0) {
		for (at = &registry; *at && *at != m; at = &(*at)->next)
			;
		if (*at) {		/* not one inherited through fork */
			*at = m->next;
			leave(m);
		}
	}
	pthread_mutex_unlock(&registry_lock);
}

/* SOFTHCA_NODE; 0 without it, -1: it is no number. */
static long node_asked(void)
{
	const char *text = getenv("SOFTHCA_NODE");
	char *end;
	long n;

	if (!text)
		return 0;
	errno = 0;
	n = strtol(text, &end, 10);
	return errno || end == text || *end ? -1 : n;
}

int hca_fabric_node(const struct softhca_config *cfg, const struct hca_spec *spec, uint32_t *node)
{
	const uint32_t most = hca_spec_nodes(spec);
	const bool asked = !cfg || cfg->node < 0;
	const long n = asked ? node_asked() : cfg->node;

	if (n < 0 || n >= (long)most)
		return hca_fail(EINVAL, "node: %s%ld is not a node (accepted: 0 to %u)",
				asked ? "SOFTHCA_NODE " : "", n, most - 1);
	*node = (uint32_t)n;
	return 0;
}

HCA_EXPORT int softhca_exposed_node(void)
{
	const char *exposed = getenv("SOFTHCA_EXPOSE");
	const long n = node_asked();

	if (!exposed || strcmp(exposed, "1") != 0)
		return -1;
	/* The list of devices tells of a number that makes no sense. */
	return n < 0 || n > INT_MAX ? 0 : (int)n;
}

HCA_EXPORT int softhca_fabric_close(const struct softhca_config *cfg)
{
	char name[HCA_NAME_MAX + 1];
	struct membership *m;
	int rc = hca_registry_name(cfg ? cfg->fabric : NULL, name);

	if (rc)
		return rc;
	pthread_mutex_lock(&registry_lock);
	m = membership_find(name);
	if (m)
		hca_sign_off(membership_fabric(m), true);
	else
		rc = hca_fail(ENOENT, "fabric %s: this process is no member", name);
	pthread_mutex_unlock(&registry_lock);
	return rc;
}
