/* fraction.h - shares of packets, as text: "0.01". */
#ifndef HCA_FRACTION_H
#define HCA_FRACTION_H

#include <stddef.h>
#include <stdint.h>

enum { HCA_ALL_PPB = 1000000000 };

/* "0.01" <-> parts per billion; 0 or -EINVAL.  12 bytes suffice. */
int hca_fraction_parse(const char *text, uint32_t *ppb);
char *hca_fraction_format(uint32_t ppb, char *buf, size_t size);

#endif
