/*
 * campaign.h - the journal of a campaign: what was planned, and the launches that have ended.
 *
 * DIR/campaign.jsonl has a line for each record and is only appended to.  The first is the plan:
 *	type "campaign", version, launches (of each program), seed, launcher, ranks, interleaved,
 *	started (ISO 8601), builds (name, dir; the name of a single one is ""), programs (name, options)
 * and each other one a launch that has ended:
 *	type "launch", index (in the order of time), build, program, launch (its number, from 0),
 *	record (a result file, relative to DIR), exit (exit code), seconds
 * A line without its newline is one that a killed writer has left: it does not count.
 */
#ifndef REPORT_CAMPAIGN_H
#define REPORT_CAMPAIGN_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

enum { CAMPAIGN_VERSION = 1 };
#define CAMPAIGN_JOURNAL "campaign.jsonl"

struct campaign_launch {
	const char *build, *program, *record;	/* texts of the journal */
	long long launch;
	int exit;
	double seconds;
};

struct campaign {
	char *dir;
	json_t *plan;			/* checked: builds, programs and launches are there */
	long long launches;		/* planned, of each program and build */
	bool interleaved;		/* builds took turns */
	/* Checked, in the order of time; of a launch that was repeated the last one alone. */
	struct campaign_launch *launch;
	size_t launch_count;
	size_t whole_bytes;		/* length of the journal's whole lines */
	bool torn;			/* bytes after them were dropped */
	json_t *records;		/* private: owns the texts */
};

/* Does the directory have a journal? */
bool campaign_exists(const char *dir);

/*
 * Read a journal; result files are not opened.  0, -EINVAL (damaged, or of a newer version) or
 * another -errno, after one error line that names file and line.
 */
int campaign_read(const char *dir, struct campaign *out);
/* The same of the text of a journal. */
int campaign_parse(const char *dir, const char *text, size_t bytes, struct campaign *out);
void campaign_free(struct campaign *c);

bool campaign_has_build(const struct campaign *c, const char *build);

/* The launch, or NULL: it has not ended. */
const struct campaign_launch *campaign_find(const struct campaign *c, const char *build,
					    const char *program, long long launch);

/* The path of a launch's result file; free() it.  NULL: no memory. */
char *campaign_record_path(const struct campaign *c, const struct campaign_launch *l);

#endif
