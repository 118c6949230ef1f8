/*
 * check_state.c - error counters of the last time, and machines as they were at acceptance.
 *
 * The state is {"type": "check_state", "utc": time, "counters": {host: {port: {counter: value}}}}.
 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/check_state.h"
#include "report/output.h"
#include "util/err.h"
#include "util/text.h"

enum { STATE_MAX = 16 << 20, KEPT_MAX = 256 << 20 };

static bool is_of_type(const json_t *object, const char *type)
{
	const char *text = json_string_value(json_object_get(object, "type"));

	return text && !strcmp(text, type);
}

/* NULL and errno: the file cannot be read; *object NULL: it is no JSON. */
static int object_read(const char *path, size_t most, json_t **object)
{
	size_t bytes;
	char *text = rg_file_read(path, most, &bytes);
	int rc = -errno;

	if (!text)
		return rc;
	*object = json_loadb(text, bytes, 0, NULL);
	free(text);
	return 0;
}

/* ---- The last time ----------------------------------------------------------------------- */

int check_state_read(const char *path, json_t **before)
{
	json_t *state = NULL, *counters;
	int rc = object_read(path, STATE_MAX, &state);

	if (rc == -ENOENT) {
		*before = NULL;
		return 0;
	}
	if (rc) {
		rg_error("%s: %s", path, strerror(-rc));
		return rc;
	}
	counters = json_object_get(state, "counters");
	if (is_of_type(state, "check_state") && json_is_object(counters))
		*before = json_incref(counters);
	else
		rc = -EINVAL;
	json_decref(state);
	if (rc)
		rg_error("%s: damaged, or no state of railgauge check (accepted: its own file, or a "
			 "name that is free)", path);
	return rc;
}

static json_t *state_new(const json_t *counters)
{
	const time_t now = time(NULL);
	char utc[32] = "";
	struct tm tm;

	if (gmtime_r(&now, &tm))
		strftime(utc, sizeof(utc), "%Y-%m-%dT%H:%M:%SZ", &tm);
	return json_pack("{s:s, s:s, s:O}", "type", "check_state", "utc", utc, "counters", counters);
}

static int file_replace(const char *path, const json_t *value)
{
	struct output out;
	int rc = output_begin(&out, path);

	if (rc)
		return rc;
	if (json_dumpfd(value, out.fd, JSON_INDENT(1)) || write(out.fd, "\n", 1) != 1 ||
	    (out.temporary && fsync(out.fd))) {
		rc = errno ? -errno : -EIO;
		output_drop(&out);
		return rc;
	}
	rc = output_commit(&out, path);
	if (!rc)
		close(out.fd);
	return rc;
}

/* The directory of the file, whose own parent is there. */
static void parent_make(const char *path)
{
	char dir[PATH_MAX];
	const char *slash = strrchr(path, '/');

	if (slash && slash != path &&
	    (size_t)snprintf(dir, sizeof(dir), "%.*s", (int)(slash - path), path) < sizeof(dir))
		mkdir(dir, 0755);
}

int check_state_write(const char *path, const json_t *counters)
{
	json_t *state = state_new(counters);
	int rc = -ENOMEM;

	parent_make(path);
	errno = 0;
	if (state)
		rc = file_replace(path, state);
	if (rc)
		rg_error("%s: cannot be written: %s (--state FILE is another place)", path,
			 strerror(-rc));
	json_decref(state);
	return rc;
}

/* ---- At acceptance ------------------------------------------------------------------------ */

/* A machine replaces an earlier one of the same host. */
static void machine_keep(json_t *kept, json_t *topo)
{
	json_t *host = json_object_get(topo, "host"), *other;
	size_t i;

	json_array_foreach(kept, i, other)
		if (json_equal(json_object_get(other, "host"), host)) {
			json_array_set(kept, i, topo);
			return;
		}
	json_array_append(kept, topo);
}

static int machines_add(json_t *kept, const char *path)
{
	json_t *object = NULL, *topo;
	int rc = object_read(path, KEPT_MAX, &object);
	size_t i;

	if (rc) {
		rg_error("%s: %s", path, strerror(-rc));
		return rc;
	}
	if (!object) {
		rg_error("%s: damaged: no JSON (accepted: a file of railgauge topo --json)", path);
		return -EINVAL;
	}
	if (is_of_type(object, "topo"))
		machine_keep(kept, object);
	else if (is_of_type(object, "topo_job"))
		json_array_foreach(json_object_get(object, "nodes"), i, topo)
			if (is_of_type(topo, "topo"))
				machine_keep(kept, topo);
	json_decref(object);
	return 0;
}

static int is_json(const struct dirent *entry)
{
	const char *dot = strrchr(entry->d_name, '.');

	return dot && dot != entry->d_name && !strcmp(dot, ".json");
}

int check_kept_read(const char *dir, json_t **kept)
{
	struct dirent **entry;
	json_t *all = json_array();
	int n = scandir(dir, &entry, is_json, alphasort), rc = 0;

	if (n < 0) {
		rc = -errno;
		rg_error("%s: %s", dir, strerror(errno));
	}
	for (int i = 0; i < n; i++) {
		char path[PATH_MAX];

		if (!rc && (size_t)snprintf(path, sizeof(path), "%s/%s", dir, entry[i]->d_name) <
		    sizeof(path))
			rc = machines_add(all, path);
		free(entry[i]);
	}
	if (n >= 0)
		free(entry);
	if (!rc && !json_array_size(all)) {
		rg_error("%s: no machine (accepted: a directory with files of railgauge topo --json, "
			 "*.json)", dir);
		rc = -ENOENT;
	}
	if (rc)
		json_decref(all);
	else
		*kept = all;
	return rc;
}
