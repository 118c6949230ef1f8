/*
 * opt.h - options declared once, in tables.
 *
 * One row holds everything about an option: names, type, range, default, help.
 * The rows are the source of the command line, the environment (RAILGAUGE_<NAME>, '-'
 * as '_'), --help, the man page, the range checks, the error lines, the record
 * in the result file and the values that are passed to the transport.
 *
 * Precedence: command line, then environment, then a named preset, then the row's
 * default.
 */
#ifndef RG_UTIL_OPT_H
#define RG_UTIL_OPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Types, each with the C type at `offset` of the values struct. */
enum opt_type {
	OPT_FLAG,	/* bool: present or not; environment: 1, 0, yes, no */
	OPT_COUNT,	/* uint64_t: whole number in [min, max] */
	OPT_SIZE,	/* uint64_t: bytes in [min, max] */
	/*
	 * struct opt_range: MIN:MAX or one size, each in [min, max].  "MIN:" and
	 * ":MAX" take the other end from the row's standard.
	 */
	OPT_SIZES,
	OPT_TIME,	/* uint64_t: nanoseconds in [min, max] */
	OPT_RATE,	/* uint64_t: bytes per second in [min, max] */
	OPT_CHOICE,	/* int: one of choices */
	/*
	 * struct opt_list: choices with commas between, none twice, in order.  With `settings` a choice
	 * may have ",name=value" after it; the list keeps pointers into the text, as OPT_TEXT does.
	 */
	OPT_CHOICES,
	/*
	 * const char *: any text that `check` accepts; NULL when unset.  The pointer
	 * is kept, not a copy: the text must stay valid after opt_set.
	 */
	OPT_TEXT,
	/*
	 * struct opt_texts: the same for each time that the option is given; those of the command
	 * line replace the environment's one.
	 */
	OPT_TEXTS,
};

struct opt_range { uint64_t min, max; };

enum { OPT_LIST_MAX = 16 };
struct opt_list {
	int count;
	int item[OPT_LIST_MAX];
	struct { const char *text; int length; } settings[OPT_LIST_MAX];	/* "name=value,..." */
};
struct opt_texts { int count; const char *item[OPT_LIST_MAX]; };

struct opt_choice {
	const char *name;
	int value;
	const char *help;	/* may be NULL */
	/* Shown in lists of accepted values; NULL: name; "": omitted, another entry covers it. */
	const char *shown;
	unsigned traits;	/* bits of the table's owner */
};

enum opt_carry {
	OPT_LOCAL = 0,		/* used by the program only */
	OPT_JOB = 1,		/* to the transport, once per job, before MPI_Init */
	OPT_COMM = 2,		/* to the transport, per communicator (info key) */
	OPT_BOTH = OPT_JOB | OPT_COMM,	/* the job's value is the limit for communicators */
};

/* The value of a count, size, time or rate that was set to the word `special` of its row. */
#define OPT_SPECIAL UINT64_MAX

struct opt {
	const char *name;		/* long name: "threshold" for --threshold */
	const char *alias;		/* an older name, accepted and not shown; or NULL */
	char letter;			/* short name or 0 */
	enum opt_type type;
	enum opt_carry carry;
	size_t offset;			/* place of the value in the values struct */
	const char *arg;		/* name of the argument in the help: "BYTES" */
	const char *standard;		/* default, as on the command line; NULL: unset */
	uint64_t min, max;		/* inclusive; max 0: unlimited */
	const char *special;		/* a word accepted instead of a number: "auto" */
	const char *bare;		/* unit of a number without one: "s"; NULL: none assumed */
	const struct opt_choice *choices;	/* ends with a NULL name */
	bool settings;			/* of OPT_CHOICES */
	/*
	 * Further check of the text of an OPT_TEXT or of one of OPT_TEXTS; 0, or -errno after writing
	 * "why, accepted: ..." (no newline) into why.
	 */
	int (*check)(const char *text, char *why, size_t why_size);
	const char *help;		/* a sentence without full stop */
};

