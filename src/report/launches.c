/* launches.c - result files of launches, gathered by program. */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "report/campaign.h"
#include "report/launches.h"
#include "report/merge.h"
#include "util/err.h"

/* ---- One row --------------------------------------------------------------------- */

static bool is_row(const struct launches_row *have, const struct report_row *row, bool matrix)
{
	return have->x == row->x && strcmp(have->way, row->way) == 0 &&
	       (!matrix || (have->from == row->from && have->to == row->to));
}

/* The row, or NULL; launches of one job mostly have theirs in one order, so `expected` is it. */
static struct launches_row *row_find(const struct launches_program *p, const struct report_row *row,
				     size_t expected)
{
	if (expected < p->row_count && is_row(&p->row[expected], row, p->is_matrix))
		return &p->row[expected];
	for (size_t i = 0; i < p->row_count; i++)
		if (is_row(&p->row[i], row, p->is_matrix))
			return &p->row[i];
	return NULL;
}

/* A row that earlier launches lack: NaN in them. */
static struct launches_row *row_add(struct launches_program *p, const struct report_row *row)
{
	struct launches_row *more = reallocarray(p->row, p->row_count + 1, sizeof(p->row[0])), *new;

	if (!more)
		return NULL;
	p->row = more;
	new = &p->row[p->row_count];
	*new = (struct launches_row){ .way = strdup(row->way), .bytes = row->bytes, .x = row->x,
				      .from = row->from, .to = row->to,
				      .median = calloc((size_t)p->count, sizeof(double)) };
	if (!new->way || !new->median) {
		free(new->way);
		free(new->median);
		return NULL;
	}
	for (int i = 0; i < p->count; i++)
		new->median[i] = NAN;
	p->row_count++;
	return new;
}

static bool is_value(double x)
{
	return isfinite(x) && x > 0;
}

/* Take the rows of the last launch. */
static int rows_take(struct launches *l, struct launches_program *p, const struct report_file *f)
{
	for (size_t i = 0; i < f->row_count; i++) {
		const struct report_row *from = &f->row[i];
		struct launches_row *row = row_find(p, from, i);

		if (!row)
			row = row_add(p, from);
		if (!row)
			return -ENOMEM;
		if (from->valid == 0)
			l->invalid++;
		else if (is_value(from->stat[STATS_MEDIAN]))
			row->median[p->count - 1] = from->stat[STATS_MEDIAN];
	}
	return 0;
}

/* ---- One launch ------------------------------------------------------------------ */

static struct launches_program *program_of(struct launches *l, const struct report_file *f)
{
	const char *name = json_string_value(json_object_get(f->run, "program"));
	struct launches_program *more;

	for (int i = 0; i < l->program_count; i++)
		if (strcmp(l->program[i].name, name) == 0)
			return &l->program[i];
	more = reallocarray(l->program, (size_t)l->program_count + 1, sizeof(l->program[0]));
	if (!more)
		return NULL;
	l->program = more;
	more += l->program_count;
	*more = (struct launches_program){ .name = strdup(name), .metric = f->metric,
					   .is_matrix = json_object_get(f->run, "matrix") };
	if (!more->name)
		return NULL;
	l->program_count++;
	return more;
}

/* Room for one launch more, NaN in all rows. */
static int launch_add(struct launches_program *p, const struct report_file *f, long long number)
{
	size_t count = (size_t)p->count + 1;
	void *runs = reallocarray(p->run, count, sizeof(p->run[0])), *ends, *numbers, *values;

	if (!runs)
		return -ENOMEM;
	p->run = runs;
	ends = reallocarray(p->end, count, sizeof(p->end[0]));
	if (!ends)
		return -ENOMEM;
	p->end = ends;
	numbers = reallocarray(p->number, count, sizeof(p->number[0]));
	if (!numbers)
		return -ENOMEM;
	p->number = numbers;
	for (size_t i = 0; i < p->row_count; i++) {
		values = reallocarray(p->row[i].median, count, sizeof(double));
		if (!values)
			return -ENOMEM;
		p->row[i].median = values;
		p->row[i].median[count - 1] = NAN;
	}
	p->run[p->count] = json_incref(f->run);
	p->end[p->count] = json_incref(f->end);
	p->number[p->count++] = number;
	return 0;
}

