/* opt.c - values of option rows: conversion from and to text, and range checks. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/err.h"
#include "util/opt.h"
#include "util/text.h"
#include "util/units.h"

/* ---- Numbers of any unit ---------------------------------------------------- */

static int number_parse(enum opt_type type, const char *text, uint64_t *value)
{
	switch (type) {
	case OPT_COUNT:
		return rg_parse_count(text, value);
	case OPT_TIME:
		return rg_parse_time(text, value);
	case OPT_RATE:
		return rg_parse_rate(text, value);
	default:
		return rg_parse_size(text, value);
	}
}

static char *number_format(enum opt_type type, uint64_t value, char *buf, size_t size)
{
	switch (type) {
	case OPT_COUNT:
		snprintf(buf, size, "%" PRIu64, value);
		return buf;
	case OPT_TIME:
		return rg_format_time(value, buf, size);
	case OPT_RATE:
		return rg_format_rate(value, buf, size);
	default:
		return rg_format_size(value, buf, size);
	}
}

static const char *number_noun(enum opt_type type)
{
	switch (type) {
	case OPT_COUNT:
		return "a whole number";
	case OPT_TIME:
		return "a time such as 2us";
	case OPT_RATE:
		return "a rate such as 1GB/s or 8Gb/s";
	default:
		return "a size such as 8K";
	}
}

/* ---- One setter per type: NULL, or what is wrong ----------------------------- */

static const char *number_check(const struct opt *row, const char *text, uint64_t *value)
{
	char with_unit[RG_UNIT_TEXT * 2];
	uint64_t v;
	int rc;

	if (row->bare && *text && !text[strspn(text, "0123456789.")] &&
	    strlen(text) + strlen(row->bare) < sizeof(with_unit)) {
		strcat(strcpy(with_unit, text), row->bare);
		text = with_unit;
	}
	rc = number_parse(row->type, text, &v);
	if (rc == -EINVAL)
		return *text ? "makes no sense" : "is empty";
	/* The largest number of all is OPT_SPECIAL. */
	if (rc || v == OPT_SPECIAL || v < row->min || (row->max && v > row->max))
		return "out of range";
	*value = v;
	return NULL;
}

static const char *set_number(const struct opt *row, const char *text, void *value)
{
	if (row->special && strcmp(text, row->special) == 0) {
		*(uint64_t *)value = OPT_SPECIAL;
		return NULL;
	}
	return number_check(row, text, value);
}

static const char *set_flag(const struct opt *row, const char *text, void *value)
{
	if (strcmp(text, "1") == 0 || strcmp(text, "yes") == 0)
		*(bool *)value = true;
	else if (strcmp(text, "0") == 0 || strcmp(text, "no") == 0)
		*(bool *)value = false;
	else
		return "makes no sense";
	return NULL;
}

static const char *set_sizes(const struct opt *row, const char *text, void *value)
{
	struct opt_range range = { 0, 0 }, standard = { row->min, row->max };
	const char *colon = strchr(text, ':'), *wrong = NULL;
	char first[RG_UNIT_TEXT * 2];

	if (!colon) {
		wrong = number_check(row, text, &range.min);
		range.max = range.min;
	} else if ((size_t)(colon - text) >= sizeof(first) || strcmp(text, ":") == 0) {
		wrong = "makes no sense";
	} else {
		/* A standard has both ends, so the recursion has one level. */
		if ((colon == text || !colon[1]) && row->standard && row->standard != text)
			set_sizes(row, row->standard, &standard);
		memcpy(first, text, (size_t)(colon - text));
		first[colon - text] = '\0';
		range = standard;
		if (*first)
			wrong = number_check(row, first, &range.min);
		if (!wrong && colon[1])
			wrong = number_check(row, colon + 1, &range.max);
	}
	if (!wrong && range.min > range.max)
		wrong = "the first size is larger than the last";
	if (!wrong)
		*(struct opt_range *)value = range;
	return wrong;
}

static const struct opt_choice *choice_find(const struct opt *row, const char *text, size_t length)
{
	for (const struct opt_choice *c = row->choices; c->name; c++)
		if (strlen(c->name) == length && strncmp(c->name, text, length) == 0)
			return c;
	return NULL;
}

