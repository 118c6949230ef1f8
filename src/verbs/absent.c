/* absent.c - why a host that has RDMA devices has no port to use. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verbs/sysfs.h"
#include "verbs/vrb.h"

enum { REASONS_MAX = 8, NAME_BYTES = IBV_SYSFS_NAME_MAX + 8 };

struct reason {
	char text[200], first[NAME_BYTES];
	int count;
};

struct reasons {
	struct reason at[REASONS_MAX];
	int count;
};

/* Devices with equal reasons share an entry; reasons beyond the last entry are left out. */
static void reason_add(struct reasons *r, const char *name, const char *text)
{
	int i = 0;

	while (i < r->count && strcmp(r->at[i].text, text))
		i++;
	if (i == REASONS_MAX)
		return;
	if (i == r->count) {
		snprintf(r->at[i].text, sizeof(r->at[i].text), "%s", text);
		snprintf(r->at[i].first, sizeof(r->at[i].first), "%s", name);
		r->count++;
	}
	r->at[i].count++;
}

static void reasons_print(const struct reasons *r, char *buf, size_t size)
{
	size_t used = 0;

	*buf = 0;
	for (int i = 0; i < r->count && used < size; i++) {
		char more[32] = "";

		if (r->at[i].count > 1)
			snprintf(more, sizeof(more), " and %d more", r->at[i].count - 1);
		used += (size_t)snprintf(buf + used, size - used, "%s%s%s: %s", used ? "; " : "",
					 r->at[i].first, more, r->at[i].text);
	}
}

/* ---- What the kernel tells ------------------------------------------------ */

struct device {
	const char *root, *name;
	char driver[64], pci[64], uverbs[32];	/* "" where not known */
	char type;			/* digit of node_type */
};

static bool line_read(const char *path, char *line, size_t size)
{
	FILE *f = fopen(path, "re");
	bool got = f && fgets(line, (int)size, f);

	if (f)
		fclose(f);
	if (got)
		line[strcspn(line, "\n")] = 0;
	return got;
}

/* The verbs device of this name, such as uverbs0. */
static void uverbs_find(struct device *d)
{
	char path[PATH_MAX], line[NAME_BYTES];
	struct dirent *e;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/sys/class/infiniband_verbs", d->root);
	dir = opendir(path);
	while (dir && !*d->uverbs && (e = readdir(dir))) {
		snprintf(path, sizeof(path), "%s/sys/class/infiniband_verbs/%s/ibdev", d->root, e->d_name);
		if (line_read(path, line, sizeof(line)) && !strcmp(line, d->name))
			snprintf(d->uverbs, sizeof(d->uverbs), "%.31s", e->d_name);
	}
	if (dir)
		closedir(dir);
}

static void device_read(const char *root, const char *name, struct device *d)
{
	char path[PATH_MAX], line[64];

	*d = (struct device){ .root = root, .name = name };
	snprintf(path, sizeof(path), "%s/sys/class/infiniband/%s/device", root, name);
	vrb_link_name(path, d->pci, sizeof(d->pci));
	snprintf(path, sizeof(path), "%s/sys/class/infiniband/%s/device/driver", root, name);
	vrb_link_name(path, d->driver, sizeof(d->driver));
	snprintf(path, sizeof(path), "%s/sys/class/infiniband/%s/node_type", root, name);
	if (line_read(path, line, sizeof(line)))
		d->type = line[0];
	uverbs_find(d);
}

/* ---- Reasons --------------------------------------------------------------- */

static bool has_kernel_type(const struct device *d, char *text, size_t size)
{
	switch (d->type) {
	case '4':
		snprintf(text, size, "iWARP, which carries no immediates%s%s%s",
			 strcmp(d->driver, "ice") ? "" : " (E810: devlink dev param set pci/",
			 strcmp(d->driver, "ice") ? "" : d->pci,
			 strcmp(d->driver, "ice") ? "" : " name enable_roce value true cmode runtime)");
		return true;
	case '5':
	case '6':
		snprintf(text, size, "usNIC, which carries datagrams only");
		return true;
	case '7':
	case '8':
		if (strncmp(d->driver, "efa", 3))
			return false;
		snprintf(text, size, "EFA, which has no reliable connections");
		return true;
	default:
		return false;
	}
}

static void why_unlisted(const struct device *d, char *text, size_t size)
{
	if (!*d->uverbs)
		snprintf(text, size, "the kernel has no verbs device for it (modprobe ib_uverbs)");
	else
		snprintf(text, size, "libibverbs has no provider for it (driver %s): install the package "
			 "ibverbs-providers, or that of libibverbs which the vendor has",
			 *d->driver ? d->driver : "unknown");
}

