/*
 * reader.c - result files: their origin is not trusted, so every value is checked.
 *
 * The reader keeps a typed row and the place of its line, and frees the JSON of a line before it
 * reads the next: a long file takes a few hundred bytes a row.  A record is read again where its
 * further members are asked for.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "util/err.h"
#include "report/check.h"
#include "report/source.h"

enum { LINE_BYTES_MAX = 16 << 20 };

/* ---- Lines ---------------------------------------------------------------------- */

/* Read the next line, without its newline: 1; end of file: 0; -errno. */
static int line_next(struct report_source *s)
{
	int c;

	s->length = 0;
	while ((c = getc_unlocked(s->in)) != EOF && c != '\n') {
		if (s->length == s->room) {
			size_t more = s->room ? s->room * 2 : 4096;
			char *grown = more > LINE_BYTES_MAX ? NULL : realloc(s->line, more);

			if (!grown && more <= LINE_BYTES_MAX)
				rg_error("no memory for a line of %zu bytes", more);
			if (!grown)
				return more > LINE_BYTES_MAX ? -EFBIG : -ENOMEM;
			s->line = grown;
			s->room = more;
		}
		s->line[s->length++] = (char)c;
	}
	if (ferror(s->in))
		return -EIO;
	if (c == EOF && s->length == 0)
		return 0;
	s->torn = c == EOF;
	s->number++;
	return 1;
}

static json_t *record_parse(const struct report_source *s, const char **type)
{
	json_t *record = s->length ?
		json_loadb(s->line, s->length, JSON_REJECT_DUPLICATES, NULL) : NULL;

	*type = json_string_value(json_object_get(record, "type"));
	if (*type)
		return record;
	json_decref(record);
	return NULL;
}

/* ---- Records -------------------------------------------------------------------- */

struct reading {
	struct report_file *f;
	report_row_fn *each;		/* NULL: rows are kept */
	void *user;
	char why[CHECK_WHY];
};

static void *grown(void *list, size_t count, size_t each)
{
	void *more = reallocarray(list, count, each);

	if (!more)
		rg_error("no memory for %zu rows", count);
	return more;
}

/* Keep a row and the place of its line. */
static int row_keep(struct report_file *f, const struct report_row *row, off_t at)
{
	struct report_source *s = f->source;

	if (f->row_count == s->row_room) {
		size_t more = s->row_room ? s->row_room + s->row_room / 2 : 64;
		void *rows = grown(f->row, more, sizeof(f->row[0])), *places;

		if (!rows)
			return -ENOMEM;
		f->row = rows;
		places = grown(f->row_at, more, sizeof(f->row_at[0]));
		if (!places)
			return -ENOMEM;
		f->row_at = places;
		s->row_room = more;
	}
	f->row_at[f->row_count] = at;
	f->row[f->row_count++] = *row;
	return 0;
}

/* Returns NULL or the error; *rc gets the failure of memory or of the caller's function. */
static const char *row_take(struct reading *r, const json_t *record, off_t at, int *rc)
{
	struct report_row row;
	const char *wrong = check_row(r->f->run, record, &row);

	if (wrong)
		return wrong;
	citable_row(&r->f->citable, record);
	if (!r->each) {
		*rc = row_keep(r->f, &row, at);
	} else {
		r->f->row_count++;
		*rc = r->each(r->user, r->f, &row, record);
	}
	return NULL;
}

static const char *record_take(struct reading *r, const char *type, json_t *record, off_t at,
			       int *rc)
{
	struct report_file *f = r->f;
	const char *wrong;

	if (f->end)
		return "a record after the end record";
	if (strcmp(type, "row") == 0)
		return row_take(r, record, at, rc);
	if (strcmp(type, "end"))
		return strcmp(type, "run") ? "a record of unknown type" : "a second run record";
	wrong = check_end(record, f->row_count, r->why, sizeof(r->why));
	if (!wrong) {
		f->end = json_incref(record);
		citable_end(&f->citable, json_integer_value(json_object_get(record, "status")));
	}
	return wrong;
}

/* ---- Files ---------------------------------------------------------------------- */

/* 0 or -EINVAL after an error line. */
static int wrong_in(const struct report_file *f, const char *mark, const char *wrong)
{
	rg_error("%s:%zu: %s%s", f->path, f->source->number, mark, wrong);
	return -EINVAL;
}

/* The run record, in the first line. */
static int run_load(struct reading *r)
{
	struct report_file *f = r->f;
	const char *type, *wrong;
	int rc = line_next(f->source);
	json_t *record;

	if (rc < 0)
		return rc;
	if (rc == 0) {
		rg_error("%s: damaged: empty, no run record", f->path);
		return -EINVAL;
	}
	record = record_parse(f->source, &type);
	if (!record)
		return wrong_in(f, "damaged: ", f->source->torn ? "the run record is torn" :
				"not a Railgauge result file");
	if (strcmp(type, "run")) {
		json_decref(record);
		return wrong_in(f, "damaged: ", "does not begin with a run record");
	}
	f->run = record;
	citable_run(&f->citable, record);
	wrong = check_run(record, f, r->why, sizeof(r->why));
	return wrong ? wrong_in(f, "", wrong) : 0;
}

