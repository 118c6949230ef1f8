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

static void rank_note(const struct bench_job *job, int rank, json_t *places)
{
	json_t *cells, *cell;
	const char *place;
	size_t i;

	json_object_foreach(places, place, cells)
		json_array_foreach(cells, i, cell)
			cell_note(job, rank, place, cell);
}

/* The places of each rank, from their texts. */
static json_t *ranks_parse(const struct bench_job *job, const char *texts)
{
	json_t *list = json_array();

	for (int i = 0; i < job->b.size; i++, texts += strlen(texts) + 1) {
		json_t *places = json_loads(texts, 0, NULL);

		if (json_object_size(places))
			json_array_append_new(list, json_pack("{s:i, s:O}", "rank", i, "places", places));
		json_decref(places);
	}
	return list;
}

json_t *learned_close(const struct bench_job *job)
{
	const bool all = job->opt.ledger;
	json_t *mine = all || job->b.rank == 0 ? learned_json(false) : json_object(), *list, *one;
	char *text = bench_must(json_dumps(mine, JSON_COMPACT)), *texts = ranks_texts(job, text);
	size_t i;

	list = texts ? ranks_parse(job, texts) : NULL;
	free(texts);
	free(text);
	json_decref(mine);
	json_array_foreach(list, i, one)
		if (all && job->got.report)
			rank_note(job, (int)json_integer_value(json_object_get(one, "rank")),
				  json_object_get(one, "places"));
	if (list && json_array_size(list))
		return list;
	json_decref(list);
	return NULL;
}
