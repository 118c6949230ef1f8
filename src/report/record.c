/* record.c - records: each is one line and one write. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/err.h"
#include "report/record.h"

json_t *record_new(const char *type)
{
	return json_pack("{s:i, s:s}", "schema", REPORT_SCHEMA, "type", type);
}

/* A nearly full disk may take a part of a line; the reader drops a torn last line. */
static int write_all(int fd, const char *text, size_t length)
{
	while (length) {
		ssize_t sent = write(fd, text, length);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent <= 0)
			return sent ? -errno : -ENOSPC;
		text += sent;
		length -= (size_t)sent;
	}
	return 0;
}

static int record_put(int fd, const json_t *record)
{
	char *line = json_dumps(record, JSON_COMPACT | JSON_REAL_PRECISION(9));
	size_t length;
	int rc;

	if (!line)
		return -ENOMEM;
	/* The newline takes the place of the NUL: line and newline go in one write. */
	length = strlen(line);
	line[length] = '\n';
	rc = write_all(fd, line, length + 1);
	free(line);
	return rc;
}

static int record_create(struct record_file *f, const char *path, const json_t *first)
{
	char *temporary = NULL;
	int rc = 0;

	if (asprintf(&temporary, "%s.new.%ld", path, (long)getpid()) < 0)
		return -ENOMEM;
	f->fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
	if (f->fd < 0) {
		rc = -errno;
		goto out;
	}
	rc = record_put(f->fd, first);
	if (!rc && rename(temporary, path))
		rc = -errno;
	if (rc) {
		unlink(temporary);
		close(f->fd);
		f->fd = -1;
	}
out:
	free(temporary);
	return rc;
}

int record_open(struct record_file *f, const char *path, const json_t *first)
{
	struct stat st;
	int rc;

	*f = (struct record_file){ .fd = -1, .path = path };
	if (!path)
		return 0;
	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
		f->fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
		rc = f->fd < 0 ? -errno : record_put(f->fd, first);
	} else {
		rc = record_create(f, path, first);
	}
	if (rc) {
		rg_error("%s: cannot be written: %s", path, strerror(-rc));
		f->error = rc;
	}
	return rc;
}

int record_write(struct record_file *f, const json_t *record)
{
	if (f->fd < 0 || f->error)
		return f->error;
	f->error = record_put(f->fd, record);
	if (f->error)
		rg_error("%s: cannot be written: %s (rows before this one are kept)", f->path,
			 strerror(-f->error));
	return f->error;
}

int record_close(struct record_file *f)
{
	/* Some file systems report a full disk only on close. */
	if (f->fd >= 0 && close(f->fd) && !f->error) {
		f->error = -errno;
		rg_error("%s: cannot be written: %s", f->path, strerror(errno));
	}
	f->fd = -1;
	return f->error;
}
