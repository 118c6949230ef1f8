/*
 * experiment.h - experiments of papers, as presets of Railgauge's programs.
 *
 * A paper is one file, NAME.json, in the directory RAILGAUGE_DATA, else in the installed one.
 * Quoted values are the paper's, of its hardware.  Such values are shown with measured values, and
 * decide no check.
 */
#ifndef RG_EXPERIMENT_H
#define RG_EXPERIMENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "report/report.h"

enum {
	EXPERIMENT_RANKS_MAX = 8,	/* numbers of ranks of one experiment */
	EXPERIMENT_TEXT = 8192,		/* enough for any text below */
};

struct experiment_paper {
	char *path;
	const char *name;		/* "p1" */
	const char *title, *source;
	json_t *root;			/* owns all strings */
	struct experiment *list;	/* in the order of the file */
	int count;
};

struct experiment {
	const struct experiment_paper *paper;
	const char *id;			/* "p1-fig13-pcie" */
	const char *program;		/* "rg_bw" */
	const char *adapter, *shows;
	const char *differs;		/* from the paper's method, and by how much; or NULL */
	int figure;			/* 0: none of the paper's */
	int cells;			/* rows times columns of the table */
	int ranks[EXPERIMENT_RANKS_MAX], rank_counts;
	json_t *options;		/* long option name -> text */
	json_t *quoted;			/* array of {what, value, unit[, shorter][, way, x |
					 * better, than][, calibrated]} */
};

/* A quoted value. */
struct experiment_point {
	const char *what, *unit, *way;
	double value;			/* in `unit` */
	double x;			/* the row: message size, or the value of the axis */
	const char *calibrated;		/* the key of the profile that this one gave its value, alone
					 * or with others; NULL: none */
};

/*
 * A quoted advantage: `better` is better than `than` by up to so many per cent.  Each is a way of
 * the table, or of another experiment's: "stripe", "p1-fig15-pcie single".
 */
struct experiment_relation { const char *better, *than; };

struct experiment_papers { struct experiment_paper *list; int count; };

/*
 * Load all papers, in order of their names; each is checked as a whole.  0, or -EINVAL or another
 * -errno after one error line that names the file and the error; then nothing is left to free.
 */
int experiment_load(struct experiment_papers *out);
void experiment_free(struct experiment_papers *p);

/* The paper of that name; NULL: none. */
const struct experiment_paper *experiment_paper_find(const struct experiment_papers *p,
						     const char *name);
const struct experiment *experiment_find(const struct experiment_papers *p, const char *id);

/*
 * A list, "p1-fig12-pcie, p1-fig12-pcix".  program NULL: of all programs; paper NULL: of all
 * papers.
 */
char *experiment_ids(const struct experiment_papers *p, const struct experiment_paper *paper,
		     const char *program, char *buf, size_t size);

enum { EXPERIMENT_FIGURE = 12 };
/* "13", or "-". */
char *experiment_figure(const struct experiment *e, char buf[EXPERIMENT_FIGURE]);
/* "P1 figure 13, MT25208 on PCI Express x8: ..." */
char *experiment_text(const struct experiment *e, char *buf, size_t size);
/* "one port 971 MB/s (shorter version 969); ... (on the paper's hardware)" */
char *experiment_quoted(const struct experiment *e, char *buf, size_t size);
/* "mpirun -np 2 rg_bw --experiment p1-fig13-pcie", with the experiment's i-th number of ranks. */
char *experiment_command(const struct experiment *e, int i, char *buf, size_t size);
/*
 * Read the i-th quoted value of an experiment or of a record's quoted_from_paper, which is not
 * trusted.  false: the value is of no row.
 */
bool experiment_point(const json_t *quoted, size_t i, struct experiment_point *out);
/* The factor from the metric's unit to this unit ("MiB/s"); 0: the units do not convert. */
double experiment_scale(enum report_metric metric, const char *unit);
/* A copy for a record. */
json_t *experiment_record(const struct experiment *e);
/* false: the value is no relation. */
bool experiment_relation(const json_t *quoted, size_t i, struct experiment_relation *out);

#endif
