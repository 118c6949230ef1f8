/* ports.c - see ports.h. */
#include "softhca/link/wire/ports.h"

#include <ctype.h>
#include <stdlib.h>

#include "softhca/base/base.h"

enum { SMALL = 4 };		/* a range in which each user may have few ports */

/* A port from 1 on, digits only; NULL: no such number, else what follows it. */
static const char *port_parse(const char *text, uint16_t *port)
{
	char *end;
	unsigned long value;

	if (!isdigit((unsigned char)*text))
		return NULL;
	value = strtoul(text, &end, 10);
	if (value < 1 || value > UINT16_MAX)
		return NULL;
	*port = (uint16_t)value;
	return end;
}

int hca_ports_parse(const char *text, uint16_t *first, uint16_t *last)
{
	uint16_t from, to;
	const char *rest;

	if (!text || !*text)
		text = HCA_PORTS_DEFAULT;
	rest = port_parse(text, &from);
	if (rest && *rest == '-')
		rest = port_parse(rest + 1, &to);
	else
		to = from;
	if (!rest || *rest || to < from)
		return hca_fail(EINVAL, "SOFTHCA_PORTS=%s: no range of TCP ports "
				"(accepted: FIRST-LAST, or one port, from 1 to 65535)", text);
	*first = from;
	*last = to;
	return 0;
}

bool hca_port_is_shared(uint16_t port, uint16_t first, uint16_t last)
{
	return last - first < SMALL || 2 * (port - first) >= last - first;
}

bool hca_ports_attempt(uint32_t turn, uint16_t first, uint16_t last, uint16_t *port, enum hca_listen *how)
{
	const uint32_t count = last - first + 1u;

	if (turn < count) {
		*port = (uint16_t)(first + turn);
		*how = hca_port_is_shared(*port, first, last) ? HCA_LISTEN_FIRST : HCA_LISTEN_ALONE;
		return true;
	}
	*port = (uint16_t)(last - (turn - count));
	*how = HCA_LISTEN_SHARED;
	return turn < 2 * count && hca_port_is_shared(*port, first, last);
}
