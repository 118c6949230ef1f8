/* lists.c - the syntax of --rails: ports, and hosts that differ. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "rail/open/options.h"
#include "rail/rail.h"

const char *rail_name_next(const char **list, size_t *length)
{
	const char *name = *list;

	if (!name)
		return NULL;
	*length = strcspn(name, ",;");
	*list = name[*length] == ',' ? name + *length + 1 : NULL;
	return name;
}

/* device:port */
static bool name_is_sound(const char *name, size_t length)
{
	const char *colon = memchr(name, ':', length);
	size_t digits;

	if (!colon || colon == name)
		return false;
	digits = length - (size_t)(colon + 1 - name);
	return digits >= 1 && digits <= 3 && strspn(colon + 1, "0123456789") >= digits;
}

static bool listed_before(const char *list, const char *name, size_t length)
{
	const char *other;
	size_t n;

	while ((other = rail_name_next(&list, &n)) && other != name)
		if (n == length && !memcmp(other, name, n))
			return true;
	return false;
}

bool rail_list_is_all(const char *list)
{
	return !strncmp(list, "all", 3) && (!list[3] || list[3] == ';');
}

static int check_list(const char *list, char *why, size_t why_size)
{
	const char *rest = list, *name;
	size_t length;
	int count = 0;

	if (rail_list_is_all(list))
		return 0;
	while ((name = rail_name_next(&rest, &length))) {
		if (!name_is_sound(name, length)) {
			snprintf(why, why_size, "'%.*s' is not DEVICE:PORT, accepted: all, or "
				 "names such as mlx5_0:1,mlx5_1:1", (int)length, name);
			return -EINVAL;
		}
		if (listed_before(list, name, length)) {
			snprintf(why, why_size, "%.*s is listed twice, accepted: all, or each "
				 "port once", (int)length, name);
			return -EINVAL;
		}
		if (++count > RAIL_MAX) {
			snprintf(why, why_size, "too many ports, accepted: up to %d", RAIL_MAX);
			return -EINVAL;
		}
	}
	return 0;
}

/* The length of HOST in a segment "HOST=LIST"; 0: the segment is a list alone. */
static size_t host_length(const char *segment)
{
	size_t n = strcspn(segment, "=,;:");

	return segment[n] == '=' ? n : 0;
}

size_t rail_host_skip(const char *segment)
{
	size_t host = host_length(segment);

	return host ? host + 1 : 0;
}

/* The text is a list for all hosts, then ';HOST=LIST' for each host that differs. */
int rail_lists_check(const char *text, char *why, size_t why_size)
{
	const char *segment = text;
	bool first = true;

	for (; segment; first = false) {
		size_t host = host_length(segment);
		int rc;

		if (!host && (!first || *segment == '=')) {
			snprintf(why, why_size, "'%s' names no host, accepted: LIST, or LIST;HOST=LIST "
				 "where a host's ports have other names", segment);
			return -EINVAL;
		}
		rc = check_list(segment + (host ? host + 1 : 0), why, why_size);
		if (rc)
			return rc;
		segment = strchr(segment, ';');
		segment += segment ? 1 : 0;
	}
	return 0;
}

const char *rail_list_of_host(const char *text, const char *host)
{
	const char *list = "all", *segment = text;
	size_t shortened = strcspn(host, ".");

	while (segment) {
		size_t n = host_length(segment);

		if (!n)
			list = segment;
		else if (!strncmp(segment, host, n) && (n == strlen(host) || n == shortened))
			return segment + n + 1;
		segment = strchr(segment, ';');
		segment += segment ? 1 : 0;
	}
	return list;
}
