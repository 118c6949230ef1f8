/* options.h - what options may be: the bound of --eager, lists of ports, partition keys. */
#ifndef RAIL_OPTIONS_H
#define RAIL_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RAIL_EAGER_MAX = 64 * 1024 };	/* bound of --eager */

/* The next name of a list of ports; NULL at its end. */
const char *rail_name_next(const char **list, size_t *length);
/* Of one host: all ports that it has. */
bool rail_list_is_all(const char *list);
/* What --rails may be: 0, or -EINVAL with why and what is accepted. */
int rail_lists_check(const char *text, char *why, size_t why_size);
/* The list for that host; it ends with the text or a ';'. */
const char *rail_list_of_host(const char *text, const char *host);
int rail_pkey_parse(const char *text, uint16_t *key);

#endif
