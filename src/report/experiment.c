/* experiment.c - experiments of papers, read from their files; every value is checked. */
#include "config.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/err.h"
#include "report/experiment.h"
#include "util/text.h"

enum { FILE_BYTES_MAX = 1 << 20, TEXT_BYTES_MAX = 200, RANKS_MAX = 4096, QUOTED_MAX = 8 };
enum { FIGURE_MAX = 999, CELLS_MAX = 9999 };
enum { PAPERS_MAX = 64, NAME_BYTES_MAX = 32, OPTIONS_MAX = 32 };

static const char lower[] = "abcdefghijklmnopqrstuvwxyz0123456789";

static const char *directory(void)
{
	const char *given = getenv("RAILGAUGE_DATA");

	return given && *given ? given : RG_EXPERIMENTS_DIR;
}

/* ---- Checks: 0, or -EINVAL with the reason -------------------------------------- */

struct check { char why[256]; };

__attribute__((format(printf, 2, 3)))
static int wrong(struct check *c, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(c->why, sizeof(c->why), fmt, args);
	va_end(args);
	return -EINVAL;
}

/* Is it one line?  The text goes into '#' lines unchanged. */
static bool is_line(const char *text)
{
	size_t length = strlen(text);

	for (const char *at = text; *at; at++)
		if (iscntrl((unsigned char)*at))
			return false;
	return length > 0 && length <= TEXT_BYTES_MAX;
}

static bool is_word(const char *text, const char *more)
{
	for (const char *at = text; *at; at++)
		if (!strchr(lower, *at) && !strchr(more, *at))
			return false;
	return *text && strlen(text) <= NAME_BYTES_MAX;
}

static int quoted_check(const json_t *quoted, struct check *c)
{
	json_t *q;
	size_t i;

	if (!json_is_array(quoted) || json_array_size(quoted) > QUOTED_MAX)
		return wrong(c, "quoted is not a list of at most %d", QUOTED_MAX);
	json_array_foreach(quoted, i, q) {
		const char *what, *unit, *way = "single", *calibrated = "key";
		const char *better = "way", *than = "way";
		double value, shorter, x = 0;
		json_error_t error;

		if (json_unpack_ex(q, &error, JSON_STRICT, "{s:s, s:F, s:s, s?F, s?s, s?F, s?s, s?s, s?s}",
				   "what", &what, "value", &value, "unit", &unit, "shorter",
				   &shorter, "way", &way, "x", &x, "calibrated", &calibrated,
				   "better", &better, "than", &than))
			return wrong(c, "quoted %d: %s", (int)i, error.text);
		if (!is_word(calibrated, "-"))
			return wrong(c, "quoted %d: calibrated is no key of a profile", (int)i);
		if (!is_line(better) || !is_line(than) ||
		    !json_object_get(q, "better") != !json_object_get(q, "than"))
			return wrong(c, "quoted %d: better and than are not two lines of text", (int)i);
		if (!is_line(what) || !is_line(unit) || !is_line(way) || !isfinite(value) ||
		    !isfinite(x))
			return wrong(c, "quoted %d: what, unit or way is not a line of text",
				     (int)i);
		if (!json_object_get(q, "way") != !json_object_get(q, "x"))
			return wrong(c, "quoted %d: way without x, or x without way", (int)i);
	}
	return 0;
}

static int options_check(json_t *options, struct check *c)
{
	const char *name;
	json_t *value;

	if (!json_is_object(options) || json_object_size(options) > OPTIONS_MAX)
		return wrong(c, "options is not an object of at most %d", OPTIONS_MAX);
	json_object_foreach(options, name, value)
		if (!is_word(name, "-") || !json_is_string(value) ||
		    !is_line(json_string_value(value)))
			return wrong(c, "options are not names with lines of text");
	return 0;
}

