/*
 * redact.h - placeholders in place of names of hosts and users and of paths.
 *
 * Equal names get equal placeholders, numbered in the order in which they are added (paths: in
 * which they are met): a job on the same hosts has the same placeholders each time.
 */
#ifndef REPORT_REDACT_H
#define REPORT_REDACT_H

#include <jansson.h>

struct redact;

struct redact *redact_new(void);	/* NULL: no memory */
/*
 * Add a name of a kind: "host" gives host1, host2, ...  A host's name without its domain counts as
 * the same name.  Returns the placeholder, which belongs to r.
 */
const char *redact_name(struct redact *r, const char *kind, const char *name);
/* Add this process's user, but for root, whose name is a common word. */
void redact_user(struct redact *r);
/*
 * A copy of a record whose texts have placeholders; words of the format, such as names of ways,
 * stay.  r NULL: the record itself, with one more reference.
 */
json_t *redact_record(struct redact *r, json_t *record);
void redact_free(struct redact *r);

#endif
