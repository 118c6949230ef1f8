/* files.c - result files and directories of them, divided into jobs. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "util/err.h"
#include "report/files.h"
#include "report/merge.h"

/* ---- One more file -------------------------------------------------------------- */

/* The earlier file with the same records at both ends, or NULL. */
static const struct report_file *twin_of(const struct report_files *f,
					 const struct report_file *file)
{
	for (int i = 0; i < f->count; i++) {
		const struct report_file *other = &f->file[i];

		if (other->row_count == file->row_count && json_equal(other->run, file->run) &&
		    (other->end ? json_equal(other->end, file->end) : !file->end))
			return other;
	}
	return NULL;
}

static int file_add(struct report_files *f, const char *path)
{
	struct report_file file, *more;
	const struct report_file *twin;
	int rc = report_read(path, &file);

	if (rc) {
		f->damaged = true;
		return rc == -ENOMEM ? rc : 0;
	}
	twin = twin_of(f, &file);
	if (twin) {
		rg_warn("%s: left out: the same launch as %s", path, twin->path);
		report_file_free(&file);
		return 0;
	}
	more = reallocarray(f->file, (size_t)f->count + 1, sizeof(f->file[0]));
	if (!more) {
		rg_error("%s: no memory", path);
		report_file_free(&file);
		return -ENOMEM;
	}
	f->file = more;
	f->file[f->count++] = file;
	return 0;
}

/* ---- Directories ---------------------------------------------------------------- */

static int is_result(const struct dirent *entry)
{
	const char *dot = strrchr(entry->d_name, '.');

	return dot && dot != entry->d_name && strcmp(dot, ".jsonl") == 0;
}

static int directory_add(struct report_files *f, const char *path)
{
	const char *slash = *path && path[strlen(path) - 1] == '/' ? "" : "/";
	struct dirent **entry;
	int rc = 0, n = scandir(path, &entry, is_result, alphasort);

	if (n < 0) {
		rc = -errno;
		rg_error("%s: %s", path, strerror(-rc));
		return rc;
	}
	if (n == 0) {
		rg_error("%s: no result file (accepted: a directory with *.jsonl)", path);
		rc = -ENOENT;
	}
	for (int i = 0; i < n; i++) {
		char *name = NULL;

		if (!rc && asprintf(&name, "%s%s%s", path, slash, entry[i]->d_name) < 0) {
			rg_error("%s: no memory", path);
			name = NULL;
			rc = -ENOMEM;
		}
		if (!rc)
			rc = file_add(f, name);
		free(name);
		free(entry[i]);
	}
	free(entry);
	return rc;
}

/* ---- All ------------------------------------------------------------------------ */

int report_files_read(char *const *path, int count, struct report_files *out)
{
	struct report_files f = {0};
	struct stat st;
	int rc = 0;

	for (int i = 0; i < count && !rc; i++)
		rc = stat(path[i], &st) == 0 && S_ISDIR(st.st_mode) ? directory_add(&f, path[i]) :
			file_add(&f, path[i]);
	if (!rc && f.count == 0)
		rc = -EINVAL;		/* each file has had its line */
	if (!rc) {
		f.group = calloc((size_t)f.count, sizeof(f.group[0]));
		rc = f.group ? 0 : -ENOMEM;
	}
	if (rc) {
		report_files_free(&f);
		return rc;
	}
	f.group_count = report_group(f.file, f.count, f.group);
	*out = f;
	return 0;
}

void report_files_free(struct report_files *f)
{
	for (int i = 0; i < f->count; i++)
		report_file_free(&f->file[i]);
	free(f->file);
	free(f->group);
	*f = (struct report_files){0};
}

int report_files_job(const struct report_files *f, int group, struct report_file *out,
		     const struct report_file **job)
{
	const struct report_file **launch = calloc((size_t)f->count, sizeof(launch[0]));
	int n = 0, rc = launch ? 0 : -ENOMEM;

	*out = (struct report_file){0};
	for (int i = 0; i < f->count && !rc; i++)
		if (f->group[i] == group)
			launch[n++] = &f->file[i];
	if (!rc)
		*job = launch[0];
	if (!rc && n > 1) {
		rc = report_merge(launch, n, out);
		*job = out;
	}
	free(launch);
	return rc;
}
