/*
 * limits.h - limits of adapters, checked before the job starts: a connection is made and undone, and
 * what all connections together would need is compared with what the adapter has.
 */
#ifndef RAIL_LIMITS_H
#define RAIL_LIMITS_H

struct rail_ctx;

/*
 * Once all peers are known.  0, or -errno after a line when not even one connection fits; a warning,
 * with the arithmetic, when those with all peers do not.  The software HCA has no such limits.
 */
int rail_limits_check(struct rail_ctx *ctx);

#endif
