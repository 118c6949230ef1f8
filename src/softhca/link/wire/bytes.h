/* bytes.h - little-endian numbers in messages. */
#ifndef HCA_BYTES_H
#define HCA_BYTES_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

static inline void hca_put16(unsigned char *to, uint16_t value)
{
	value = htole16(value);
	memcpy(to, &value, sizeof(value));
}

static inline void hca_put32(unsigned char *to, uint32_t value)
{
	value = htole32(value);
	memcpy(to, &value, sizeof(value));
}

static inline void hca_put64(unsigned char *to, uint64_t value)
{
	value = htole64(value);
	memcpy(to, &value, sizeof(value));
}

static inline uint16_t hca_get16(const unsigned char *from)
{
	uint16_t value;

	memcpy(&value, from, sizeof(value));
	return le16toh(value);
}

static inline uint32_t hca_get32(const unsigned char *from)
{
	uint32_t value;

	memcpy(&value, from, sizeof(value));
	return le32toh(value);
}

static inline uint64_t hca_get64(const unsigned char *from)
{
	uint64_t value;

	memcpy(&value, from, sizeof(value));
	return le64toh(value);
}

#endif