static int ranks_take(struct experiment *e, const json_t *ranks, struct check *c)
{
	json_t *n;
	size_t i;

	if (!json_array_size(ranks) || json_array_size(ranks) > EXPERIMENT_RANKS_MAX)
		return wrong(c, "ranks is not a list of 1 to %d numbers", EXPERIMENT_RANKS_MAX);
	json_array_foreach(ranks, i, n) {
		if (!json_is_integer(n) || json_integer_value(n) < 1 ||
		    json_integer_value(n) > RANKS_MAX)
			return wrong(c, "ranks: not a number from 1 to %d", RANKS_MAX);
		e->ranks[e->rank_counts++] = (int)json_integer_value(n);
	}
	return 0;
}

/* The part of an id before its first '-' is the paper's name. */
static bool id_is_of(const char *id, const char *paper)
{
	size_t length = strlen(paper);

	return is_word(id, "-") && strncmp(id, paper, length) == 0 && id[length] == '-';
}

static int experiment_take(struct experiment *e, json_t *from, struct check *c)
{
	json_error_t error;
	json_int_t figure = 0, cells;
	json_t *ranks;

	if (json_unpack_ex(from, &error, JSON_STRICT,
			   "{s:s, s?I, s:s, s:o, s:I, s:s, s:s, s?s, s:o, s:o}", "id", &e->id, "figure",
			   &figure, "program", &e->program, "ranks", &ranks, "cells", &cells,
			   "adapter", &e->adapter, "shows", &e->shows, "differs", &e->differs,
			   "options", &e->options, "quoted", &e->quoted))
		return wrong(c, "%s", error.text);
	if (!id_is_of(e->id, e->paper->name))
		return wrong(c, "id is not %s-... of small letters, digits and -", e->paper->name);
	if (json_object_get(from, "figure") && (figure < 1 || figure > FIGURE_MAX))
		return wrong(c, "figure is not in 1 to %d", FIGURE_MAX);
	if (cells < 1 || cells > CELLS_MAX)
		return wrong(c, "cells is not in 1 to %d", CELLS_MAX);
	e->figure = (int)figure;
	e->cells = (int)cells;
	if (!is_word(e->program, "_") || strncmp(e->program, "rg_", 3))
		return wrong(c, "program is not rg_...");
	if (!is_line(e->adapter) || !is_line(e->shows) || (e->differs && !is_line(e->differs)))
		return wrong(c, "adapter, shows or differs is not a line of text");
	if (ranks_take(e, ranks, c) || options_check(e->options, c))
		return -EINVAL;
	return quoted_check(e->quoted, c);
}

static int list_take(struct experiment_paper *p, const json_t *list, struct check *c)
{
	json_t *from;
	size_t i;

	if (!json_array_size(list))
		return wrong(c, "experiments is not a list of them");
	p->list = calloc(json_array_size(list), sizeof(p->list[0]));
	if (!p->list)
		return wrong(c, "no memory");
	json_array_foreach(list, i, from) {
		struct experiment *e = &p->list[i];
		struct check inner;

		e->paper = p;
		if (experiment_take(e, from, &inner))
			return wrong(c, "experiment %d: %s", (int)i, inner.why);
		for (size_t k = 0; k < i; k++)
			if (strcmp(p->list[k].id, e->id) == 0)
				return wrong(c, "experiment %d: %s twice", (int)i, e->id);
	}
	p->count = (int)json_array_size(list);
	return 0;
}

/* Take a paper in; `name` is the file's. */
static int paper_take(struct experiment_paper *p, const char *name, struct check *c)
{
	json_error_t error;
	json_t *list;

	if (json_unpack_ex(p->root, &error, JSON_STRICT, "{s:s, s:s, s:s, s:o}", "paper", &p->name,
			   "title", &p->title, "source", &p->source, "experiments", &list))
		return wrong(c, "%s", error.text);
	if (strcmp(p->name, name))
		return wrong(c, "paper is not %s", name);
	if (!is_line(p->title) || !is_line(p->source))
		return wrong(c, "title or source is not a line of text");
	return list_take(p, list, c);
}

