/* options.h - values of options: the bound of --eager, lists of ports, partition keys. */
#ifndef RAIL_OPTIONS_H
#define RAIL_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	RAIL_EAGER_BYTES = 8 * 1024,	/* --eager auto */
	RAIL_EAGER_NET_BYTES = 64 * 1024,	/* ... over TCP, where a rendezvous costs system calls */
	RAIL_EAGER_ROW_BYTES = 32 * 1024,	/* ... after others that are still under way */
	RAIL_EAGER_MAX = 64 * 1024,	/* bound of --eager */
};

/* The next name of a list of ports; NULL at its end. */
const char *rail_name_next(const char **list, size_t *length);
/* Does the list of a host name all its ports? */
bool rail_list_is_all(const char *list);
/* Check the value of --rails: 0, or -EINVAL with the reason and the accepted values. */
int rail_lists_check(const char *text, char *why, size_t why_size);
/* The list for that host; the end of the text or a ';' ends it. */
const char *rail_list_of_host(const char *text, const char *host);
/* Bytes of "HOST=" before the list in a segment of such a text; 0: the segment is a list alone. */
size_t rail_host_skip(const char *segment);
/* --gid-index: "3", "mlx5_0:1=3,mlx5_1:1=5", ";HOST=LIST" after it.  Checked as --rails. */
int rail_gid_lists_check(const char *text, char *why, size_t why_size);
/* The entry for a port of that host; -1: auto. */
int rail_gid_index_of(const char *text, const char *host, const char *port);
int rail_pkey_parse(const char *text, uint16_t *key);

#endif
