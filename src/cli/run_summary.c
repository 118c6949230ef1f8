/* run_summary.c - the summary of a campaign. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/run_answer.h"
#include "cli/run_summary.h"
#include "report/merge.h"
#include "report/output.h"
#include "report/report.h"
#include "report/sheet.h"
#include "util/err.h"

/* ---- The launches of a program with a build ---------------------------------------------- */

struct cell {
	struct report_file *file;	/* those read */
	const struct report_file **same;	/* those of one job */
	int count, same_count;
	struct report_file merged;
};

/* Read the records of the finished launches, those of other machines or options with a line. */
static int cell_read(struct cell *c, const struct run_launches *r, int program, int build)
{
	*c = (struct cell){ .file = calloc((size_t)r->plan->launches, sizeof(c->file[0])),
			    .same = calloc((size_t)r->plan->launches, sizeof(c->same[0])) };
	if (!c->file || !c->same)
		return -ENOMEM;
	for (int i = 0; i < r->plan->count; i++) {
		const struct run_item *item = &r->plan->item[i];
		char *path;

		if (item->program != program || item->build != build || r->seconds[i] < 0)
			continue;
		path = run_file(r->plan, item, r->journal->dir, ".jsonl");
		c->count += path && report_read(path, &c->file[c->count]) == 0;
		free(path);
	}
	return 0;
}

static void cell_choose(struct cell *c, FILE *out)
{
	const char *why;

	for (int i = 0; i < c->count; i++) {
		if (report_same_job(&c->file[0], &c->file[i], &why))
			c->same[c->same_count++] = &c->file[i];
		else
			fprintf(out, "# left out: %s: not as the first launch, by its %s\n",
				c->file[i].path, why);
	}
}

static int cell_make(struct cell *c, const struct run_launches *r, int program, int build, FILE *out)
{
	const char *name = r->plan->build[build].name;
	int rc = cell_read(c, r, program, build);
	char *label;

	if (rc || !c->count)
		return rc;
	cell_choose(c, out);
	rc = report_merge(c->same, c->same_count, &c->merged);
	if (rc)
		return rc;
	label = *name ? strdup(name) : run_file(r->plan, &r->plan->item[0], r->journal->dir, "");
	if (!label)
		return -ENOMEM;
	if (!*name)
		*strrchr(label, '/') = '\0';
	free(c->merged.path);
	c->merged.path = label;
	return 0;
}

static void cell_free(struct cell *c)
{
	for (int i = 0; i < c->count; i++)
		report_file_free(&c->file[i]);
	report_file_free(&c->merged);
	free(c->file);
	free(c->same);
}

/* ---- A table per program ----------------------------------------------------------------- */

static int table_print(const struct cell *cell, int builds, FILE *out)
{
	const struct report_file *job[RUN_BUILDS_MAX];
	struct sheet s;
	int n = 0, rc;

	for (int b = 0; b < builds; b++)
		if (cell[b].same_count)
			job[n++] = &cell[b].merged;
	if (!n)
		return 0;
	rc = sheet_make(job, n, &s);
	if (rc)
		return rc;
	sheet_text(&s, out, false);
	fputc('\n', out);
	sheet_free(&s);
	return 0;
}

static int program_print(const struct run_launches *r, int program, FILE *out)
{
	struct cell cell[RUN_BUILDS_MAX] = {{ .count = 0 }};
	int rc = 0;

	for (int b = 0; b < r->plan->builds && !rc; b++)
		rc = cell_make(&cell[b], r, program, b, out);
	if (!rc)
		rc = table_print(cell, r->plan->builds, out);
	for (int b = 0; b < r->plan->builds; b++)
		cell_free(&cell[b]);
	return rc;
}

int run_summary_tables(const struct run_launches *r, FILE *out)
{
	int rc = 0;

	for (int p = 0; p < r->plan->programs && !rc; p++)
		rc = program_print(r, p, out);
	return rc;
}

/* ---- The whole --------------------------------------------------------------------------- */

static void head_print(const struct run_launches *r, FILE *out)
{
	const struct run_plan *p = r->plan;

	fprintf(out, "# campaign: %s, %d of %d launches finished, %d ranks, seed %lld\n", p->preset,
		r->finished, p->count, p->ranks, (long long)p->seed);
	for (int b = 0; b < p->builds && *p->build[0].name && !run_plan_is_unknown(p); b++)
		fprintf(out, "# build %s: %s%s%s\n", p->build[b].name,
			*p->build[b].dir ? p->build[b].dir : "this one",
			*p->build[b].settings ? ", with " : "", p->build[b].settings);
	if (r->failed)
		fprintf(out, "# failed: %d launches\n", r->failed);
	if (r->finished < p->count)
		fprintf(out, "# to go on: railgauge run --out %s\n", r->journal->dir);
}

static int summary_save(const struct run_launches *r, const char *text, size_t length)
{
	struct output o;
	char *path;
	int rc;

	if (asprintf(&path, "%s/" RUN_SUMMARY_FILE, r->journal->dir) < 0)
		return -ENOMEM;
	rc = output_begin(&o, path);
	if (!rc) {
		errno = 0;
		if (write(o.fd, text, length) != (ssize_t)length || (fsync(o.fd) && errno != EINVAL))
			rc = errno ? -errno : -ENOSPC;
		if (!rc)
			rc = output_commit(&o, path);
		if (rc)
			output_drop(&o);
		else
			close(o.fd);
	}
	if (rc)
		rg_error("%s: cannot be written: %s", path, strerror(-rc));
	free(path);
	return rc;
}

int run_summary(const struct run_launches *r)
{
	size_t length = 0;
	char *text = NULL;
	FILE *out = open_memstream(&text, &length);
	int rc = out ? 0 : -ENOMEM;

	if (!rc) {
		head_print(r, out);
		rc = run_plan_is_unknown(r->plan) ? run_answer(r, out) : run_summary_tables(r, out);
		if (fclose(out))
			rc = rc ? rc : -ENOMEM;
	}
	if (!rc) {
		fwrite(text, 1, length, stdout);
		rc = summary_save(r, text, length);
	}
	free(text);
	return rc;
}
