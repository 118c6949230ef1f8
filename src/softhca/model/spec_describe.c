/* spec_describe.c - a spec for people. */
#include <inttypes.h>
#include <string.h>

#include "softhca/model/spec.h"
#include "softhca/model/text.h"
#include "util/units.h"

uint64_t hca_spec_rates(const struct hca_spec *s)
{
	uint64_t n = s->ports;

	while (n > 1 && s->rate[n - 2] == s->rate[n - 1])
		n--;
	return n;
}

/* "1GB/s" -> "1 GB/s" */
static const char *spaced(const char *text, char *buf, size_t size)
{
	int digits = (int)strspn(text, "0123456789.");

	snprintf(buf, size, "%.*s %s", digits, text, text + digits);
	return buf;
}

void hca_spec_describe(const struct hca_spec *s, char *buf, size_t size)
{
	struct hca_text t = { buf, size, 0 };
	char number[32], one[40], two[40];

	if (s->hcas > 1)
		hca_append(&t, "%" PRIu64 " adapters with ", s->hcas);
	hca_append(&t, "%" PRIu64 " port%s", s->ports, s->ports > 1 ? "s" : "");
	if (s->nets) {
		hca_append(&t, " over TCP: ");
		for (unsigned i = 0; i < s->nets; i++)
			hca_append(&t, "%s%s", i ? ", " : "", s->net[i]);
	} else if (!s->timed)
		hca_append(&t, ", untimed");
	for (uint64_t i = 0; s->rate[0] && i < hca_spec_rates(s); i++)
		hca_append(&t, "%s%s", i ? " + " : ", ",
		       spaced(rg_format_rate(s->rate[i], number, sizeof(number)), one,
			      sizeof(one)));
	if (s->rate[0])
		hca_append(&t, " per port and direction");
	if (s->latency_ns)
		hca_append(&t, ", %s", spaced(rg_format_time(s->latency_ns, number, sizeof(number)),
					  one, sizeof(one)));
	if (s->cap)
		hca_append(&t, ", adapter %s",
		       spaced(rg_format_rate(s->cap, number, sizeof(number)), one, sizeof(one)));
	if (s->bus_read) {
		spaced(rg_format_rate(s->bus_read, number, sizeof(number)), one, sizeof(one));
		spaced(rg_format_rate(s->bus_write, number, sizeof(number)), two, sizeof(two));
		hca_append(&t, ", bus %s read, %s write%s", one, two,
		       s->bus_half ? ", half duplex" : "");
	}
	if (s->loss_ppb)
		hca_append(&t, ", loss %s", hca_fraction_format((uint32_t)s->loss_ppb, number,
							     sizeof(number)));
	if (s->schedule.count)
		hca_append(&t, ", %u port changes", s->schedule.count);
}
