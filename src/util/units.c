/* units.c - exact conversion of numbers with units. */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "util/units.h"

struct unit {
	const char *name;
	uint64_t factor;
};

/* Ascending; the spellings that rg_format_* chooses from. */
static const struct unit size_units[] = {
	{ "", 1 }, { "K", 1ull << 10 }, { "M", 1ull << 20 },
	{ "G", 1ull << 30 }, { "T", 1ull << 40 }, { NULL, 0 },
};
static const struct unit rate_units[] = {
	{ "B/s", 1 }, { "kb/s", 125 }, { "kB/s", 1000 }, { "Mb/s", 125000 },
	{ "MB/s", 1000000 }, { "Gb/s", 125000000 }, { "GB/s", 1000000000 }, { NULL, 0 },
};
static const struct unit byte_rate_units[] = {
	{ "B/s", 1 }, { "kB/s", 1000 }, { "MB/s", 1000000 }, { "GB/s", 1000000000 }, { NULL, 0 },
};
static const struct unit time_units[] = {
	{ "ns", 1 }, { "us", 1000 }, { "ms", 1000000 }, { "s", 1000000000 }, { NULL, 0 },
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* "12.50" -> whole 12, fraction 5, scale 10; trailing zeros cost no precision. */
struct decimal {
	uint64_t whole;
	uint64_t fraction, scale;
};

static int decimal_parse(const char **text, struct decimal *out)
{
	struct decimal d = { .whole = 0, .fraction = 0, .scale = 1 };
	const char *at = *text;
	int zeros = 0;

	if (!is_digit(*at))
		return -EINVAL;
	for (; is_digit(*at); at++)
		if (__builtin_mul_overflow(d.whole, 10u, &d.whole) ||
		    __builtin_add_overflow(d.whole, (uint64_t)(*at - '0'), &d.whole))
			return -ERANGE;
	if (*at == '.') {
		if (!is_digit(*++at))
			return -EINVAL;
		for (; is_digit(*at); at++) {
			if (*at == '0') {
				zeros++;
				continue;
			}
			for (zeros++; zeros; zeros--) {
				if (d.scale >= 1000000000000000000u)
					return -EINVAL;	/* finer than any unit */
				d.fraction *= 10;
				d.scale *= 10;
			}
			d.fraction += (uint64_t)(*at - '0');
		}
	}
	*text = at;
	*out = d;
	return 0;
}

/* d units of `factor`, if that is a whole number. */
static int decimal_scale(const struct decimal *d, uint64_t factor, uint64_t *value)
{
	unsigned __int128 part = (unsigned __int128)d->fraction * factor;
	uint64_t result;

	if (part % d->scale)
		return -EINVAL;
	if (__builtin_mul_overflow(d->whole, factor, &result) ||
	    __builtin_add_overflow(result, (uint64_t)(part / d->scale), &result))
		return -ERANGE;
	*value = result;
	return 0;
}

static const struct unit *unit_find(const struct unit *units, const char *name)
{
	for (; units->name; units++)
		if (strcmp(units->name, name) == 0)
			return units;
	return NULL;
}

static int parse_with_unit(const char *text, const struct unit *units, uint64_t *value)
{
	const struct unit *unit;
	struct decimal d;
	int rc = decimal_parse(&text, &d);

	if (rc)
		return rc;
	if (!*text && d.whole == 0 && d.fraction == 0)
		unit = units;
	else
		unit = unit_find(units, text);
	return unit ? decimal_scale(&d, unit->factor, value) : -EINVAL;
}

int rg_parse_count(const char *text, uint64_t *value)
{
	struct decimal d;
	int rc;

	if (strchr(text, '.'))
		return -EINVAL;
	rc = decimal_parse(&text, &d);
	if (rc)
		return rc;
	if (*text)
		return -EINVAL;
	*value = d.whole;
	return 0;
}

int rg_parse_size(const char *text, uint64_t *bytes)
{
	const struct unit *unit = size_units;
	struct decimal d;
	int rc = decimal_parse(&text, &d);

	if (rc)
		return rc;
	for (const struct unit *u = size_units + 1; u->name; u++)
		if (strncasecmp(text, u->name, 1) == 0)
			unit = u;
	if (unit != size_units) {
		text++;
		if (text[0] == 'i' && text[1] == 'B')
			text++;
	}
	if (*text == 'B')
		text++;
	return *text ? -EINVAL : decimal_scale(&d, unit->factor, bytes);
}

int rg_parse_rate(const char *text, uint64_t *bytes_per_s)
{
	return parse_with_unit(text, rate_units, bytes_per_s);
}

int rg_parse_time(const char *text, uint64_t *ns)
{
	return parse_with_unit(text, time_units, ns);
}

/* value / factor as an exact decimal of at most 9 places; false: it has more. */
static bool decimal_format(uint64_t value, uint64_t factor, char *buf, size_t size)
{
	unsigned __int128 rest = value % factor;
	char digits[10] = "";
	int places = 0;

	for (; rest && places < 9; places++) {
		rest *= 10;
		digits[places] = (char)('0' + (int)(rest / factor));
		rest %= factor;
	}
	if (rest)
		return false;
	digits[places] = '\0';
	snprintf(buf, size, "%" PRIu64 "%s%s", value / factor, places ? "." : "", digits);
	return true;
}

static char *format_with_unit(uint64_t value, const struct unit *units, char *buf, size_t size)
{
	char best[RG_UNIT_TEXT + 8] = "";

	for (const struct unit *u = units; u->name; u++) {
		char number[RG_UNIT_TEXT], text[RG_UNIT_TEXT + 8];

		if (u != units && value < u->factor)
			break;
		if (!decimal_format(value, u->factor, number, sizeof(number)))
			continue;
		snprintf(text, sizeof(text), "%s%s", number, u->name);
		/* A whole number wins at equal length: "1536", not "1.5K". */
		if (!*best || strlen(text) < strlen(best) ||
		    (strlen(text) == strlen(best) && !strchr(text, '.')))
			memcpy(best, text, sizeof(best));
	}
	snprintf(buf, size, "%s", best);
	return buf;
}

char *rg_format_size(uint64_t bytes, char *buf, size_t size)
{
	return format_with_unit(bytes, size_units, buf, size);
}

char *rg_format_rate(uint64_t bytes_per_s, char *buf, size_t size)
{
	return format_with_unit(bytes_per_s, byte_rate_units, buf, size);
}

char *rg_format_time(uint64_t ns, char *buf, size_t size)
{
	return format_with_unit(ns, time_units, buf, size);
}
