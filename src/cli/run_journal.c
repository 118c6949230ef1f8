/* run_journal.c - the directory of a campaign, and its journal. */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/launch.h"
#include "cli/run_journal.h"
#include "util/clock.h"
#include "util/err.h"

#define WAIT_NS UINT64_C(100000000)
enum { WAITS_MAX = 200 };

static char *path_in(const struct run_journal *j, const char *name)
{
	char *path;

	if (asprintf(&path, "%s/%s", j->dir, name) >= 0)
		return path;
	rg_error("%s: no memory", j->dir);
	return NULL;
}

/* ---- The directory ----------------------------------------------------------------------- */

/* Names that a campaign may have left before its journal was there. */
static bool is_ours(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strcmp(name, "lock") == 0 ||
	       strcmp(name, "launch.lock") == 0 || strcmp(name, "records") == 0 ||
	       strncmp(name, CAMPAIGN_JOURNAL, strlen(CAMPAIGN_JOURNAL)) == 0;
}

/* May a campaign begin here, or go on?  0 or -errno after a line. */
static int directory_check(const char *dir)
{
	const struct dirent *entry;
	DIR *d = opendir(dir);
	int rc = d ? 0 : -errno;

	while (d && !campaign_exists(dir) && !rc && (entry = readdir(d)))
		if (!is_ours(entry->d_name))
			rc = -EEXIST;
	if (rc == -EEXIST)
		rg_error("--out %s: has other files and no campaign (accepted: a campaign, an empty "
			 "directory, or the name of a new one)", dir);
	else if (rc)
		rg_error("--out %s: %s (accepted: a campaign, an empty directory, or the name of a new "
			 "one)", dir, strerror(-rc));
	if (d)
		closedir(d);
	return rc;
}

static int cannot_write(const char *path, int rc)
{
	rg_error("%s: cannot be written: %s", path, strerror(-rc));
	return rc;
}

static int directory_make(struct run_journal *j, const char *dir)
{
	char *records;
	int rc;

	if (mkdir(dir, 0777) && errno != EEXIST) {
		rc = -errno;
		rg_error("--out %s: %s (accepted: a campaign, an empty directory, or the name of a new "
			 "one)", dir, strerror(-rc));
		return rc;
	}
	rc = directory_check(dir);
	if (rc)
		return rc;
	j->dir = realpath(dir, NULL);
	records = j->dir ? path_in(j, "records") : NULL;
	if (!records)
		return -ENOMEM;
	if (mkdir(records, 0777) && errno != EEXIST)
		rc = cannot_write(records, -errno);
	free(records);
	return rc;
}

/* ---- The lock ---------------------------------------------------------------------------- */

/* The process that has the lock, as it wrote it; 0: unknown. */
static long holder(int fd)
{
	char text[32] = "";

	return pread(fd, text, sizeof(text) - 1, 0) > 0 ? strtol(text, NULL, 10) : 0;
}

static int lock_take(struct run_journal *j)
{
	char *path = path_in(j, "lock");
	int rc = path ? 0 : -ENOMEM;

	if (!rc) {
		j->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
		rc = j->lock < 0 ? cannot_write(path, -errno) : 0;
	}
	if (!rc && flock(j->lock, LOCK_EX | LOCK_NB)) {
		rc = errno == EWOULDBLOCK ? -EBUSY : -errno;
		if (rc == -EBUSY)
			rg_error("%s: in use by another run, process %ld (accepted: its end, or "
				 "another --out)", j->dir, holder(j->lock));
		else
			rg_error("%s: cannot be locked: %s", path, strerror(-rc));
	}
	if (!rc && (ftruncate(j->lock, 0) || dprintf(j->lock, "%ld\n", (long)getpid()) < 0))
		rc = cannot_write(path, -errno);
	free(path);
	return rc;
}