/* The same values, too: launches of one second may have equal run records. */
static bool is_copy(const struct launches_program *p, int launch, const struct report_file *f)
{
	if (!json_equal(p->run[launch], f->run))
		return false;
	for (size_t i = 0; i < f->row_count; i++) {
		const struct launches_row *row = row_find(p, &f->row[i], i);
		double value = f->row[i].stat[STATS_MEDIAN];

		if (!row || (is_value(value) && row->median[launch] != value))
			return false;
	}
	return true;
}

static bool has_original(const struct launches_program *p, const struct report_file *f)
{
	for (int i = 0; i < p->count; i++)
		if (is_copy(p, i, f))
			return true;
	return false;
}

/* Is it a launch of the same job as the first? */
static int launch_check(const struct launches_program *p, const struct report_file *f)
{
	const char *why;

	if (p->count && !report_same_job(&(struct report_file){ .run = p->run[0] }, f, &why)) {
		rg_error("%s: mixed: launches of %s with unlike %s", f->path, p->name, why);
		return -EINVAL;
	}
	return 0;
}

static bool has_ended(const struct report_file *f)
{
	return f->end && json_integer_value(json_object_get(f->end, "status")) == 0;
}

static int file_take(struct launches *l, const struct report_file *f, long long number)
{
	struct launches_program *p = program_of(l, f);
	int rc;

	if (!p)
		return -ENOMEM;
	rc = launch_check(p, f);
	if (!rc && has_original(p, f))
		l->copies++;
	if (!rc)
		rc = launch_add(p, f, number);
	return rc ? rc : rows_take(l, p, f);
}

/* `program`: as the journal names it, or NULL. */
static int file_read(struct launches *l, const char *path, const char *program, long long number)
{
	struct report_file f;
	int rc = report_read(path, &f);

	if (rc)
		return rc;
	if (program && strcmp(json_string_value(json_object_get(f.run, "program")), program)) {
		rg_error("%s: a record of %s, and of %s by the journal", path,
			 json_string_value(json_object_get(f.run, "program")), program);
		rc = -EINVAL;
	} else if (!has_ended(&f)) {
		l->failed++;
	} else {
		rc = file_take(l, &f, number);
	}
	if (rc == -ENOMEM)
		rg_error("%s: no memory for %zu rows", path, f.row_count);
	report_file_free(&f);
	return rc;
}

/* ---- A campaign ------------------------------------------------------------------ */

static int launch_read(struct launches *l, const struct campaign *c,
		       const struct campaign_launch *launch)
{
	char *path;
	int rc;

	if (launch->exit) {
		l->failed++;
		return 0;
	}
	path = campaign_record_path(c, launch);
	rc = path ? file_read(l, path, launch->program, launch->launch) : -ENOMEM;
	free(path);
	return rc;
}

static int no_build(const struct campaign *c, const char *build)
{
	const json_t *item;
	char names[512] = "";
	size_t i, used = 0;

	json_array_foreach(json_object_get(c->plan, "builds"), i, item) {
		int n = snprintf(names + used, sizeof(names) - used, "%s%s:%s", i ? ", " : "", c->dir,
				 json_string_value(json_object_get(item, "name")));

		used += n > 0 && (size_t)n < sizeof(names) - used ? (size_t)n : 0;
	}
	if (build)
		rg_error("%s: no build '%s' (accepted: %s)", c->dir, build, names);
	else
		rg_error("%s: several builds (accepted: %s)", c->dir, names);
	return -EINVAL;
}

