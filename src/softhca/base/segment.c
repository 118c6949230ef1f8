/* segment.c - see segment.h. */
#include <fcntl.h>
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

#include "softhca/base/base.h"
#include "softhca/base/place.h"
#include "softhca/base/proc.h"
#include "softhca/base/segment.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008u
#endif

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

enum { CREATIONS = 1000 };	/* tries while another process interferes */

/* ---- Making one ------------------------------------------------------------ */

/* Hide from the program a SIGXFSZ that a call of this library raises in this thread. */
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

/*
 * The first segment of this process decides the kind of shared memory.  Peers' segments must be of
 * the same kind, since a memfd can be sealed and a file cannot.
 */
enum kind { UNDECIDED, MEMFDS, FILES };

static _Atomic int kind;
static _Atomic uid_t user;	/* at that time */

bool hca_segments_are_files(void)
{
	return atomic_load(&kind) == FILES;
}

bool hca_segment_of_user(uid_t uid)
{
	return uid == geteuid() || (atomic_load(&kind) && uid == atomic_load(&user));
}

static void decide(enum kind k)
{
	if (atomic_load(&kind))
		return;
	atomic_store(&user, geteuid());
	atomic_store(&kind, k);
}

int hca_memfd(const char *name, unsigned flags)
{
	int fd = memfd_create(name, flags | MFD_CLOEXEC | MFD_NOEXEC_SEAL);

	if (fd < 0 && errno == EINVAL)
		fd = memfd_create(name, flags | MFD_CLOEXEC);	/* before Linux 6.3 */
	return fd;
}

static bool is_denied(int err)
{
	return err == EPERM || err == EACCES || err == ENOSYS;
}

static int wants_files(bool *wants)
{
	const char *text = getenv("SOFTHCA_MEMORY");

	*wants = text && strcmp(text, "file") == 0;
	if (!text || !*text || *wants || strcmp(text, "auto") == 0)
		return 0;
	return hca_fail(EINVAL, "SOFTHCA_MEMORY: '%.40s' (accepted: auto, file)", text);
}

/* An empty file of either kind; or -errno with the line set. */
static int segment_make(const char *name)
{
	bool wants = hca_segments_are_files();
	char why[512], denied[96] = "";
	int fd = -1, rc = atomic_load(&kind) ? 0 : wants_files(&wants);

	if (rc)
		return rc;
	if (!wants) {
		fd = hca_memfd(name, MFD_ALLOW_SEALING);
		if (fd >= 0) {
			decide(MEMFDS);
			return fd;
		}
		if (atomic_load(&kind) || !is_denied(errno))
			return hca_fail(errno, "memfd_create: %s", strerror(errno));
		snprintf(denied, sizeof(denied), "memfd_create: %s; and ", strerror(errno));
	}
	fd = hca_place_file(why, sizeof(why));
	if (fd < 0)
		return hca_fail(errno, "no shared memory: %sno directory takes a file (%s); allow "
				"memfd_create, or name a writable directory in SOFTHCA_DIR", denied, why);
	decide(FILES);
	return fd;
}

static int cannot_size(uint64_t bytes, int rc)
{
	struct rlimit limit = { .rlim_cur = RLIM_INFINITY };

	getrlimit(RLIMIT_FSIZE, &limit);
	if (rc == -EFBIG && limit.rlim_cur < bytes)
		return hca_fail(EFBIG,
				"a sparse memfd of %llu bytes exceeds RLIMIT_FSIZE (ulimit -f), "
				"%llu bytes: RLIMIT_FSIZE must be unlimited",
				(unsigned long long)bytes, (unsigned long long)limit.rlim_cur);
	return hca_fail(-rc, "sizing a memfd: %s", strerror(-rc));
}

static int segment_create(const char *name, uint64_t bytes)
{
	int fd = segment_make(name), rc;

	if (fd < 0)
		return fd;
	rc = hca_file_size(fd, bytes, false);
	if (!rc)
		return fd;
	close(fd);
	return cannot_size(bytes, rc);
}

/* The seals that a segment of this process's kind has. */
static int seals(void)
{
	return hca_segments_are_files() ? 0 : F_SEAL_SHRINK | F_SEAL_GROW;
}

