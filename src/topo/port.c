/*
 * port.c - ports as described in a file: infos of the adapter's object.
 *
 * hwloc writes PortNState ("4", the number used by verbs), PortNLID and PortNGIDi; topo_save
 * adds PortNKind, LinkLayer, Rate, MTU, GID, GIDType, GIDIndex, Rail and FirmwareVersion.
 */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <hwloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/topo.h"
#include "util/err.h"
#include "util/units.h"

/* Names in the order of the verbs' numbers. */
static const char *const states[] = {
	"", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER",
};
enum { STATES = sizeof(states) / sizeof(states[0]), PORT_NUMBER_MAX = 254 };

/* ---- Parsers of a value; false: invalid ------------------------- */

static bool whole(const char *text, unsigned long max, unsigned long *value)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*value = strtoul(text, &end, 0);
	return !errno && !*end && *value <= max;
}

static bool parse_state(const char *text, struct topo_port *p)
{
	unsigned long n;

	if (!whole(text, STATES - 1, &n))
		return false;
	snprintf(p->state, sizeof(p->state), "%s", states[n]);
	return true;
}

static bool parse_lid(const char *text, struct topo_port *p)
{
	unsigned long n;

	if (!whole(text, 0xffff, &n))
		return false;
	p->lid = (int)n;
	return true;
}

static bool parse_rate(const char *text, struct topo_port *p)
{
	p->rate_known = rg_parse_rate(text, &p->rate_bytes_per_s) == 0;
	return p->rate_known;
}

static bool parse_mtu(const char *text, struct topo_port *p)
{
	unsigned long n;

	if (!whole(text, 65536, &n) || !n)
		return false;
	p->mtu_bytes = (uint32_t)n;
	return true;
}

static bool parse_index(const char *text, struct topo_port *p)
{
	unsigned long n;

	if (!whole(text, 65535, &n))
		return false;
	p->gid_index = (int)n;
	return true;
}

static bool parse_rail(const char *text, struct topo_port *p)
{
	unsigned long n;

	if (!whole(text, TOPO_RAILS_MAX - 1, &n))
		return false;
	p->rail = (int)n;
	return true;
}

static bool parse_gid(const char *text, struct topo_port *p)
{
	struct in6_addr gid;

	if (inet_pton(AF_INET6, text, &gid) != 1)
		return false;
	inet_ntop(AF_INET6, &gid, p->gid, sizeof(p->gid));
	p->gid_link_local = gid.s6_addr[0] == 0xfe && (gid.s6_addr[1] & 0xc0) == 0x80;
	return true;
}

/* Only listed words, so that no other text gets into a table. */
static bool parse_word(const char *text, const char *const *words, char *out, size_t size)
{
	for (; *words; words++)
		if (!strcmp(text, *words)) {
			snprintf(out, size, "%s", text);
			return true;
		}
	return false;
}

static bool parse_kind(const char *text, struct topo_port *p)
{
	static const char *const words[] = { "hardware", "kernel software", "software HCA",
					     "software HCA over TCP", NULL };

	return parse_word(text, words, p->kind, sizeof(p->kind));
}

static bool parse_layer(const char *text, struct topo_port *p)
{
	static const char *const words[] = { "InfiniBand", "Ethernet", NULL };

	return parse_word(text, words, p->link_layer, sizeof(p->link_layer));
}

static bool parse_type(const char *text, struct topo_port *p)
{
	static const char *const words[] = { "IB", "RoCE v1", "RoCE v2", "iWARP", NULL };

	return parse_word(text, words, p->gid_type, sizeof(p->gid_type));
}

/* ---- Infos -------------------------------------------------------------- */

static const struct info {
	const char *name;		/* after "PortN" */
	bool (*parse)(const char *text, struct topo_port *p);
} infos[] = {
	{ "State", parse_state },	{ "LID", parse_lid },		{ "Rate", parse_rate },
	{ "MTU", parse_mtu },		{ "GID", parse_gid },		{ "GIDType", parse_type },
	{ "GIDIndex", parse_index },	{ "Kind", parse_kind },		{ "LinkLayer", parse_layer },
	{ "Rail", parse_rail },
	{ NULL, NULL },
};

/* "Port2State" -> 2, and *rest is "State"; 0: no such name. */
static unsigned port_number(const char *name, const char **rest)
{
	unsigned number;
	int n = 0;

	if (strncmp(name, "Port", 4) || name[4] < '1' || name[4] > '9' ||
	    sscanf(name + 4, "%3u%n", &number, &n) != 1 || number > PORT_NUMBER_MAX)
		return 0;
	*rest = name + 4 + n;
	return number;
}

static struct topo_port *port_at(struct topo_port *ports, int *count, unsigned number)
{
	int at = 0;

	while (at < *count && ports[at].number < number)
		at++;
	if (at < *count && ports[at].number == number)
		return &ports[at];
	if (*count == TOPO_PORTS_MAX)
		return NULL;
	memmove(&ports[at + 1], &ports[at], (size_t)(*count - at) * sizeof(*ports));
	ports[at] = (struct topo_port){ .number = number, .gid_index = -1, .lid = -1,
					  .rail = -1 };
	(*count)++;
	return &ports[at];
}

