/* topo_diff.h - what is different between two machines: objects of railgauge topo --json. */
#ifndef CLI_TOPO_DIFF_H
#define CLI_TOPO_DIFF_H

#include <jansson.h>
#include <stddef.h>

/*
 * Members that are equal on machines of one kind: rails with their places, links, rates and firmware,
 * GPUs, paths.  Left out are names and addresses (host, GID, LID), what is derived (numbers of rails, ranks,
 * warnings), error counters, and cores, which a job may have some of.  A new reference; NULL: no memory.
 */
json_t *topo_alike(const json_t *topo);

/*
 * The differences between two such values, an array of {"at": "mlx5_1:1 pcie lanes", "is": value,
 * "was": value}; a member is missing where its side has nothing there.  A new reference.
 */
json_t *topo_diff(const json_t *was, const json_t *is);

/* "mlx5_1:1 pcie lanes: 8 instead of 16", of one of them. */
char *topo_diff_text(const json_t *difference, char *text, size_t size);

#endif
