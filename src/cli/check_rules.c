/* check_rules.c - rules of railgauge check: a text file, one rule per line. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/check_rules.h"
#include "util/err.h"
#include "util/text.h"
#include "util/units.h"

enum { FILE_MAX = 1 << 20, WORDS_MAX = CHECK_PORTS_MAX + 2 };

/*
 * Forms of rules.  '#' is a count, '$' a rate, '*' a fraction, '%' a percentage,
 * '@' a word.
 */
static const struct { const char *form; enum check_kind kind; const char *shown; } forms[] = {
	{ "ports up", CHECK_PORTS_UP, "ports up" },
	{ "ports >= #", CHECK_PORTS, "ports >= N" },
	{ "rates equal", CHECK_RATES_EQUAL, "rates equal" },
	{ "rate >= $", CHECK_RATE, "rate >= RATE" },
	{ "pcie full", CHECK_PCIE_FULL, "pcie full" },
	{ "nodes >= #", CHECK_NODES, "nodes >= N" },
	{ "nodes equal", CHECK_NODES_EQUAL, "nodes equal" },
	{ "errors <= #", CHECK_ERRORS, "errors <= N" },
	{ "errors @ <= #", CHECK_ERRORS, "errors COUNTER <= N" },
	{ "stripe/single >= * x rails", CHECK_STRIPE, "stripe/single >= F x rails" },
	{ "rail >= * x median", CHECK_RAIL, "rail >= F x median" },
	{ "topology same", CHECK_TOPOLOGY, "topology same" },
	{ "medians within %", CHECK_MEDIANS, "medians within P%" },
};

const char check_rules_help[] =
	"Rules, one per line; # begins a comment:\n"
	"  ports up                    every port is ACTIVE\n"
	"  ports >= N                  each node has N ACTIVE ports\n"
	"  rates equal                 ACTIVE ports of all nodes have one rate\n"
	"  rate >= RATE                each ACTIVE port has it, such as 25GB/s or 200Gb/s\n"
	"  pcie full                   each adapter's PCIe link has the width and speed that it can\n"
	"  nodes >= N                  the job has N nodes\n"
	"  nodes equal                 nodes of the job are alike (railgauge topo)\n"
	"  errors <= N                 each error counter of a port has grown by N at most\n"
	"  errors COUNTER <= N         the same for one counter, such as symbol_error\n"
	"  stripe/single >= F x rails  records of rg_bw: striping reaches this share of all rails\n"
	"  rail >= F x median          records of rg_pairs: each rail of each node, each direction\n"
	"  topology same               with --against: as kept\n"
	"  medians within P%           with --against: no median of records is worse by more\n"
	"  only PORT...                other rules are about these ports (mlx5_0, mlx5_1:1) alone";

/* ---- One line ------------------------------------------------------------------------- */

static bool fraction(const char *word, double most, double *value)
{
	char *end;

	if (*word < '0' || *word > '9')
		return false;
	*value = strtod(word, &end);
	return !*end && *value > 0 && *value <= most;
}

static bool percentage(const char *word, double *value)
{
	char text[32];
	size_t length = strlen(word);

	if (length < 2 || length > sizeof(text) || word[length - 1] != '%')
		return false;
	memcpy(text, word, length - 1);
	text[length - 1] = '\0';
	if (!fraction(text, 100, value))
		return false;
	*value /= 100;
	return true;
}

static bool word_fits(char kind, const char *word, struct check_rule *rule)
{
	uint64_t number;
	int rc;

	switch (kind) {
	case '#':
	case '$':
		rc = kind == '#' ? rg_parse_count(word, &number) : rg_parse_rate(word, &number);
		rule->value = rc ? 0 : (double)number;
		return !rc;
	case '*':
		return fraction(word, 1, &rule->value);
	case '%':
		return percentage(word, &rule->value);
	default:
		snprintf(rule->counter, sizeof(rule->counter), "%s", word);
		return true;
	}
}

