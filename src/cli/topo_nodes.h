/* topo_nodes.h - the nodes of a job: identical ones as one, and where the others differ. */
#ifndef CLI_TOPO_NODES_H
#define CLI_TOPO_NODES_H

#include <jansson.h>
#include <stdio.h>

#include "cli/topo_read.h"

/*
 * Collective over the ranks of a job: read this node, on its first rank, and bring all together.  Rank 0
 * gets an array of {"topo": object, "text": the tables}, one for each node, others NULL.  A process
 * that no launcher has started is alone.  text: also the tables.  A node of several that cannot be read
 * is one of them, {"topo": {"type", "host", "failed": its exit code}}.  0 or -errno after one line.
 */
int topo_nodes_read(const struct topo_request *q, bool text, json_t **nodes);

/* The largest exit code of nodes that could not be read; 0: all were. */
int topo_nodes_failed(const json_t *nodes);

/* This node alone, without tables: an array of one. */
int topo_node_read(const struct topo_request *q, json_t **nodes);

/* 0 or -EIO after one line. */
int topo_nodes_print_text(const json_t *nodes, FILE *out);
int topo_nodes_print_json(const json_t *nodes, FILE *out);

#endif