/* The check of a row that names a file: refuses an empty name. */
int opt_check_path(const char *text, char *why, size_t why_size);

/* Rows, the struct that their offsets refer to, and the origin of each value. */
struct opt_table {
	const char *title;		/* heading in --help: "Transport" */
	const struct opt *rows;		/* ends with a NULL name */
	void *values;
	unsigned char *origin;		/* enum opt_origin of each row; the caller's or NULL */
	const char *const *only;	/* names of the rows in use, then NULL; NULL: all rows */
};

/* The row in use after `row`, or the first after NULL; NULL: no more. */
const struct opt *opt_next(const struct opt_table *t, const struct opt *row);
#define opt_each(row, t) \
	for (const struct opt *row = opt_next(t, NULL); row; row = opt_next(t, row))

enum opt_origin {
	OPT_FROM_DEFAULT, OPT_FROM_PRESET, OPT_FROM_ENVIRONMENT, OPT_FROM_COMMAND_LINE,
	OPT_FROM_CALL,
};
enum { OPT_ROWS_MAX = 64 };		/* rows per table */

/* The value of a flag, count, ... of `t`, with its type: OPT_VALUE(t, row, uint64_t). */
#define OPT_VALUE(t, row, type) (*(type *)((char *)(t)->values + (row)->offset))

/* Set all values to their defaults.  0, or -EINVAL with an error line (a wrong row). */
int opt_defaults(const struct opt_table *t);

/* Set defaults, then the values of RAILGAUGE_<NAME>.  0, or -EINVAL after one error line. */
int opt_from_environment(const struct opt_table *t);

/*
 * Set one value by its long name, as on the command line.
 * 0; -ENOENT: no such row (silent); -EINVAL: bad value, with a reason in why
 * that begins with the option's name: "threshold 0: out of range (accepted: 1
 * to 1T, or auto)".  Nothing is set then.
 */
int opt_set(const struct opt_table *t, const char *name, const char *text,
	    enum opt_origin origin, char *why, size_t why_size);
enum { OPT_WHY_BYTES = 512 };	/* enough for any reason */

/* The effective value, as on the command line; "" when unset; "yes" or "no" for a flag. */
char *opt_text(const struct opt_table *t, const struct opt *row, char *buf, size_t size);

/*
 * A digest of a value's text (opt_text), for comparison between processes: FNV-1a of
 * 64 bits, the same in every build and on every machine.
 */
uint64_t opt_digest(const char *text);

/* "1 to 1T, or auto"; "native, single, bind or stripe"; ... "" if all values are accepted. */
char *opt_accepted(const struct opt *row, char *buf, size_t size);

/*
 * Allocate zeroed values for rows of another library, whose struct the caller does not
 * know; the size follows from the rows.  NULL: out of memory; free() it.
 */
void *opt_values_alloc(const struct opt *rows);

/* Is `name` the row's name or alias? */
bool opt_is_named(const struct opt *row, const char *name);

/* "RAILGAUGE_GID_INDEX" of "gid-index". */
char *opt_variable(const struct opt *row, char *buf, size_t size);

/* ---- A program's command line (cmdline.c; needs popt) -------------------- */

struct opt_program {
	const char *name;		/* rg_bw */
	const char *summary;		/* a line for --help and the man page */
	const char *operands;		/* "FILE..." or NULL when there are none */
	bool first_operand_ends;	/* arguments after the first operand are not parsed */
	const char *notes;		/* paragraphs at the end of --help, or NULL */
	struct opt_table *tables;
	int table_count;
};

/*
 * Set defaults, then values of the environment, then those of argv, for all tables of a
 * program.  Handles --help and --version (prints to stdout).
 * Returns 0, 1 (help or version was printed: exit 0), or -EINVAL after one
 * error line.  argv is reordered so that its operands come last, in their
 * order; *first_operand is the index of the first (argc: none).
 * Values of OPT_TEXT point into argv or the environment.
 */
int opt_parse(const struct opt_program *p, int argc, char **argv, int *first_operand);

/* Print the text of --help. */
void opt_help(const struct opt_program *p, FILE *out);

#endif
