/* check_rules.h - rules of railgauge check: a text file, one rule per line. */
#ifndef CLI_CHECK_RULES_H
#define CLI_CHECK_RULES_H

#include <stdbool.h>
#include <stddef.h>

enum check_kind {
	CHECK_PORTS_UP,			/* ports up */
	CHECK_PORTS,			/* ports >= N */
	CHECK_RATES_EQUAL,		/* rates equal */
	CHECK_RATE,			/* rate >= RATE */
	CHECK_PCIE_FULL,		/* pcie full */
	CHECK_NODES,			/* nodes >= N */
	CHECK_NODES_EQUAL,		/* nodes equal */
	CHECK_ERRORS,			/* errors [COUNTER] <= N */
	CHECK_STRIPE,			/* stripe/single >= F x rails */
	CHECK_RAIL,			/* rail >= F x median */
	CHECK_TOPOLOGY,			/* topology same */
	CHECK_MEDIANS,			/* medians within P% */
	CHECK_ONLY,			/* only PORT...; not a rule of its own */
};

enum { CHECK_RULES_MAX = 64, CHECK_TEXT_BYTES = 128, CHECK_PORTS_MAX = 32 };

struct check_rule {
	enum check_kind kind;
	double value;			/* a count, bytes per second, or a fraction */
	char counter[CHECK_TEXT_BYTES];	/* of CHECK_ERRORS; "": all that have no rule of their own */
	char text[CHECK_TEXT_BYTES];	/* as written, with single blanks */
};

struct check_rules {
	int count;
	struct check_rule rule[CHECK_RULES_MAX];
	/* Ports that rules are about: "mlx5_0:1", or "mlx5_0" for all of a device; 0: every port. */
	int only_count;
	char only[CHECK_PORTS_MAX][CHECK_TEXT_BYTES];
};

/* Read a file; '#' begins a comment.  0, or -errno after one line that names file and line. */
int check_rules_read(const char *path, struct check_rules *out);
/* The same from lines in memory, which `name` names; free of files. */
int check_rules_parse(const char *name, const char *text, struct check_rules *out);
bool check_rules_have(const struct check_rules *rules, enum check_kind kind);
/* Every form of a rule, with what it means, for --help. */
extern const char check_rules_help[];

#endif
