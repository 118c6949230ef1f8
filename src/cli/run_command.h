/* run_command.h - the words of a launch of a campaign. */
#ifndef CLI_RUN_COMMAND_H
#define CLI_RUN_COMMAND_H

#include "cli/run_plan.h"

/*
 * The path of an item's file in the campaign's directory: ".jsonl", ".csv", ".txt".  NULL: no memory,
 * after an error line; free() it.
 */
char *run_file(const struct run_plan *plan, const struct run_item *item, const char *dir,
	       const char *suffix);

/* Paths of the programs of a campaign, by build and program. */
struct run_paths { char *path[RUN_BUILDS_MAX][RUN_PROGRAMS_MAX]; };

/* Find all programs in all builds.  0 or -ENOENT after one error line that names the first missing. */
int run_paths_find(const struct run_plan *plan, struct run_paths *out);
void run_paths_free(struct run_paths *paths);

/*
 * The program's words of an item, which writes its record and samples into the directory; then a
 * NULL.  NULL: no memory; run_command_free.
 */
char **run_command(const struct run_plan *plan, const struct run_paths *paths,
		   const struct run_item *item, const char *dir);
/* The same of the unknown program over all rails, with its ledger on stderr. */
char **run_command_ledger(const struct run_plan *plan, const struct run_paths *paths);
void run_command_free(char **words);
/* The launcher's words and these as a line; NULL: no memory; free() it. */
char *run_command_text(const struct run_plan *plan, char *const *words);

#endif
