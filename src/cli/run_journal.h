/*
 * run_journal.h - the directory of a campaign, and its journal as it is written (report/campaign.h
 * has its records and reads it).
 *
 * Each line is whole and on the disk before the next launch begins, so that a campaign can go on
 * after any end of this process or of the machine.  One process at a time has the directory.
 */
#ifndef CLI_RUN_JOURNAL_H
#define CLI_RUN_JOURNAL_H

#include <jansson.h>

#include "cli/cli.h"
#include "report/campaign.h"

struct run_journal {
	char *dir;			/* absolute */
	int lock, fd;			/* -1: none */
	/* A lock that each launcher has, too: until it ends, although this process may be killed. */
	int launch_lock;
	struct campaign campaign;	/* as found; dir NULL: there was none */
};

/*
 * Make the directory, or use one that has a campaign or nothing; take it, and read its journal.  A
 * torn last line is cut off after a warning.  A launch that a killed run has left is waited for, some
 * seconds at most.  0 or -errno after one error line: -EBUSY: another
 * process has it.
 */
int run_journal_open(const char *dir, struct run_journal *out);
/* Has no launch of the campaign left a record, so that other settings lose nothing? */
bool run_journal_is_unused(const struct run_journal *j);
/* Write the first record of a campaign, over an unused one.  0 or -errno after one error line. */
int run_journal_begin(struct run_journal *j, const json_t *header);
/* Append a record, whose reference is taken over.  0 or -errno after one error line. */
int run_journal_add(struct run_journal *j, json_t *record);
void run_journal_close(struct run_journal *j);

#endif
