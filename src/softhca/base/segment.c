/* segment.c - sealed memfds, and opening those of other processes. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/base.h"
#include "base/segment.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008u
#endif

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

enum { CREATIONS = 1000 };	/* tries while another process interferes */

static const int seals = F_SEAL_SHRINK | F_SEAL_GROW;

/* ---- Making one ------------------------------------------------------------ */

/* Hides from the program a SIGXFSZ that a call of this library raises in this thread. */
struct muted {
	sigset_t it, before, pending;
};

static void mute(struct muted *m)
{
	sigemptyset(&m->it);
	sigaddset(&m->it, SIGXFSZ);
	pthread_sigmask(SIG_BLOCK, &m->it, &m->before);
	sigpending(&m->pending);
}

static void unmute(const struct muted *m)
{
	const struct timespec now = { 0, 0 };
	int err = errno;

	if (!sigismember(&m->pending, SIGXFSZ))
		sigtimedwait(&m->it, NULL, &now);
	pthread_sigmask(SIG_SETMASK, &m->before, NULL);
	errno = err;
}

int hca_file_size(int fd, uint64_t bytes, bool reserve)
{
	struct muted m;
	int err;

	mute(&m);
	if (reserve)
		err = posix_fallocate(fd, 0, (off_t)bytes);
	else
		err = ftruncate(fd, (off_t)bytes) ? errno : 0;
	unmute(&m);
	return -err;
}

static int create(const char *name, uint64_t bytes)
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
	}
	if (rc) {
		close(fd);
		return rc;
	}
	return fd;
}

/* The last seals: a seal that another process adds later would prevent writing. */
static int seal(int fd)
{
	if (!fcntl(fd, F_ADD_SEALS, seals | F_SEAL_SEAL))
		return 0;
	return hca_fail(errno, "sealing a memfd: %s", strerror(errno));
}

int hca_segment_create(const char *name, uint64_t bytes)
{
	int fd = create(name, bytes), rc;

	if (fd < 0)
		return fd;
	rc = seal(fd);
	if (rc) {
		close(fd);
		return rc;
	}
	return fd;
}

/* ---- Writable by its owner only ------------------------------------------ */

/*
 * Opens it again, since this counts as a writer; the descriptor that memfd_create
 * returns does not.
 */
static int reopen(int fd)
{
	char path[64];
	int again;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	again = open(path, O_RDWR | O_CLOEXEC);
	close(fd);
	return again < 0 ? hca_fail(errno, "%s: %s; /proc must be mounted", path, strerror(errno))
			 : again;
}

/*
 * A process that opened it before it was sealed may have a writable mapping; the
 * kernel grants a lease only if no such descriptor or mapping exists.  Writes through
 * one that is gone have left pages.  An open while the lease is held raises a signal:
 * SIGXFSZ, which no program waits for, blocked in this thread.
 */
static bool is_ours_alone(int fd)
{
	struct f_owner_ex here = { F_OWNER_TID, (pid_t)syscall(SYS_gettid) };
	bool alone = true;
	struct muted m;
	struct stat st;

	mute(&m);
	if (!fcntl(fd, F_SETOWN_EX, &here) && !fcntl(fd, F_SETSIG, SIGXFSZ)) {
		alone = !fcntl(fd, F_SETLEASE, F_WRLCK) || errno != EAGAIN;
		fcntl(fd, F_SETLEASE, F_UNLCK);
	}
	unmute(&m);
	return alone && fstat(fd, &st) == 0 && !st.st_blocks;
}

/*
 * A lock bears the pid of the process that took it, and only the creator of a
 * segment locks it.  It belongs to that open file description, which shows it in
 * /proc/<pid>/fdinfo; closing other descriptions of the file does not release it.
 */
static bool is_signed(int fd, pid_t pid, int theirs)
{
	char path[64], text[2048], want[96];
	struct stat st;
	ssize_t n;
	int info;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", (int)pid, theirs);
	info = open(path, O_RDONLY | O_CLOEXEC);
	if (info < 0)
		return false;
	n = read(info, text, sizeof(text) - 1);
	close(info);
	if (n <= 0 || fstat(fd, &st))
		return false;
	text[n] = '\0';
	snprintf(want, sizeof(want), " FLOCK  ADVISORY  WRITE %d %02x:%02x:%llu 0 EOF\n", (int)pid,
		 major(st.st_dev), minor(st.st_dev), (unsigned long long)st.st_ino);
	return strstr(text, want);
}

