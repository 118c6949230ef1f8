/* record.c - records: each is one line and one write. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/err.h"
#include "report/output.h"
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
	char *line = json_dumps(record, JSON_COMPACT | JSON_REAL_PRECISION(RECORD_DIGITS));
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

double record_number(double value)
{
	char text[32];

	snprintf(text, sizeof(text), "%.*g", RECORD_DIGITS, value);
	return strtod(text, NULL);
}

void record_round(json_t *record)
{
	json_t *value;
	const char *name;
	size_t i;

	if (json_is_real(record))
		json_real_set(record, record_number(json_real_value(record)));
	json_array_foreach(record, i, value)
		record_round(value);
	json_object_foreach(record, name, value)
		record_round(value);
}

static int records_put(int fd, const json_t *first, const json_t *more)
{
	int rc = record_put(fd, first);
	const json_t *record;
	size_t i;

	json_array_foreach(more, i, record)
		rc = rc ? rc : record_put(fd, record);
	return rc;
}

int record_open(struct record_file *f, const char *path, const json_t *first, const json_t *more)
{
	struct output o;
	int rc;

	*f = (struct record_file){ .fd = -1, .path = path };
	if (!path)
		return 0;
	rc = output_begin(&o, path);
	if (!rc) {
		rc = records_put(o.fd, first, more);
		if (rc)
			output_drop(&o);
	}
	if (!rc)
		rc = output_commit(&o, path);
	if (!rc) {
		f->fd = o.fd;
		return 0;
	}
	rg_error("%s: cannot be written: %s", path, strerror(-rc));
	f->error = rc;
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
