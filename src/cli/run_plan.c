/* run_plan.c - the plan of a campaign. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/run_plan.h"
#include "util/err.h"
#include "util/units.h"

#define START_NS UINT64_C(2000000000)	/* a launch without its rows, at most */
enum { WARM_PERCENT = 10 };		/* warm-up, in addition to the cap of a row */

/* ---- Presets ----------------------------------------------------------------------------- */

static const struct run_preset_program quick[] = {
	{ "rg_latency", "8:512" }, { "rg_bw", "64K:4M" }, { "rg_alltoall", "16K:1M" }, { NULL },
};
static const struct run_preset_program standard[] = {
	{ "rg_latency", "1:64K" }, { "rg_bw", "64:4M" }, { "rg_bibw", "64:4M" },
	{ "rg_alltoall", "16:1M" }, { "rg_allreduce", "16:1M" }, { NULL },
};
static const struct run_preset_program paper[] = {
	{ "rg_latency", "1:4M" }, { "rg_bw", "1:4M" }, { "rg_bibw", "1:4M" },
	{ "rg_alltoall", "4:1M" }, { "rg_allgather", "4:1M" }, { "rg_allreduce", "4:1M" },
	{ "rg_bcast", "4:1M" }, { "rg_reduce", "4:1M" }, { "rg_gather", "4:1M" },
	{ "rg_scatter", "4:1M" }, { NULL },
};

const struct run_preset run_presets[] = {
	{ "quick", "2 minutes: latency, bandwidth and rg_alltoall, 10 launches of each", 10,
	  88000000, quick },
	{ "standard", "an hour: five programs, 20 launches of each", 20, UINT64_C(600000000),
	  standard },
	{ "paper", "8 hours: ten programs, 40 launches of each", 40, UINT64_C(1040000000), paper },
	{ .name = NULL },
};

const struct run_preset *run_preset_find(const char *name)
{
	const struct run_preset *p = run_presets;

	while (p->name && strcmp(p->name, name))
		p++;
	return p->name ? p : NULL;
}

/* ---- The campaign record ----------------------------------------------------------------- */

/* Sizes of MIN:MAX, each twice the one before; 0: no such range. */
static int sizes_count(const char *text)
{
	const char *colon = strchr(text, ':');
	char first[RG_UNIT_TEXT * 2];
	uint64_t min, max;
	int n = 1;

	snprintf(first, sizeof(first), "%.*s", (int)strcspn(text, ":"), text);
	if (rg_parse_size(first, &min) || rg_parse_size(colon ? colon + 1 : first, &max) || min > max)
		return 0;
	for (; min <= max / 2; min = min ? 2 * min : 1)
		n++;
	return n;
}

static int list_count(const char *text)
{
	int n = 1;

	for (; *text; text++)
		n += *text == ',';
	return n;
}

static void words_append(json_t *list, const char *text)
{
	while (text && *text) {
		size_t length = strcspn(text, " ");

		if (length)
			json_array_append_new(list, json_stringn(text, length));
		text += length + strspn(text + length, " ");
	}
}

static json_t *preset_program(const struct run_settings *s, const struct run_preset_program *p)
{
	const char *sizes = s->sizes ? s->sizes : p->sizes;
	json_t *options = json_array();
	char cap[RG_UNIT_TEXT];

	words_append(options, "--over");
	words_append(options, s->ways);
	words_append(options, "--sizes");
	words_append(options, sizes);
	words_append(options, "--time-cap");
	words_append(options, rg_format_time(s->cap_ns, cap, sizeof(cap)));
	words_append(options, s->options);
	return json_pack("{s:s, s:o, s:i}", "name", p->name, "options", options, "rows",
			 sizes_count(sizes) * list_count(s->ways));
}

static json_t *preset_programs(const struct run_settings *s)
{
	json_t *list = json_array();

	for (const struct run_preset_program *p = run_preset_find(s->preset)->program; p->name; p++)
		json_array_append_new(list, preset_program(s, p));
	return list;
}

