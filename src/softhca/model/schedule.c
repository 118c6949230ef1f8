/* schedule.c - names of ports, and when ports go down and come back. */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softhca/model/schedule.h"
#include "util/units.h"

enum { ITEM_MAX = 64 };

/* ---- Names --------------------------------------------------------------- */

/* Up to four digits after `before`; the text that follows them, or NULL. */
static const char *number_after(const char *text, const char *before, uint32_t *value)
{
	size_t skip = strlen(before), digits;

	if (strncmp(text, before, skip) != 0)
		return NULL;
	digits = strspn(text + skip, "0123456789");
	if (digits < 1 || digits > 4)
		return NULL;
	*value = (uint32_t)strtoul(text + skip, NULL, 10);
	return text + skip + digits;
}

bool hca_port_name_parse(const char *text, struct hca_port_name *name)
{
	const char *at = number_after(text, "", &name->node);

	at = at ? number_after(at, "/soft", &name->hca) : NULL;
	at = at ? number_after(at, ":", &name->port) : NULL;
	return at && !*at;
}

char *hca_port_name_format(const struct hca_port_name *name, char *buf, size_t size)
{
	snprintf(buf, size, "%u/soft%u:%u", name->node % 10000, name->hca % 10000,
		 name->port % 10000);
	return buf;
}

/* ---- Schedules ----------------------------------------------------------- */

static const struct {
	const char *name;
	uint8_t event;
	bool moves;
} events[] = {
	{ "lid", IBV_EVENT_LID_CHANGE, false }, { "pkey", IBV_EVENT_PKEY_CHANGE, false },
	{ "sm", IBV_EVENT_SM_CHANGE, false }, { "gid", IBV_EVENT_GID_CHANGE, false },
	{ "client", IBV_EVENT_CLIENT_REREGISTER, false },
	{ "newlid", IBV_EVENT_LID_CHANGE, true }, { "newgid", IBV_EVENT_GID_CHANGE, true },
};

enum { EVENTS = sizeof(events) / sizeof(*events) };

static bool change_before(const struct hca_change *a, const struct hca_change *b)
{
	return a->when_ns != b->when_ns ? a->when_ns < b->when_ns : !a->up && b->up;
}

static int schedule_add(struct hca_schedule *s, const struct hca_change *c)
{
	uint32_t at;

	if (s->count == HCA_CHANGES_MAX)
		return -E2BIG;
	for (at = s->count++; at && change_before(c, &s->change[at - 1]); at--)
		s->change[at] = s->change[at - 1];
	s->change[at] = *c;
	return 0;
}

/* The text after "EVENT:"; NULL: no such event. */
static char *parse_event(char *item, struct hca_change *c)
{
	for (unsigned i = 0; i < EVENTS; i++) {
		size_t n = strlen(events[i].name);

		if (strncmp(item, events[i].name, n) == 0 && item[n] == ':') {
			c->event = events[i].event;
			c->moves = events[i].moves;
			return item + n + 1;
		}
	}
	return NULL;
}

static const char *event_name(const struct hca_change *c)
{
	for (unsigned i = 0; i < EVENTS; i++)
		if (events[i].event == c->event && events[i].moves == c->moves)
			return events[i].name;
	return "";
}

static int parse_one(char *item, enum hca_change_kind kind, struct hca_schedule *s)
{
	char *at = strchr(item, '@');
	struct hca_change c = { .up = kind == HCA_CHANGE_UP, .kind = (uint8_t)kind };

	if (kind == HCA_CHANGE_EVENT)
		item = parse_event(item, &c);
	if (!at || !item)
		return -EINVAL;
	*at++ = '\0';
	/* A year is for ever; beyond it sums would overflow. */
	if (!hca_port_name_parse(item, &c.at) || rg_parse_time(at, &c.when_ns) ||
	    c.when_ns > 31536000000000000ull)
		return -EINVAL;
	return schedule_add(s, &c);
}

int hca_schedule_parse(const char *text, enum hca_change_kind kind, struct hca_schedule *s)
{
	char item[ITEM_MAX];
	size_t n;
	int rc;

	for (;; text += n + 1) {
		n = strcspn(text, "+");
		if (n >= sizeof(item))
			return -EINVAL;
		memcpy(item, text, n);
		item[n] = '\0';
		rc = parse_one(item, kind, s);
		if (rc || !text[n])
			return rc;
	}
}

bool hca_schedule_format(const struct hca_schedule *s, enum hca_change_kind kind, char *buf,
			 size_t size)
{
	char port[HCA_PORT_NAME], when[RG_UNIT_TEXT];
	size_t used = 0;
	uint32_t i;
	int n;

	for (i = 0; i < s->count; i++) {
		const struct hca_change *c = &s->change[i];

		if (c->kind != kind)
			continue;
		n = snprintf(buf + used, size - used, "%s%s%s%s@%s", used ? "+" : "",
			     kind == HCA_CHANGE_EVENT ? event_name(c) : "",
			     kind == HCA_CHANGE_EVENT ? ":" : "",
			     hca_port_name_format(&c->at, port, sizeof(port)),
			     rg_format_time(c->when_ns, when, sizeof(when)));
		if (n < 0 || (size_t)n >= size - used)
			return false;
		used += (size_t)n;
	}
	if (!used)
		n = snprintf(buf, size, "none");
	return used || n < (int)size;
}