static const char *set_choice(const struct opt *row, const char *text, void *value)
{
	const struct opt_choice *c = choice_find(row, text, strlen(text));

	if (!c)
		return *text ? "unknown" : "is empty";
	*(int *)value = c->value;
	return NULL;
}

/* The number of characters of the words with '=' that text begins with, commas between. */
static size_t settings_length(const char *text)
{
	size_t length = 0, word;

	for (;;) {
		word = strcspn(text + length, ",");
		if (!memchr(text + length, '=', word))
			return length ? length - 1 : 0;
		length += word;
		if (!text[length])
			return length;
		length++;
	}
}

/* Is the last item of a list there before? */
static bool list_repeats(const struct opt_list *list)
{
	const int last = list->count - 1;

	for (int i = 0; i < last; i++)
		if (list->item[i] == list->item[last] &&
		    list->settings[i].length == list->settings[last].length &&
		    !strncmp(list->settings[i].text, list->settings[last].text,
			     (size_t)list->settings[i].length))
			return true;
	return false;
}

static const char *set_choices(const struct opt *row, const char *text, void *value)
{
	struct opt_list list = { .count = 0 };

	for (;;) {
		size_t length = strcspn(text, ","), settings = 0;
		const struct opt_choice *c = choice_find(row, text, length);

		if (!c)
			return length ? "unknown item" : "empty item";
		if (list.count == OPT_LIST_MAX)
			return "too many items";
		text += length;
		if (*text && row->settings)
			settings = settings_length(text + 1);
		list.item[list.count] = c->value;
		list.settings[list.count].text = settings ? text + 1 : "";
		list.settings[list.count++].length = (int)settings;
		if (list_repeats(&list))
			return "the same item twice";
		text += settings ? settings + 1 : 0;
		if (!*text)
			break;
		text++;
	}
	*(struct opt_list *)value = list;
	return NULL;
}

static const char *set_texts(const char *text, void *value)
{
	struct opt_texts *texts = value;

	if (texts->count == OPT_LIST_MAX)
		return "one too many";
	texts->item[texts->count++] = text;
	return NULL;
}

static const char *set_value(const struct opt *row, const char *text, void *value)
{
	switch (row->type) {
	case OPT_FLAG:
		return set_flag(row, text, value);
	case OPT_SIZES:
		return set_sizes(row, text, value);
	case OPT_CHOICE:
		return set_choice(row, text, value);
	case OPT_CHOICES:
		return set_choices(row, text, value);
	case OPT_TEXT:
		*(const char **)value = text;
		return NULL;
	case OPT_TEXTS:
		return set_texts(text, value);
	default:
		return set_number(row, text, value);
	}
}

/* ---- Rows ---------------------------------------------------------------------- */

static bool row_is_in_use(const struct opt_table *t, const struct opt *row)
{
	const char *const *name = t->only;

	while (name && *name && strcmp(*name, row->name))
		name++;
	return !name || *name;
}

const struct opt *opt_next(const struct opt_table *t, const struct opt *row)
{
	row = row ? row + 1 : t->rows;
	while (row->name && !row_is_in_use(t, row))
		row++;
	return row->name ? row : NULL;
}

/* `label` is the user's text for it: "--threshold 0", "RAILGAUGE_THRESHOLD=0". */
static int row_set(const struct opt_table *t, const struct opt *row, const char *text,
		   enum opt_origin origin, const char *label, char *why, size_t why_size)
{
	char accepted[OPT_WHY_BYTES / 2] = "", reason[OPT_WHY_BYTES / 2] = "";
	const char *wrong = NULL;

	if ((row->type == OPT_TEXT || row->type == OPT_TEXTS) && row->check &&
	    row->check(text, reason, sizeof(reason)) != 0) {
		snprintf(why, why_size, "%s: %s", label, reason);
		return -EINVAL;
	}
	if (row->type == OPT_TEXTS && t->origin && t->origin[row - t->rows] != origin)
		OPT_VALUE(t, row, struct opt_texts).count = 0;
	wrong = set_value(row, text, (char *)t->values + row->offset);
	if (wrong) {
		opt_accepted(row, accepted, sizeof(accepted));
		snprintf(why, why_size, "%s: %s (accepted: %s)", label, wrong, accepted);
		return -EINVAL;
	}
	if (t->origin)
		t->origin[row - t->rows] = (unsigned char)origin;
	return 0;
}

