/* fraction.c - see fraction.h. */
#include "softhca/model/fraction.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int hca_fraction_parse(const char *text, uint32_t *ppb)
{
	size_t whole = strspn(text, "0123456789");
	uint64_t value = 0;
	int places = -1;

	if (whole != 1 || (text[1] && (text[1] != '.' || !text[2])))
		return -EINVAL;
	for (; *text; text++) {
		if (*text == '.' && places < 0) {
			places = 0;
			continue;
		}
		if (*text < '0' || *text > '9' || places == 9)
			return -EINVAL;
		value = value * 10 + (uint64_t)(*text - '0');
		places += places >= 0;
	}
	for (places = places < 0 ? 0 : places; places < 9; places++)
		value *= 10;
	if (value > HCA_ALL_PPB)
		return -EINVAL;
	*ppb = (uint32_t)value;
	return 0;
}

char *hca_fraction_format(uint32_t ppb, char *buf, size_t size)
{
	char *end;

	snprintf(buf, size, "%u.%09u", ppb / HCA_ALL_PPB, ppb % HCA_ALL_PPB);
	for (end = buf + strlen(buf); end[-1] == '0'; end--)
		;
	end[end[-1] == '.' ? -1 : 0] = '\0';
	return buf;
}
