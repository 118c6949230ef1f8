/* costs.c - learned choices as text, and --costs. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rail/open/costs.h"
#include "rail/programs.h"
#include "rail/rail.h"
#include "rail/open/learner.h"
#include "rail/open/rail_ctx.h"
#include "util/err.h"
#include "util/opt.h"
#include "util/text.h"
#include "util/units.h"

enum { FILE_BYTES = 256 << 10, PROCESSOR_BYTES = 96, VERSION = 1 };

static const char accepted[] = "accepted: a file of railgauge tune";

__attribute__((format(printf, 3, 4)))
static int refuse(char *why, size_t size, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(why, size, format, args);
	va_end(args);
	return -EINVAL;
}

/* ---- A cell --------------------------------------------------------------- */

void rail_learned_text(const struct rail_learned *cell, char *text, size_t size)
{
	char bytes[RG_UNIT_TEXT];

	*text = '\0';
	rg_text_add(text, size, "%s %s %s %s %s", cell->table, cell->place, cell->load,
		    rg_format_size(cell->bytes, bytes, sizeof(bytes)), cell->scheme[cell->chosen].name);
	for (unsigned i = 0; i < cell->schemes; i++)
		rg_text_add(text, size, " %s=%" PRIu32, cell->scheme[i].name, cell->scheme[i].cost_ns);
}

static bool is_name(const char *word)
{
	const size_t length = strlen(word);

	return length && length < RAIL_LEARNED_NAME &&
	       strspn(word, "abcdefghijklmnopqrstuvwxyz0123456789-_") == length;
}

/* A word as a name; false: it is none. */
static bool name_take(char **rest, char name[RAIL_LEARNED_NAME])
{
	const char *word = strtok_r(NULL, " \t", rest);

	if (!word || !is_name(word))
		return false;
	memcpy(name, word, strlen(word) + 1);
	return true;
}

static int scheme_of(const struct rail_learned *cell, const char *name)
{
	for (unsigned i = 0; i < cell->schemes; i++)
		if (strcmp(cell->scheme[i].name, name) == 0)
			return (int)i;
	return -1;
}

/* "read=812" */
static int cost_parse(char *word, struct rail_learned *cell, char *why, size_t why_size)
{
	char *equals = strchr(word, '=');
	uint64_t ns;

	if (equals)
		*equals++ = '\0';
	if (!equals || !is_name(word) || rg_parse_count(equals, &ns) || ns > UINT32_MAX)
		return refuse(why, why_size, "'%.40s' is no SCHEME=NANOSECONDS", word);
	if (cell->schemes == RAIL_LEARNED_SCHEMES || scheme_of(cell, word) >= 0)
		return refuse(why, why_size, "'%.40s': a scheme too many", word);
	memcpy(cell->scheme[cell->schemes].name, word, strlen(word) + 1);
	cell->scheme[cell->schemes++].cost_ns = (uint32_t)ns;
	return 0;
}

int rail_cell_parse(char *text, struct rail_learned *cell, char *why, size_t why_size)
{
	struct rail_learned new = { .why = RAIL_LEARNED_GIVEN };
	char *rest = NULL, *word = strtok_r(text, " \t", &rest), chosen[RAIL_LEARNED_NAME];
	int index, rc;

	if (!word || !is_name(word))
		return refuse(why, why_size, "no name of a table");
	memcpy(new.table, word, strlen(word) + 1);
	if (!name_take(&rest, new.place) || !name_take(&rest, new.load))
		return refuse(why, why_size, "no names of place and load");
	word = strtok_r(NULL, " \t", &rest);
	if (!word || rg_parse_size(word, &new.bytes))
		return refuse(why, why_size, "'%.40s' is no size", word ? word : "");
	if (!name_take(&rest, chosen))
		return refuse(why, why_size, "no name of a scheme");
	while ((word = strtok_r(NULL, " \t", &rest))) {
		rc = cost_parse(word, &new, why, why_size);
		if (rc)
			return rc;
	}
	index = scheme_of(&new, chosen);
	if (index < 0)
		return refuse(why, why_size, "scheme '%s' has no cost", chosen);
	new.chosen = (unsigned)index;
	*cell = new;
	return 0;
}

/* ---- A file ---------------------------------------------------------------- */

struct costs {
	const char *processor;
	rail_cell_fn *each;
	void *user;
	bool begun, ended;
	uint64_t cells;
};

/* "1 PROCESSOR", the rest of its line. */
static int begin_parse(struct costs *c, const char *text, char *why, size_t why_size)
{
	const size_t version = strspn(text, "0123456789");

	if (c->begun)
		return refuse(why, why_size, "costs begin twice");
	if (version != 1 || *text != '0' + VERSION || text[1] != ' ')
		return refuse(why, why_size, "another version of costs than %d", VERSION);
	text += 2;
	if (strcmp(text, c->processor))
		return refuse(why, why_size, "costs of another processor, '%.80s', this is '%.80s'", text,
			      c->processor);
	c->begun = true;
	return 0;
}

static int end_parse(struct costs *c, const char *text, char *why, size_t why_size)
{
	uint64_t cells;

	if (!c->begun || c->ended || rg_parse_count(text, &cells) || cells != c->cells)
		return refuse(why, why_size, "another number of cells, damaged");
	c->ended = true;
	return 0;
}

