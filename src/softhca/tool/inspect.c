/* inspect.c - the fabrics of this user, seen from outside. */
#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "softhca/base/base.h"
#include "softhca/tool/inspect.h"
#include "softhca/base/segment.h"
#include "softhca/link/memory/ask.h"

static struct hca_seen *add(struct hca_sight *s)
{
	struct hca_seen *more = realloc(s->fabric, (s->count + 1) * sizeof(*more));

	if (!more)
		return NULL;
	s->fabric = more;
	memset(&more[s->count], 0, sizeof(*more));
	return &more[s->count++];
}

/* ---- A segment ----------------------------------------------------------- */

/* Data of another process is read once and checked. */
static bool take(struct hca_seen *seen, struct hca_shm_fabric *shm)
{
	char text[HCA_SPEC_MAX], why[HCA_WHY_MAX];

	memcpy(text, shm->spec, sizeof(text));
	memcpy(seen->name, shm->name, sizeof(seen->name));
	seen->nonce = shm->nonce;
	if (shm->magic != HCA_FABRIC_MAGIC || shm->abi != HCA_ABI ||
	    !memchr(text, '\0', sizeof(text)) || !memchr(seen->name, '\0', sizeof(seen->name)) ||
	    hca_spec_parse(text, &seen->spec, why, sizeof(why)))
		return false;
	seen->shm = shm;
	return true;
}

/* Map the segment of a descriptor, and close that. */
static bool map(struct hca_seen *seen, int fd)
{
	struct hca_shm_fabric *shm;

	if (fd < 0)
		return false;
	shm = hca_segment_map(fd, 0, sizeof(*shm));
	close(fd);
	if (shm && !take(seen, shm)) {
		munmap(shm, sizeof(*shm));
		return false;
	}
	return shm != NULL;
}

/* ---- By their files ------------------------------------------------------ */

static int ask(const struct hca_identity *me, const struct hca_registry_image *image, uint32_t i,
	       const char *name)
{
	int fd[HCA_ANSWER_MAX], count;
	struct hca_address a;

	if (!hca_member_address(me, image, i, name, &a))
		return -ENOENT;
	count = hca_ask(me, &a, image->nonce, HCA_ASK_FABRIC, 0, fd);
	if (count == 1 && !hca_segment_check(fd[0], sizeof(struct hca_shm_fabric), 0))
		return fd[0];
	while (count > 0)
		close(fd[--count]);
	return -ENOENT;
}

static int open_fabric(const struct hca_identity *me, const struct hca_registry_image *image,
		       uint32_t i, const char *name)
{
	const struct hca_member *m = &image->member[i];
	int fd = -ENOENT;

	if (hca_is_near(me, m->pid_ns))
		fd = hca_segment_open(m->pid, m->fabric_fd, sizeof(struct hca_shm_fabric));
	return fd < 0 ? ask(me, image, i, name) : fd;
}

static int read_file(struct hca_sight *sight, struct hca_seen *seen, const char *path,
		     const char *name)
{
	struct hca_registry r = { .fd = -1 };
	uint32_t i;

	seen->image = calloc(1, sizeof(*seen->image));
	if (!seen->image)
		return hca_fail(ENOMEM, "no memory");
	if (hca_registry_open_at(path, &r)) {
		seen->damaged = true;
		return 0;
	}
	seen->damaged = hca_registry_read(&r, seen->image) != 0;
	hca_registry_close(&r);
	if (seen->damaged)
		memset(seen->image, 0, sizeof(*seen->image));
	strcpy(seen->name, name);
	for (i = 0; i < HCA_PROCS_MAX; i++) {
		seen->state[i] = (unsigned char)hca_member_look(&sight->me, seen->image, i, name);
		if (!seen->shm && seen->state[i] == HCA_MEMBER_ALIVE)
			map(seen, open_fabric(&sight->me, seen->image, i, name));
	}
	strcpy(seen->name, name);
	seen->nonce = seen->image->nonce;
	return 0;
}

static int see_file(void *arg, const char *path, const char *name)
{
	struct hca_sight *sight = arg;
	struct hca_seen *seen = add(sight);

	return seen ? read_file(sight, seen, path, name) : hca_fail(ENOMEM, "no memory");
}

/* ---- By their members ---------------------------------------------------- */

static bool is_known(const struct hca_sight *sight, uint64_t nonce)
{
	unsigned i;

	for (i = 0; i < sight->count; i++)
		if (sight->fabric[i].shm && sight->fabric[i].nonce == nonce)
			return true;
	return false;
}

static int check_descriptor(struct hca_sight *sight, pid_t pid, int fd)
{
	struct hca_seen seen = { 0 }, *more;

	if (!map(&seen, hca_segment_open(pid, fd, sizeof(struct hca_shm_fabric))))
		return 0;
	if (is_known(sight, seen.nonce)) {
		munmap(seen.shm, sizeof(*seen.shm));
		return 0;
	}
	more = add(sight);
	if (!more) {
		munmap(seen.shm, sizeof(*seen.shm));
		return hca_fail(ENOMEM, "no memory");
	}
	*more = seen;
	return 0;
}

static int check_process(struct hca_sight *sight, pid_t pid)
{
	char path[64], link[64];
	struct dirent *e;
	DIR *dir;
	int rc = 0;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	while (!rc && dir && (e = readdir(dir))) {
		ssize_t n = readlinkat(dirfd(dir), e->d_name, link, sizeof(link) - 1);

		link[n > 0 ? n : 0] = '\0';
		if (strncmp(link, "/memfd:softhca-fabric", 21) == 0)
			rc = check_descriptor(sight, pid, atoi(e->d_name));
	}
	if (dir)
		closedir(dir);
	return rc;
}

static int check_processes(struct hca_sight *sight)
{
	DIR *dir = opendir("/proc");
	struct dirent *e;
	int rc = 0;

	while (!rc && dir && (e = readdir(dir)))
		if (isdigit((unsigned char)e->d_name[0]))
			rc = check_process(sight, atoi(e->d_name));
	if (dir)
		closedir(dir);
	return rc;
}

/* ---- Public -------------------------------------------------------------- */

int hca_inspect(struct hca_sight *sight)
{
	int rc;

	memset(sight, 0, sizeof(*sight));
	hca_identity_get(&sight->me);
	rc = hca_registry_each(see_file, sight);
	if (!rc)
		rc = check_processes(sight);
	if (rc)
		hca_inspect_end(sight);
	return rc;
}

void hca_inspect_end(struct hca_sight *sight)
{
	unsigned i;

	for (i = 0; i < sight->count; i++) {
		if (sight->fabric[i].shm)
			munmap(sight->fabric[i].shm, sizeof(*sight->fabric[i].shm));
		free(sight->fabric[i].image);
	}
	free(sight->fabric);
	memset(sight, 0, sizeof(*sight));
}
