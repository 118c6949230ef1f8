/* topo_text.c - railgauge topo as tables; "-" is an unknown value. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "util/err.h"
#include "cli/topo_path.h"
#include "cli/topo_text.h"
#include "util/units.h"

/* ---- Tables ------------------------------------------------------------- */

enum { CELL_BYTES = 96 };

/* A table; columns get the width of their texts; [row * columns + column]. */
struct grid {
	int rows, columns;
	char (*cell)[CELL_BYTES];
};

static int grid_make(struct grid *g, int rows, int columns)
{
	*g = (struct grid){ .rows = rows, .columns = columns };
	g->cell = calloc((size_t)rows * (size_t)columns, sizeof(*g->cell));
	return g->cell ? 0 : -ENOMEM;
}

__attribute__((format(printf, 4, 5)))
static void grid_set(struct grid *g, int row, int column, const char *fmt, ...)
{
	char *cell = g->cell[row * g->columns + column];
	va_list args;

	va_start(args, fmt);
	vsnprintf(cell, CELL_BYTES, fmt, args);
	va_end(args);
}

static int grid_width(const struct grid *g, int column)
{
	int width = 0;

	for (int row = 0; row < g->rows; row++) {
		int length = (int)strlen(g->cell[row * g->columns + column]);

		width = length > width ? length : width;
	}
	return width;
}

static void grid_print(struct grid *g, FILE *out)
{
	for (int row = 0; row < g->rows; row++) {
		int gap = 0;

		for (int column = 0; column < g->columns; column++) {
			const char *cell = g->cell[row * g->columns + column];

			if (*cell)
				fprintf(out, "%*s%s", gap, "", cell);
			gap = *cell ? 0 : gap;
			gap += grid_width(g, column) - (int)strlen(cell) + 2;
		}
		putc('\n', out);
	}
	free(g->cell);
}

static const char *or_dash(const char *text)
{
	return *text ? text : "-";
}

static const char *index_text(int index, char text[16])
{
	if (index < 0)
		return "-";
	snprintf(text, 16, "%d", index);
	return text;
}

/* ---- Rails -------------------------------------------------------------- */

static const char *rate_text(const struct topo_port *p, char *text, size_t size)
{
	if (!p->rate_known)
		return "-";
	return p->rate_bytes_per_s ? rg_format_rate(p->rate_bytes_per_s, text, size) : "unlimited";
}

static const char *link_text(const struct topo_rail *rail, char *text, size_t size)
{
	const struct topo_link *l = &rail->link[0];
	size_t used = 0;

	if (!rail->link_count || !l->bytes_per_s)
		return "-";
	if (l->mt_per_s)
		used = (size_t)snprintf(text, size, "%g GT/s x%u, ", l->mt_per_s / 1000.0, l->lanes);
	used += (size_t)snprintf(text + used, size - used, "%.1fGB/s",
				 (double)l->bytes_per_s / 1e9);
	if (l->max_bytes_per_s > l->bytes_per_s)
		snprintf(text + used, size - used, " of %.1f", (double)l->max_bytes_per_s / 1e9);
	return text;
}

