/* outputs.c - the files of --json and --samples: the user's other files are not replaced. */
#include "bench/outputs.h"
#include "bench/continued.h"
#include "bench/samples.h"

#include <errno.h>
#include <string.h>

#include "report/output.h"

static int outputs_check(const struct bench_job *job)
{
	const struct bench_options *o = &job->opt;
	int rc = 0;

	if (o->json && o->samples && output_is_same(o->json, o->samples)) {
		rg_error("--json %s and --samples %s: one file (accepted: two)", o->json,
			 o->samples);
		return -EINVAL;
	}
	if (o->json && !o->overwrite)
		rc = output_check(o->json, "json", output_is_records);
	if (!rc && o->samples && !o->overwrite)
		rc = output_check(o->samples, "samples", output_is_samples);
	return rc;
}

static int samples_open(struct bench_job *job, struct output *out)
{
	FILE *file = NULL;
	int rc = output_begin(out, job->opt.samples);

	if (!rc) {
		file = fdopen(out->fd, "a");
		if (file) {
			fputs(SAMPLES_HEAD, file);
			continued_samples(job, file);
		}
		if (!file || fflush(file))
			rc = -errno;
	}
	if (!rc) {
		job->got.samples_file = file;
		return 0;
	}
	rg_error("%s: cannot be written: %s", job->opt.samples, strerror(-rc));
	if (file)
		out->fd = -1;
	output_drop(out);
	if (file)
		fclose(file);
	return rc;
}

static void samples_drop(struct bench_job *job, struct output *out)
{
	if (!job->got.samples_file)
		return;
	out->fd = -1;		/* the stream's */
	output_drop(out);
	fclose(job->got.samples_file);
	job->got.samples_file = NULL;
}

/* Names that differ can still be one file, where case does not count. */
static int names_check(const struct bench_job *job)
{
	if (!job->opt.json || !job->opt.samples || !output_is_same(job->opt.json, job->opt.samples))
		return 0;
	rg_error("--json %s and --samples %s: one file (accepted: two)", job->opt.json,
		 job->opt.samples);
	return -EINVAL;
}

int outputs_open(struct bench_job *job, struct report_table *table, json_t *run)
{
	struct output samples = { .fd = -1 };
	int rc = outputs_check(job);

	if (!rc && job->opt.continues)
		continued_find(job, table, run);

	if (!rc && job->opt.samples)
		rc = samples_open(job, &samples);
	if (rc) {
		json_decref(run);
		return rc;
	}
	rc = report_open(table, run, &job->got.report);
	if (rc) {
		samples_drop(job, &samples);
		return rc;
	}
	if (job->got.samples_file)
		rc = output_commit(&samples, job->opt.samples);
	if (rc)
		rg_error("%s: cannot be written: %s", job->opt.samples, strerror(-rc));
	return rc ? rc : names_check(job);
}
