/* show.c - railgauge show: medians of result files as one table. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/show.h"
#include "report/files.h"
#include "report/report.h"
#include "report/sheet.h"
#include "util/err.h"
#include "util/opt.h"

struct show_values { bool csv, latex, full; };

#define AT(member) .offset = offsetof(struct show_values, member)
static const struct opt rows[] = {
	{ .name = "csv", .type = OPT_FLAG, AT(csv),
	  .help = "print CSV: a line per row, with all statistics" },
	{ .name = "latex", .type = OPT_FLAG, AT(latex), .help = "print a table for LaTeX" },
	{ .name = "full", .letter = 'f', .type = OPT_FLAG, AT(full),
	  .help = "also print interval, mean, extremes and counts, a line per way" },
	{ .name = NULL },
};

/* Jobs: the merged launches, and a pointer to the file of each job. */
struct jobs {
	struct report_file *merged;
	const struct report_file **file;
	int count;
};

static int jobs_make(const struct report_files *files, struct jobs *jobs)
{
	size_t n = (size_t)files->group_count;
	int rc = 0;

	*jobs = (struct jobs){ .merged = calloc(n, sizeof(jobs->merged[0])),
			       .file = calloc(n, sizeof(jobs->file[0])) };
	if (!jobs->merged || !jobs->file) {
		rg_error("no memory for %zu jobs", n);
		return -ENOMEM;
	}
	for (int g = 0; g < files->group_count && !rc; g++) {
		rc = report_files_job(files, g, &jobs->merged[g], &jobs->file[g]);
		jobs->count += !rc;
	}
	return rc;
}

static void jobs_free(struct jobs *jobs)
{
	for (int i = 0; i < jobs->count; i++)
		report_file_free(&jobs->merged[i]);
	free(jobs->merged);
	free(jobs->file);
}

/* ---- Tables --------------------------------------------------------------------- */

static bool has_matrix(const struct report_file *f)
{
	return json_object_get(f->run, "matrix");
}

static int sheet_show(const struct report_file *const *job, int count, const struct show_values *v)
{
	struct sheet s;
	int rc;

	if (has_matrix(job[0]) && v->latex) {
		rg_error("%s: a matrix has no table for LaTeX (accepted: text, --csv)",
			 job[0]->path);
		return -EINVAL;
	}
	if (has_matrix(job[0]))
		return report_print(job[0], stdout, v->full) ? -EIO : 0;
	rc = sheet_make(job, count, &s);
	if (rc)
		return rc;
	if (v->latex)
		sheet_latex(&s, stdout);
	else
		sheet_text(&s, stdout, v->full);
	sheet_free(&s);
	return 0;
}

/* Jobs that fit into one table are its columns. */
static int jobs_show(const struct jobs *jobs, const struct show_values *v)
{
	const struct report_file **fit = calloc((size_t)jobs->count, sizeof(fit[0]));
	bool *done = calloc((size_t)jobs->count, sizeof(done[0]));
	int rc = fit && done ? 0 : -ENOMEM, tables = 0;

	for (int i = 0; i < jobs->count && !rc; i++) {
		int n = 0;

		for (int k = i; k < jobs->count && !done[i]; k++)
			if (!done[k] && (k == i || sheet_fits(jobs->file[i], jobs->file[k]))) {
				fit[n++] = jobs->file[k];
				done[k] = k != i;
			}
		if (done[i])
			continue;
		if (tables++)
			putchar('\n');
		rc = sheet_show(fit, n, v);
	}
	free(fit);
	free(done);
	return rc;
}

static int files_show(const struct report_files *files, const struct show_values *v)
{
	struct jobs jobs;
	int rc = jobs_make(files, &jobs);

	if (!rc && v->csv) {
		sheet_csv_head(stdout);
		for (int i = 0; i < jobs.count; i++)
			sheet_csv(jobs.file[i], stdout);
	} else if (!rc) {
		rc = jobs_show(&jobs, v);
	}
	jobs_free(&jobs);
	return rc;
}

/* ---- The command ---------------------------------------------------------------- */

int cli_show(int argc, char **argv)
{
	static unsigned char origin[OPT_ROWS_MAX];
	static struct show_values values;
	struct opt_table table = { "Show", rows, &values, origin };
	struct opt_program program = {
		.name = "railgauge show", .operands = "FILE|DIR...",
		.summary = "Print the medians of result files (--json) as a table.",
		.tables = &table, .table_count = 1,
		.notes = "A directory means its *.jsonl.  Files of several launches of one job (the "
			 "same\nprogram, build, options, ranks and fabric) are merged: medians "
			 "over launches, from 6\nlaunches on with their 95 % interval.  Other "
			 "files of one metric are columns of one table.",
	};
	struct report_files files;
	int first, rc = opt_parse(&program, argc, argv, &first);
	bool damaged;

	if (rc)
		return rc == 1 ? RG_EXIT_OK : RG_EXIT_USAGE;
	if (values.csv && values.latex) {
		rg_error("show: --csv and --latex (accepted: one of them)");
		return RG_EXIT_USAGE;
	}
	if (first == argc) {
		rg_error("show: no file (accepted: railgauge show FILE|DIR...)");
		return RG_EXIT_USAGE;
	}
	if (report_files_read(argv + first, argc - first, &files))
		return RG_EXIT_USAGE;
	damaged = files.damaged;
	rc = files_show(&files, &values);
	report_files_free(&files);
	if (rc)
		return rc == -EINVAL ? RG_EXIT_USAGE : RG_EXIT_FAULT;
	return damaged ? RG_EXIT_USAGE : RG_EXIT_OK;
}