static bool form_fits(const char *form, char *const *word, int count, struct check_rule *rule)
{
	int i = 0;

	for (; *form && i < count; i++) {
		const size_t length = strcspn(form, " ");
		const bool is_value = length == 1 && strchr("#$*%@", *form);

		if (is_value ? !word_fits(*form, word[i], rule) :
			     strlen(word[i]) != length || strncmp(form, word[i], length))
			return false;
		form += length + (form[length] == ' ');
	}
	return !*form && i == count;
}

static void refuse(const char *name, int line, const char *text)
{
	char list[1024] = "";

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
		rg_text_add(list, sizeof(list), "%s; ", forms[i].shown);
	rg_error("%s:%d: '%s' is no rule (accepted: %sonly PORT...)", name, line, text, list);
}

static int only_add(const char *name, int line, char *const *word, int count, struct check_rules *r)
{
	for (int i = 1; i < count; i++) {
		if (r->only_count == CHECK_PORTS_MAX) {
			rg_error("%s:%d: more ports than %d", name, line, CHECK_PORTS_MAX);
			return -EINVAL;
		}
		snprintf(r->only[r->only_count++], CHECK_TEXT_BYTES, "%s", word[i]);
	}
	return 0;
}

/* Words of a line, at most WORDS_MAX; with single blanks also as text. */
static int words_of(char *line, char *word[WORDS_MAX], char text[CHECK_TEXT_BYTES])
{
	char *rest = line, *next;
	int count = 0;

	*text = '\0';
	line[strcspn(line, "#")] = '\0';
	while ((next = strsep(&rest, " \t\r")) && count < WORDS_MAX)
		if (*next) {
			rg_text_add(text, CHECK_TEXT_BYTES, "%s%s", count ? " " : "", next);
			word[count++] = next;
		}
	return count;
}

static int line_parse(const char *name, int number, char *line, struct check_rules *r)
{
	char *word[WORDS_MAX], text[CHECK_TEXT_BYTES];
	int count = words_of(line, word, text);
	size_t i = 0;

	if (!count)
		return 0;
	if (!strcmp(word[0], "only") && count > 1)
		return only_add(name, number, word, count, r);
	if (r->count == CHECK_RULES_MAX) {
		rg_error("%s:%d: more rules than %d", name, number, CHECK_RULES_MAX);
		return -EINVAL;
	}
	for (; i < sizeof(forms) / sizeof(forms[0]); i++) {
		struct check_rule rule = { .kind = forms[i].kind };

		if (!form_fits(forms[i].form, word, count, &rule))
			continue;
		memcpy(rule.text, text, sizeof(text));
		r->rule[r->count++] = rule;
		return 0;
	}
	refuse(name, number, text);
	return -EINVAL;
}

/* ---- All of them ------------------------------------------------------------------------ */

int check_rules_parse(const char *name, const char *text, struct check_rules *out)
{
	char *copy = strdup(text), *rest = copy, *line;
	int rc = copy ? 0 : -ENOMEM, number = 0;

	memset(out, 0, sizeof(*out));
	while (!rc && (line = strsep(&rest, "\n")))
		rc = line_parse(name, ++number, line, out);
	free(copy);
	if (!rc && !out->count) {
		rg_error("%s: no rule (accepted: lines such as 'ports up'; railgauge check --help has "
			 "all)", name);
		rc = -EINVAL;
	}
	return rc;
}

int check_rules_read(const char *path, struct check_rules *out)
{
	size_t bytes;
	char *text = rg_file_read(path, FILE_MAX, &bytes);
	int rc;

	if (!text) {
		rc = -errno;
		rg_error("%s: %s", path, strerror(errno));
		return rc;
	}
	if (strlen(text) != bytes) {
		rg_error("%s: no text (accepted: a file of rules, one per line)", path);
		rc = -EINVAL;
	} else {
		rc = check_rules_parse(path, text, out);
	}
	free(text);
	return rc;
}

bool check_rules_have(const struct check_rules *rules, enum check_kind kind)
{
	for (int i = 0; i < rules->count; i++)
		if (rules->rule[i].kind == kind)
			return true;
	return false;
}
