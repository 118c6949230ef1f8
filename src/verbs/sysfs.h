/* sysfs.h - what the kernel says of a port where verbs say nothing. */
#ifndef VRB_SYSFS_H
#define VRB_SYSFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The link's rate in bytes per second; 0: unknown. */
uint64_t vrb_sysfs_rate(const char *device, unsigned port);
/* The traffic class that the host's administrator has set; -1: none. */
int vrb_sysfs_tclass(const char *device, unsigned port);
/* Is the port a bond of several, each queue pair on one cable? */
bool vrb_sysfs_is_lag(const char *device, unsigned port);
/* The last part of a symbolic link's target: "0000:3b:00.1"; "": no link, or a longer one. */
void vrb_link_name(const char *path, char *name, size_t size);

#endif
