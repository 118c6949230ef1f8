/* files.h - result files and directories of them, divided into jobs. */
#ifndef REPORT_FILES_H
#define REPORT_FILES_H

#include "report/report.h"

struct report_files {
	struct report_file *file;	/* as the paths are, those of a directory by name */
	int count;
	int *group;			/* by file: the number of its job (report_group) */
	int group_count;
	bool damaged;			/* a file was left out after its error line */
};

/*
 * Read files; a directory means its *.jsonl.  A file of the same launch as an earlier one, a
 * copy, is left out with a warning, and a damaged file after its error line.  0, or -errno after an
 * error line: no file is left, a path cannot be read, no memory.
 */
int report_files_read(char *const *path, int count, struct report_files *out);
void report_files_free(struct report_files *f);

/*
 * The files of a job: `out` gets the merged launches, or with one launch nothing.  *job is the file
 * to use.  0 or -ENOMEM; report_file_free(out) afterwards in any case.
 */
int report_files_job(const struct report_files *f, int group, struct report_file *out,
		     const struct report_file **job);

#endif
