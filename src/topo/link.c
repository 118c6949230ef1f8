/* link.c - PCIe links: their speed, and the links on the path of a device's data. */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/link.h"
#include "topo/list.h"

/* Infos of PCI functions and bridges in a file of topo_save: "16.0 GT/s x16". */
#define INFO_LINK "PCIeLink"
#define INFO_LINK_MAX "PCIeLinkMax"

uint64_t topo_link_bytes(unsigned mt_per_s, unsigned lanes)
{
	uint64_t bits = (uint64_t)mt_per_s * 1000000 * lanes;

	if (mt_per_s <= 5000)
		return bits * 8 / 10 / 8;
	if (mt_per_s <= 32000)
		return bits * 128 / 130 / 8;
	return bits * 242 / 256 / 8;
}

/* The rates that PCIe 1 to 7 define. */
static bool speed_is_known(unsigned mt_per_s)
{
	static const unsigned speeds[] = { 2500, 5000, 8000, 16000, 32000, 64000, 128000 };

	for (size_t i = 0; i < sizeof(speeds) / sizeof(speeds[0]); i++)
		if (speeds[i] == mt_per_s)
			return true;
	return false;
}

static bool lanes_are_known(unsigned lanes)
{
	return lanes >= 1 && lanes <= 32;
}

/* Parse "16.0 GT/s PCIe" or "2.5 GT/s" with at most tenths; 0: another text. */
static unsigned speed_parse(const char *text, const char **end)
{
	unsigned whole, tenth = 0, mt;
	int n = 0;

	*end = text;
	if (sscanf(text, "%3u%n", &whole, &n) != 1)
		return 0;
	text += n;
	if (*text == '.') {
		if (sscanf(text, ".%1u%n", &tenth, &n) != 1)
			return 0;
		text += n;
	}
	if (strncmp(text, " GT/s", 5))
		return 0;
	*end = text + 5;
	mt = whole * 1000 + tenth * 100;
	return speed_is_known(mt) ? mt : 0;
}

/* ---- sysfs -------------------------------------------------------------- */

static bool file_line(const char *dir, const char *name, char *line, int size)
{
	char path[PATH_MAX];
	FILE *f;
	bool ok;

	if (snprintf(path, sizeof(path), "%s/%s", dir, name) >= (int)sizeof(path))
		return false;
	f = fopen(path, "re");
	if (!f)
		return false;
	ok = fgets(line, size, f) != NULL;
	fclose(f);
	return ok;
}

static unsigned file_speed(const char *dir, const char *name)
{
	char line[64];
	const char *end;

	return file_line(dir, name, line, sizeof(line)) ? speed_parse(line, &end) : 0;
}

/* 255 is the value of a link that is down, or of a virtual function. */
static unsigned file_lanes(const char *dir, const char *name)
{
	char line[64];
	unsigned lanes;

	if (!file_line(dir, name, line, sizeof(line)) || sscanf(line, "%3u", &lanes) != 1)
		return 0;
	return lanes_are_known(lanes) ? lanes : 0;
}

/* Set both values or none. */
static void link_set(unsigned mt, unsigned lanes, unsigned *mt_out, unsigned *lanes_out,
		     uint64_t *bytes)
{
	if (!mt || !lanes)
		return;
	*mt_out = mt;
	*lanes_out = lanes;
	*bytes = topo_link_bytes(mt, lanes);
}

void topo_link_read(const char *dir, struct topo_link *link)
{
	link_set(file_speed(dir, "current_link_speed"), file_lanes(dir, "current_link_width"),
		 &link->mt_per_s, &link->lanes, &link->bytes_per_s);
	link_set(file_speed(dir, "max_link_speed"), file_lanes(dir, "max_link_width"),
		 &link->max_mt_per_s, &link->max_lanes, &link->max_bytes_per_s);
}

