/* learned.c - what ranks have learned of costs, for records and notes. */
#include "bench/learned.h"
#include "bench/ranks.h"

#include <stdlib.h>
#include <string.h>

#include "util/text.h"

static const char *const why[RAIL_LEARNED_WHYS] = {
	[RAIL_LEARNED_ASSUMED] = "assumed", [RAIL_LEARNED_RACING] = "racing",
	[RAIL_LEARNED_MEASURED] = "measured", [RAIL_LEARNED_GIVEN] = "given",
};

static uint32_t samples_of(const struct rail_learned *cell)
{
	uint32_t samples = 0;

	for (unsigned i = 0; i < cell->schemes; i++)
		samples += cell->scheme[i].samples;
	return samples;
}

static json_t *cell_json(const struct rail_learned *cell)
{
	json_t *schemes = json_object();

	for (unsigned i = 0; i < cell->schemes; i++)
		json_object_set_new(schemes, cell->scheme[i].name, json_pack("{s:I, s:I}",
			"cost_ns", (json_int_t)cell->scheme[i].cost_ns,
			"samples", (json_int_t)cell->scheme[i].samples));
	return json_pack("{s:s, s:s, s:o, s:s, s:s, s:o}", "table", cell->table, "load", cell->load,
			 "bytes", cell->bytes ? json_integer((json_int_t)cell->bytes) : json_null(),
			 "scheme", cell->scheme[cell->chosen].name, "why", why[cell->why],
			 "schemes", schemes);
}

json_t *learned_json(bool given)
{
	json_t *places = json_object();
	struct rail_learned cell;

	for (unsigned i = 0; railmpi_learned(i, &cell); i++) {
		if (cell.why != RAIL_LEARNED_GIVEN && (given || !samples_of(&cell)))
			continue;
		if (!json_object_get(places, cell.place))
			json_object_set_new(places, cell.place, json_array());
		json_array_append_new(json_object_get(places, cell.place), cell_json(&cell));
	}
	return places;
}

static json_t *race_json(const struct railmpi_race *race)
{
	json_t *algorithms = json_object();

	for (int i = 0; i < race->candidates; i++)
		json_object_set_new(algorithms, race->candidate[i].name, json_pack("{s:I}",
			"cost_ns", (json_int_t)race->candidate[i].cost_ns));
	return json_pack("{s:s, s:i, s:i, s:s, s:s, s:I, s:s, s:s, s:o}", "collective", race->collective,
			 "ranks", race->ranks, "nodes", race->nodes, "over", race->over,
			 "places", race->places, "bytes", (json_int_t)race->bytes,
			 "algorithm", race->algorithm, "why", race->why, "algorithms", algorithms);
}

static json_t *races_json(void)
{
	json_t *races = json_array();
	struct railmpi_race race;

	for (unsigned n = 0; railmpi_race(n, &race); n++)
		json_array_append_new(races, race_json(&race));
	return races;
}

/* ---- At the end -------------------------------------------------------------- */

static void cell_note(const struct bench_job *job, int rank, const char *place, const json_t *cell)
{
	const json_int_t bytes = json_integer_value(json_object_get(cell, "bytes"));
	json_t *schemes = json_object_get(cell, "schemes"), *scheme;
	char text[256] = "", size[48] = "all larger";
	const char *name;

	json_object_foreach(schemes, name, scheme)
		rg_text_add(text, sizeof(text), "%s%s %" JSON_INTEGER_FORMAT " ns", *text ? ", " : "", name,
			    json_integer_value(json_object_get(scheme, "cost_ns")));
	if (bytes)
		snprintf(size, sizeof(size), "to %" JSON_INTEGER_FORMAT " bytes", bytes);
	report_note(job->got.report, "learned by rank %d: %s, %s, %s, %s: %s, %s (%s)", rank,
		    json_string_value(json_object_get(cell, "table")), place,
		    json_string_value(json_object_get(cell, "load")), size,
		    json_string_value(json_object_get(cell, "scheme")),
		    json_string_value(json_object_get(cell, "why")), text);
}

static void race_note(const struct bench_job *job, int rank, const json_t *race)
{
	json_t *algorithms = json_object_get(race, "algorithms"), *algorithm;
	char text[256] = "";
	const char *name;

	json_object_foreach(algorithms, name, algorithm)
		rg_text_add(text, sizeof(text), "%s%s %" JSON_INTEGER_FORMAT " ns", *text ? ", " : "", name,
			    json_integer_value(json_object_get(algorithm, "cost_ns")));
	report_note(job->got.report, "learned by rank %d: %s of %d ranks over %s, to %" JSON_INTEGER_FORMAT
		    " bytes: %s, %s (%s)", rank, json_string_value(json_object_get(race, "collective")),
		    (int)json_integer_value(json_object_get(race, "ranks")),
		    json_string_value(json_object_get(race, "over")),
		    json_integer_value(json_object_get(race, "bytes")),
		    json_string_value(json_object_get(race, "algorithm")),
		    json_string_value(json_object_get(race, "why")), text);
}

static void rank_note(const struct bench_job *job, const json_t *learned)
{
	const int rank = (int)json_integer_value(json_object_get(learned, "rank"));
	const json_int_t late = json_integer_value(json_object_get(learned, "late_reads"));
	json_t *cells, *cell;
	const char *place;
	size_t i;

	json_object_foreach(json_object_get(learned, "places"), place, cells)
		json_array_foreach(cells, i, cell)
			cell_note(job, rank, place, cell);
	json_array_foreach(json_object_get(learned, "collectives"), i, cell)
		race_note(job, rank, cell);
	if (late)
		report_note(job->got.report, "learned by rank %d: %" JSON_INTEGER_FORMAT
			    " messages read, since their senders answered late", rank, late);
}

/* The places and the races that this rank has learned. */
static json_t *rank_json(void)
{
	json_t *places = learned_json(false), *races = races_json(), *learned = json_object();

	if (json_object_size(places))
		json_object_set(learned, "places", places);
	if (json_array_size(races))
		json_object_set(learned, "collectives", races);
	if (railmpi_late_reads())
		json_object_set_new(learned, "late_reads", json_integer((json_int_t)railmpi_late_reads()));
	json_decref(places);
	json_decref(races);
	return learned;
}

/* The same of each rank, from the texts of all. */
static json_t *ranks_parse(const struct bench_job *job, const char *texts)
{
	json_t *list = json_array();

	for (int i = 0; i < job->b.size; i++, texts += strlen(texts) + 1) {
		json_t *learned = json_loads(texts, 0, NULL), *one;

		if (json_object_size(learned)) {
			one = json_pack("{s:i}", "rank", i);
			json_object_update(one, learned);
			json_array_append_new(list, one);
		}
		json_decref(learned);
	}
	return list;
}

json_t *learned_close(const struct bench_job *job)
{
	const bool all = job->opt.ledger;
	json_t *mine = all || job->b.rank == 0 ? rank_json() : json_object(), *list, *one;
	char *text = bench_must(json_dumps(mine, JSON_COMPACT)), *texts = ranks_texts(job, text);
	size_t i;

	list = texts ? ranks_parse(job, texts) : NULL;
	free(texts);
	free(text);
	json_decref(mine);
	json_array_foreach(list, i, one)
		if (all && job->got.report)
			rank_note(job, one);
	if (list && json_array_size(list))
		return list;
	json_decref(list);
	return NULL;
}
