/* tell.c - see tell.h. */
#include "mpi/watch/tell.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "mpi/abi/native.h"
#include "mpi/job/options.h"
#include "mpi/job/progress.h"
#include "mpi/job/start_coll.h"
#include "mpi/railmpi.h"
#include "rail/policy.h"
#include "util/err.h"
#include "util/text.h"
#include "util/units.h"

enum { TEXT_BYTES = 1024 };

static bool is_quiet = true;

void tell_open(bool quiet)
{
	is_quiet = quiet;
}

bool tell_is_wanted(void)
{
	return !is_quiet;
}

/* Lines begin with the command that prints them, not with the program's name. */
static const char *speaker_set(void)
{
	const char *program = rg_program();

	rg_set_program("railgauge exec");
	return program;
}

static const char *plural(int n)
{
	return n == 1 ? "" : "s";
}

/* ---- Words --------------------------------------------------------------------------------- */

/* ", stripe above 64K" */
static void way_add(char *text, int way, const struct rail_way *w)
{
	const struct opt_choice *c = railmpi_ways();
	char size[RG_UNIT_TEXT];

	while (c->name && c->value != way)
		c++;
	rg_text_add(text, TEXT_BYTES, ", %s", c->name ? c->name : "?");
	if (rail_policies[w->policy].spreads)
		rg_text_add(text, TEXT_BYTES, " above %s",
			    rg_format_size(w->threshold, size, sizeof(size)));
}

static void rails_add(char *text, const struct railmpi_fabric *f)
{
	rg_text_add(text, TEXT_BYTES, "%d rail%s (", f->rail_count, plural(f->rail_count));
	for (int r = 0; r < f->rail_count; r++)
		rg_text_add(text, TEXT_BYTES, "%s%s", r ? ", " : "", f->rail[r].name);
	rg_text_add(text, TEXT_BYTES, ")");
}

/* The warnings of the benchmarks' tables. */
static void warn_all(const struct railmpi_fabric *f, bool oversubscribed)
{
	if (*f->doubt)
		rg_warn("model: %s", f->doubt);
	if (oversubscribed)
		rg_warn("oversubscribed: more ranks than cores, which take turns");
}

/* ---- The counts ---------------------------------------------------------------------------- */

static struct told {
	uint64_t bytes[RAIL_MAX];	/* sent, by rail to other nodes */
	uint64_t local, striped, retries;
} before;			/* at the start: sent for --threshold auto */

enum { COUNTS = sizeof(struct told) / sizeof(uint64_t) };

static void told_fill(struct told *t)
{
	struct rail_ledger l;
	int local = rail_local(layer.rails);

	memset(t, 0, sizeof(*t));
	for (int r = 0; r < rail_count(layer.rails); r++) {
		rail_ledger(layer.rails, r, &l);
		t->bytes[r] = l.tx_bytes;
		t->retries += l.retries;
	}
	if (local >= 0) {
		rail_ledger(layer.rails, local, &l);
		t->local = l.tx_bytes;
	}
	t->striped = rail_striped_bytes(layer.rails);
}

/* Since the start. */
static void told_since(struct told *t)
{
	told_fill(t);
	for (int i = 0; i < COUNTS; i++)
		((uint64_t *)t)[i] -= ((const uint64_t *)&before)[i];
}

/* ---- The start ------------------------------------------------------------------------- */

void tell_start(const struct railmpi_fabric *f, int way, const struct rail_way *w)
{
	int mine = layer.oversubscribed, any = 0;
	char text[TEXT_BYTES] = "";
	const char *program;

	told_fill(&before);
	start_reduce(&mine, &any, 1, MPI_INT, MPI_MAX);
	if (layer.world_rank)
		return;
	rails_add(text, f);
	way_add(text, way, w);
	program = speaker_set();
	rg_note("%d rank%s, %s; %s%s", layer.world_size, plural(layer.world_size), text, f->text,
		f->hardware ? "" : f->modelled ? " - a model in software, not hardware" :
					       " - software, not hardware");
	warn_all(f, any);
	rg_set_program(program);
}

void tell_native(void)
{
	char library[MPI_MAX_LIBRARY_VERSION_STRING] = "";
	int rank, size, length;
	const char *program;

	if (world_settings.quiet)
		return;
	native.Comm_rank(MPI_COMM_WORLD, &rank);
	if (rank)
		return;
	native.Comm_size(MPI_COMM_WORLD, &size);
	native.Get_library_version(library, &length);
	library[strcspn(library, ",\n")] = '\0';
	rg_text_squeeze(library);
	program = speaker_set();
	rg_note("%d rank%s, native: no rails; every message is the MPI library's (%s)", size,
		plural(size), library);
	rg_set_program(program);
}

/* ---- The end ----------------------------------------------------------------------------- */

/* "12.4 GB": three digits. */
static void bytes_add(char *text, uint64_t bytes)
{
	static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
	double value = (double)bytes;
	int u = 0;

	while (value >= 999.5) {
		value /= 1000;
		u++;
	}
	rg_text_add(text, TEXT_BYTES, "%.*f %s", u == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2,
		    value, units[u]);
}

static double percent(uint64_t part, uint64_t all)
{
	return all ? 100.0 * (double)(part < all ? part : all) / (double)all : 0;
}

/* "12.4 GB over 2 rails 50/50, 61 % striped" */
static void told_text(char *text, const struct told *t)
{
	const int rails = rail_count(layer.rails);
	uint64_t all = 0;

	for (int r = 0; r < rails; r++)
		all += t->bytes[r];
	bytes_add(text, all);
	rg_text_add(text, TEXT_BYTES, " over %d rail%s", rails, plural(rails));
	for (int r = 0; r < rails && rails > 1 && all; r++)
		rg_text_add(text, TEXT_BYTES, "%c%.0f", r ? '/' : ' ', percent(t->bytes[r], all));
	if (rails > 1 && all)
		rg_text_add(text, TEXT_BYTES, ", %.0f %% striped", percent(t->striped, all));
	if (t->local) {
		rg_text_add(text, TEXT_BYTES, "; ");
		bytes_add(text, t->local);
		rg_text_add(text, TEXT_BYTES, " within nodes");
	}
	if (t->retries)
		rg_text_add(text, TEXT_BYTES, "; %" PRIu64 " retries", t->retries);
}

void tell_end(bool together)
{
	char text[TEXT_BYTES] = "";
	struct told mine, all;
	const char *program;

	if (is_quiet)
		return;
	is_quiet = true;
	told_since(&mine);
	all = mine;
	if (together)
		start_reduce(&mine, &all, COUNTS, MPI_UINT64_T, MPI_SUM);
	if (layer.world_rank)
		return;
	told_text(text, &all);
	program = speaker_set();
	rg_note("%s%s", text, together ? "" : " (rank 0's; some ranks are missing)");
	rg_set_program(program);
}
