/*
 * register.c - --registration: registrations of messages' buffers, by librail's cache.
 *
 * A registration is held until its group is complete, as in a transport.  The buffers outlive the
 * cache, so that it never becomes stale and needs no watch of memory.
 */
#include "vbench/register.h"
#include "vbench/die.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/err.h"
#include "rail/memory/mr.h"

static struct rail_mr_cache cache;
static struct rail_mr **held;		/* GROUPS_OUT groups of vb.places messages */

static void detach(void *user, struct rail_mr *mr)
{
	(void)user;
	for (int i = 0; i < vb.rails; i++) {
		vrb_mr_deregister(mr->on[i]);
		mr->on[i] = NULL;
	}
}

static int attach(void *user, struct rail_mr *mr)
{
	int rc = 0;

	for (int i = 0; i < vb.rails && !rc; i++)
		rc = vrb_mr_register(&vb.rail[i].adapter, (void *)mr->start, mr->bytes, VRB_MR_BULK,
				     &mr->on[i]);
	if (rc)
		detach(user, mr);
	return rc;
}

bool vb_registers(const struct bench *b)
{
	return vbench.registration != VBENCH_AHEAD && vbench_is_active(b);
}

int vb_register_open(void)
{
	held = calloc((size_t)GROUPS_OUT * (size_t)vb.places, sizeof(held[0]));
	if (!held) {
		rg_error("no memory for %d messages", vb.places);
		return -ENOMEM;
	}
	cache = (struct rail_mr_cache){
		.attach = attach, .detach = detach, .each = vbench.registration == VBENCH_EACH,
		.max_entries = VBENCH_BUFFERS_MAX,
		.max_bytes = (size_t)sysconf(_SC_PHYS_PAGES) / 2 * (size_t)sysconf(_SC_PAGESIZE),
	};
	return rail_mr_cache_init(&cache);
}

struct ibv_mr *const *vb_register(int i, uintptr_t at, size_t bytes)
{
	struct rail_mr **mr = &held[(int)(vb.posted % GROUPS_OUT) * vb.places + i];
	int rc;

	*mr = NULL;
	rc = bytes ? rail_mr_get(&cache, (const void *)at, bytes, mr) : 0;
	if (rc)
		vb_die("a buffer cannot be registered", strerror(abs(rc)));
	return *mr ? (*mr)->on : NULL;
}

void vb_unregister_group(uint64_t group)
{
	struct rail_mr **mr = &held[(int)(group % GROUPS_OUT) * vb.places];

	for (int i = 0; i < vb.group; i++)
		if (mr[i])
			rail_mr_put(&cache, mr[i]);
}

void vb_register_close(void)
{
	if (held)
		rail_mr_cache_fini(&cache);
	free(held);
	held = NULL;
}
