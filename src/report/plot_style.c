/*
 * plot_style.c - colour and symbol of a way, by its name.
 *
 * The colours are Okabe and Ito's: all readers can distinguish them, in grey by the symbols.
 */
#include <stdint.h>
#include <string.h>

#include "report/plot_style.h"

#define BLACK "#000000"
#define ORANGE "#e69f00"
#define SKY "#56b4e9"
#define GREEN "#009e73"
#define BLUE "#0072b2"
#define VERMILLION "#d55e00"
#define PURPLE "#cc79a7"

/* Symbols come in pairs, hollow and filled. */
enum { SQUARE = 4, CIRCLE = 6, UP = 8, DOWN = 10, DIAMOND = 12, PENTAGON = 14, SHAPES = 6 };

static const struct { const char *name, *colour; int shape; } known[] = {
	{ "native", BLACK, CIRCLE }, { "single", VERMILLION, SQUARE }, { "bind", BLUE, UP },
	{ "stripe", GREEN, DOWN }, { "weighted", PURPLE, DIAMOND }, { "pull", ORANGE, PENTAGON },
	{ "single:0", SKY, SQUARE }, { "single:1", ORANGE, DIAMOND },
	{ "single:2", PURPLE, UP }, { "single:3", BLUE, DOWN },
	{ "memory", BLUE, CIRCLE }, { "cq", VERMILLION, UP }, { "event", GREEN, SQUARE },
};
static const char *const palette[] = { SKY, ORANGE, PURPLE, BLUE, VERMILLION, GREEN, BLACK };
enum { COLOURS = sizeof(palette) / sizeof(palette[0]) };

/* FNV-1a: a way without a row of the table has the same colour in all versions. */
static uint32_t name_hash(const char *name)
{
	uint32_t hash = 2166136261u;

	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * 16777619u;
	return hash;
}

static struct plot_style style_of_name(const char *name)
{
	uint32_t hash = name_hash(name);
	struct plot_style style = { .colour = palette[hash % COLOURS], .dash = 1,
				    .hollow = SQUARE + 2 * (int)(hash / COLOURS % SHAPES) };

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strcmp(known[i].name, name) == 0) {
			style.colour = known[i].colour;
			style.hollow = known[i].shape;
		}
	return style;
}

struct plot_style plot_style_of(const char *const ways[], int way)
{
	struct plot_style style = style_of_name(ways[way]);
	int alike = 0;

	for (int earlier = 0; earlier < way; earlier++)
		alike += strcmp(style_of_name(ways[earlier]).colour, style.colour) == 0;
	if (alike) {
		style.hollow = SQUARE + (style.hollow - SQUARE + 2 * alike) % (2 * SHAPES);
		style.dash = 3 + (alike - 1) % 3;
	}
	style.filled = style.hollow + 1;
	return style;
}
