/* registry.c - the member registry, the one file of a fabric. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "softhca/base/base.h"
#include "softhca/base/place.h"
#include "softhca/link/memory/registry.h"
#include "softhca/base/proc.h"
#include "softhca/base/segment.h"
#include "softhca/link/memory/ask.h"

#define MAGIC 0x3130766472616368ull	/* "hcardv01" */

enum { LOCK_WAIT_S = 60 };

static_assert(offsetof(struct hca_registry_image, member) == 1024, "room in the header");

/* The common prefix of the files' names. */
static void prefix_make(char *buf, size_t size)
{
	snprintf(buf, size, "softhca.%u.", (unsigned)geteuid());
}

int hca_registry_name(const char *name, char out[HCA_NAME_MAX + 1])
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789_-.";

	if (!name)
		name = getenv("SOFTHCA_FABRIC");
	if (!name)
		name = "default";
	if (!*name || strlen(name) > HCA_NAME_MAX || strspn(name, letters) != strlen(name))
		return hca_fail(EINVAL, "fabric: '%.80s' is not a name (accepted: 1 to %d letters, "
				"digits, '_', '-', '.')", name, HCA_NAME_MAX);
	strcpy(out, name);
	return 0;
}

/*
 * The lock is held for microseconds, and under valgrind for a tenth of a second, unless its holder
 * was stopped.  All processes of a job may wait for it in turn.
 */
static int lock_bounded(int fd, const char *path)
{
	int tries;

	for (tries = 0; tries < LOCK_WAIT_S * 1000; tries++) {
		if (flock(fd, LOCK_EX | LOCK_NB) == 0)
			return 0;
		if (errno != EWOULDBLOCK && errno != EINTR)
			return hca_fail(errno, "%s: flock: %s", path, strerror(errno));
		rg_sleep_ns(1000000);
	}
	return hca_fail(ETIMEDOUT, "%s: locked by another process for %d s (stopped? /proc/locks "
			"names it)", path, LOCK_WAIT_S);
}

static int open_once(struct hca_registry *r, bool create)
{
	struct stat st;
	int rc;

	r->fd = open(r->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | (create ? O_CREAT : 0), 0600);
	if (r->fd < 0)
		return hca_fail(errno, "%s: %s", r->path, strerror(errno));
	if (fstat(r->fd, &st)) {
		rc = hca_fail(errno, "%s: %s", r->path, strerror(errno));
	} else if (!S_ISREG(st.st_mode) || st.st_uid != geteuid()) {
		rc = hca_fail(EACCES, "%s: belongs to another user; choose another SOFTHCA_FABRIC",
			      r->path);
	} else {
		rc = lock_bounded(r->fd, r->path);
	}
	if (rc) {
		close(r->fd);
		r->fd = -1;
	}
	return rc;
}

/* Another process may have removed the file between open and lock. */
static bool still_there(const struct hca_registry *r)
{
	struct stat mine, named;

	return fstat(r->fd, &mine) == 0 && lstat(r->path, &named) == 0 &&
	       mine.st_ino == named.st_ino && mine.st_dev == named.st_dev;
}

static int open_and_lock(struct hca_registry *r, bool create)
{
	int rc;

	for (;;) {
		rc = open_once(r, create);
		if (rc || still_there(r))
			return rc;
		hca_registry_close(r);
	}
}

int hca_registry_open_at(const char *path, struct hca_registry *r)
{
	if (snprintf(r->path, sizeof(r->path), "%s", path) >= (int)sizeof(r->path))
		return hca_fail(ENAMETOOLONG, "SOFTHCA_DIR: too long");
	return open_and_lock(r, false);
}

/* Can no file be made there?  A file that exists, in any state, is one that others find, too. */
static bool is_no_place(const struct hca_registry *r, int rc)
{
	struct stat st;

	return rc == -EROFS ||
	       ((rc == -ENOENT || rc == -ENOTDIR || rc == -EACCES || rc == -EPERM) &&
		lstat(r->path, &st) != 0);
}

int hca_registry_open(const char *name, const char *host, struct hca_registry *r)
{
	const bool chosen = !hca_place(1);
	char prefix[32], why[512] = "";
	const char *dir;
	size_t used = 0;
	unsigned i;
	int rc, n;

	prefix_make(prefix, sizeof(prefix));
	for (i = 0; (dir = hca_place(i)); i++) {
		n = snprintf(r->path, sizeof(r->path), "%s/%s%s%s%s", dir, prefix, name,
			     *host ? "@" : "", host);
		if (n < 0 || (size_t)n >= sizeof(r->path))
			return hca_fail(ENAMETOOLONG, "%s: too long",
					chosen ? "SOFTHCA_DIR" : "TMPDIR");
		rc = open_and_lock(r, true);
		if (chosen || !rc || !is_no_place(r, rc))
			return rc;
		if (used < sizeof(why))
			used += (size_t)snprintf(why + used, sizeof(why) - used, "%s%.100s: %s",
						 i ? ", " : "", dir, strerror(-rc));
	}
	hca_fail(EROFS, "no directory takes the member registry (%s); name a writable one in "
		 "SOFTHCA_DIR", why);
	return HCA_NO_PLACE;
}

/* The fabric of a file's name without its prefix; false: it is no registry's. */
static bool fabric_of(const char *file, char name[HCA_NAME_MAX + 1])
{
	char text[HCA_NAME_MAX + 2];

	snprintf(text, sizeof(text), "%.*s", (int)strcspn(file, "@"), file);
	return !hca_registry_name(text, name);
}

