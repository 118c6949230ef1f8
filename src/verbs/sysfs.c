/* sysfs.c - what the kernel says of a port where verbs say nothing. */
#include "verbs/sysfs.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The first line of a file below the device's directory, without its end; false: there is none. */
static bool line_read(const char *device, const char *file, char *line, int size)
{
	char path[PATH_MAX];
	FILE *in;
	bool found;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/%s", device, file);
	in = fopen(path, "re");
	if (!in)
		return false;
	found = fgets(line, size, in);
	fclose(in);
	if (found)
		line[strcspn(line, "\n")] = '\0';
	return found;
}

/* "800 Gb/sec (4X XDR)" */
uint64_t vrb_sysfs_rate(const char *device, unsigned port)
{
	char file[64], line[64], *end;
	double gigabits;

	snprintf(file, sizeof(file), "ports/%u/rate", port);
	if (!line_read(device, file, line, sizeof(line)))
		return 0;
	gigabits = strtod(line, &end);
	if (end == line || strncmp(end, " Gb/sec", 7) || !(gigabits > 0) || gigabits > 1e6)
		return 0;
	return (uint64_t)(gigabits * 1e9 / 8);
}

/* "Global tclass=106", of the driver of one vendor */
int vrb_sysfs_tclass(const char *device, unsigned port)
{
	char file[64], line[128], *at, *end;
	unsigned long value;

	snprintf(file, sizeof(file), "tc/%u/traffic_class", port);
	if (!line_read(device, file, line, sizeof(line)))
		return -1;
	at = strrchr(line, '=');
	at = at ? at + 1 : line;
	value = strtoul(at, &end, 0);
	return end == at || *end || value > 255 ? -1 : (int)value;
}

bool vrb_sysfs_is_lag(const char *device, unsigned port)
{
	char file[64], netdev[64], path[PATH_MAX];

	if (strstr(device, "_bond_"))
		return true;
	snprintf(file, sizeof(file), "ports/%u/gid_attrs/ndevs/0", port);
	if (!line_read(device, file, netdev, sizeof(netdev)) || !*netdev || strchr(netdev, '/'))
		return false;
	snprintf(path, sizeof(path), "/sys/class/net/%s/bonding", netdev);
	return access(path, F_OK) == 0;
}

void vrb_link_name(const char *path, char *name, size_t size)
{
	char target[PATH_MAX];
	ssize_t n = readlink(path, target, sizeof(target) - 1);
	const char *base;

	*name = 0;
	if (n <= 0)
		return;
	target[n] = 0;
	base = strrchr(target, '/');
	base = base ? base + 1 : target;
	if (strlen(base) < size)
		memcpy(name, base, strlen(base) + 1);
}