static const size_t value_bytes[] = {
	[OPT_FLAG] = sizeof(bool), [OPT_COUNT] = sizeof(uint64_t),
	[OPT_SIZE] = sizeof(uint64_t), [OPT_SIZES] = sizeof(struct opt_range),
	[OPT_TIME] = sizeof(uint64_t), [OPT_RATE] = sizeof(uint64_t),
	[OPT_CHOICE] = sizeof(int), [OPT_CHOICES] = sizeof(struct opt_list),
	[OPT_TEXT] = sizeof(const char *), [OPT_TEXTS] = sizeof(struct opt_texts),
};

void *opt_values_alloc(const struct opt *rows)
{
	size_t bytes = 1;

	for (const struct opt *row = rows; row->name; row++)
		if (row->offset + value_bytes[row->type] > bytes)
			bytes = row->offset + value_bytes[row->type];
	return calloc(1, bytes);
}

int opt_defaults(const struct opt_table *t)
{
	opt_each(row, t) {
		char why[OPT_WHY_BYTES], label[64];

		memset((char *)t->values + row->offset, 0,
		       value_bytes[row->type]);
		if (t->origin)
			t->origin[row - t->rows] = OPT_FROM_DEFAULT;
		if (!row->standard)
			continue;
		snprintf(label, sizeof(label), "default of --%s", row->name);
		if (row_set(t, row, row->standard, OPT_FROM_DEFAULT, label, why, sizeof(why))) {
			rg_error("%s", why);
			return -EINVAL;
		}
	}
	return 0;
}

bool opt_is_named(const struct opt *row, const char *name)
{
	return strcmp(row->name, name) == 0 || (row->alias && strcmp(row->alias, name) == 0);
}

static char *variable_named(const char *name, char *buf, size_t size)
{
	snprintf(buf, size, "RAILGAUGE_%s", name);
	for (char *c = buf; *c; c++)
		*c = *c == '-' ? '_' : (char)toupper((unsigned char)*c);
	return buf;
}

char *opt_variable(const struct opt *row, char *buf, size_t size)
{
	return variable_named(row->name, buf, size);
}

/* The value of the row's variable, or of its alias's; `name` gets the variable's name. */
static const char *variable_value(const struct opt *row, char *name, size_t size)
{
	const char *text = getenv(opt_variable(row, name, size));

	return text || !row->alias ? text : getenv(variable_named(row->alias, name, size));
}

int opt_from_environment(const struct opt_table *t)
{
	int rc = opt_defaults(t);

	if (rc)
		return rc;
	opt_each(row, t) {
		char why[OPT_WHY_BYTES], name[64], label[192];
		const char *text = variable_value(row, name, sizeof(name));

		if (!text)
			continue;
		snprintf(label, sizeof(label), "%s=%s", name, text);
		if (row_set(t, row, text, OPT_FROM_ENVIRONMENT, label, why, sizeof(why))) {
			rg_error("%s", why);
			return -EINVAL;
		}
	}
	return 0;
}

int opt_set(const struct opt_table *t, const char *name, const char *text,
	    enum opt_origin origin, char *why, size_t why_size)
{
	opt_each(row, t) {
		char label[192];

		if (!opt_is_named(row, name))
			continue;
		snprintf(label, sizeof(label), "%s %s", name, text);
		return row_set(t, row, text, origin, label, why, why_size);
	}
	return -ENOENT;
}

/* ---- To text ------------------------------------------------------------------------ */

static const char *choice_name(const struct opt *row, int value)
{
	for (const struct opt_choice *c = row->choices; c->name; c++)
		if (c->value == value)
			return c->name;
	return "";
}

static void range_text(const struct opt *row, const struct opt_range *range, char *buf, size_t size)
{
	char min[RG_UNIT_TEXT], max[RG_UNIT_TEXT];

	snprintf(buf, size, "%s:%s", number_format(row->type, range->min, min, sizeof(min)),
		 number_format(row->type, range->max, max, sizeof(max)));
}

