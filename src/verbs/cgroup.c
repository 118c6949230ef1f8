/* cgroup.c - the limits that control groups of this process set to a device (Documentation/admin-guide/cgroup-v2.rst, RDMA). */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verbs/vrb.h"

struct limits {
	char first[256];		/* of the innermost group that has some; "" */
	uint32_t objects;		/* the least of all groups; 0: no limit */
};

static void line_take(const char *line, const char *group, struct limits *out)
{
	const char *word = strstr(line, " hca_object=");
	const unsigned long objects = word ? strtoul(word + strlen(" hca_object="), NULL, 10) : 0;

	if (!*out->first)
		snprintf(out->first, sizeof(out->first), "%s of %s", line, *group ? group : "/");
	/* "max" is no number; a limit of 0 is told by the first object that is refused. */
	if (objects && (!out->objects || objects < out->objects))
		out->objects = objects < UINT32_MAX ? (uint32_t)objects : UINT32_MAX;
}

/* The device's line of rdma.max in this group. */
static void group_read(const char *dir, const char *group, const char *device, struct limits *out)
{
	const size_t length = strlen(device);
	char path[3 * PATH_MAX], line[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s%s/rdma.max", dir, group);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		if (!strncmp(line, device, length) && line[length] == ' ' &&
		    strcmp(line + length, " hca_handle=max hca_object=max"))
			line_take(line, group, out);
	}
	if (f)
		fclose(f);
}

/* Limits of a group hold for those in it. */
static void groups_read(const char *dir, char *group, const char *device, struct limits *out)
{
	char *slash;

	if (!strcmp(group, "/"))
		*group = 0;
	group_read(dir, group, device, out);
	while ((slash = strrchr(group, '/'))) {
		*slash = 0;
		group_read(dir, group, device, out);
	}
}

static struct limits limits_read(const char *device, const char *root)
{
	struct limits out = { .objects = 0 };
	char path[PATH_MAX], line[PATH_MAX], *group;
	FILE *f;

	snprintf(path, sizeof(path), "%s/proc/self/cgroup", root);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		group = strchr(line, ':');
		if (!group)
			continue;
		if (!strncmp(group, "::", 2))
			snprintf(path, sizeof(path), "%s/sys/fs/cgroup", root);
		else if (!strncmp(group, ":rdma:", 6))
			snprintf(path, sizeof(path), "%s/sys/fs/cgroup/rdma", root);
		else
			continue;
		groups_read(path, strchr(group + 1, ':') + 1, device, &out);
	}
	if (f)
		fclose(f);
	return out;
}

const char *vrb_cgroup_limit(const char *device, const char *root, char *buf, size_t size)
{
	const struct limits limits = limits_read(device, root);

	snprintf(buf, size, "%s", limits.first);
	return buf;
}

uint32_t vrb_cgroup_objects(const char *device, const char *root)
{
	return limits_read(device, root).objects;
}