/* -EBUSY: another process opened, sealed or locked it meanwhile. */
static int create_own(const char *name, uint64_t bytes, void **at, unsigned *guards)
{
	int fd = create(name, bytes), rc = 0;

	if (fd >= 0)
		fd = reopen(fd);
	if (fd < 0)
		return fd;
	*guards = 0;
	*at = hca_segment_map(fd, 0, bytes);
	if (!*at) {
		rc = errno == EPERM ? -EBUSY :
		     hca_fail(errno, "mapping %s: %s", name, strerror(errno));
		close(fd);
		return rc;
	}
	if (!fcntl(fd, F_ADD_SEALS, seals | F_SEAL_SEAL | F_SEAL_FUTURE_WRITE))
		*guards |= HCA_SEALED;
	else if (errno == EINVAL)		/* before Linux 5.1 */
		rc = seal(fd);
	else
		rc = -EBUSY;
	if (!rc && (!is_ours_alone(fd) ||
		    (flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)))
		rc = -EBUSY;
	if (rc) {
		munmap(*at, bytes);
		close(fd);
		return rc;
	}
	if (is_signed(fd, getpid(), fd))
		*guards |= HCA_SIGNED;
	return fd;
}

int hca_segment_create_own(const char *name, uint64_t bytes, void **at, unsigned *guards)
{
	int tries, fd = -EBUSY;

	for (tries = 0; fd == -EBUSY && tries < CREATIONS; tries++)
		fd = create_own(name, bytes, at, guards);
	if (fd == -EBUSY)
		hca_fail(EBUSY, "%s: another process of this user opens or locks it before it can "
			 "be sealed, each time", name);
	return fd;
}

/* ---- Memory behind it ------------------------------------------------------ */

/* Is memory committed strictly (vm.overcommit_memory=2), or did the user ask for it? */
static bool counts(void)
{
	static _Atomic int known;	/* 1 no, 2 yes */
	const char *text = getenv("SOFTHCA_RESERVE");
	char mode = '0';
	int fd;

	if (known)
		return known == 2;
	fd = open("/proc/sys/vm/overcommit_memory", O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		if (read(fd, &mode, 1) != 1)
			mode = '0';
		close(fd);
	}
	known = mode == '2' || (text && strcmp(text, "1") == 0) ? 2 : 1;
	return known == 2;
}

int hca_segment_reserve(int fd, uint64_t offset, uint64_t bytes)
{
	if (!counts() || !bytes)
		return 0;
	return fallocate(fd, FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)bytes) ? -errno : 0;
}

/* ---- Those of other processes ------------------------------------------------ */

/* The device of memfds of ordinary pages; 0: unknown. */
static dev_t memfd_device(void)
{
	static _Atomic uint64_t known;
	uint64_t device = atomic_load(&known);
	struct stat st;
	int fd;

	if (device)
		return (dev_t)device;
	fd = memfd_create("softhca-probe", MFD_CLOEXEC);
	if (fd >= 0 && fstat(fd, &st) == 0)
		atomic_store(&known, (uint64_t)st.st_dev);
	if (fd >= 0)
		close(fd);
	return (dev_t)atomic_load(&known);
}

/*
 * A descriptor number from a peer may name anything: a file whose file system
 * blocks each access for ever, or huge pages that cannot be had when touched.  So
 * it is first held by a descriptor that does not open it (O_PATH), and examined
 * without synchronizing with its file system.
 */
static int pin_memfd(pid_t pid, int fd)
{
	char path[64];
	struct statx st;
	int pin;

	if (fd < 0)
		return -EBADF;
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
	pin = open(path, O_PATH | O_CLOEXEC);
	if (pin < 0)
		return -errno;
	if (statx(pin, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &st) ||
	    !S_ISREG(st.stx_mode) ||
	    makedev(st.stx_dev_major, st.stx_dev_minor) != memfd_device()) {
		close(pin);
		return -EPERM;
	}
	return pin;
}

