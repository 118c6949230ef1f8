/* spec_number.c - numbers of every unit. */
#include "softhca/model/spec_key.h"
#include "util/units.h"

int hca_number_parse(enum hca_kind kind, const char *text, uint64_t *value)
{
	switch (kind) {
	case HCA_KIND_COUNT:
		return rg_parse_count(text, value);
	case HCA_KIND_TIME:
		return rg_parse_time(text, value);
	case HCA_KIND_SIZE:
	case HCA_KIND_BYTES:
		return rg_parse_size(text, value);
	default:
		return rg_parse_rate(text, value);
	}
}