static json_t *unknown_program(char *const *argv)
{
	json_t *options = json_array();

	for (int i = 1; argv[i]; i++)
		json_array_append_new(options, json_string(argv[i]));
	return json_pack("[{s:s, s:o, s:i}]", "name", argv[0], "options", options, "rows", 1);
}

static json_t *build_record(const char *name, const char *dir, const char *member, const char *text)
{
	json_t *build = json_pack("{s:s, s:s}", "name", name, "dir", dir);

	if (*text)
		json_object_set_new(build, member, json_string(text));
	return build;
}

static json_t *builds(const struct run_settings *s)
{
	json_t *list = json_array();

	for (int i = 0; i < s->builds; i++)
		json_array_append_new(list, build_record(s->build[i].name, s->build[i].dir, "settings",
							 s->build[i].settings));
	if (!s->builds)
		json_array_append_new(list, build_record("", "", "settings", ""));
	return list;
}

/* The ways of an unknown program, as its builds. */
static json_t *ways(const char *text)
{
	json_t *list = json_array();
	char way[64];

	while (*text) {
		size_t length = strcspn(text, ",");

		snprintf(way, sizeof(way), "%.*s", (int)length, text);
		json_array_append_new(list, build_record(way, "", "over", way));
		text += length + (text[length] == ',');
	}
	return list;
}

json_t *run_header(const struct run_settings *s)
{
	json_t *h;

	if (s->sizes && !sizes_count(s->sizes)) {
		rg_error("--sizes %s: makes no sense (accepted: MIN:MAX or one size)", s->sizes);
		return NULL;
	}
	h = json_pack("{s:s, s:i, s:s, s:i, s:I, s:s, s:i, s:I}", "type", "campaign", "version", 1,
		      "preset", s->argv ? "program" : s->preset, "launches", s->launches, "seed",
		      (json_int_t)s->seed, "launcher", s->launcher, "ranks", s->ranks, "cap_ns",
		      s->argv ? (json_int_t)0 : (json_int_t)s->cap_ns);
	json_object_set_new(h, "builds", s->argv ? ways(s->ways) : builds(s));
	json_object_set_new(h, "programs", s->argv ? unknown_program(s->argv) : preset_programs(s));
	json_object_set_new(h, "over", json_string(s->ways));
	if (s->sizes)
		json_object_set_new(h, "sizes", json_string(s->sizes));
	if (s->options)
		json_object_set_new(h, "options", json_string(s->options));
	json_object_set_new(h, "interleaved",
			    json_boolean(json_array_size(json_object_get(h, "builds")) > 1));
	if (!h)
		rg_error("no memory for a campaign");
	return h;
}

/* ---- Reading it -------------------------------------------------------------------------- */

static int builds_read(const json_t *list, struct run_plan *p)
{
	const json_t *b;
	size_t i;

	if (!json_array_size(list) || json_array_size(list) > RUN_BUILDS_MAX)
		return -EINVAL;
	json_array_foreach(list, i, b) {
		struct run_build *build = &p->build[p->builds++];
		const char *settings = json_string_value(json_object_get(b, "settings"));
		const char *over = json_string_value(json_object_get(b, "over"));

		build->name = json_string_value(json_object_get(b, "name"));
		build->dir = json_string_value(json_object_get(b, "dir"));
		build->settings = settings ? settings : "";
		build->over = over ? over : "";
		if (!build->name || !build->dir || strpbrk(build->name, "/\n"))
			return -EINVAL;
	}
	return 0;
}

static int programs_read(const json_t *list, struct run_plan *p)
{
	const json_t *item, *word;
	size_t i, k;

	if (!json_array_size(list) || json_array_size(list) > RUN_PROGRAMS_MAX)
		return -EINVAL;
	json_array_foreach(list, i, item) {
		struct run_program *program = &p->program[p->programs++];

		program->name = json_string_value(json_object_get(item, "name"));
		program->options = json_object_get(item, "options");
		program->rows = (int)json_integer_value(json_object_get(item, "rows"));
		if (!program->name || !json_is_array(program->options) || program->rows < 1)
			return -EINVAL;
		json_array_foreach(program->options, k, word)
			if (!json_is_string(word))
				return -EINVAL;
	}
	return 0;
}