static int records_load(struct reading *r)
{
	struct report_file *f = r->f;
	off_t at = ftello(f->source->in);
	int rc;

	while ((rc = line_next(f->source)) > 0) {
		const char *type, *wrong = "not a record of JSON";
		json_t *record = record_parse(f->source, &type);

		/*
		 * Torn: the writer was killed during its last write.  A whole record that only
		 * lacks its newline is valid.
		 */
		if (!record && f->source->torn) {
			rg_warn("%s:%zu: torn last record dropped", f->path, f->source->number);
			return 0;
		}
		rc = 0;
		if (record)
			wrong = record_take(r, type, record, at, &rc);
		json_decref(record);
		if (wrong)
			return wrong_in(f, "damaged: ", wrong);
		if (rc)
			return rc;
		at += (off_t)f->source->length + 1;
	}
	return rc;
}

/* 0, -errno after an error line, or the value of the caller's function. */
static int file_load(struct reading *r)
{
	struct report_file *f = r->f;
	int rc = run_load(r);

	if (!rc)
		rc = records_load(r);
	if (rc == -EIO || rc == -EFBIG)
		rg_error("%s:%zu: %s", f->path, f->source->number + 1, rc == -EIO ? strerror(EIO) :
			 "damaged: a line of more than 16 MiB");
	if (rc == -EFBIG)
		rc = -EINVAL;
	if (rc)
		return rc;
	if (!f->end)
		rg_warn("%s: no end record: the job did not finish; its rows are kept", f->path);
	rc = r->each ? 0 : lookup_build(&f->source->lookup, f->row, f->row_count);
	if (rc)
		rg_error("%s: no memory for %zu rows", f->path, f->row_count);
	return rc;
}

/* A copy of a pipe's text, since records are read again; NULL and errno. */
static FILE *copy_of(FILE *in)
{
	FILE *copy = tmpfile();
	char block[65536];
	size_t got;

	while (copy && (got = fread(block, 1, sizeof(block), in)) > 0)
		if (fwrite(block, 1, got, copy) != got)
			break;
	if (copy && (ferror(in) || ferror(copy) || fflush(copy) || fseeko(copy, 0, SEEK_SET))) {
		fclose(copy);
		copy = NULL;
		errno = EIO;
	}
	fclose(in);
	return copy;
}

static FILE *file_open(const char *path)
{
	FILE *in = fopen(path, "re");
	struct stat st;

	if (!in)
		return NULL;
	if (fstat(fileno(in), &st) == 0 && !S_ISDIR(st.st_mode))
		return S_ISREG(st.st_mode) ? in : copy_of(in);
	fclose(in);
	errno = EISDIR;
	return NULL;
}

int report_read_stream(FILE *in, const char *name, report_row_fn *each, void *user,
		       struct report_file *out)
{
	struct report_file f = { .path = strdup(name), .launches = 1,
				 .source = calloc(1, sizeof(*f.source)) };
	struct reading r = { .f = &f, .each = each, .user = user };
	int rc = -ENOMEM;

	if (!f.path || !f.source) {
		rg_error("%s: no memory", name);
		fclose(in);
	} else {
		f.source->in = in;
		rc = file_load(&r);
	}
	if (rc)
		report_file_free(&f);
	else
		*out = f;
	return rc;
}

int report_read_each(const char *path, report_row_fn *each, void *user, struct report_file *out)
{
	FILE *in = file_open(path);
	int rc;

	if (in)
		return report_read_stream(in, path, each, user, out);
	rc = -errno;
	rg_error("%s: %s (accepted: a file written by --json)", path, strerror(-rc));
	return rc;
}

int report_read(const char *path, struct report_file *out)
{
	return report_read_each(path, NULL, NULL, out);
}

void report_file_free(struct report_file *f)
{
	if (f->source) {
		if (f->source->in)
			fclose(f->source->in);
		free(f->source->line);
		lookup_free(&f->source->lookup);
		free(f->source->middle);
	}
	free(f->source);
	free(f->path);
	free(f->row);
	free(f->row_at);
	json_decref(f->run);
	json_decref(f->end);
	*f = (struct report_file){ .path = NULL };
}

/* ---- Rows of a file ------------------------------------------------------------- */

const struct report_row *report_file_row(const struct report_file *f, const char *way, double x)
{
	const json_t *ways = json_object_get(f->run, "ways"), *name;
	size_t i;

	json_array_foreach(ways, i, name)
		if (strcmp(json_string_value(name), way) == 0)
			return lookup_find(&f->source->lookup, f->row, json_string_value(name), x);
	return NULL;
}

json_t *report_file_record(const struct report_file *f, const struct report_row *row)
{
	struct report_source *s = f->source;
	const char *type;
	json_t *record = NULL;

	if (s->record)
		return s->record(f, row);
	if (fseeko(s->in, f->row_at[row - f->row], SEEK_SET) == 0 && line_next(s) > 0)
		record = record_parse(s, &type);
	if (!record)
		rg_error("%s: has changed since it was read", f->path);
	return record;
}
