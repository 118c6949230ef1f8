/* check_state.h - what railgauge check keeps from one time to the next, and what acceptance kept. */
#ifndef CLI_CHECK_STATE_H
#define CLI_CHECK_STATE_H

#include <jansson.h>

/*
 * Read the counters of the last time: *before is NULL if there is no file yet.  0, or -errno after one
 * line; -EINVAL: the file is damaged, or of another origin.
 */
int check_state_read(const char *path, json_t **before);
/* Replace them, in one step.  A directory that is missing is made.  0 or -errno after one line. */
int check_state_write(const char *path, const json_t *counters);

/*
 * The machines of every *.json in dir that railgauge topo --json has written, an array of objects of
 * topo_json.c; of one host the last file's.  0, or -errno after one line; -ENOENT: there is none.
 */
int check_kept_read(const char *dir, json_t **kept);

#endif
