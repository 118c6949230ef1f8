/* namespace.h - a network namespace of a test's own, and interfaces there. */
#ifndef NAMESPACE_H
#define NAMESPACE_H

#include <errno.h>
#include <net/if.h>
#include <sched.h>
#include <stdbool.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* ip "link set lo up": its exit code. */
__attribute__((format(printf, 1, 2))) static inline int ip(const char *fmt, ...)
{
	char command[256] = "PATH=$PATH:/usr/sbin:/sbin ip ";
	size_t used = strlen(command);
	va_list args;

	va_start(args, fmt);
	vsnprintf(command + used, sizeof(command) - used, fmt, args);
	va_end(args);
	return system(command);
}

static inline int write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");
	int rc = !f || fputs(text, f) < 0;

	return f ? fclose(f) || rc : -1;
}

/* 0 or -errno.  Root of a user namespace, where this user is not root. */
static inline int enter_namespace(void)
{
	const uid_t uid = geteuid();
	const gid_t gid = getegid();
	char map[64];

	if (unshare(CLONE_NEWNET) == 0)
		return 0;
	if (unshare(CLONE_NEWUSER | CLONE_NEWNET))
		return -errno;
	snprintf(map, sizeof(map), "0 %u 1", (unsigned)uid);
	if (write_file("/proc/self/uid_map", map))
		return -EPERM;
	write_file("/proc/self/setgroups", "deny");
	snprintf(map, sizeof(map), "0 %u 1", (unsigned)gid);
	return write_file("/proc/self/gid_map", map) ? -EPERM : 0;
}

/* Wait until IFF_RUNNING, which follows the carrier later, is as wanted: 0, or -1 after a minute. */
static inline int await_carrier(const char *name, bool wanted)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	const time_t end = time(NULL) + 60;
	struct ifreq r = { .ifr_flags = 0 };
	bool is = !wanted;

	snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", name);
	while (ioctl(fd, SIOCGIFFLAGS, &r) == 0 &&
	       (is = r.ifr_flags & IFF_RUNNING) != wanted && time(NULL) < end)
		usleep(1000);
	close(fd);
	return is == wanted ? 0 : -1;
}

static inline int await_running(const char *name)
{
	return await_carrier(name, true);
}

/* Two ends of a wire, up, without addresses: also none that the kernel makes. */
static inline int make_pair(const char *one, const char *other)
{
	return ip("link add %s type veth peer name %s", one, other) ||
	       ip("link set %s addrgenmode none", one) || ip("link set %s addrgenmode none", other) ||
	       ip("link set %s up", one) || ip("link set %s up", other) || await_running(one) ||
	       await_running(other);
}

#endif
