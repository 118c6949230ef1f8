/* gid_lists.c - the value of --gid-index: an entry of the GID tables, by port and host. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rail/open/options.h"

enum { GID_INDEX_MAX = 255 };

static bool is_auto(const char *item, size_t length)
{
	return length == strlen("auto") && !memcmp(item, "auto", length);
}

/* "3" or "auto"; -EINVAL. */
static int index_parse(const char *item, size_t length, int *index)
{
	char *end;
	unsigned long value;

	*index = -1;
	if (is_auto(item, length))
		return 0;
	value = strtoul(item, &end, 10);
	if (*item < '0' || *item > '9' || end != item + length || value > GID_INDEX_MAX)
		return -EINVAL;
	*index = (int)value;
	return 0;
}

/* The length of PORT in "PORT=N"; 0: the item is a number for all ports. */
static size_t port_length(const char *item, size_t length)
{
	const char *equals = memchr(item, '=', length);

	return equals ? (size_t)(equals - item) : 0;
}

static int item_parse(const char *item, size_t length, size_t *port, int *index)
{
	size_t skip;

	*port = port_length(item, length);
	skip = *port ? *port + 1 : 0;
	if (*port && !memchr(item, ':', *port))
		return -EINVAL;
	return index_parse(item + skip, length - skip, index);
}

static int list_check(const char *list, char *why, size_t why_size)
{
	const char *item;
	size_t length, port;
	int index;

	while ((item = rail_name_next(&list, &length)))
		if (item_parse(item, length, &port, &index)) {
			snprintf(why, why_size, "'%.*s' is no entry of a GID table, accepted: auto, 0 to %d, "
				 "PORT=N such as mlx5_0:1=3, several with commas, and LIST;HOST=LIST where a "
				 "host differs", (int)length, item, GID_INDEX_MAX);
			return -EINVAL;
		}
	return 0;
}

int rail_gid_lists_check(const char *text, char *why, size_t why_size)
{
	const char *segment = text;
	int rc = 0;

	while (segment && !rc) {
		rc = list_check(segment + rail_host_skip(segment), why, why_size);
		segment = strchr(segment, ';');
		segment += segment ? 1 : 0;
	}
	return rc;
}

int rail_gid_index_of(const char *text, const char *host, const char *port)
{
	const char *item, *list = text ? rail_list_of_host(text, host) : NULL;
	int found = -1, index;
	size_t length, n;

	if (list && rail_list_is_all(list))
		return -1;
	while ((item = rail_name_next(&list, &length))) {
		if (item_parse(item, length, &n, &index))
			continue;
		if (n && n == strlen(port) && !memcmp(item, port, n))
			return index;
		if (!n)
			found = index;
	}
	return found;
}