char *opt_text(const struct opt_table *t, const struct opt *row, char *buf, size_t size)
{
	const void *value = (const char *)t->values + row->offset;
	const struct opt_list *list = value;
	const struct opt_texts *texts = value;

	*buf = '\0';
	switch (row->type) {
	case OPT_FLAG:
		rg_text_add(buf, size, "%s", *(const bool *)value ? "yes" : "no");
		break;
	case OPT_SIZES:
		range_text(row, value, buf, size);
		break;
	case OPT_CHOICE:
		rg_text_add(buf, size, "%s", choice_name(row, *(const int *)value));
		break;
	case OPT_CHOICES:
		for (int i = 0; i < list->count; i++)
			rg_text_add(buf, size, "%s%s%s%.*s", i ? "," : "", choice_name(row, list->item[i]),
				    list->settings[i].length ? "," : "", list->settings[i].length,
				    list->settings[i].text);
		break;
	case OPT_TEXT:
		if (*(const char *const *)value)
			rg_text_add(buf, size, "%s", *(const char *const *)value);
		break;
	case OPT_TEXTS:
		for (int i = 0; i < texts->count; i++)
			rg_text_add(buf, size, "%s%s", i ? " " : "", texts->item[i]);
		break;
	default:
		if (row->special && *(const uint64_t *)value == OPT_SPECIAL)
			rg_text_add(buf, size, "%s", row->special);
		else
			number_format(row->type, *(const uint64_t *)value, buf, size);
	}
	return buf;
}

uint64_t opt_digest(const char *text)
{
	uint64_t digest = 0xcbf29ce484222325u;

	for (; *text; text++)
		digest = (digest ^ (unsigned char)*text) * 0x100000001b3u;
	return digest;
}

static void accepted_number(const struct opt *row, char *buf, size_t size)
{
	char min[RG_UNIT_TEXT], max[RG_UNIT_TEXT];

	number_format(row->type, row->min, min, sizeof(min));
	number_format(row->type, row->max, max, sizeof(max));
	if (row->type == OPT_SIZES)
		rg_text_add(buf, size, "MIN:MAX or one size");
	if (row->type == OPT_SIZES && row->max)
		rg_text_add(buf, size, ", ");
	if (row->max)
		rg_text_add(buf, size, "%s to %s", min, max);
	else if (row->type != OPT_SIZES)
		rg_text_add(buf, size, "%s", number_noun(row->type));
	if (!row->max && row->min)
		rg_text_add(buf, size, ", %s or more", min);
	if (row->special)
		rg_text_add(buf, size, ", or %s", row->special);
}

static const char *choice_shown(const struct opt_choice *c)
{
	return c->shown ? c->shown : c->name;
}

/* "a, b or c"; "a, b, c". */
static void accepted_choices(const struct opt *row, const char *last, char *buf, size_t size)
{
	int left = 0;

	for (const struct opt_choice *c = row->choices; c->name; c++)
		left += *choice_shown(c) != '\0';
	for (const struct opt_choice *c = row->choices; c->name; c++)
		if (*choice_shown(c)) {
			left--;
			rg_text_add(buf, size, "%s%s", choice_shown(c),
				 left == 0 ? "" : left == 1 ? last : ", ");
		}
}

int opt_check_path(const char *text, char *why, size_t why_size)
{
	if (*text)
		return 0;
	snprintf(why, why_size, "is empty (accepted: name of a file)");
	return -EINVAL;
}

char *opt_accepted(const struct opt *row, char *buf, size_t size)
{
	*buf = '\0';
	switch (row->type) {
	case OPT_FLAG:
		rg_text_add(buf, size, "1, 0, yes or no");
		break;
	case OPT_CHOICE:
		accepted_choices(row, " or ", buf, size);
		break;
	case OPT_CHOICES:
		rg_text_add(buf, size, "a list of ");
		accepted_choices(row, ", ", buf, size);
		if (row->settings)
			rg_text_add(buf, size, ", each with ,NAME=VALUE if wanted");
		break;
	case OPT_TEXT:
		break;
	case OPT_TEXTS:
		rg_text_add(buf, size, "up to %d times", OPT_LIST_MAX);
		break;
	default:
		accepted_number(row, buf, size);
	}
	return buf;
}