static int cell_line(struct costs *c, char *text, char *why, size_t why_size)
{
	struct rail_learned cell;
	int rc;

	if (!c->begun || c->ended)
		return refuse(why, why_size, "a cell outside of costs");
	rc = rail_cell_parse(text, &cell, why, why_size);
	if (rc)
		return rc;
	c->cells++;
	rc = c->each(c->user, &cell);
	return rc ? refuse(why, why_size, "no cell of this version") : 0;
}

/* The text after a first word; NULL: another word. */
static char *after(char *line, const char *word)
{
	const size_t length = strlen(word);

	return strncmp(line, word, length) == 0 && line[length] == ' ' ? line + length + 1 : NULL;
}

/* Rules for --coll are lines, too. */
static int line_parse(struct costs *c, char *line, char *why, size_t why_size)
{
	char *rest;

	/* Lines of a file that went over another system end with CR LF. */
	if (*line && line[strlen(line) - 1] == '\r')
		line[strlen(line) - 1] = '\0';
	for (const char *at = line; *at; at++)
		if ((unsigned char)*at < ' ' && *at != '\t')
			return refuse(why, why_size, "a byte that is no text");
	rest = after(line, "costs");
	if (rest)
		return begin_parse(c, rest, why, why_size);
	line[strcspn(line, "#")] = '\0';
	rest = after(line, "costs-end");
	if (rest)
		return end_parse(c, rest, why, why_size);
	rest = after(line, "cell");
	return rest ? cell_line(c, rest, why, why_size) : 0;
}

int rail_costs_parse(char *text, size_t bytes, const char *processor, rail_cell_fn *each, void *user,
		     char *why, size_t why_size)
{
	struct costs c = { .processor = processor, .each = each, .user = user };
	char *line = text, reason[OPT_WHY_BYTES / 2];

	for (int number = 1; line < text + bytes; number++) {
		char *end = line + strcspn(line, "\n");

		if (!*end && end < text + bytes)
			return refuse(why, why_size, "line %d: a byte that is no text (%s)", number,
				      accepted);
		*end = '\0';
		if (line_parse(&c, line, reason, sizeof(reason)))
			return refuse(why, why_size, "line %d: %s (%s)", number, reason, accepted);
		line = end + 1;
	}
	if (!c.begun)
		return refuse(why, why_size, "it has no costs (%s)", accepted);
	return c.ended ? 0 : refuse(why, why_size, "its end is missing, damaged (%s)", accepted);
}

/* ---- The processor ---------------------------------------------------------- */

/* The value of a line "NAME : VALUE" of /proc/cpuinfo, added to text. */
static void cpu_value_add(const char *cpuinfo, const char *name, char *text, size_t size)
{
	const char *line = strstr(cpuinfo, name), *value = line ? strchr(line, ':') : NULL;

	if (!value)
		return;
	value += 1 + strspn(value + 1, " \t");
	rg_text_add(text, size, "%s%.*s", *text ? " " : "", (int)strcspn(value, "\n"), value);
}

/* Files of the kernel tell no size, so they are read as streams. */
void rail_processor(char *name, size_t size)
{
	char cpuinfo[4096] = "";
	FILE *f = fopen("/proc/cpuinfo", "re");
	size_t n = f ? fread(cpuinfo, 1, sizeof(cpuinfo) - 1, f) : 0;

	if (f)
		fclose(f);
	cpuinfo[n] = '\0';
	*name = '\0';
	cpu_value_add(cpuinfo, "model name", name, size);
	if (!*name) {
		cpu_value_add(cpuinfo, "CPU implementer", name, size);
		cpu_value_add(cpuinfo, "CPU part", name, size);
	}
	for (char *c = name; *c; c++)
		if (!isprint((unsigned char)*c))
			*c = '?';
	if (!*name)
		snprintf(name, size, "unknown");
}

/* ---- --costs ---------------------------------------------------------------- */

static int costs_read(const char *path, rail_cell_fn *each, void *user, char *why, size_t why_size)
{
	char processor[PROCESSOR_BYTES];
	size_t bytes = 0;
	char *text = rg_file_read(path, FILE_BYTES + 1, &bytes);
	int rc;

	if (!text)
		return refuse(why, why_size, "cannot be read: %s (%s)", errno == EFBIG ? "it is too long" :
			      errno == EISDIR || errno == EINVAL ? "it is no regular file" :
			      strerror(errno), accepted);
	rail_processor(processor, sizeof(processor));
	rc = rail_costs_parse(text, bytes, processor, each, user, why, why_size);
	free(text);
	return rc;
}

static int cell_ignore(void *user, const struct rail_learned *cell)
{
	(void)user;
	(void)cell;
	return 0;
}

int rail_costs_check(const char *path, char *why, size_t why_size)
{
	return costs_read(path, cell_ignore, NULL, why, why_size);
}

static int cell_give(void *user, const struct rail_learned *cell)
{
	return rail_learner_give(user, cell);
}

int rail_costs_apply(struct rail_ctx *ctx, const char *path)
{
	char why[OPT_WHY_BYTES];
	int rc = path ? costs_read(path, cell_give, ctx, why, sizeof(why)) : 0;

	if (rc)
		rg_error("--costs %s (RAILGAUGE_COSTS): %s", path, why);
	return rc;
}
