/*
 * files.c - a separate library, which the softhca command preloads together with
 * libsofthca: it provides the device files that some programs check before they
 * call libibverbs.
 *
 *	/dev/infiniband/usoftN		a character device (UCX), for stat and access
 *	/sys/class/infiniband		a directory (Open MPI's openib), likewise
 *	/sys/class/infiniband/softN/ports/P/gid_attrs/types/I
 *					"RoCE v2" (UCX), for open: without it UCX takes
 *					the port for RoCE v1 and misreads headers
 *	/dev/infiniband/rdma_cm		for open, where the kernel has none: EOPNOTSUPP, and a line
 *
 * Every other path is passed on unchanged.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static bool exposed(void)
{
	const char *text = getenv("SOFTHCA_EXPOSE");

	return text && strcmp(text, "1") == 0;
}

/* A file of the same kind that exists on every machine, or the path itself. */
static const char *stand_in(const char *path)
{
	static const char device[] = "/dev/infiniband/usoft", class[] = "/sys/class/infiniband";

	if (!path || path[0] != '/' || (strncmp(path, device, sizeof(device) - 1) != 0 &&
					strcmp(path, class) != 0) || !exposed())
		return path;
	return path[1] == 'd' ? "/dev/null" : "/sys/class";
}

/* A descriptor of the text of a GID attribute of a software device; -1: another path. */
static int attribute(const char *path)
{
	static const char begin[] = "/sys/class/infiniband/soft", text[] = "RoCE v2\n";
	unsigned hca, port, index;
	int end = -1, fd;

	if (!path || strncmp(path, begin, sizeof(begin) - 1) != 0 || !exposed() ||
	    sscanf(path + sizeof(begin) - 1, "%u/ports/%u/gid_attrs/types/%u%n", &hca, &port,
		   &index, &end) != 3 || end < 0 || path[sizeof(begin) - 1 + end] || index > 1)
		return -1;
	fd = memfd_create("softhca-gid-type", MFD_CLOEXEC);
	if (fd < 0)			/* a filter of system calls denies it */
		fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd >= 0 && pwrite(fd, text, sizeof(text) - 1, 0) != sizeof(text) - 1) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* The result of open.  Software devices have no connection manager; the kernel may have one. */
static int opened(const char *path, int fd)
{
	static const char cm[] = "/dev/infiniband/rdma_cm";
	static const char line[] = "softhca: rdma_cm is not supported on software devices "
				   "(EOPNOTSUPP): programs exchange addresses themselves\n";
	static bool said;

	if (fd >= 0 || !path || strcmp(path, cm) != 0 || !exposed())
		return fd;
	if (!said && write(STDERR_FILENO, line, sizeof(line) - 1) > 0)
		said = true;
	errno = EOPNOTSUPP;
	return -1;
}

/* The next definition of the function. */
#define NEXT(name, params)						\
	static int (*next)params;					\
	if (!next)							\
		next = (int (*)params)dlsym(RTLD_NEXT, name);		\
	if (!next) {							\
		errno = ENOSYS;						\
		return -1;						\
	}

/* Variants of open: the mode argument exists only when a file may be created. */
#define OPEN(name)							\
	EXPORT int name(const char *path, int flags, ...)		\
	{								\
		static int (*next)(const char *, int, ...);		\
		int fd = attribute(path);				\
		va_list args;						\
		mode_t mode;						\
									\
		if (fd >= 0)						\
			return fd;					\
		if (!next)						\
			next = (int (*)(const char *, int, ...))	\
				dlsym(RTLD_NEXT, #name);		\
		va_start(args, flags);					\
		mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(args, mode_t) : 0;	\
		va_end(args);						\
		return opened(path, next(path, flags, mode));		\
	}

OPEN(open)
OPEN(open64)

#define OPEN_2(name)							\
	int name(const char *path, int flags);				\
	EXPORT int name(const char *path, int flags)			\
	{								\
		int fd = attribute(path);				\
		NEXT(#name, (const char *, int))			\
		return fd >= 0 ? fd : opened(path, next(path, flags));	\
	}

/* The compiler calls these for open when it checks for the mode. */
OPEN_2(__open_2)
OPEN_2(__open64_2)

/* For struct stat64 and the versioned calls of older C libraries: arguments pass unchanged. */
struct stat64;
int __xstat(int version, const char *path, struct stat *st);
int __xstat64(int version, const char *path, struct stat64 *st);
int stat64(const char *path, struct stat64 *st);

EXPORT int stat(const char *path, struct stat *st)
{
	NEXT("stat", (const char *, struct stat *))
	return next(stand_in(path), st);
}

EXPORT int stat64(const char *path, struct stat64 *st)
{
	NEXT("stat64", (const char *, struct stat64 *))
	return next(stand_in(path), st);
}

EXPORT int __xstat(int version, const char *path, struct stat *st)
{
	NEXT("__xstat", (int, const char *, struct stat *))
	return next(version, stand_in(path), st);
}

EXPORT int __xstat64(int version, const char *path, struct stat64 *st)
{
	NEXT("__xstat64", (int, const char *, struct stat64 *))
	return next(version, stand_in(path), st);
}

EXPORT int access(const char *path, int mode)
{
	NEXT("access", (const char *, int))
	return next(stand_in(path), mode);
}