/* Is the text of the file safe for a terminal? */
static bool is_printable(const char *text)
{
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			return false;
	return true;
}

static void info_take(const char *adapter, const struct hwloc_info_s *pair,
		      struct topo_port *ports, int *count)
{
	const char *rest;
	unsigned number = port_number(pair->name, &rest);
	struct topo_port *p;

	for (const struct info *i = infos; i->name && number; i++) {
		if (strcmp(rest, i->name))
			continue;
		p = port_at(ports, count, number);
		if (p && !i->parse(pair->value, p))
			rg_warn("%s: %s '%.40s' makes no sense and counts as unknown",
				adapter, pair->name, is_printable(pair->value) ? pair->value : "?");
	}
}

/* Take the GID of a port that has a single one; among several the type decides. */
static void gid_take(hwloc_obj_t obj, struct topo_port *p)
{
	const char *only = NULL;
	unsigned found = 0;
	char prefix[24];

	snprintf(prefix, sizeof(prefix), "Port%uGID", p->number);
	for (unsigned i = 0; i < obj->infos_count; i++) {
		const char *name = obj->infos[i].name;

		if (strncmp(name, prefix, strlen(prefix)) || name[strlen(prefix)] < '0' ||
		    name[strlen(prefix)] > '9')
			continue;
		found++;
		only = obj->infos[i].value;
	}
	if (found == 1 && !parse_gid(only, p))
		rg_warn("%s: %s makes no sense and counts as unknown", obj->name, prefix);
}

int topo_ports(const struct topo *t, int adapter, struct topo_port out[TOPO_PORTS_MAX])
{
	const struct topo_spot *s = &t->adapter[adapter];
	hwloc_obj_t obj = s->object;
	const char *firmware = hwloc_obj_get_info_by_name(obj, "FirmwareVersion");
	int count = 0;

	for (unsigned i = 0; i < obj->infos_count; i++)
		info_take(s->name, &obj->infos[i], out, &count);
	for (int i = 0; i < count; i++) {
		if (firmware && is_printable(firmware))
			snprintf(out[i].firmware, sizeof(out[i].firmware), "%s", firmware);
		if (!*out[i].gid)
			gid_take(obj, &out[i]);
	}
	return count;
}

/* ---- Saving ------------------------------------------------------------- */

static int port_info_add(hwloc_obj_t obj, unsigned port, const char *name, const char *text)
{
	char full[48];

	if (!*text)
		return 0;
	if (port)
		snprintf(full, sizeof(full), "Port%u%s", port, name);
	else
		snprintf(full, sizeof(full), "%s", name);
	/* hwloc has its own infos of states and LIDs. */
	if (hwloc_obj_get_info_by_name(obj, full))
		return 0;
	return hwloc_obj_add_info(obj, full, text) ? -ENOMEM : 0;
}

static int note_number(hwloc_obj_t obj, unsigned port, const char *name, long value)
{
	char text[24];

	snprintf(text, sizeof(text), "%ld", value);
	return port_info_add(obj, port, name, text);
}

static int state_number(const char *state)
{
	for (int i = 1; i < STATES; i++)
		if (!strcmp(states[i], state))
			return i;
	return 0;
}

static hwloc_obj_t object_of(const struct topo *t, const char *device)
{
	struct topo_spot spot;

	return topo_find(t, device, &spot) && !strcmp(spot.object->name, device) ? spot.object :
										   NULL;
}

bool topo_is_saved(const struct topo *t, const char *device)
{
	return object_of(t, device) != NULL;
}

int topo_port_note(struct topo *t, const char *device, const struct topo_port *p)
{
	hwloc_obj_t obj = object_of(t, device);
	char rate[RG_UNIT_TEXT] = "";
	int rc = 0;

	if (!obj)
		return -ENODEV;
	if (p->rate_known)
		rg_format_rate(p->rate_bytes_per_s, rate, sizeof(rate));
	rc |= note_number(obj, p->number, "State", state_number(p->state));
	rc |= port_info_add(obj, p->number, "Rate", rate);
	rc |= port_info_add(obj, p->number, "Kind", p->kind);
	rc |= port_info_add(obj, p->number, "LinkLayer", p->link_layer);
	rc |= port_info_add(obj, p->number, "GID", p->gid);
	rc |= port_info_add(obj, p->number, "GIDType", p->gid_type);
	rc |= port_info_add(obj, 0, "FirmwareVersion", p->firmware);
	if (p->lid >= 0)
		rc |= note_number(obj, p->number, "LID", p->lid);
	if (p->gid_index >= 0)
		rc |= note_number(obj, p->number, "GIDIndex", p->gid_index);
	if (p->rail >= 0)
		rc |= note_number(obj, p->number, "Rail", p->rail);
	if (p->mtu_bytes)
		rc |= note_number(obj, p->number, "MTU", (long)p->mtu_bytes);
	if (rc)
		rg_error("no memory for the values of %s", device);
	return rc ? -ENOMEM : 0;
}
