/*
 * page.h - pages of this system, for tests: 4 KiB, on arm64 and POWER up to 64 KiB.
 */
#ifndef RG_TESTS_PAGE_H
#define RG_TESTS_PAGE_H

#include <unistd.h>

enum { PAGE_MOST = 65536 };		/* bytes: a constant for arrays, a multiple of each page */

#define PAGE ((size_t)sysconf(_SC_PAGESIZE))

#endif