/* ---- Files ------------------------------------------------------------------------- */

static void paper_free(struct experiment_paper *p)
{
	json_decref(p->root);
	free(p->list);
	free(p->path);
}

static int paper_load(struct experiment_paper *p, const char *name)
{
	json_error_t error;
	struct check c;
	char *text;
	size_t bytes;

	*p = (struct experiment_paper){ .count = 0 };
	if (asprintf(&p->path, "%s/%s.json", directory(), name) < 0) {
		p->path = NULL;
		return -ENOMEM;
	}
	text = rg_file_read(p->path, FILE_BYTES_MAX + 1, &bytes);
	if (!text) {
		rg_error("%s: cannot be read: %s", p->path, strerror(errno));
		goto failed;
	}
	p->root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
	free(text);
	if (!p->root) {
		rg_error("%s:%d: damaged: %s", p->path, error.line, error.text);
		goto failed;
	}
	if (!paper_take(p, name, &c))
		return 0;
	rg_error("%s: damaged: %s", p->path, c.why);
failed:
	paper_free(p);
	return -EINVAL;
}

/* Is it the file of a paper, such as p1.json? */
static int is_paper(const struct dirent *entry)
{
	size_t length = strspn(entry->d_name, lower);

	return length > 0 && length <= NAME_BYTES_MAX &&
		strcmp(entry->d_name + length, ".json") == 0;
}

static int names_load(struct experiment_papers *out, struct dirent **names, int count)
{
	int rc = 0;

	out->list = calloc((size_t)count, sizeof(out->list[0]));
	if (!out->list) {
		rg_error("no memory for experiments");
		return -ENOMEM;
	}
	for (int i = 0; i < count && !rc; i++) {
		names[i]->d_name[strspn(names[i]->d_name, lower)] = '\0';
		rc = paper_load(&out->list[i], names[i]->d_name);
		out->count += !rc;
	}
	if (rc)
		experiment_free(out);
	return rc;
}

int experiment_load(struct experiment_papers *out)
{
	struct dirent **names;
	int rc, count = scandir(directory(), &names, is_paper, alphasort);

	*out = (struct experiment_papers){ NULL, 0 };
	if (count < 0) {
		rg_error("%s: experiments cannot be read: %s (RAILGAUGE_DATA names another "
			 "directory)", directory(), strerror(errno));
		return -EINVAL;
	}
	if (count && count <= PAPERS_MAX) {
		rc = names_load(out, names, count);
	} else {
		rg_error("%s: %s papers' experiments (RAILGAUGE_DATA names another directory)",
			 directory(), count ? "too many" : "no");
		rc = -EINVAL;
	}
	for (int i = 0; i < count; i++)
		free(names[i]);
	free(names);
	return rc;
}

void experiment_free(struct experiment_papers *p)
{
	for (int i = 0; i < p->count; i++)
		paper_free(&p->list[i]);
	free(p->list);
	*p = (struct experiment_papers){ NULL, 0 };
}

/* ---- Finding ------------------------------------------------------------------------ */

const struct experiment_paper *experiment_paper_find(const struct experiment_papers *p,
						     const char *name)
{
	for (int i = 0; i < p->count; i++)
		if (strcmp(p->list[i].name, name) == 0)
			return &p->list[i];
	return NULL;
}

const struct experiment *experiment_find(const struct experiment_papers *p, const char *id)
{
	for (int i = 0; i < p->count; i++)
		for (int k = 0; k < p->list[i].count; k++)
			if (strcmp(p->list[i].list[k].id, id) == 0)
				return &p->list[i].list[k];
	return NULL;
}

/* ---- Places of quoted values ------------------------------------------------------------ */

