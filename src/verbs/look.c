/* look.c - the ports of all devices, without opening rails. */
#include <errno.h>
#include <stdio.h>

#include "util/err.h"
#include "util/random.h"
#include "softhca/softhca.h"
#include "verbs/vrb.h"

static int soft_look(const char *soft, struct vrb_ports *out)
{
	char fabric[32];
	const struct softhca_config config = { .spec = soft, .fabric = fabric, .node = 0 };
	struct ibv_device **list;

	/* A random name: a process of another pid namespace may have the same pid. */
	snprintf(fabric, sizeof(fabric), "look-%016llx", (unsigned long long)rg_random());
	list = softhca_get_device_list(&config, NULL);
	if (!list) {
		int rc = errno ? -errno : -ENODEV;

		rg_error("%s: %s", rc == -EINVAL ? "--soft" : "software HCA", softhca_last_error());
		return rc;
	}
	/* No other process joins. */
	softhca_fabric_close(&config);
	return vrb_ports_scan(list, out);
}

int vrb_ports_look(const char *soft, struct vrb_ports *out)
{
	int rc = soft ? soft_look(soft, out) : vrb_ports_scan(ibv_get_device_list(NULL), out);

	if (!rc)
		vrb_ports_tell_unopened(out);
	return rc;
}
