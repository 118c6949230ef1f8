/* topo_group.h - nodes of a job, grouped: pure. */
#ifndef CLI_TOPO_GROUP_H
#define CLI_TOPO_GROUP_H

#include <jansson.h>

/*
 * Groups of identical nodes, the largest first, of equal ones that of the first node: an array of
 * {"nodes": "n[1-6,9]", "names": [], "topo": of the first, "text", "differs": from the first group}.
 * nodes: an array of {"topo", "text"} (topo_nodes.h).  A new reference.
 */
json_t *topo_group(const json_t *nodes);

/* "n[1-6,9]" of an array of strings; free() it. */
char *topo_group_names(const json_t *names);

#endif