static void why_unopened(const struct device *d, int error, char *text, size_t size)
{
	char path[PATH_MAX], limit[128];
	const char *node = *d->uverbs ? d->uverbs : "uverbs*";

	snprintf(path, sizeof(path), "%s/dev/infiniband/%s", d->root, node);
	if (error == ENOENT || error == ENXIO || error == ENODEV || (*d->uverbs && access(path, F_OK)))
		snprintf(text, size, "/dev/infiniband/%s is missing (a container needs --device "
			 "/dev/infiniband)", node);
	else if (error == EACCES || error == EPERM)
		snprintf(text, size, "/dev/infiniband/%s may not be opened (%s)", node, strerror(error));
	else if (*vrb_cgroup_limit(d->name, d->root, limit, sizeof(limit)))
		snprintf(text, size, "the control group allows no more: rdma.max has %s", limit);
	else
		snprintf(text, size, "it cannot be opened (%s)", strerror(error));
}

static void why_inactive(const struct vrb_port *port, char *text, size_t size)
{
	const bool ethernet = port->link_layer == IBV_LINK_LAYER_ETHERNET;

	if (!port->usable)
		snprintf(text, size, "its transport carries no immediates");
	else if (port->state == IBV_PORT_INIT)
		snprintf(text, size, "INIT: no subnet manager has brought it up (opensm, or the switch's)");
	else if (port->state == IBV_PORT_ARMED)
		snprintf(text, size, "ARMED: the subnet manager has not brought it up to the end");
	else if (port->state == IBV_PORT_DOWN)
		snprintf(text, size, "DOWN: %s", ethernet ? "its network interface is down, or no cable" :
			 "no cable, or the other end is off");
	else
		snprintf(text, size, "%s", vrb_port_state_text(port->state));
}

static struct ibv_device *listed(const struct vrb_ports *ports, const char *name)
{
	for (int i = 0; ports->list && ports->list[i]; i++)
		if (!strcmp(ibv_get_device_name(ports->list[i]), name))
			return ports->list[i];
	return NULL;
}

static bool ports_ask(const struct vrb_ports *ports, struct ibv_device *device, const char *own,
		      struct reasons *r)
{
	char text[200];
	bool some = false;

	for (int i = 0; i < ports->count; i++) {
		const struct vrb_port *port = &ports->port[i];

		if (port->device != device)
			continue;
		some = true;
		if (port->usable && port->state == IBV_PORT_ACTIVE)
			continue;
		why_inactive(port, text, sizeof(text));
		reason_add(r, port->name, *own && !port->usable ? own : text);
	}
	return some;
}

struct question {
	const struct vrb_ports *ports;
	const char *root;
	struct reasons *reasons;
};

static void device_ask(const struct question *q, const char *name)
{
	struct ibv_device *device = listed(q->ports, name);
	struct ibv_context *context;
	char text[200] = "";
	struct device d;

	device_read(q->root, name, &d);
	if (!has_kernel_type(&d, text, sizeof(text)))
		*text = 0;
	if (device && ports_ask(q->ports, device, text, q->reasons))
		return;
	errno = 0;
	context = device ? ibv_open_device(device) : NULL;
	if (!*text && device)
		why_unopened(&d, errno ? errno : EIO, text, sizeof(text));
	else if (!*text)
		why_unlisted(&d, text, sizeof(text));
	if (context)
		ibv_close_device(context);
	reason_add(q->reasons, name, text);
}

static int is_name(const struct dirent *e)
{
	return e->d_name[0] != '.';
}

/*
 * Verbs devices are listed in each network namespace, and devices in their own: where namespaces do not
 * share them (rdma system), the one of this process may have none.
 */
static void elsewhere_ask(const struct question *q, const char *uverbs)
{
	char path[PATH_MAX], name[NAME_BYTES];

	snprintf(path, sizeof(path), "%s/sys/class/infiniband_verbs/%s/ibdev", q->root, uverbs);
	if (!line_read(path, name, sizeof(name)))
		return;
	snprintf(path, sizeof(path), "%s/sys/class/infiniband/%s", q->root, name);
	if (access(path, F_OK))
		reason_add(q->reasons, name, "it is in another network namespace than this process (rdma system: netns "
			   "exclusive)");
}

/* Calls `ask` for each name in a class, in their order. */
static void class_ask(const struct question *q, const char *class,
		      void (*ask)(const struct question *q, const char *name))
{
	char path[PATH_MAX];
	struct dirent **entry;
	int count;

	snprintf(path, sizeof(path), "%s/sys/class/%s", q->root, class);
	count = scandir(path, &entry, is_name, versionsort);
	for (int i = 0; i < count; i++) {
		ask(q, entry[i]->d_name);
		free(entry[i]);
	}
	if (count >= 0)
		free(entry);
}

const char *vrb_ports_why_none(const struct vrb_ports *ports, const char *root, char *buf,
			       size_t size)
{
	struct reasons r = { .count = 0 };
	const struct question q = { ports, root, &r };

	class_ask(&q, "infiniband", device_ask);
	class_ask(&q, "infiniband_verbs", elsewhere_ask);
	reasons_print(&r, buf, size);
	return buf;
}
