/*
 * output.h - a file that is replaced in one step: written under another name in the same
 * directory, then renamed.  The file that was there stays whole until then.
 */
#ifndef REPORT_OUTPUT_H
#define REPORT_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

struct output {
	int fd;			/* -1: none; appends */
	char *temporary;	/* NULL: a pipe or a device, which is opened as it is */
};

/* 0 or -errno, without a line. */
int output_begin(struct output *o, const char *path);
/* Give the file its name.  0 or -errno, without a line; the file is then dropped. */
int output_commit(struct output *o, const char *path);
/* Remove what was begun. */
void output_drop(struct output *o);

/*
 * May an existing file be replaced?  `ours` judges its first line.  0: it is ours, empty, no
 * regular file, or absent; else -EEXIST after an error line that names `option` and --overwrite.
 */
int output_check(const char *path, const char *option, bool (*ours)(const char *line));
/* Lines that begin a file of records, and one of samples. */
bool output_is_records(const char *line);
bool output_is_samples(const char *line);

/* Do two paths name one file, or would they?  A character device may be shared: false. */
bool output_is_same(const char *a, const char *b);

#endif
