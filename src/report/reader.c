/* reader.c - result files: their origin is not trusted, so every value is checked. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "util/err.h"
#include "report/app.h"
#include "report/axis.h"
#include "report/matrix.h"

enum { LINE_BYTES_MAX = 16 << 20 };

/* The next line without its newline: 1; end of file: 0; *torn if it lacks the newline. */
static int line_next(FILE *in, char **line, size_t *room, bool *torn)
{
	size_t length = 0;
	int c;

	while ((c = getc_unlocked(in)) != EOF && c != '\n') {
		if (length + 2 > *room) {
			size_t more = *room ? *room * 2 : 4096;
			char *grown = more > LINE_BYTES_MAX ? NULL : realloc(*line, more);

			if (!grown)
				return -EINVAL;
			*line = grown;
			*room = more;
		}
		(*line)[length++] = (char)c;
	}
	if (ferror(in))
		return -EIO;
	if (c == EOF && length == 0)
		return 0;
	if (*line)
		(*line)[length] = '\0';
	*torn = c == EOF;
	return 1;
}

static json_t *record_parse(const char *line, const char **type)
{
	json_t *record = line ? json_loads(line, JSON_REJECT_DUPLICATES, NULL) : NULL;

	*type = json_string_value(json_object_get(record, "type"));
	if (!*type) {
		json_decref(record);
		return NULL;
	}
	return record;
}

static bool has_string(const json_t *record, const char *member)
{
	return json_is_string(json_object_get(record, member));
}

/* Check a run record.  Returns NULL or the error. */
static const char *run_check(const json_t *run, enum report_metric *metric)
{
	json_t *ways = json_object_get(run, "ways"), *way;
	const char *wrong;
	size_t i;
	int found;

	if (json_integer_value(json_object_get(run, "schema")) != REPORT_SCHEMA)
		return "written by another version (schema is not 1)";
	if (!has_string(run, "program") || !has_string(run, "title") || !has_string(run, "metric"))
		return "the run record lacks program, title or metric";
	found = report_metric_find(json_string_value(json_object_get(run, "metric")));
	if (found < 0)
		return "the run record has an unknown metric";
	if (!json_array_size(ways) || json_array_size(ways) > REPORT_WAYS_MAX)
		return "the run record lacks its ways";
	json_array_foreach(ways, i, way)
		if (!json_is_string(way))
			return "the run record lacks its ways";
	*metric = (enum report_metric)found;
	wrong = axis_check(run);
	if (!wrong)
		wrong = matrix_check(run);
	return wrong ? wrong : app_run_check(run);
}

static const char *row_check(const json_t *run, const json_t *row)
{
	json_t *ways = json_object_get(run, "ways"), *way, *bytes = json_object_get(row, "bytes");
	const char *wrong;
	bool known = false;
	size_t i;

	if (!json_is_integer(bytes) || json_integer_value(bytes) < 0 ||
	    !json_is_integer(json_object_get(row, statistics[STATS_N].name)) || !has_string(row, "way"))
		return "a row without way, bytes or n";
	/* Files of older versions lack statistics that came later. */
	for (i = 0; i < STATS_ROWS; i++) {
		json_t *value = json_object_get(row, statistics[i].name);

		if (value ? !json_is_number(value) && !json_is_null(value) : i == STATS_MEAN)
			return "a row without its statistics";
	}
	json_array_foreach(ways, i, way)
		known = known || strcmp(json_string_value(way),
					json_string_value(json_object_get(row, "way"))) == 0;
	if (!known)
		return "a row of a way that the run record does not name";
	wrong = axis_row_check(run, row);
	if (!wrong)
		wrong = matrix_row_check(run, row);
	return wrong ? wrong : app_row_check(run, row);
}

/* Take a record in, with its reference.  Returns NULL or the error. */
static const char *file_take(struct report_file *f, const char *type, json_t *record)
{
	const char *wrong;

	if (!f->run) {
		wrong = strcmp(type, "run") ? "does not begin with a run record" :
			run_check(record, &f->metric);
		f->run = record;
		citable_run(&f->citable, record);
		return wrong;
	}
	if (f->end) {
		wrong = "a record after the end record";
	} else if (strcmp(type, "row") == 0) {
		wrong = row_check(f->run, record);
		if (!wrong) {
			json_array_append(f->rows, record);
			citable_row(&f->citable, record);
		}
	} else if (strcmp(type, "end") == 0) {
		wrong = json_is_integer(json_object_get(record, "status")) ? NULL :
			"an end record without status";
		if (!wrong) {
			f->end = json_incref(record);
			citable_end(&f->citable,
				    json_integer_value(json_object_get(record, "status")));
		}
	} else {
		wrong = strcmp(type, "run") ? "a record of unknown type" : "a second run record";
	}
	json_decref(record);
	return wrong;
}

static int file_load(struct report_file *f, FILE *in)
{
	char *line = NULL;
	size_t room = 0;
	bool torn = false;
	int rc, number = 0;

	while ((rc = line_next(in, &line, &room, &torn)) > 0) {
		const char *type, *wrong = "not a record of JSON";
		json_t *record = record_parse(line, &type);

		number++;
		/*
		 * Torn: the writer was killed during its last write.  A whole record that only
		 * lacks its newline is valid.
		 */
		if (!record && torn && f->run) {
			rg_warn("%s:%d: torn last record dropped", f->path, number);
			break;
		}
		if (record)
			wrong = file_take(f, type, record);
		else if (!f->run)
			wrong = torn ? "the run record is torn" : "not a Railgauge result file";
		if (wrong) {
			rg_error("%s:%d: damaged: %s", f->path, number, wrong);
			rc = -EINVAL;
			goto out;
		}
	}
	if (rc < 0) {
		rg_error("%s:%d: %s", f->path, number + 1, rc == -EIO ? strerror(EIO) :
			 "damaged: a line of more than 16 MiB");
	} else if (!f->run) {
		rg_error("%s: damaged: empty, no run record", f->path);
		rc = -EINVAL;
	} else if (!f->end) {
		rg_warn("%s: no end record: the job did not finish; its rows are kept", f->path);
		rc = 0;
	} else {
		rc = 0;
	}
out:
	free(line);
	return rc;
}

int report_read(const char *path, struct report_file *out)
{
	struct report_file f = { .path = strdup(path), .rows = json_array() };
	FILE *in = fopen(path, "re");
	struct stat st;
	int rc;

	if (!in || fstat(fileno(in), &st) || S_ISDIR(st.st_mode)) {
		rc = in ? -EISDIR : -errno;
		rg_error("%s: %s (accepted: a file written by --json)", path, strerror(-rc));
	} else {
		rc = file_load(&f, in);
	}
	if (in)
		fclose(in);
	if (rc)
		report_file_free(&f);
	else
		*out = f;
	return rc;
}

void report_file_free(struct report_file *f)
{
	free(f->path);
	json_decref(f->run);
	json_decref(f->rows);
	json_decref(f->end);
	*f = (struct report_file){ .path = NULL };
}

json_t *report_file_row(const struct report_file *f, const char *way, double x)
{
	json_t *row;
	size_t i;

	json_array_foreach(f->rows, i, row)
		if (report_row_x(row) == x &&
		    strcmp(json_string_value(json_object_get(row, "way")), way) == 0)
			return row;
	return NULL;
}
