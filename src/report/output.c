/* output.c - files that are replaced in one step, and those that are not replaced. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/err.h"
#include "report/output.h"

enum { LINE_BYTES = 16 << 20 };	/* a run record, at most */

/* ---- Replacing ------------------------------------------------------------------ */

/* Pipes and devices keep their name, and so do names of open files (/dev/stdout). */
static bool is_direct(const char *path)
{
	struct stat st;

	return strncmp(path, "/dev/", 5) == 0 || strncmp(path, "/proc/", 6) == 0 ?
		access(path, F_OK) == 0 : stat(path, &st) == 0 && !S_ISREG(st.st_mode);
}

int output_begin(struct output *o, const char *path)
{
	*o = (struct output){ .fd = -1 };
	if (is_direct(path)) {
		o->fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
		return o->fd < 0 ? -errno : 0;
	}
	if (asprintf(&o->temporary, "%s.new.%ld", path, (long)getpid()) < 0) {
		o->temporary = NULL;
		return -ENOMEM;
	}
	o->fd = open(o->temporary, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
	if (o->fd < 0) {
		int rc = -errno;

		free(o->temporary);
		o->temporary = NULL;
		return rc;
	}
	return 0;
}

int output_commit(struct output *o, const char *path)
{
	int rc = 0;

	if (o->temporary && rename(o->temporary, path)) {
		rc = -errno;
		output_drop(o);
	}
	free(o->temporary);
	o->temporary = NULL;
	return rc;
}

void output_drop(struct output *o)
{
	if (o->temporary)
		unlink(o->temporary);
	if (o->fd >= 0)
		close(o->fd);
	free(o->temporary);
	*o = (struct output){ .fd = -1 };
}

/* ---- What may be replaced ------------------------------------------------------- */

bool output_is_records(const char *line)
{
	json_t *record = json_loads(line, 0, NULL);
	const char *type = json_string_value(json_object_get(record, "type"));
	bool is = type && strcmp(type, "run") == 0 &&
		  json_is_integer(json_object_get(record, "schema")) &&
		  json_is_string(json_object_get(record, "program"));

	json_decref(record);
	return is;
}

bool output_is_samples(const char *line)
{
	size_t length = strspn(line, "abcdefghijklmnopqrstuvwxyz_,");
	bool way = strncmp(line, "way,", 4) == 0 || strstr(line, ",way,");

	return (line[length] == '\n' || !line[length]) && way && strstr(line, ",bytes,");
}

int output_check(const char *path, const char *option, bool (*ours)(const char *line))
{
	FILE *in = is_direct(path) ? NULL : fopen(path, "re");
	char *line;
	int rc = 0;

	if (!in)
		return 0;	/* absent, or its opening says why it cannot be written */
	line = malloc(LINE_BYTES);
	if (!line) {
		rg_error("no memory for a line of %s", path);
		rc = -ENOMEM;
	} else if (fgets(line, LINE_BYTES, in) && !ours(line)) {
		rg_error("--%s %s: exists and is no file of Railgauge's --%s (accepted: another "
			 "name, or --overwrite)", option, path, option);
		rc = -EEXIST;
	}
	free(line);
	fclose(in);
	return rc;
}

/* ---- One file by two names ------------------------------------------------------ */

static bool same_inode(const char *a, const char *b)
{
	struct stat sa, sb;

	return stat(a, &sa) == 0 && stat(b, &sb) == 0 && sa.st_dev == sb.st_dev &&
	       sa.st_ino == sb.st_ino;
}

/* The directory of a path in buf; returns the name in it. */
static const char *split(const char *path, char buf[PATH_MAX])
{
	const char *slash = strrchr(path, '/');

	snprintf(buf, PATH_MAX, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
	return slash ? slash + 1 : path;
}

bool output_is_same(const char *a, const char *b)
{
	char dir_a[PATH_MAX], dir_b[PATH_MAX];
	const char *name_a = split(a, dir_a), *name_b = split(b, dir_b);
	struct stat st;

	if (stat(a, &st) == 0 && S_ISCHR(st.st_mode))
		return false;
	return same_inode(a, b) || strcmp(a, b) == 0 ||
	       (strcmp(name_a, name_b) == 0 && same_inode(dir_a, dir_b));
}