static int rails_print(const struct topo_report *r, FILE *out)
{
	static const char *const head[] = {
		"rail", "port", "link", "state", "rate", "MTU", "NUMA", "PCI", "PCIe link", "firmware",
		"GID",
	};
	enum { COLUMNS = sizeof(head) / sizeof(head[0]) };
	struct grid g;

	if (grid_make(&g, r->rail_count + 1, COLUMNS))
		return -ENOMEM;
	for (int c = 0; c < COLUMNS; c++)
		grid_set(&g, 0, c, "%s", head[c]);
	for (int i = 0; i < r->rail_count; i++) {
		const struct topo_rail *rail = &r->rail[i];
		const struct topo_port *p = &rail->port;
		char number[16], text[64];
		int c = 0;

		grid_set(&g, i + 1, c++, "%s", index_text(rail->rail, number));
		grid_set(&g, i + 1, c++, "%s", rail->name);
		grid_set(&g, i + 1, c++, "%s", or_dash(p->link_layer));
		grid_set(&g, i + 1, c++, "%s", or_dash(p->state));
		grid_set(&g, i + 1, c++, "%s", rate_text(p, text, sizeof(text)));
		grid_set(&g, i + 1, c++, "%s", index_text(p->mtu_bytes ? (int)p->mtu_bytes : -1,
							  number));
		grid_set(&g, i + 1, c++, "%s", index_text(rail->spot.numa, number));
		grid_set(&g, i + 1, c++, "%s", or_dash(rail->spot.pci));
		grid_set(&g, i + 1, c++, "%s", link_text(rail, text, sizeof(text)));
		grid_set(&g, i + 1, c++, "%s", or_dash(p->firmware));
		grid_set(&g, i + 1, c++, "%s%s%s", *p->gid ? p->gid_type : "",
			 *p->gid && *p->gid_type ? " " : "", or_dash(p->gid));
	}
	fprintf(out, "\nRails\n");
	grid_print(&g, out);
	return 0;
}

/* ---- Paths -------------------------------------------------------------- */

static int paths_print(const struct topo_report *r, FILE *out)
{
	const struct topo *t = r->topo;
	int rails = r->rail_count, gpus = t->gpu_count;
	struct grid g;

	if (grid_make(&g, rails + 1, 1 + rails + gpus + t->cores_count))
		return -ENOMEM;
	for (int i = 0; i < rails; i++)
		grid_set(&g, 0, 1 + i, "%s", r->rail[i].name);
	for (int i = 0; i < gpus; i++)
		grid_set(&g, 0, 1 + rails + i, "%s", t->gpu[i].name);
	for (int i = 0; i < t->cores_count; i++)
		grid_set(&g, 0, 1 + rails + gpus + i, "%s", t->cores[i].spot.name);
	for (int row = 0; row < rails; row++) {
		const struct topo_spot *s = &r->rail[row].spot;

		grid_set(&g, row + 1, 0, "%s", r->rail[row].name);
		for (int i = 0; i < rails; i++)
			grid_set(&g, row + 1, 1 + i, "%s",
				 topo_path_text(topo_rail_path(r, row, i)));
		for (int i = 0; i < gpus; i++)
			grid_set(&g, row + 1, 1 + rails + i, "%s",
				 topo_path_text(topo_path(t, s, &t->gpu[i])));
		for (int i = 0; i < t->cores_count; i++)
			grid_set(&g, row + 1, 1 + rails + gpus + i, "%s",
				 topo_path_text(topo_path(t, s, &t->cores[i].spot)));
	}
	fprintf(out, "\nPaths\n");
	grid_print(&g, out);
	for (int i = 0; i < t->cores_count; i++)
		fprintf(out, "%s: cores %s (CPUs %s)\n", t->cores[i].spot.name, t->cores[i].cores,
			t->cores[i].cpus);
	for (int i = 0; i < gpus; i++)
		fprintf(out, "%s: %s\n", t->gpu[i].name, or_dash(t->gpu[i].pci));
	fprintf(out, "X itself, PIX at most one PCIe bridge or switch, PXB several, PHB the host "
		"bridge,\nNODE within a package, SYS between packages, - not known\n");
	return 0;
}

/* ---- Ranks -------------------------------------------------------------- */

static int ranks_print(const struct topo_report *r, FILE *out)
{
	static const char *const head[] = { "rank", "cores", "NUMA", "--bind rank", "--bind near" };
	enum { COLUMNS = sizeof(head) / sizeof(head[0]) };
	struct grid g;

	if (grid_make(&g, (int)r->rank_count + 1, COLUMNS))
		return -ENOMEM;
	for (int c = 0; c < COLUMNS; c++)
		grid_set(&g, 0, c, "%s", head[c]);
	for (unsigned i = 0; i < r->rank_count; i++) {
		const struct topo_rank *rank = &r->rank[i];
		int row = (int)i + 1;
		char number[16];

		grid_set(&g, row, 0, "%u", i);
		grid_set(&g, row, 1, "%s", rank->block.cores);
		grid_set(&g, row, 2, "%s", index_text(rank->block.numa, number));
		for (int b = 0; b < TOPO_BINDS; b++)
			grid_set(&g, row, 3 + b, "%s %s", r->rail[rank->uses[b]].name,
				 topo_path_text(rank->path[b]));
	}
	fprintf(out, "\nRanks, each bound to its share of the cores\n");
	if (r->assumed)
		fprintf(out, "(rails in the order of their addresses: %s does not say their "
			"subnets)\n", r->file);
	grid_print(&g, out);
	return 0;
}