bool experiment_point(const json_t *quoted, size_t i, struct experiment_point *out)
{
	const json_t *q = json_array_get(quoted, i);

	out->what = json_string_value(json_object_get(q, "what"));
	out->unit = json_string_value(json_object_get(q, "unit"));
	out->way = json_string_value(json_object_get(q, "way"));
	out->value = json_number_value(json_object_get(q, "value"));
	out->x = json_number_value(json_object_get(q, "x"));
	out->calibrated = json_string_value(json_object_get(q, "calibrated"));
	return out->what && out->unit && out->way && json_object_get(q, "x");
}

bool experiment_relation(const json_t *quoted, size_t i, struct experiment_relation *out)
{
	const json_t *q = json_array_get(quoted, i);

	out->better = json_string_value(json_object_get(q, "better"));
	out->than = json_string_value(json_object_get(q, "than"));
	return out->better && out->than;
}

double experiment_scale(enum report_metric metric, const char *unit)
{
	const double mib = 1048576, mb = 1000000;

	if (strcmp(unit, report_metric_unit(metric)) == 0)
		return 1;
	return metric == REPORT_BANDWIDTH && strcmp(unit, "MiB/s") == 0 ? mb / mib : 0;
}

/* ---- To text -------------------------------------------------------------------------- */

char *experiment_ids(const struct experiment_papers *p, const struct experiment_paper *paper,
		     const char *program, char *buf, size_t size)
{
	*buf = '\0';
	for (int i = 0; i < p->count; i++)
		for (int k = 0; k < p->list[i].count; k++) {
			const struct experiment *e = &p->list[i].list[k];

			if ((!paper || paper == e->paper) &&
			    (!program || strcmp(program, e->program) == 0))
				rg_text_add(buf, size, "%s%s", *buf ? ", " : "", e->id);
		}
	return buf;
}

char *experiment_figure(const struct experiment *e, char buf[EXPERIMENT_FIGURE])
{
	snprintf(buf, EXPERIMENT_FIGURE, e->figure ? "%d" : "-", e->figure);
	return buf;
}

char *experiment_text(const struct experiment *e, char *buf, size_t size)
{
	char figure[32] = "";

	if (e->figure)
		snprintf(figure, sizeof(figure), " figure %d", e->figure);
	snprintf(buf, size, "%c%s%s, %s: %s", toupper((unsigned char)e->paper->name[0]),
		 e->paper->name + 1, figure, e->adapter, e->shows);
	return buf;
}

static double member(const json_t *q, const char *name)
{
	return json_number_value(json_object_get(q, name));
}

char *experiment_quoted(const struct experiment *e, char *buf, size_t size)
{
	json_t *q;
	size_t i;

	*buf = '\0';
	json_array_foreach(e->quoted, i, q) {
		rg_text_add(buf, size, "%s%s %.10g %s", *buf ? "; " : "",
			 json_string_value(json_object_get(q, "what")), member(q, "value"),
			 json_string_value(json_object_get(q, "unit")));
		if (json_object_get(q, "shorter"))
			rg_text_add(buf, size, " (shorter version %.10g)", member(q, "shorter"));
	}
	rg_text_add(buf, size, "%s", *buf ? " (on the paper's hardware)" :
		 "no value of this adapter");
	return buf;
}

char *experiment_command(const struct experiment *e, int i, char *buf, size_t size)
{
	snprintf(buf, size, "mpirun -np %d %s --experiment %s", e->ranks[i], e->program, e->id);
	return buf;
}

json_t *experiment_record(const struct experiment *e)
{
	json_t *ranks = json_array();

	for (int i = 0; i < e->rank_counts; i++)
		json_array_append_new(ranks, json_integer(e->ranks[i]));
	return json_pack("{s:s, s:s, s:s, s:s, s:i, s:s, s:s, s:o, s:O, s:O}", "id", e->id,
			 "paper", e->paper->name, "title", e->paper->title, "source",
			 e->paper->source, "figure", e->figure, "adapter", e->adapter, "shows",
			 e->shows, "ranks", ranks, "options", e->options,
			 "quoted_from_paper", e->quoted);
}
