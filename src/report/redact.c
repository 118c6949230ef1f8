/* redact.c - placeholders in place of names of hosts and users and of paths. */
#include "config.h"

#include <ctype.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report/redact.h"
#include "report/report.h"

enum { PLACEHOLDER = 24, KIND = 8 };

struct redact_entry {
	char *name;
	char kind[KIND];
	char placeholder[PLACEHOLDER];
};

struct redact {
	struct redact_entry *entry;
	size_t count, room;
};

struct redact *redact_new(void)
{
	return calloc(1, sizeof(struct redact));
}

void redact_free(struct redact *r)
{
	for (size_t i = 0; r && i < r->count; i++)
		free(r->entry[i].name);
	if (r)
		free(r->entry);
	free(r);
}

/* ---- Names ---------------------------------------------------------------------- */

static const char *entry_add(struct redact *r, const char *kind, const char *name, size_t length,
			     const char *placeholder)
{
	struct redact_entry *e;

	if (r->count == r->room) {
		size_t more = r->room ? 2 * r->room : 16;

		e = reallocarray(r->entry, more, sizeof(*e));
		if (!e)
			return "-";
		r->entry = e;
		r->room = more;
	}
	e = &r->entry[r->count];
	e->name = strndup(name, length);
	if (!e->name)
		return "-";
	snprintf(e->kind, sizeof(e->kind), "%s", kind);
	snprintf(e->placeholder, sizeof(e->placeholder), "%s", placeholder);
	return r->entry[r->count++].placeholder;
}

/* The number of different placeholders of a kind. */
static int kind_count(const struct redact *r, const char *kind)
{
	int most = 0;

	for (size_t i = 0; i < r->count; i++) {
		const char *number = r->entry[i].placeholder;

		number += strcspn(number, "0123456789");
		if (strcmp(r->entry[i].kind, kind) == 0 && atoi(number) > most)
			most = atoi(number);
	}
	return most;
}

static const char *name_find(const struct redact *r, const char *kind, const char *name,
			     size_t length)
{
	for (size_t i = 0; i < r->count; i++)
		if (strcmp(r->entry[i].kind, kind) == 0 && strlen(r->entry[i].name) == length &&
		    strncmp(r->entry[i].name, name, length) == 0)
			return r->entry[i].placeholder;
	return NULL;
}

static const char *name_take(struct redact *r, const char *kind, const char *name, size_t length)
{
	char placeholder[PLACEHOLDER];
	const char *known = name_find(r, kind, name, length);

	if (known)
		return known;
	snprintf(placeholder, sizeof(placeholder), "%s%d", kind, kind_count(r, kind) + 1);
	return entry_add(r, kind, name, length, placeholder);
}

const char *redact_name(struct redact *r, const char *kind, const char *name)
{
	size_t length = strlen(name), head = strcspn(name, ".");
	char placeholder[PLACEHOLDER];

	if (!length || name_find(r, kind, name, length))
		return length ? name_find(r, kind, name, length) : name;
	snprintf(placeholder, sizeof(placeholder), "%s", name_take(r, kind, name, length));
	if (strcmp(kind, "host") == 0 && head && head < length && !isdigit((unsigned char)*name))
		entry_add(r, kind, name, head, placeholder);
	return name_take(r, kind, name, length);
}

void redact_user(struct redact *r)
{
	const struct passwd *p = getpwuid(geteuid());
	const char *const names[] = { p ? p->pw_name : NULL, getenv("USER"), getenv("LOGNAME") };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i] && *names[i] && strcmp(names[i], "root"))
			redact_name(r, "user", names[i]);
}

/* ---- Text ----------------------------------------------------------------------- */

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '-';
}

/* Does text at `at` begin with a whole word `name`?  A dot belongs to a word if more follows. */
static bool word_is(const char *text, const char *at, const char *name)
{
	size_t length = strlen(name);
	const char *end = at + length;

	return strncmp(at, name, length) == 0 && !is_word(*end) &&
	       !(*end == '.' && is_word(end[1])) &&
	       (at == text || (!is_word(at[-1]) && !(at[-1] == '.' && at > text + 1 &&
						    is_word(at[-2]))));
}

/* The length of a path at `at`: /x, ./x, ../x, ~/x; 0: none. */
static size_t path_length(const char *text, const char *at)
{
	size_t skip = strncmp(at, "../", 3) == 0 ? 2 : strncmp(at, "./", 2) == 0 ||
		      strncmp(at, "~/", 2) == 0 ? 1 : 0;

	if (at[skip] != '/' || !(isalnum((unsigned char)at[skip + 1]) ||
				 (at[skip + 1] && strchr("_.~", at[skip + 1]))))
		return 0;
	if (at > text && !strchr(" \t=:,;'\"(@[", at[-1]))
		return 0;
	return strcspn(at, " \t:,;'\")]");
}

static const struct redact_entry *entry_at(const struct redact *r, const char *text, const char *at)
{
	const struct redact_entry *best = NULL;

	for (size_t i = 0; i < r->count; i++)
		if (word_is(text, at, r->entry[i].name) &&
		    (!best || strlen(r->entry[i].name) > strlen(best->name)))
			best = &r->entry[i];
	return best;
}

static json_t *text_redact(struct redact *r, const char *text)
{
	size_t bytes = 0;
	char *out = NULL;
	FILE *to = open_memstream(&out, &bytes);
	json_t *string;

	if (!to)
		return json_string("-");
	for (const char *at = text; *at; ) {
		const struct redact_entry *e = entry_at(r, text, at);
		size_t length = e ? strlen(e->name) : path_length(text, at);

		if (e)
			fputs(e->placeholder, to);
		else if (length)
			fputs(name_take(r, "/path", at, length), to);
		else
			fputc(*at, to);
		at += length ? length : 1;
	}
	fclose(to);
	string = json_string(out ? out : "-");
	free(out);
	return string;
}

/* ---- Records -------------------------------------------------------------------- */

/* Members whose text is the format's own. */
static bool is_fixed(const char *member)
{
	static const char *const names[] = { "type", "program", "title", "metric", "unit", "way",
					     "ways", "foreign_ways", "quantity", "from", "utc" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(names[i], member) == 0)
			return true;
	return false;
}

static json_t *value_redact(struct redact *r, json_t *value)
{
	const char *name;
	json_t *item, *copy;
	size_t i;

	if (json_is_string(value))
		return text_redact(r, json_string_value(value));
	if (json_is_array(value)) {
		copy = json_array();
		json_array_foreach(value, i, item)
			json_array_append_new(copy, value_redact(r, item));
		return copy;
	}
	if (!json_is_object(value))
		return json_incref(value);
	copy = json_object();
	json_object_foreach(value, name, item) {
		/* "node[1-4]": names of hosts, but none of them as a word. */
		bool list = strcasestr(name, "nodelist") && json_is_string(item);

		json_object_set_new(copy, name, list ? json_string("hosts") : is_fixed(name) ?
				    json_incref(item) : value_redact(r, item));
	}
	return copy;
}

json_t *redact_record(struct redact *r, json_t *record)
{
	return r ? value_redact(r, record) : json_incref(record);
}