static int each_in(const char *dir, int (*visit)(void *arg, const char *path, const char *name),
		   void *arg)
{
	char prefix[32], valid[HCA_NAME_MAX + 1], path[256];
	DIR *list = opendir(dir);
	struct dirent *e;
	int rc = 0;

	prefix_make(prefix, sizeof(prefix));
	while (!rc && list && (e = readdir(list))) {
		const char *name = e->d_name + strlen(prefix);

		if (strncmp(e->d_name, prefix, strlen(prefix)) == 0 &&
		    fabric_of(name, valid) &&
		    snprintf(path, sizeof(path), "%s/%s", dir, e->d_name) < (int)sizeof(path))
			rc = visit(arg, path, valid);
	}
	if (list)
		closedir(list);
	return rc;
}

int hca_registry_each(int (*visit)(void *arg, const char *path, const char *name), void *arg)
{
	const char *dir;
	unsigned i, k;
	int rc = 0;

	for (i = 0; !rc && (dir = hca_place(i)); i++) {
		for (k = 0; k < i && strcmp(hca_place(k), dir); k++)
			;
		if (k == i)		/* TMPDIR may be one of the others */
			rc = each_in(dir, visit, arg);
	}
	return rc;
}

void hca_registry_close(struct hca_registry *r)
{
	if (r->fd < 0)
		return;
	flock(r->fd, LOCK_UN);		/* a forked child may still hold the descriptor */
	close(r->fd);
	r->fd = -1;
}

int hca_registry_check(const struct hca_registry_image *image, size_t bytes)
{
	if (bytes != sizeof(*image) || image->magic != MAGIC || image->slots != HCA_PROCS_MAX ||
	    image->nonce == 0 || !memchr(image->spec, '\0', sizeof(image->spec)))
		return -EPROTO;
	return image->abi == HCA_ABI ? 0 : -EPROTO;
}

int hca_registry_read(struct hca_registry *r, struct hca_registry_image *image)
{
	ssize_t n = pread(r->fd, image, sizeof(*image), 0);
	struct stat st;

	if (n < 0 || fstat(r->fd, &st))
		return hca_fail(errno, "%s: %s", r->path, strerror(errno));
	if (st.st_size == 0 || (n >= 24 && image->magic == 0 && image->nonce == 0)) {
		memset(image, 0, sizeof(*image));	/* the maker got no further */
		return 0;
	}
	if (hca_registry_check(image, (size_t)n) || (size_t)st.st_size != sizeof(*image))
		return hca_fail(EPROTO, "%s: not a member registry of this version; `softhca reap` "
				"removes it", r->path);
	return 0;
}

static int registry_put(struct hca_registry *r, const void *bytes, size_t n, size_t at)
{
	ssize_t done = pwrite(r->fd, bytes, n, (off_t)at);

	if (done == (ssize_t)n)
		return 0;
	return hca_fail(done < 0 ? errno : ENOSPC, "%s: %s", r->path,
			strerror(done < 0 ? errno : ENOSPC));
}

int hca_registry_begin(struct hca_registry *r, struct hca_registry_image *head)
{
	int rc;

	head->magic = MAGIC;
	head->abi = HCA_ABI;
	head->slots = HCA_PROCS_MAX;
	memset(head->member, 0, sizeof(head->member));
	if (ftruncate(r->fd, 0))
		return hca_fail(errno, "%s: %s", r->path, strerror(errno));
	rc = hca_file_size(r->fd, sizeof(*head), true);
	if (rc)
		return hca_fail(-rc, "%s: cannot reserve %zu bytes: %s", r->path, sizeof(*head),
				strerror(-rc));
	return registry_put(r, head, offsetof(struct hca_registry_image, member), 0);
}

int hca_registry_put(struct hca_registry *r, uint32_t slot, const struct hca_member *m)
{
	return registry_put(r, m, sizeof(*m),
			    offsetof(struct hca_registry_image, member) + slot * sizeof(*m));
}

void hca_registry_remove(struct hca_registry *r)
{
	if (still_there(r))
		unlink(r->path);
}

bool hca_member_address(const struct hca_identity *me, const struct hca_registry_image *image,
			uint32_t slot, const char *fabric, struct hca_address *a)
{
	const struct hca_member *m = &image->member[slot];

	if (!me->net_ns || m->net_ns != me->net_ns)
		return false;
	if (m->address == HCA_BY_NUMBER)
		hca_address_by_number(image->id, slot, a);
	else if (m->address == HCA_BY_NAME)
		hca_address_by_name(image->place, fabric, a);
	else
		return false;
	return true;
}

enum hca_member_state hca_member_look(const struct hca_identity *me,
				      const struct hca_registry_image *image, uint32_t slot,
				      const char *fabric)
{
	const struct hca_member *m = &image->member[slot];
	struct hca_address a;
	bool alive;

	if (m->pid <= 0)
		return HCA_MEMBER_NONE;
	if (hca_is_near(me, m->pid_ns))
		alive = hca_process_alive(m->pid, m->start_time, -1);
	else if (hca_member_address(me, image, slot, fabric, &a))
		alive = hca_address_lives(&a);
	else
		return HCA_MEMBER_UNKNOWN;
	return alive ? HCA_MEMBER_ALIVE : HCA_MEMBER_DEAD;
}
