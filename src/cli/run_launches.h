/* run_launches.h - the launches of a campaign, one after another, with progress on stderr. */
#ifndef CLI_RUN_LAUNCHES_H
#define CLI_RUN_LAUNCHES_H

#include "cli/run_command.h"
#include "cli/run_journal.h"

struct run_launches {
	const struct run_plan *plan;
	const struct run_paths *paths;
	struct run_journal *journal;
	double *seconds;		/* per item of the plan; negative: not finished */
	int finished, failed;		/* failed: in this process, and not finished later */
	bool interrupted;		/* by a signal */
};

/*
 * Find the launches that are finished: their record is whole.  One that the journal lacks, since
 * its run was killed in between, is added to it.  0 or -errno after one error line;
 * run_launches_free.
 */
int run_launches_open(struct run_launches *r, const struct run_plan *plan,
		      const struct run_paths *paths, struct run_journal *journal);
/*
 * Launch all others; one that fails comes again at the end.  SIGINT, SIGTERM and SIGHUP end the
 * launch under way, and the function.  0, or -errno after one error line: no other launch would
 * work (-ENOENT: the launcher or the words are wrong).
 */
int run_launches_all(struct run_launches *r);
/*
 * A further launch of an unknown program over all rails, whose ledger goes into the directory, unless
 * it is there.  0, or its exit code or -errno: there is none.
 */
int run_launches_ledger(struct run_launches *r);
/* The time that the unfinished launches take, by those that are finished. */
double run_launches_left_s(const struct run_launches *r);
void run_launches_free(struct run_launches *r);

#endif
