/* report.c - railgauge report: results as tables and figures. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/report.h"
#include "util/err.h"
#include "util/opt.h"
#include "report/files.h"
#include "report/report.h"

struct report_values { const char *out; bool full, no_plot; };

#define AT(member) .offset = offsetof(struct report_values, member)
static const struct opt rows[] = {
	{ .name = "out", .letter = 'o', .type = OPT_TEXT, AT(out), .arg = "DIR",
	  .help = "directory of figures; default: the directory of each file" },
	{ .name = "full", .letter = 'f', .type = OPT_FLAG, AT(full),
	  .help = "also print all other statistics, such as P99, deviation and drift" },
	{ .name = "no-plot", .type = OPT_FLAG, AT(no_plot), .help = "print tables only" },
	{ .name = NULL },
};

static const char *directory_of(const char *path, char *buf, size_t size)
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		return ".";
	snprintf(buf, size, "%.*s", slash == path ? 1 : (int)(slash - path), path);
	return buf;
}

/* Draw, and name the files. */
static int draw(const struct report_file *f, const char *out)
{
	static const char *const suffixes[] = { ".png", ".svg", ".dat", ".gp" };
	char buf[4096], path[4352];
	const char *dir = out ? out : directory_of(f->path, buf, sizeof(buf));
	int rc = report_plot(f, dir);

	for (int i = 0; !rc && i < (int)(sizeof(suffixes) / sizeof(suffixes[0])); i++) {
		report_plot_path(f, dir, suffixes[i], path, sizeof(path));
		printf("%s%s", i ? ", " : "# written: ", path);
	}
	if (!rc)
		putchar('\n');
	return rc;
}

/* Shows a file, or the launches of a job. */
static int report_show(const struct report_file *f, const struct report_values *v)
{
	int rc = report_print(f, stdout, v->full) ? -EIO : 0;	/* rg_end prints the error */

	/* An acceptance ends with its accusations. */
	if (json_integer_value(json_object_get(f->end, "status")) &&
	    !json_object_get(f->end, "acceptance"))
		printf("# the job ended with exit code %d\n",
		       (int)json_integer_value(json_object_get(f->end, "status")));
	return rc || v->no_plot ? rc : draw(f, v->out);
}

static int file_report(const char *path, const struct report_values *v)
{
	struct report_file f;
	int rc = report_read(path, &f);

	if (rc)
		return rc;
	rc = report_show(&f, v);
	report_file_free(&f);
	return rc;
}

/* Each job of a directory; the others after one that cannot be drawn. */
static int directory_report(char *path, const struct report_values *v)
{
	struct report_files files;
	int rc = report_files_read(&path, 1, &files);

	if (rc)
		return rc;
	if (files.damaged)
		rc = -EINVAL;
	for (int g = 0; g < files.group_count && !ferror(stdout); g++) {
		struct report_file merged;
		const struct report_file *job;
		int failed = report_files_job(&files, g, &merged, &job);

		if (g)
			putchar('\n');
		if (!failed)
			failed = report_show(job, v);
		rc = failed ? failed : rc;
		report_file_free(&merged);
	}
	report_files_free(&files);
	return rc;
}

static int path_report(char *path, const struct report_values *v)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode) ? directory_report(path, v) :
		file_report(path, v);
}

int cli_report(int argc, char **argv)
{
	static unsigned char origin[OPT_ROWS_MAX];
	static struct report_values values;
	struct opt_table table = { "Report", rows, &values, origin };
	struct opt_program program = {
		.name = "railgauge report", .operands = "FILE|DIR...",
		.summary = "Print the tables of result files (--json) and draw them, as PNG and "
			   "SVG, with gnuplot.",
		.tables = &table, .table_count = 1,
		.notes = "FILE.jsonl gives FILE.png, FILE.svg, the data as FILE.dat and the "
			 "script as FILE.gp.\nA directory means its *.jsonl.  Files of several "
			 "launches of one job in it are merged, as by\n`railgauge show`, and give "
			 "FILE-launches.png and so on, by the name of the first.",
	};
	int first, rc = opt_parse(&program, argc, argv, &first), status = RG_EXIT_OK;

	if (rc)
		return rc == 1 ? RG_EXIT_OK : RG_EXIT_USAGE;
	if (first == argc) {
		rg_error("report: no file (accepted: railgauge report FILE|DIR...)");
		return RG_EXIT_USAGE;
	}
	if (values.out && mkdir(values.out, 0777) && errno != EEXIST) {
		rg_error("--out %s: %s", values.out, strerror(errno));
		return RG_EXIT_USAGE;
	}
	/* Show the other files after a damaged one. */
	for (int i = first; i < argc && !ferror(stdout); i++) {
		if (i > first)
			putchar('\n');
		rc = path_report(argv[i], &values);
		if (rc)
			status = rc == -EIO || rc == -ENOSPC ? RG_EXIT_FAULT : RG_EXIT_USAGE;
	}
	return status;
}