static int open_sealed(pid_t pid, int fd, uint64_t bytes, int mode, int sealed)
{
	int pin = pin_memfd(pid, fd), got, held;
	char path[64];
	struct stat st;

	if (pin < 0)
		return pin;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", pin);
	got = open(path, mode | O_CLOEXEC | O_NONBLOCK);
	held = errno;
	close(pin);
	if (got < 0)
		return -held;
	held = fcntl(got, F_GET_SEALS);
	if (held < 0 || (held & sealed) != sealed || fstat(got, &st) || st.st_uid != geteuid() ||
	    (uint64_t)st.st_size != bytes) {
		close(got);
		return -EPERM;
	}
	return got;
}

int hca_segment_open(pid_t pid, int fd, uint64_t bytes)
{
	return open_sealed(pid, fd, bytes, O_RDWR, seals);
}

int hca_segment_open_own(pid_t pid, int fd, uint64_t bytes, unsigned guards)
{
	int sealed = seals | (guards & HCA_SEALED ? F_SEAL_FUTURE_WRITE : 0);
	int got = open_sealed(pid, fd, bytes, O_RDONLY, sealed);

	if (got >= 0 && (guards & HCA_SIGNED) && !is_signed(got, pid, fd)) {
		close(got);
		return -EPERM;
	}
	return got;
}

/* ---- Mapping ----------------------------------------------------------------- */

static void *map(int fd, uint64_t offset, uint64_t bytes, int prot)
{
	void *at = mmap(NULL, bytes, prot, MAP_SHARED | MAP_NORESERVE, fd, (off_t)offset);

	if (at == MAP_FAILED)
		return NULL;
	madvise(at, bytes, MADV_DONTDUMP);
	madvise(at, bytes, MADV_DONTFORK);
	return at;
}

void *hca_segment_map(int fd, uint64_t offset, uint64_t bytes)
{
	return map(fd, offset, bytes, PROT_READ | PROT_WRITE);
}

const void *hca_segment_view(int fd, uint64_t bytes)
{
	return map(fd, 0, bytes, PROT_READ);
}

/* ---- Processes ------------------------------------------------------------- */

/* Of /proc/<pid>/stat. */
struct process {
	char state;
	long threads;		/* a zombie's: itself, and those that have not ended yet */
	uint64_t start_time;
};

/* 0, or -1 with errno as hca_process_start_time. */
static int look_at_process(pid_t pid, struct process *p)
{
	char path[32], text[1024], *at;
	ssize_t n;
	int fd, field;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	errno = ESRCH;
	if (n <= 0)
		return -1;
	text[n] = '\0';
	at = strrchr(text, ')');	/* the name may hold anything */
	if (!at || at[1] != ' ')
		return -1;
	at += 2;
	*p = (struct process){ .state = *at };
	for (field = 3; field < 22; field++) {
		if (field == 20)
			p->threads = strtol(at, NULL, 10);
		at = strchr(at, ' ');
		if (!at++)
			return -1;
	}
	p->start_time = strtoull(at, NULL, 10) + 1;	/* the first of a machine starts at 0 */
	return 0;
}

/*
 * The state is the first thread's.  After its end, other threads may still be
 * leaving a system call, even if all were killed; or run on for long.
 */
uint64_t hca_process_start_time(pid_t pid)
{
	struct process p;

	if (look_at_process(pid, &p) || ((p.state == 'Z' || p.state == 'X') && p.threads <= 1))
		return 0;
	return p.start_time;
}

bool hca_process_stopped(pid_t pid, uint64_t start_time)
{
	struct process p;

	return !look_at_process(pid, &p) && p.start_time == start_time &&
	       (p.state == 'T' || p.state == 't');
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
	uint64_t now;

	if (watch >= 0)
		return poll(&p, 1, 0) != 1;
	if (!start_time)
		return false;
	now = hca_process_start_time(pid);
	/* A failed look-up (no descriptor is free, say) must not report a process dead. */
	return now == start_time || (!now && errno != ENOENT && errno != ESRCH);
}