/* The last seals: a seal that another process adds later would prevent writing. */
static int seal(int fd)
{
	if (hca_segments_are_files() || !fcntl(fd, F_ADD_SEALS, seals() | F_SEAL_SEAL))
		return 0;
	return hca_fail(errno, "sealing a memfd: %s", strerror(errno));
}

int hca_segment_create(const char *name, uint64_t bytes)
{
	int fd = segment_create(name, bytes), rc;

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
 * Open the segment again: an opened descriptor counts as a writer, the descriptor of memfd_create
 * does not.  False: without /proc; then no other process can open the segment, either.
 */
static bool reopen(int *fd)
{
	int again = hca_proc_reopen(*fd, O_RDWR);

	if (again < 0)
		return false;
	close(*fd);
	*fd = again;
	return true;
}

/*
 * A process that opened the segment before it was sealed may have a writable mapping;
 * the kernel grants a lease only if no such descriptor or mapping exists.  Earlier
 * writes through a mapping that is gone have left pages.  An open while the lease is
 * held raises a signal: SIGXFSZ, which no program waits for, blocked in this thread.
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
 * segment locks it.  The lock belongs to that open file description, which shows it in
 * /proc/<pid>/fdinfo; closing other descriptions of the file does not release it.
 */
static bool is_signed(int fd, pid_t pid, int theirs)
{
	char path[64], text[2048], want[96];
	struct stat st;
	ssize_t n;
	int info;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", (int)pid, theirs);
	info = hca_proc_open(path, O_RDONLY);
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

/* Seal a segment; *sealed: no other mapping is writable.  -EBUSY: another process has sealed it. */
static int seal_own(int fd, bool *sealed)
{
	*sealed = false;
	if (hca_segments_are_files())
		return 0;
	if (!fcntl(fd, F_ADD_SEALS, seals() | F_SEAL_SEAL | F_SEAL_FUTURE_WRITE)) {
		*sealed = true;
		return 0;
	}
	return errno == EINVAL ? seal(fd) : -EBUSY;	/* before Linux 5.1 */
}

/* -EBUSY: another process opened, sealed or locked it meanwhile. */
static int create_own(const char *name, uint64_t bytes, void **at, unsigned *guards)
{
	int fd = segment_create(name, bytes), rc;
	bool watched, sealed;

	if (fd < 0)
		return fd;
	watched = reopen(&fd) && !hca_segments_are_files();
	*at = hca_segment_map(fd, 0, bytes);
	if (!*at) {
		rc = errno == EPERM ? -EBUSY :
		     hca_fail(errno, "mapping %s: %s", name, strerror(errno));
		close(fd);
		return rc;
	}
	rc = seal_own(fd, &sealed);
	if (!rc && ((watched && !is_ours_alone(fd)) ||
		    (flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)))
		rc = -EBUSY;
	if (rc) {
		munmap(*at, bytes);
		close(fd);
		return rc;
	}
	*guards = (sealed ? HCA_SEALED : 0) | (is_signed(fd, getpid(), fd) ? HCA_SIGNED : 0);
	return fd;
}

int hca_segment_create_own(const char *name, uint64_t bytes, void **at, unsigned *guards)
{
	int tries, fd = -EBUSY;

	for (tries = 0; fd == -EBUSY && tries < CREATIONS; tries++)
		fd = create_own(name, bytes, at, guards);
	if (fd == -EBUSY)
		hca_fail(EBUSY, "%s: each time another process of this user opens or locks the "
			 "segment before its sealing", name);
	return fd;
}

/* ---- Memory of segments----------------------------------------------------- */

/* Is memory committed strictly (vm.overcommit_memory=2), or bounded, or did the user ask for it? */
static bool counts(void)
{
	static _Atomic int known;	/* 1 no, 2 yes */
	const char *text = getenv("SOFTHCA_RESERVE");
	char mode = '0';
	int fd;

	if (hca_segments_are_files())
		return true;		/* a file system is full sooner than memory */
	if (known)
		return known == 2;
	fd = hca_proc_open("/proc/sys/vm/overcommit_memory", O_RDONLY);
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

/* The device of memfds of ordinary pages; 0: unknown, with errno. */
static dev_t memfd_device(void)
{
	static _Atomic uint64_t known;
	uint64_t device = atomic_load(&known);
	struct stat st;
	int fd;

	if (device)
		return (dev_t)device;
	fd = hca_memfd("softhca-probe", 0);
	if (fd >= 0 && fstat(fd, &st) == 0)
		atomic_store(&known, (uint64_t)st.st_dev);
	if (fd >= 0)
		close(fd);
	return (dev_t)atomic_load(&known);
}

/*
 * Is it a memfd of ordinary pages, or where segments are files, a file?  Huge pages may be missing
 * when they are touched.  The query does not synchronize with the file system, which may block each
 * access for ever.  0, -EPERM, -EMEDIUMTYPE: it may be a segment of the other kind, or -EMFILE, -ENFILE.
 */
static int examine(int fd, uint64_t bytes)
{
	struct statx st;
	dev_t memfds;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_SIZE, &st) ||
	    !S_ISREG(st.stx_mode))
		return -EPERM;
	if (hca_segments_are_files())
		return 0;
	memfds = memfd_device();
	if (!memfds && (errno == EMFILE || errno == ENFILE))
		return -errno;
	if (makedev(st.stx_dev_major, st.stx_dev_minor) == memfds)
		return 0;
	return st.stx_size == bytes ? -EMEDIUMTYPE : -EPERM;
}

int hca_segment_check(int fd, uint64_t bytes, unsigned guards)
{
	const bool files = hca_segments_are_files();
	const int sealed = seals() | (guards & HCA_SEALED ? F_SEAL_FUTURE_WRITE : 0);
	int rc = examine(fd, bytes), has;
	struct stat st;

	if (rc)
		return rc;
	has = fcntl(fd, F_GET_SEALS);
	if (fstat(fd, &st) || (uint64_t)st.st_size != bytes)
		return -EPERM;
	if (files)
		return has >= 0 && (has & F_SEAL_SHRINK) ? -EMEDIUMTYPE : 0;
	return has >= 0 && (has & sealed) == sealed ? 0 : -EPERM;
}

/*
 * A descriptor number from a peer may name anything.  So it is first held by a descriptor that does
 * not open it (O_PATH), and examined.
 */
static int pin_memory(pid_t pid, int fd, uint64_t bytes)
{
	char path[64];
	int pin, rc;

	if (fd < 0)
		return -EBADF;
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
	pin = hca_proc_open(path, O_PATH);
	if (pin < 0)
		return -errno;
	rc = examine(pin, bytes);
	if (!rc)
		return pin;
	close(pin);
	return rc;
}

static int open_sealed(pid_t pid, int fd, uint64_t bytes, int mode, unsigned guards)
{
	int pin = pin_memory(pid, fd, bytes), got, rc;
	struct stat st;

	if (pin < 0)
		return pin;
	got = hca_proc_reopen(pin, mode | O_NONBLOCK);
	rc = got < 0 ? -errno : hca_segment_check(got, bytes, guards);
	close(pin);
	if (!rc && (fstat(got, &st) || !hca_segment_of_user(st.st_uid)))
		rc = -EPERM;
	if (rc && got >= 0)
		close(got);
	return rc ? rc : got;
}

int hca_segment_open(pid_t pid, int fd, uint64_t bytes)
{
	return open_sealed(pid, fd, bytes, O_RDWR, 0);
}

int hca_segment_open_own(pid_t pid, int fd, uint64_t bytes, unsigned guards)
{
	int got = open_sealed(pid, fd, bytes, O_RDONLY, guards);

	if (got >= 0 && (guards & HCA_SIGNED) && !is_signed(got, pid, fd)) {
		close(got);
		return -EPERM;
	}
	return got;
}

/* ---- Mapping ----------------------------------------------------------------- */

static void *segment_map(int fd, uint64_t offset, uint64_t bytes, int prot)
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
	return segment_map(fd, offset, bytes, PROT_READ | PROT_WRITE);
}

const void *hca_segment_view(int fd, uint64_t bytes)
{
	return segment_map(fd, 0, bytes, PROT_READ);
}