/* `build`: NULL: the only one. */
static int campaign_take(struct launches *l, const char *dir, const char *build)
{
	struct campaign c;
	const json_t *builds;
	int rc = campaign_read(dir, &c);

	if (rc)
		return rc;
	builds = json_object_get(c.plan, "builds");
	if (build ? !campaign_has_build(&c, build) : json_array_size(builds) > 1)
		rc = no_build(&c, build);
	else if (!build)
		build = json_string_value(json_object_get(json_array_get(builds, 0), "name"));
	if (!rc) {
		l->dir = realpath(dir, NULL);
		l->build = strdup(build);
		l->interleaved = c.interleaved;
		rc = l->dir && l->build ? 0 : -ENOMEM;
	}
	for (size_t i = 0; i < c.launch_count && !rc; i++)
		if (strcmp(c.launch[i].build, build) == 0)
			rc = launch_read(l, &c, &c.launch[i]);
	campaign_free(&c);
	return rc;
}

/* ---- Directories and files ------------------------------------------------------- */

static int is_result(const struct dirent *entry)
{
	const char *dot = strrchr(entry->d_name, '.');

	return dot && dot != entry->d_name && strcmp(dot, ".jsonl") == 0;
}

static int directory_take(struct launches *l, const char *dir)
{
	struct dirent **entry;
	int rc = 0, n = scandir(dir, &entry, is_result, alphasort);

	if (n < 0) {
		rc = -errno;
		rg_error("%s: %s", dir, strerror(-rc));
		return rc;
	}
	for (int i = 0; i < n; i++) {
		char *path = NULL;

		if (!rc && asprintf(&path, "%s/%s", dir, entry[i]->d_name) < 0)
			rc = -ENOMEM;
		else if (!rc)
			rc = file_read(l, path, NULL, i);
		free(path);
		free(entry[i]);
	}
	free(entry);
	return rc;
}

/* DIR:NAME, where DIR is a campaign; else a path that does not exist. */
static int build_take(struct launches *l, const char *operand)
{
	const char *colon = strrchr(operand, ':');
	char *dir = colon ? strndup(operand, (size_t)(colon - operand)) : NULL;
	int rc;

	if (dir && campaign_exists(dir)) {
		rc = campaign_take(l, dir, colon + 1);
	} else {
		rg_error("%s: %s (accepted: a directory of result files or of railgauge run, "
			 "DIR:NAME)", operand, strerror(ENOENT));
		rc = -ENOENT;
	}
	free(dir);
	return rc;
}

static int operand_take(struct launches *l, const char *operand)
{
	struct stat st;

	if (stat(operand, &st))
		return build_take(l, operand);
	if (!S_ISDIR(st.st_mode))
		return file_read(l, operand, NULL, 0);
	return campaign_exists(operand) ? campaign_take(l, operand, NULL) :
		directory_take(l, operand);
}

int launches_read(const char *operand, struct launches *out)
{
	struct launches l = { .operand = strdup(operand) };
	int rc = l.operand ? operand_take(&l, operand) : -ENOMEM;

	if (!rc && !l.program_count) {
		if (l.failed)
			rg_error("%s: no launch that ended well, of %d", operand, l.failed);
		else
			rg_error("%s: no launch (accepted: a directory with *.jsonl, or of "
				 "railgauge run)", operand);
		rc = -EINVAL;
	}
	if (rc)
		launches_free(&l);
	else
		*out = l;
	return rc;
}

/* ---- Memory ---------------------------------------------------------------------- */

static void program_free(struct launches_program *p)
{
	for (int i = 0; i < p->count; i++) {
		json_decref(p->run[i]);
		json_decref(p->end[i]);
	}
	for (size_t i = 0; i < p->row_count; i++) {
		free(p->row[i].way);
		free(p->row[i].median);
	}
	free(p->row);
	free(p->run);
	free(p->end);
	free(p->number);
	free(p->name);
}

void launches_free(struct launches *l)
{
	for (int i = 0; i < l->program_count; i++)
		program_free(&l->program[i]);
	free(l->program);
	free(l->operand);
	free(l->dir);
	free(l->build);
	*l = (struct launches){ .operand = NULL };
}
