/*
 * coll_file.c - --coll @FILE: rules from a text file, such as rg_tune writes.
 *
 * Nothing here calls MPI, as in coll.c.
 */
#include "mpi/coll/coll_file.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/coll/coll.h"
#include "util/opt.h"
#include "util/text.h"
#include "util/units.h"

enum { FILE_BYTES = 64 << 10, RANKS_MAX = 1 << 20, WORDS = 4 };
#define BYTES_MAX (UINT64_C(1) << 40)

static const char accepted[] = " (accepted: COLLECTIVE RANKS BYTES ALGORITHM)";

/* A wrong line of a file, and the message about it. */
struct file_line {
	const char *path;
	int line;			/* 0: none */
	char *why;
	size_t why_size;
};

__attribute__((format(printf, 2, 3)))
static int file_refuse(const struct file_line *at, const char *format, ...)
{
	char line[32] = "";
	va_list args;
	int used;

	if (at->line)
		snprintf(line, sizeof(line), "line %d: ", at->line);
	used = snprintf(at->why, at->why_size, "@%.200s: %s", at->path, line);
	if (used < 0 || (size_t)used >= at->why_size)
		return -EINVAL;
	va_start(args, format);
	vsnprintf(at->why + used, at->why_size - (size_t)used, format, args);
	va_end(args);
	return -EINVAL;
}

/* ---- A line --------------------------------------------------------------------------------- */

static int rule_add(const struct file_line *at, struct coll_rules *rules, enum coll_id id,
		    struct coll_rule rule)
{
	short *last = &rules->first[id];

	if (rules->count == COLL_RULES_MAX)
		return file_refuse(at, "too many rules (accepted: up to %d)", COLL_RULES_MAX);
	while (*last)
		last = &rules->rule[*last - 1].next;
	rules->rule[rules->count++] = rule;
	*last = (short)rules->count;
	return 0;
}

static int rule_parse(const struct file_line *at, char *const word[WORDS], struct coll_rules *rules)
{
	struct coll_rule rule = {.next = 0};
	char reason[OPT_WHY_BYTES / 2];
	uint64_t ranks, bytes;
	enum coll_id id;

	if (coll_names(word[0], word[3], &id, &rule.algorithm, reason, sizeof(reason)))
		return file_refuse(at, "%s", reason);
	if (rg_parse_count(word[1], &ranks) || ranks > RANKS_MAX)
		return file_refuse(at, "RANKS %.40s: no such number (accepted: 0 to %d; 0: any)",
				   word[1], RANKS_MAX);
	if (rg_parse_size(word[2], &bytes) || bytes > BYTES_MAX)
		return file_refuse(at, "BYTES %.40s: no such size (accepted: 0 to 1T, such as 64K; "
				   "0: any)", word[2]);
	rule.ranks = (int)ranks;
	rule.bytes = (size_t)bytes;
	return rule_add(at, rules, id, rule);
}

static bool is_text(const char *line)
{
	bool comment = false;

	for (; *line; line++) {
		comment = comment || *line == '#';
		if ((*line >= ' ' && *line < 0x7f) || *line == '\t' || *line == '\r' ||
		    (comment && (unsigned char)*line >= 0x80))
			continue;
		return false;
	}
	return true;
}

/* Lines for --costs, which librail reads. */
static bool is_of_costs(const char *line)
{
	static const char *const words[] = { "costs ", "cell ", "costs-end " };

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (strncmp(line, words[i], strlen(words[i])) == 0)
			return true;
	return false;
}

static int line_parse(const struct file_line *at, char *line, struct coll_rules *rules)
{
	char *word[WORDS + 1], *rest = NULL;
	int words = 0;

	if (!is_text(line))
		return file_refuse(at, "a byte that is no text%s", accepted);
	if (is_of_costs(line))
		return 0;
	line[strcspn(line, "#")] = '\0';
	for (char *w = strtok_r(line, " \t\r", &rest); w && words <= WORDS;
	     w = strtok_r(NULL, " \t\r", &rest))
		word[words++] = w;
	if (!words)
		return 0;
	if (words != WORDS)
		return file_refuse(at, "too %s words%s", words < WORDS ? "few" : "many", accepted);
	return rule_parse(at, word, rules);
}

/* ---- A file --------------------------------------------------------------------------------- */

/* Malloc'ed; NULL after saying why. */
static char *file_read(const struct file_line *at, size_t *bytes)
{
	char *text = rg_file_read(at->path, FILE_BYTES + 1, bytes);

	if (text)
		return text;
	if (errno == EFBIG)
		file_refuse(at, "is too long (accepted: up to %dK)", FILE_BYTES >> 10);
	else if (errno == EISDIR || errno == EINVAL)
		file_refuse(at, "is no regular file (accepted: a table of rg_tune)");
	else
		file_refuse(at, "cannot be read: %s", strerror(errno));
	return NULL;
}

static int text_parse(struct file_line *at, char *text, size_t bytes, struct coll_rules *rules)
{
	char *line = text, *end;
	int rc = 0;

	while (!rc && line < text + bytes) {
		at->line++;
		end = line + strcspn(line, "\n");
		if (!*end && end < text + bytes)
			return file_refuse(at, "a byte that is no text%s", accepted);
		*end = '\0';
		rc = line_parse(at, line, rules);
		line = end + 1;
	}
	return rc;
}

int coll_file_read(const char *path, struct coll_rules *rules, char *why, size_t why_size)
{
	struct file_line at = {.path = path, .why = why, .why_size = why_size};
	size_t bytes = 0;
	char *text = file_read(&at, &bytes);
	int rc;

	if (!text)
		return -EINVAL;
	rc = text_parse(&at, text, bytes, rules);
	free(text);
	return rc;
}
