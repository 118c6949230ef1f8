/* segment.c - sealed memfds, and how one process opens another's. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base.h"
#include "segment.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008u
#endif

static const int seals = F_SEAL_SHRINK | F_SEAL_GROW;

int hca_file_size(int fd, uint64_t bytes, bool reserve)
{
	const struct timespec now = { 0, 0 };
	sigset_t xfsz, before, pending;
	int err;

	sigemptyset(&xfsz);
	sigaddset(&xfsz, SIGXFSZ);
	pthread_sigmask(SIG_BLOCK, &xfsz, &before);
	sigpending(&pending);
	if (reserve)
		err = posix_fallocate(fd, 0, (off_t)bytes);
	else
		err = ftruncate(fd, (off_t)bytes) ? errno : 0;
	if (err == EFBIG && !sigismember(&pending, SIGXFSZ))
		sigtimedwait(&xfsz, NULL, &now);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -err;
}

int hca_segment_create(const char *name, uint64_t bytes)
{
	const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	int fd = memfd_create(name, flags | MFD_NOEXEC_SEAL);
	int rc;

	if (fd < 0 && errno == EINVAL)
		fd = memfd_create(name, flags);		/* before Linux 6.3 */
	if (fd < 0)
		return hca_fail(errno, "memfd_create: %s", strerror(errno));
	rc = hca_file_size(fd, bytes, false);
	if (rc == -EFBIG) {
		struct rlimit limit = { 0 };

		getrlimit(RLIMIT_FSIZE, &limit);
		hca_fail(EFBIG, "a sparse memfd of %llu bytes exceeds RLIMIT_FSIZE (ulimit -f), "
			 "which is %llu bytes: it must be unlimited",
			 (unsigned long long)bytes, (unsigned long long)limit.rlim_cur);
	} else if (rc) {
		hca_fail(-rc, "sizing a memfd: %s", strerror(-rc));
	} else if (fcntl(fd, F_ADD_SEALS, seals) < 0) {
		rc = hca_fail(errno, "sealing a memfd: %s", strerror(errno));
	}
	if (rc) {
		close(fd);
		return rc;
	}
	return fd;
}

int hca_segment_open(pid_t pid, int fd, uint64_t bytes)
{
	char path[64];
	struct stat st;
	int got, held;

	if (fd < 0)
		return -EBADF;
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
	got = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	if (got < 0)
		return -errno;
	/* F_GET_SEALS works on memfds only, so this is one. */
	held = fcntl(got, F_GET_SEALS);
	if (held < 0 || (held & seals) != seals || fstat(got, &st) || st.st_uid != geteuid() ||
	    (uint64_t)st.st_size != bytes) {
		close(got);
		return -EPERM;
	}
	return got;
}

void *hca_segment_map(int fd, uint64_t offset, uint64_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd,
			(off_t)offset);

	if (at == MAP_FAILED)
		return NULL;
	madvise(at, bytes, MADV_DONTDUMP);
	return at;
}

uint64_t hca_process_start_time(pid_t pid)
{
	char path[32], text[1024], *at;
	unsigned long long start;
	ssize_t n;
	int fd, field;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	at = strrchr(text, ')');	/* the name may hold anything */
	if (!at || at[1] != ' ')
		return 0;
	at += 2;
	if (*at == 'Z' || *at == 'X')
		return 0;
	for (field = 3; field < 22; field++) {
		at = strchr(at, ' ');
		if (!at++)
			return 0;
	}
	start = strtoull(at, NULL, 10);
	return start + 1;		/* the first process of a machine starts at 0 */
}

int hca_process_watch(pid_t pid, uint64_t start_time)
{
#ifdef SYS_pidfd_open
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	if (fd >= 0 && hca_process_start_time(pid) != start_time) {
		close(fd);
		return -1;
	}
	return fd;
#else
	return -1;
#endif
}

bool hca_process_alive(pid_t pid, uint64_t start_time, int watch)
{
	struct pollfd p = { .fd = watch, .events = POLLIN };

	if (watch >= 0)
		return poll(&p, 1, 0) != 1;
	return start_time && hca_process_start_time(pid) == start_time;
}
