/* cite.c - railgauge cite: results as text for a paper. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cite.h"
#include "util/err.h"
#include "util/opt.h"
#include "report/cite.h"
#include "report/files.h"

struct cite_values { const char *size; };

static const struct opt rows[] = {
	{ .name = "size", .letter = 's', .type = OPT_TEXT,
	  .offset = offsetof(struct cite_values, size), .arg = "SIZE",
	  .help = "the row to cite, such as 8 or 4M; default: the smallest size of latencies, the "
		  "largest of bandwidths" },
	{ .name = NULL },
};

/* Write all jobs, then each software once. */
static int cite_jobs(const struct report_files *files, const char *size, FILE *out)
{
	char key[CITE_KEY], earlier[CITE_KEY];
	int rc = 0;

	for (int job = 0; job < files->group_count && !rc; job++) {
		const struct report_file *one;
		struct report_file merged;

		rc = report_files_job(files, job, &merged, &one);
		if (!rc)
			rc = report_cite(one, size, out);
		report_file_free(&merged);
		fputc('\n', out);
	}
	for (int i = 0; i < files->count && !rc; i++) {
		int k = 0;

		report_cite_software_key(&files->file[i], key, sizeof(key));
		while (k < i && strcmp(key, report_cite_software_key(&files->file[k], earlier,
								    sizeof(earlier))))
			k++;
		if (k < i)
			continue;
		fputs(i ? "\n" : "", out);
		report_cite_software(&files->file[i], out);
	}
	return rc;
}

/* Standard output gets all jobs or nothing. */
static int cite_all(const struct report_files *files, const char *size)
{
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);
	int rc = out ? cite_jobs(files, size, out) : -ENOMEM;

	if (out && fclose(out))
		rc = -ENOMEM;
	if (rc == -ENOMEM)
		rg_error("cite: no memory");
	if (!rc)
		fwrite(text, 1, length, stdout);
	free(text);
	return rc;
}

int cli_cite(int argc, char **argv)
{
	static unsigned char origin[OPT_ROWS_MAX];
	static struct cite_values values;
	struct opt_table table = { "Cite", rows, &values, origin };
	struct opt_program program = {
		.name = "railgauge cite", .operands = "DIR|FILE...",
		.summary = "Print results (--json) as text for a paper: sentence, method, BibTeX.",
		.tables = &table, .table_count = 1,
		.notes = "Launches of one job are cited as one measurement, with the median over the "
			 "launches. Values that should not be cited as they are have a line that "
			 "begins with WARNING.",
	};
	struct report_files files;
	int first, rc = opt_parse(&program, argc, argv, &first);

	if (rc)
		return rc == 1 ? RG_EXIT_OK : RG_EXIT_USAGE;
	if (first == argc) {
		rg_error("cite: no file (accepted: railgauge cite DIR|FILE...)");
		return RG_EXIT_USAGE;
	}
	rc = report_files_read(argv + first, argc - first, &files);
	if (rc)
		return rc == -ENOMEM ? RG_EXIT_FAULT : RG_EXIT_USAGE;
	rc = files.damaged ? -EINVAL : cite_all(&files, values.size);
	report_files_free(&files);
	return !rc ? RG_EXIT_OK : rc == -EINVAL ? RG_EXIT_USAGE : RG_EXIT_FAULT;
}
