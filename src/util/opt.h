/*
 * opt.h - options declared once, in tables.
 *
 * One row says everything about an option: names, type, range, default, help.
 * From the rows come the command line, the environment (RAILGAUGE_<NAME>, '-'
 * as '_'), --help, the man page, the range checks, the error lines, the record
 * in the result file and what is carried to the transport.
 *
 * Precedence: command line, then environment, then the row's default.
 */
#ifndef RG_UTIL_OPT_H
#define RG_UTIL_OPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The C type at `offset` of the values struct stands behind each. */
enum opt_type {
	OPT_FLAG,	/* bool: present or not; environment: 1, 0, yes, no */
	OPT_COUNT,	/* uint64_t: whole number in [min, max] */
	OPT_SIZE,	/* uint64_t: bytes in [min, max] */
	OPT_SIZES,	/* struct opt_range: MIN:MAX, MIN:, :MAX or one size, each in [min, max] */
	OPT_TIME,	/* uint64_t: nanoseconds in [min, max] */
	OPT_RATE,	/* uint64_t: bytes per second in [min, max] */
	OPT_CHOICE,	/* int: one of choices */
	OPT_CHOICES,	/* struct opt_list: comma-separated choices, none twice, in the order given */
	OPT_TEXT,	/* const char *: anything that `check` accepts; NULL when unset */
};

struct opt_range { uint64_t min, max; };

enum { OPT_LIST_MAX = 16 };
struct opt_list { int count; int item[OPT_LIST_MAX]; };

struct opt_choice {
	const char *name;
	int value;
	const char *help;	/* may be NULL */
};

enum opt_carry {
	OPT_LOCAL = 0,		/* the program's own business */
	OPT_JOB,		/* to the transport, once per job, before MPI_Init */
	OPT_COMM,		/* to the transport, per communicator (info key) */
};

/* The value of a count, size, time or rate whose row has `special` and was given that word. */
#define OPT_SPECIAL UINT64_MAX

struct opt {
	const char *name;		/* long name: "threshold" for --threshold */
	char letter;			/* short name or 0 */
	enum opt_type type;
	enum opt_carry carry;
	size_t offset;			/* of the value in the values struct */
	const char *arg;		/* name of the argument in the help: "BYTES" */
	const char *standard;		/* default, as a user would write it; NULL: unset/zero */
	uint64_t min, max;		/* inclusive; both 0: unlimited */
	const char *special;		/* a word accepted instead of a number: "auto" */
	const struct opt_choice *choices;	/* ends with a NULL name */
	/*
	 * Further check of the text of an OPT_TEXT; 0, or -errno after writing
	 * "why, accepted: ..." (no newline) into why.
	 */
	int (*check)(const char *text, char *why, size_t why_size);
	const char *help;		/* one sentence, no full stop */
};

/* Rows, the struct their offsets refer to, and where each value came from. */
struct opt_table {
	const char *title;		/* heading in --help: "Transport" */
	const struct opt *rows;		/* ends with a NULL name */
	void *values;
	unsigned char *origin;		/* enum opt_origin per row, same order; owned by the caller */
};

enum opt_origin { OPT_FROM_DEFAULT, OPT_FROM_ENVIRONMENT, OPT_FROM_COMMAND_LINE, OPT_FROM_CALL };
enum { OPT_ROWS_MAX = 64 };		/* rows per table */

struct opt_program {
	const char *name;		/* rg_bw */
	const char *summary;		/* one line for --help and the man page */
	const char *operands;		/* "FILE..." or NULL when there are none */
	struct opt_table *tables;
	int table_count;
};

/* Every value from its default.  0 or -EINVAL with an error line (a broken row). */
int opt_defaults(const struct opt_table *t);

/* Defaults overridden by RAILGAUGE_<NAME>.  0, or -EINVAL after one error line. */
int opt_from_environment(const struct opt_table *t);

/*
 * Set one value by its long name, as the command line would.
 * 0; -ENOENT: no such row (silent); -EINVAL: bad value, the reason
 * ("--threshold: 0 ... (accepted: 1 to 1T, or auto)") in why.
 */
int opt_set(const struct opt_table *t, const char *name, const char *text,
	    enum opt_origin origin, char *why, size_t why_size);

/*
 * Defaults, environment, then argv, for all tables of a program.  Handles
 * --help and --version itself (prints to stdout).
 * Returns 0, 1 (help or version was printed: exit 0), or -EINVAL after one
 * error line.  *first_operand is the index in argv of the first operand.
 */
int opt_parse(const struct opt_program *p, int argc, char **argv, int *first_operand);

/* The effective value as a user would write it; "" when unset. */
char *opt_text(const struct opt_table *t, const struct opt *row, char *buf, size_t size);

/* "1 to 1T, or auto"; the list of choices; ... */
char *opt_accepted(const struct opt *row, char *buf, size_t size);

#endif