/* A launcher ends soon after its parent; what goes on for longer only disturbs. */
static int launch_wait(struct run_journal *j)
{
	char *path = path_in(j, "launch.lock");
	int rc = path ? 0 : -ENOMEM, waits = 0;

	if (!rc) {
		j->launch_lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
		rc = j->launch_lock < 0 ? cannot_write(path, -errno) : 0;
	}
	free(path);
	while (!rc && flock(j->launch_lock, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) {
		if (!waits)
			rg_note("waiting for the launch that a killed run has left");
		if (waits++ == WAITS_MAX) {
			rg_warn("that launch has not ended, and goes on");
			break;
		}
		rg_sleep_ns(WAIT_NS);
	}
	return rc;
}

/*
 * A job of the software HCA that was killed while its ranks joined has left a file in /dev/shm.  Files
 * of jobs that live stay.
 */
static void leftovers_reap(void)
{
	char path[PATH_MAX];
	pid_t child;

	if (cli_suite_find("softhca", path, sizeof(path)))
		return;
	child = fork();
	if (child == 0) {
		int none = open("/dev/null", O_RDWR);

		if (none >= 0 && dup2(none, STDOUT_FILENO) >= 0 && dup2(none, STDERR_FILENO) >= 0)
			execl(path, path, "reap", (char *)NULL);
		_exit(1);
	}
	while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
}

/* ---- The journal ------------------------------------------------------------------------- */

/* A new name is on the disk as soon as its directory is. */
static int directory_sync(const struct run_journal *j)
{
	int fd = open(j->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc = fd < 0 || (fsync(fd) && errno != EINVAL) ? -errno : 0;

	if (fd >= 0)
		close(fd);
	return rc;
}

static int journal_append_open(struct run_journal *j)
{
	char *path = path_in(j, CAMPAIGN_JOURNAL);
	int rc = path ? 0 : -ENOMEM;

	if (!rc) {
		j->fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
		rc = j->fd < 0 ? cannot_write(path, -errno) : 0;
	}
	if (!rc && j->campaign.torn) {
		rg_warn("%s: torn last line dropped", path);
		if (ftruncate(j->fd, (off_t)j->campaign.whole_bytes))
			rc = cannot_write(path, -errno);
	}
	free(path);
	return rc;
}

int run_journal_open(const char *dir, struct run_journal *out)
{
	struct run_journal j = { .lock = -1, .fd = -1, .launch_lock = -1 };
	int rc = directory_make(&j, dir);

	if (!rc)
		rc = lock_take(&j);
	if (!rc)
		rc = launch_wait(&j);
	if (!rc && campaign_exists(j.dir)) {
		rc = campaign_read(j.dir, &j.campaign);
		if (!rc)
			rc = journal_append_open(&j);
	}
	if (rc)
		run_journal_close(&j);
	else
		*out = j;
	return rc;
}

bool run_journal_is_unused(const struct run_journal *j)
{
	char *records = path_in(j, "records");
	DIR *d = records ? opendir(records) : NULL;
	const struct dirent *entry;
	bool unused = d;

	while (unused && (entry = readdir(d)))
		unused = !strstr(entry->d_name, ".jsonl");
	if (d)
		closedir(d);
	free(records);
	return unused;
}

static int line_write(int fd, const json_t *record)
{
	char *text = json_dumps(record, JSON_COMPACT), *line = NULL;
	int length = text ? asprintf(&line, "%s\n", text) : -1, rc = 0;

	if (length < 0)
		line = NULL;
	if (!line)
		rc = -ENOMEM;
	else if (write(fd, line, (size_t)length) != length)
		rc = errno ? -errno : -ENOSPC;
	else if (fsync(fd) && errno != EINVAL)
		rc = -errno;
	free(line);
	free(text);
	return rc;
}

int run_journal_begin(struct run_journal *j, const json_t *header)
{
	char *path = path_in(j, CAMPAIGN_JOURNAL), *temporary = path_in(j, CAMPAIGN_JOURNAL ".new");
	int fd = -1, rc = path && temporary ? 0 : -ENOMEM;

	if (!rc) {
		fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
		rc = fd < 0 ? -errno : line_write(fd, header);
		if (!rc && rename(temporary, path))
			rc = -errno;
		if (!rc)
			rc = directory_sync(j);
		if (rc)
			cannot_write(path, rc);
		if (rc && fd >= 0)
			unlink(temporary);
	}
	if (fd >= 0)
		close(fd);
	free(path);
	free(temporary);
	if (rc)
		return rc;
	if (j->fd >= 0)
		close(j->fd);
	j->campaign.torn = false;
	return journal_append_open(j);
}

int run_journal_add(struct run_journal *j, json_t *record)
{
	int rc;

	errno = 0;
	rc = line_write(j->fd, record);
	json_decref(record);
	if (rc)
		rg_error("%s/" CAMPAIGN_JOURNAL ": cannot be written: %s", j->dir, strerror(-rc));
	return rc;
}

void run_journal_close(struct run_journal *j)
{
	campaign_free(&j->campaign);
	if (j->fd >= 0) {
		close(j->fd);
		leftovers_reap();
	}
	if (j->launch_lock >= 0)
		close(j->launch_lock);
	if (j->lock >= 0)
		close(j->lock);
	free(j->dir);
	*j = (struct run_journal){ .lock = -1, .fd = -1, .launch_lock = -1 };
}