/* A virtual function knows nothing of its link; the physical one does. */
static void link_ask_sysfs(hwloc_obj_t obj, struct topo_link *link)
{
	char pci[TOPO_PCI_BYTES], dir[96];

	topo_pci_text(obj, pci);
	snprintf(dir, sizeof(dir), "/sys/bus/pci/devices/%s/physfn", pci);
	topo_link_read(dir, link);
	if (!link->bytes_per_s) {
		snprintf(dir, sizeof(dir), "/sys/bus/pci/devices/%s", pci);
		topo_link_read(dir, link);
	}
}

/* ---- Files -------------------------------------------------------------- */

static void info_parse(hwloc_obj_t obj, const char *name, unsigned *mt, unsigned *lanes,
		       uint64_t *bytes)
{
	const char *text = hwloc_obj_get_info_by_name(obj, name), *end;
	unsigned speed, width;
	int n = 0;

	if (!text)
		return;
	speed = speed_parse(text, &end);
	if (speed && sscanf(end, " x%2u%n", &width, &n) == 1 && !end[n] && lanes_are_known(width))
		link_set(speed, width, mt, lanes, bytes);
}

static void link_ask_file(hwloc_obj_t obj, struct topo_link *link)
{
	float gb_per_s = obj->type == HWLOC_OBJ_PCI_DEVICE ? obj->attr->pcidev.linkspeed :
							     obj->attr->bridge.upstream.pci.linkspeed;

	info_parse(obj, INFO_LINK, &link->mt_per_s, &link->lanes, &link->bytes_per_s);
	info_parse(obj, INFO_LINK_MAX, &link->max_mt_per_s, &link->max_lanes,
		   &link->max_bytes_per_s);
	/* PCIe 7 x32 is below 1 TB/s; the file may say anything. */
	if (!link->bytes_per_s && isfinite(gb_per_s) && gb_per_s > 0 && gb_per_s < 1000)
		link->bytes_per_s = (uint64_t)((double)gb_per_s * 1e9);
}

/* ---- The way up --------------------------------------------------------- */

static void link_of(const struct topo *t, hwloc_obj_t obj, struct topo_link *link)
{
	*link = (struct topo_link){ .bytes_per_s = 0 };
	topo_pci_text(obj, link->at);
	/* The functions of a card share its slot. */
	if (obj->type == HWLOC_OBJ_PCI_DEVICE)
		link->at[strcspn(link->at, ".")] = '\0';
	if (t->live)
		link_ask_sysfs(obj, link);
	else
		link_ask_file(obj, link);
}

int topo_links(const struct topo *t, const struct topo_spot *s,
	       struct topo_link out[TOPO_LINKS_MAX])
{
	hwloc_obj_t obj = s->object ? topo_pci_of(s->object) : NULL;
	int count = 0;

	for (; obj && count < TOPO_LINKS_MAX; obj = obj->parent) {
		if (obj->type != HWLOC_OBJ_PCI_DEVICE && !topo_is_bridge(obj, HWLOC_OBJ_BRIDGE_PCI))
			break;
		link_of(t, obj, &out[count++]);
	}
	return count;
}

static int link_info_add(hwloc_obj_t obj, const char *name, unsigned mt, unsigned lanes)
{
	char text[48];

	if (!mt)
		return 0;
	snprintf(text, sizeof(text), "%u.%u GT/s x%u", mt / 1000, mt % 1000 / 100, lanes);
	return hwloc_obj_add_info(obj, name, text) ? -ENOMEM : 0;
}

static int link_note(const struct topo *t, hwloc_obj_t obj)
{
	struct topo_link link;
	int rc;

	link_of(t, obj, &link);
	rc = link_info_add(obj, INFO_LINK, link.mt_per_s, link.lanes);
	return rc ? rc : link_info_add(obj, INFO_LINK_MAX, link.max_mt_per_s, link.max_lanes);
}

int topo_links_note(struct topo *t)
{
	hwloc_obj_t obj = NULL;
	int rc = 0;

	while (!rc && (obj = hwloc_get_next_pcidev(t->hwloc, obj)))
		rc = link_note(t, obj);
	obj = NULL;
	while (!rc && (obj = hwloc_get_next_bridge(t->hwloc, obj)))
		if (topo_is_bridge(obj, HWLOC_OBJ_BRIDGE_PCI))
			rc = link_note(t, obj);
	return rc;
}