static int numbers_read(struct run_plan *p, const char **why)
{
	static const struct { const char *name; json_int_t min, max; } rows[] = {
		{ "version", 1, 1 }, { "launches", 1, 100000 }, { "ranks", 1, 1 << 24 },
		{ "seed", 0, INT64_MAX }, { "cap_ns", 0, INT64_MAX },
	};
	json_int_t value[sizeof(rows) / sizeof(rows[0])];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const json_t *number = json_object_get(p->header, rows[i].name);

		value[i] = json_integer_value(number);
		*why = rows[i].name;
		if (!json_is_integer(number) || value[i] < rows[i].min || value[i] > rows[i].max)
			return -EINVAL;
	}
	p->launches = (int)value[1];
	p->ranks = (int)value[2];
	p->seed = (uint64_t)value[3];
	p->cap_ns = (uint64_t)value[4];
	return 0;
}

static int header_read(struct run_plan *p, const char **why)
{
	const char *type = json_string_value(json_object_get(p->header, "type"));
	int rc = type && strcmp(type, "campaign") == 0 ? 0 : -EINVAL;

	*why = "type";
	if (!rc)
		rc = numbers_read(p, why);
	if (rc)
		return rc;
	p->preset = json_string_value(json_object_get(p->header, *why = "preset"));
	if (!p->preset)
		return -EINVAL;
	p->launcher = json_string_value(json_object_get(p->header, *why = "launcher"));
	if (!p->launcher)
		return -EINVAL;
	rc = builds_read(json_object_get(p->header, *why = "builds"), p);
	if (!rc)
		rc = programs_read(json_object_get(p->header, *why = "programs"), p);
	return rc;
}

/* ---- The order --------------------------------------------------------------------------- */

/* Splitmix64: Steele, Lea and Flood, OOPSLA 2014. */
static uint64_t draw(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static void shuffle(struct run_item *item, int count, uint64_t *state)
{
	for (int i = count - 1; i > 0; i--) {
		int k = (int)(draw(state) % (uint64_t)(i + 1));
		struct run_item other = item[i];

		item[i] = item[k];
		item[k] = other;
	}
}

static void round_make(const struct run_plan *p, int launch, struct run_item *item)
{
	int n = 0;

	for (int program = 0; program < p->programs; program++)
		for (int build = 0; build < p->builds; build++)
			item[n++] = (struct run_item){ program, build, launch };
}

static int order(struct run_plan *p)
{
	const int round = p->programs * p->builds;
	uint64_t state = p->seed;

	p->count = round * p->launches;
	p->item = calloc((size_t)p->count, sizeof(p->item[0]));
	if (!p->item)
		return -ENOMEM;
	for (int k = 0; k < p->launches; k++) {
		round_make(p, k, p->item + k * round);
		shuffle(p->item + k * round, round, &state);
	}
	return 0;
}

int run_plan_make(json_t *header, struct run_plan *out, const char **why)
{
	struct run_plan p = { .header = header };
	int rc = header_read(&p, why);

	if (!rc)
		rc = order(&p);
	if (rc) {
		run_plan_free(&p);
		return rc;
	}
	*out = p;
	return 0;
}

void run_plan_free(struct run_plan *plan)
{
	json_decref(plan->header);
	free(plan->item);
	*plan = (struct run_plan){ .header = NULL };
}

bool run_plan_is_unknown(const struct run_plan *plan)
{
	return *plan->build[0].over;
}

/* ---- Items ------------------------------------------------------------------------------- */

const char *run_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

const char *run_item_name(const struct run_plan *plan, const struct run_item *item,
			  char buf[RUN_NAME_BYTES])
{
	const char *build = plan->build[item->build].name;

	snprintf(buf, RUN_NAME_BYTES, "%.40s%s%.60s.%03d", build, *build ? "." : "",
		 run_base_name(plan->program[item->program].name), item->launch);
	return buf;
}

uint64_t run_item_ns(const struct run_plan *plan, const struct run_item *item)
{
	const uint64_t rows = (uint64_t)plan->program[item->program].rows;

	return START_NS + rows * (plan->cap_ns * (100 + WARM_PERCENT) / 100);
}
