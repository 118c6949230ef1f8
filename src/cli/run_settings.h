/* run_settings.h - the settings of a campaign: from options, and from the campaign that goes on. */
#ifndef CLI_RUN_SETTINGS_H
#define CLI_RUN_SETTINGS_H

#include "cli/run_plan.h"
#include "util/opt.h"

struct run_values {
	int preset;			/* index of run_presets */
	uint64_t launches, ranks, seed, time_cap_ns;
	struct opt_list over;
	const char *sizes, *options, *launcher, *out;
	struct opt_texts with;
	bool dry_run;
};

/* Rows of struct run_values, with their choices. */
const struct opt *run_rows(void);
/*
 * Fill *s from options.  `argv`: an unknown program, or NULL.  Texts point into the table, argv and
 * static memory.  0 or -EINVAL after one error line.
 */
int run_settings_fill(const struct opt_table *t, char *const *argv, struct run_settings *s);
/* Is a setting given, and not the directory alone? */
bool run_settings_are_given(const struct opt_table *t, char *const *argv);
/*
 * The record of a campaign that goes on: options that are not given are those of `before`.  0 and a
 * reference in *header; -EINVAL after one error line: a given one differs.
 */
int run_settings_again(const struct opt_table *t, char *const *argv, const json_t *before,
		       const char *dir, json_t **header);

#endif
