/* run_why.c - why striping cannot help a program. */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/run_why.h"
#include "mpi/railmpi.h"
#include "topo/topo.h"
#include "util/err.h"
#include "util/opt.h"
#include "util/text.h"

const char *run_why_threshold(char *buf, size_t size)
{
	const char *name = "threshold", *const only[] = { name, NULL };
	struct opt_table t = { .rows = railmpi_options(), .only = only };

	*buf = '\0';
	t.values = opt_values_alloc(t.rows);
	if (t.values && !opt_from_environment(&t))
		opt_each(row, &t)
			if (strcmp(row->name, name) == 0)
				opt_text(&t, row, buf, size);
	free(t.values);
	return buf;
}

__attribute__((format(printf, 2, 3)))
static void reason(char *buf, const char *format, ...)
{
	char text[RUN_WHY_TEXT / 2];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	rg_text_add(buf, RUN_WHY_TEXT, "%s%s", *buf ? "; " : "", text);
}

/* ---- The machine ------------------------------------------------------------------------- */

/* The places of the rails' devices on this machine; false: one is not here. */
static bool spots_find(const struct topo *t, const struct run_ledger *l, struct topo_spot *spot)
{
	for (int i = 0; i < l->rails; i++) {
		char device[sizeof(l->rail[0].name)];

		snprintf(device, sizeof(device), "%.*s", (int)strcspn(l->rail[i].name, ":"),
			 l->rail[i].name);
		if (!topo_find(t, device, &spot[i]))
			return false;
	}
	return true;
}

/* The narrowest link that all rails share. */
static void slot_check(const struct topo *t, const struct run_ledger *l, char *buf)
{
	struct topo_spot spot[RUN_LEDGER_RAILS_MAX];
	const struct topo_spot *spots[RUN_LEDGER_RAILS_MAX];
	struct topo_share share[TOPO_SHARES_MAX];
	char rate[32] = "an unknown rate";
	int shares;

	if (!spots_find(t, l, spot))
		return;
	for (int i = 0; i < l->rails; i++)
		spots[i] = &spot[i];
	shares = topo_shares(t, spots, l->rails, share);
	for (int i = 0; i < shares; i++) {
		const struct topo_link *link = &share[i].link;

		if (share[i].rails != (1u << l->rails) - 1)
			continue;
		if (link->bytes_per_s)
			snprintf(rate, sizeof(rate), "%.3g GB/s", (double)link->bytes_per_s / 1e9);
		reason(buf, "one PCIe slot: all rails share %s, %s", link->at, rate);
		break;
	}
}

static void machine_check(const struct run_ledger *l, char *buf)
{
	struct topo *t = NULL;

	rg_set_quiet(true);
	if (topo_open(TOPO_RAILS, &t) == 0)
		slot_check(t, l, buf);
	topo_close(t);
	rg_set_quiet(false);
}

/* ---- The program ------------------------------------------------------------------------- */

/* Ports of a software HCA whose rates no model limits. */
static bool is_one_memory(const struct run_ledger *l)
{
	const char *model = getenv("RAILGAUGE_SOFT");

	return strncmp(l->rail[0].name, "soft", 4) == 0 && !(model && strstr(model, "rate="));
}

char *run_why(const struct run_ledger *l, const char *threshold, char buf[RUN_WHY_TEXT])
{
	uint64_t messages = 0, chunks = 0;

	*buf = '\0';
	for (int i = 0; i < l->rails; i++) {
		messages += l->rail[i].messages;
		chunks += l->rail[i].chunks;
	}
	if (!l->routed)
		reason(buf, "no call of the program goes over rails");
	else if (!messages && !chunks)
		reason(buf, "no message leaves a node");
	else if (!chunks)
		reason(buf, "no message above %s", threshold);
	if (l->rails == 1)
		reason(buf, "one rail only: %s", l->rail[0].name);
	if (l->rails > 1 && is_one_memory(l))
		reason(buf, "one memory: the rails are ports of a software HCA");
	else if (l->rails > 1)
		machine_check(l, buf);
	return buf;
}