/* ---- Needs -------------------------------------------------------------- */

/* A row: what `count` connections take, with completion queues of so many bytes. */
static void need_set(struct grid *g, int row, const char *of, const struct rail_plan_need *peer,
		     uint64_t count, uint64_t cq_bytes)
{
	grid_set(g, row, 1, "%s", of);
	grid_set(g, row, 2, "%" PRIu64, count * peer->queue_pairs);
	grid_set(g, row, 3, "%" PRIu64, count * peer->srq_receives);
	grid_set(g, row, 4, "%" PRIu64, count * peer->cq_entries);
	grid_set(g, row, 5, "%" PRIu64, cq_bytes);
	grid_set(g, row, 6, "%" PRIu64, count * peer->pinned_bytes);
	if (count * peer->pinned_bytes >= UINT64_C(1) << 30)
		grid_set(g, row, 7, "%.1f GiB", (double)(count * peer->pinned_bytes) / (1 << 30));
}

static const char *verdict(bool all, bool narrow)
{
	return all ? "all rails" : narrow ? "narrow" : "narrow, and connections beyond fail";
}

/* The verdict on an adapter: so many of a thing are taken, of those it has. */
static void verdict_print(const struct topo_report *r, int rail, const char *things, uint32_t has, uint64_t all,
			  uint64_t narrow, FILE *out)
{
	if (all)
		fprintf(out, "%.*s has %" PRIu32 " %s; all take %" PRIu64 ", narrow %" PRIu64 ": %s\n",
			(int)strcspn(r->rail[rail].name, ":"), r->rail[rail].name, has, things, all, narrow,
			verdict(all <= has, narrow <= has));
}

/* The verdict on the memory of a process; SENDs take most. */
static void memory_print(const struct topo_report *r, const struct topo_need *need, FILE *out)
{
	const uint64_t queues = need->cq_bytes[TOPO_BY_SEND], fit = topo_queues(r, true);
	const uint64_t few = fit ? fit : need->narrow_cq_bytes[TOPO_BY_SEND];
	const uint64_t all = queues + need->peers * need->peer[TOPO_BY_SEND].pinned_bytes;
	const uint64_t narrow = few + need->peers * need->narrow[TOPO_BY_SEND].pinned_bytes;

	if (r->lockable)
		fprintf(out, "a process may lock %" PRIu64 " KiB for completion queues (ulimit -l); all take %" PRIu64
			", narrow %" PRIu64 ": %s\n", r->lockable >> 10, queues >> 10, few >> 10,
			verdict(topo_queues(r, false), fit));
	if (r->pinned)
		fprintf(out, "a process may pin %" PRIu64 " MiB (ulimit -l, or its part of an eighth of the memory); "
			"all pin %" PRIu64 ", narrow %" PRIu64 ": %s\n", r->pinned >> 20, all >> 20, narrow >> 20,
			verdict(all <= r->pinned, true));
}

static void verdicts_print(const struct topo_report *r, int rail, FILE *out)
{
	verdict_print(r, rail, "queue pairs", r->rail[rail].queue_pairs, topo_pairs(r, rail, false),
		      topo_pairs(r, rail, true), out);
	verdict_print(r, rail, "objects for this control group", r->rail[rail].objects, topo_objects(r, rail, false),
		      topo_objects(r, rail, true), out);
}

