/*
 * run_plan.h - the plan of a campaign: settings, and its launches in their order.  Pure, but for
 * memory.
 *
 * Launches come in rounds: a round has one launch of every program with every build, in an order
 * that is drawn anew.  So a drift of the machine falls on all alike, and a campaign that ends
 * early has the same number of launches of each.
 */
#ifndef CLI_RUN_PLAN_H
#define CLI_RUN_PLAN_H

#include <jansson.h>

#include "cli/cli.h"

enum { RUN_PROGRAMS_MAX = 32, RUN_BUILDS_MAX = 16, RUN_NAME_BYTES = 128 };

/* A build, this one with other settings, or a way of an unknown program. */
struct run_build {
	const char *name;		/* "": the only one */
	const char *dir;		/* "": that of this command */
	const char *settings;		/* "UCX_TLS=tcp --qps 4", blanks between; may be "" */
	const char *over;		/* the way of an unknown program; else "" */
};

struct run_program {
	const char *name;		/* "rg_bw", or a path of the user's */
	const json_t *options;		/* strings */
	int rows;			/* per launch, for the estimate */
};

struct run_item {
	int program, build;
	int launch;			/* from 0 */
};

struct run_plan {
	json_t *header;			/* the journal's first record; all texts below are its */
	const char *preset, *launcher;
	int launches, ranks;		/* launches of each program with each build */
	uint64_t seed, cap_ns;		/* cap: of a row; 0: the programs have no rows */
	struct run_build build[RUN_BUILDS_MAX];
	struct run_program program[RUN_PROGRAMS_MAX];
	int builds, programs;
	struct run_item *item;		/* in the order of launches */
	int count;
};

/* Settings of a campaign that begins. */
struct run_settings {
	const char *preset, *launcher;
	int launches, ranks;
	uint64_t seed, cap_ns;
	struct run_build build[RUN_BUILDS_MAX];
	int builds;			/* 0: this command's alone, without a name */
	const char *ways;		/* "native,single,stripe": an unknown program's builds */
	const char *options;		/* further words of every program, or NULL */
	char *const *argv;		/* an unknown program with its arguments; NULL: the preset's */
	const char *sizes;		/* of every program; NULL: the preset's */
};

struct run_preset_program { const char *name, *sizes; };
struct run_preset {
	const char *name, *help;
	int launches;
	uint64_t cap_ns;
	const struct run_preset_program *program;	/* ends with a NULL name */
};
extern const struct run_preset run_presets[];	/* ends with a NULL name */
const struct run_preset *run_preset_find(const char *name);

/*
 * The campaign record of settings.  NULL: no memory, or after an error line (sizes that make no
 * sense).
 */
json_t *run_header(const struct run_settings *s);
/*
 * The plan of a campaign record, whose reference is taken over.  0, -ENOMEM, or -EINVAL: a member
 * is missing or has a wrong type; *why names it.
 */
int run_plan_make(json_t *header, struct run_plan *out, const char **why);
void run_plan_free(struct run_plan *plan);
/* Is it a plan of an unknown program? */
bool run_plan_is_unknown(const struct run_plan *plan);

/* "old.rg_bw.007", the name of an item's files without their suffix. */
const char *run_item_name(const struct run_plan *plan, const struct run_item *item,
			  char buf[RUN_NAME_BYTES]);
/* The longest time of a launch. */
uint64_t run_item_ns(const struct run_plan *plan, const struct run_item *item);
/* "./a.out" -> "a.out" */
const char *run_base_name(const char *path);

#endif
