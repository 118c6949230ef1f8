/*
 * preset.c - --experiment: values of a paper, for all options that neither the command line
 * nor the environment sets.  Every rank reads the file; the resulting values are compared
 * among ranks like all options.  Nothing here calls MPI.
 */
#include "bench/preset.h"
#include "bench/options_use.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "util/text.h"

static struct experiment_papers papers;	/* values of OPT_TEXT point into it */

/* Report an error of the experiment's file in the file's own words, for its maintainer. */
static int damaged(const struct experiment *e, const char *why)
{
	rg_error("%s: damaged: %s: %s", e->paper->path, e->id, why);
	return -EINVAL;
}

static int option_apply(const struct bench_job *job, const struct experiment *e, const char *name,
			const char *text)
{
	char why[OPT_WHY_BYTES];
	const struct opt_table *t;
	const struct opt *row = options_find(job, name, &t);

	/* A paper cannot set --experiment or the name of a file. */
	if (!row || (row->type == OPT_TEXT && row->carry == OPT_LOCAL)) {
		snprintf(why, sizeof(why), "option %s is none of %s that can be preset", name,
			 e->program);
		return damaged(e, why);
	}
	if (t->origin[row - t->rows] != OPT_FROM_DEFAULT)
		return 0;
	if (opt_set(t, name, text, OPT_FROM_PRESET, why, sizeof(why)))
		return damaged(e, why);
	return 0;
}

static int refuse(const struct bench_job *job, const struct experiment *e, const char *program)
{
	char ids[EXPERIMENT_TEXT], other[128] = "unknown";

	if (e)
		snprintf(other, sizeof(other), "one of %s", e->program);
	experiment_ids(&papers, NULL, program, ids, sizeof(ids));
	rg_error("--experiment %s: %s (accepted: %s)", job->opt.experiment_id, other,
		 *ids ? ids : "none, no paper ran this");
	return -EINVAL;
}

int preset_apply(struct bench_job *job, const char *program)
{
	const struct experiment *e;
	const char *name;
	json_t *text;
	int rc = 0;

	if (!job->opt.experiment_id)
		return 0;
	rc = experiment_load(&papers);
	if (rc)
		return rc;
	e = experiment_find(&papers, job->opt.experiment_id);
	if (!e || strcmp(e->program, program))
		return refuse(job, e, program);
	json_object_foreach(e->options, name, text) {
		rc = option_apply(job, e, name, json_string_value(text));
		if (rc)
			return rc;
	}
	job->opt.experiment = e;
	return 0;
}

void preset_free(struct bench_job *job)
{
	job->opt.experiment = NULL;
	experiment_free(&papers);
}

/* ---- What differs from it ---------------------------------------------------------------- */

static void ranks_differ(const struct bench_job *job, char *buf, size_t size)
{
	const struct experiment *e = job->opt.experiment;

	for (int i = 0; i < e->rank_counts; i++)
		if (e->ranks[i] == job->b.size)
			return;
	snprintf(buf, size, "%d ranks (%d", job->b.size, e->ranks[0]);
	for (int i = 1; i < e->rank_counts; i++)
		rg_text_add(buf, size, " or %d", e->ranks[i]);
	rg_text_add(buf, size, ")");
}

char *preset_changes(const struct bench_job *job, char *buf, size_t size)
{
	const char *name;
	json_t *text;

	*buf = '\0';
	ranks_differ(job, buf, size);
	json_object_foreach(job->opt.experiment->options, name, text) {
		const struct opt_table *t;
		const struct opt *row = options_find(job, name, &t);
		char value[128];

		if (t->origin[row - t->rows] == OPT_FROM_PRESET)
			continue;
		rg_text_add(buf, size, "%s%s %s (%s)", *buf ? ", " : "",
			 name, opt_text(t, row, value, sizeof(value)), json_string_value(text));
	}
	return buf;
}
