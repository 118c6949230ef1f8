/* learned.c - cells of an end record, those of one choice together. */
#include "report/learned.h"

#include <stdbool.h>
#include <string.h>

#include "util/text.h"
#include "util/units.h"

/* A file is not trusted: what is no text is "?". */
static const char *word_of(const json_t *cell, const char *name)
{
	const char *word = json_string_value(json_object_get(cell, name));

	return word ? word : "?";
}

static bool is_learned(const json_t *cell)
{
	return strcmp(word_of(cell, "why"), "measured") == 0 || strcmp(word_of(cell, "why"), "given") == 0;
}

/* The next class of sizes, with the same table and load? */
static bool is_next(const json_t *cell, const json_t *next)
{
	return is_learned(next) && strcmp(word_of(cell, "table"), word_of(next, "table")) == 0 &&
	       strcmp(word_of(cell, "load"), word_of(next, "load")) == 0;
}

static bool is_same(const json_t *cell, const json_t *next)
{
	return is_next(cell, next) && strcmp(word_of(cell, "scheme"), word_of(next, "scheme")) == 0 &&
	       strcmp(word_of(cell, "why"), word_of(next, "why")) == 0;
}

static void scheme_add(const json_t *cell, char *text, size_t size)
{
	const json_int_t most = json_integer_value(json_object_get(cell, "bytes"));
	char bytes[RG_UNIT_TEXT];

	rg_text_add(text, size, " %s", word_of(cell, "scheme"));
	if (most > 0)
		rg_text_add(text, size, " to %s", rg_format_size((uint64_t)most, bytes, sizeof(bytes)));
	else
		rg_text_add(text, size, " above");
	if (strcmp(word_of(cell, "why"), "given") == 0)
		rg_text_add(text, size, " (given)");
}

static void place_add(const char *place, const json_t *cells, char *text, size_t size)
{
	const json_t *cell, *before = NULL;
	size_t i;

	json_array_foreach(cells, i, cell) {
		const json_t *next = json_array_get(cells, i + 1);

		if (!is_learned(cell) || is_same(cell, next))
			continue;
		if (before && is_next(before, cell))
			rg_text_add(text, size, ",");
		else
			rg_text_add(text, size, "%s%s %s %s", *text ? "; " : "", place,
				    word_of(cell, "table"), word_of(cell, "load"));
		scheme_add(cell, text, size);
		before = cell;
	}
}

/* ---- Races of collectives --------------------------------------------------------------------- */

/* The next class of sizes, of the same collective and kind of communicator? */
static bool is_next_race(const json_t *race, const json_t *next)
{
	return is_learned(next) && strcmp(word_of(race, "collective"), word_of(next, "collective")) == 0 &&
	       strcmp(word_of(race, "over"), word_of(next, "over")) == 0 &&
	       strcmp(word_of(race, "places"), word_of(next, "places")) == 0 &&
	       json_integer_value(json_object_get(race, "ranks")) ==
	       json_integer_value(json_object_get(next, "ranks"));
}

static bool is_same_race(const json_t *race, const json_t *next)
{
	return is_next_race(race, next) &&
	       strcmp(word_of(race, "algorithm"), word_of(next, "algorithm")) == 0;
}

static void races_add(const json_t *races, char *text, size_t size)
{
	const json_t *race, *before = NULL;
	char bytes[RG_UNIT_TEXT];
	size_t i;

	json_array_foreach(races, i, race) {
		const json_int_t most = json_integer_value(json_object_get(race, "bytes"));

		if (!is_learned(race) || is_same_race(race, json_array_get(races, i + 1)))
			continue;
		if (before && is_next_race(before, race))
			rg_text_add(text, size, ",");
		else
			rg_text_add(text, size, "%s%s of %" JSON_INTEGER_FORMAT " ranks over %s",
				    *text ? "; " : "", word_of(race, "collective"),
				    json_integer_value(json_object_get(race, "ranks")), word_of(race, "over"));
		rg_text_add(text, size, " %s to %s", word_of(race, "algorithm"),
			    rg_format_size(most > 0 ? (uint64_t)most : 0, bytes, sizeof(bytes)));
		before = race;
	}
}

void learned_text(const json_t *end, char *text, size_t size)
{
	const json_t *rank = json_array_get(json_object_get(end, "learned"), 0);
	json_t *places = json_object_get(rank, "places"), *cells;
	const char *place;

	*text = '\0';
	if (json_integer_value(json_object_get(rank, "rank")))
		return;
	json_object_foreach(places, place, cells)
		place_add(place, cells, text, size);
	races_add(json_object_get(rank, "collectives"), text, size);
}

void learned_line(const json_t *end, int launches, FILE *out)
{
	char line[LEARNED_TEXT];

	learned_text(end, line, sizeof(line));
	if (*line)
		fprintf(out, "# learned%s: %s\n", launches > 1 ? " in the first launch" : "", line);
}
