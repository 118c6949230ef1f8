/* likely.h - branches of the fast path that are taken nearly always, or nearly never. */
#ifndef RAIL_LIKELY_H
#define RAIL_LIKELY_H

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#endif
