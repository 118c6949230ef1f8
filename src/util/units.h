/*
 * units.h - numbers with units, in text.
 *
 * Sizes take K, M, G, T = powers of 1024 in either case, optionally followed by B or iB
 * ("8K", "8KiB", "8192"); rates take B/s, kB/s, MB/s, GB/s = powers of
 * 1000, and kb/s, Mb/s, Gb/s = bits, powers of 1000; times take ns, us, ms, s.
 * A rate or a time without a unit is refused, except 0.  A fraction is allowed
 * ("1.5us", "0.5K") as long as the result is a whole number of bytes, bytes
 * per second or nanoseconds.  No white space, no sign, no exponent.
 *
 * Return 0, or -EINVAL (not such a number) or -ERANGE (does not fit); the
 * output is set only on success.  Pure functions: no locale, no allocation.
 */
#ifndef RG_UTIL_UNITS_H
#define RG_UTIL_UNITS_H

#include <stddef.h>
#include <stdint.h>

int rg_parse_count(const char *text, uint64_t *value);	/* digits only */
int rg_parse_size(const char *text, uint64_t *bytes);
int rg_parse_rate(const char *text, uint64_t *bytes_per_s);
int rg_parse_time(const char *text, uint64_t *ns);

/*
 * The shortest exact spelling (rates in bytes, never bits): 8192 ->
 * "8K", 1000000000 -> "1GB/s", 2000 -> "2us", 1500 -> "1.5us".  The text
 * parses back to the same number.  Returns buf.  RG_UNIT_TEXT bytes are always
 * enough; in a smaller buffer the text is truncated.
 */
enum { RG_UNIT_TEXT = 32 };
char *rg_format_size(uint64_t bytes, char *buf, size_t size);
char *rg_format_rate(uint64_t bytes_per_s, char *buf, size_t size);
char *rg_format_time(uint64_t ns, char *buf, size_t size);

#endif