static int needs_print(const struct topo_report *r, FILE *out)
{
	static const char *const head[] = { "small messages", "", "queue pairs", "SRQ receives",
					    "CQ entries", "CQ bytes", "pinned bytes", "" };
	static const char *const kinds[] = { [TOPO_BY_RING] = "ring", [TOPO_BY_SEND] = "SEND" };
	enum { COLUMNS = sizeof(head) / sizeof(head[0]), OF = 4 };
	const struct topo_need need = topo_need(r);
	struct grid g;

	if (grid_make(&g, 1 + OF * TOPO_EAGER_KINDS, COLUMNS))
		return -ENOMEM;
	for (int c = 0; c < COLUMNS; c++)
		grid_set(&g, 0, c, "%s", head[c]);
	for (int kind = 0; kind < TOPO_EAGER_KINDS; kind++) {
		const int row = 1 + OF * kind;

		grid_set(&g, row, 0, "%s", kinds[kind]);
		need_set(&g, row, "a peer", &need.peer[kind], 1,
			 (uint64_t)need.peer[kind].cq_entries * RAIL_PLAN_CQE_BYTES);
		need_set(&g, row + 1, "a rank", &need.peer[kind], need.peers, need.cq_bytes[kind]);
		need_set(&g, row + 2, "a node", &need.peer[kind], need.connections,
			 r->rank_count * need.cq_bytes[kind]);
		need_set(&g, row + 3, "a node, narrow", &need.narrow[kind], need.connections,
			 r->rank_count * need.narrow_cq_bytes[kind]);
	}
	fprintf(out, "\nNeeds of %u ranks, %u a node, when all have met%s: at most, with %s "
		"a rail for large messages;\nring where the adapter promises the order of data, "
		"else SEND; small messages have up to %" PRIu64 " bytes\n", r->job_ranks, r->rank_count,
		r->rank_count == 1 ? ", each also itself" : ", as in an Alltoall",
		need.qps == 1 ? "one queue pair" : "two queue pairs, of a LAG,", need.eager);
	grid_print(&g, out);
	fprintf(out, "Connections are made when a rank first sends to another. Narrow, one rail a peer and "
		"smaller shares, is a job\nthat would take more queue pairs than an adapter has, or objects than its control group (rdma.max), or "
		"pin more than an\neighth of a node's memory or, with completion queues, than a process may lock (ulimit -l)\n");
	for (int i = 0; i < r->rail_count; i++)
		verdicts_print(r, i, out);
	memory_print(r, &need, out);
	return 0;
}

/* ---- All of it ---------------------------------------------------------- */

static void head_print(const struct topo_report *r, FILE *out)
{
	const struct topo *t = r->topo;
	char usable[32] = "";

	fprintf(out, "%s%s", *t->host ? t->host : "a machine", r->file ? " as saved in " : "");
	if (t->usable_count < t->core_count)
		snprintf(usable, sizeof(usable), " (%d to be used)", t->usable_count);
	fprintf(out, "%s: %d package%s, %d NUMA node%s, %d core%s%s, %d GPU%s\n",
		r->file ? r->file : "", t->package_count, t->package_count == 1 ? "" : "s",
		t->numa_count, t->numa_count == 1 ? "" : "s", t->core_count,
		t->core_count == 1 ? "" : "s", usable, t->gpu_count, t->gpu_count == 1 ? "" : "s");
}

static bool has_rails(const struct topo_report *r)
{
	for (int i = 0; i < r->rail_count; i++)
		if (r->rail[i].rail >= 0)
			return true;
	return false;
}

int topo_print_text(const struct topo_report *r, FILE *out)
{
	int rc = 0;

	head_print(r, out);
	if (r->rail_count) {
		rc = rails_print(r, out);
		if (!rc)
			rc = paths_print(r, out);
	}
	if (!rc && has_rails(r))
		rc = ranks_print(r, out);
	if (!rc && has_rails(r) && r->job_ranks)
		rc = needs_print(r, out);
	if (r->warning_count)
		fprintf(out, "\nWarnings\n");
	for (int i = 0; i < r->warning_count; i++)
		fprintf(out, "%s\n", r->warning[i].text);
	if (rc) {
		rg_error("topo: no memory");
		return rc;
	}
	return fflush(out) || ferror(out) ? -EIO : 0;
}
