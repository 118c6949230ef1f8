/*
 * call_table.c - the table that --ledger prints at the end.
 *
 * The table is of all ranks together: one native MPI_Reduce in MPI_Finalize.  The ledger goes to
 * stderr, in one write, because stdout is the program's.
 */
#include "mpi/watch/call_table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mpi/abi/calls_list.h"
#include "mpi/abi/native.h"
#include "mpi/job/library.h"
#include "mpi/job/options.h"
#include "mpi/job/progress.h"
#include "mpi/watch/call_count.h"
#include "mpi/watch/call_time.h"
#include "mpi/watch/learned.h"
#include "mpi/watch/sizes.h"
#include "rail/rail.h"
#include "util/err.h"

static const char *const names[CALL_COUNT] = {
	/* The calls of --threshold auto, for instance. */
	[CALL_NONE] = "(before the first call)",
#define X(name) [CALL_##name] = "MPI_" #name,
	NATIVE_FUNCTIONS(X)
	NATIVE_LARGE_COUNT(X)
	NATIVE_ISENDRECV(X)
#undef X
};

/* ---- Sums over all ranks -------------------------------------------------------------- */

enum { LOCAL = RAIL_MAX, RAILS = RAIL_MAX + 1 };	/* rails to other nodes, then the local one */

struct sums {
	struct { uint64_t routed, native, bytes, why[NATIVE_REASONS]; } call[CALL_COUNT];
	struct {
		uint64_t ranks;			/* ranks that have such a rail */
		uint64_t counting;		/* ranks of these whose adapter counts retries */
		uint64_t tx_messages, tx_chunks, tx_bytes, rx_messages, rx_chunks, rx_bytes;
		uint64_t stalls, retries;
	} rail[RAILS];
	struct { uint64_t buffers, bytes, refused; } mapped;
	struct { uint64_t rounds, turns, looks, thread_looks; } progress;
	struct sizes sizes;
	struct call_times times;
};

static int ledger_rail(int r)
{
	if (r == LOCAL)
		return rail_local(layer.rails);
	return r < rail_count(layer.rails) ? r : -1;
}

static void rails_sum(struct sums *s)
{
	for (int r = 0; r < RAILS; r++) {
		struct rail_ledger l;

		if (ledger_rail(r) < 0)
			continue;
		s->rail[r].ranks = 1;
		s->rail[r].counting = rail_ledger(layer.rails, ledger_rail(r), &l);
		s->rail[r].tx_messages = l.tx_messages;
		s->rail[r].tx_chunks = l.tx_chunks;
		s->rail[r].tx_bytes = l.tx_bytes;
		s->rail[r].rx_messages = l.rx_messages;
		s->rail[r].rx_chunks = l.rx_chunks;
		s->rail[r].rx_bytes = l.rx_bytes;
		s->rail[r].stalls = l.stalls;
		s->rail[r].retries = l.retries;
	}
}

static void mapped_sum(struct sums *s)
{
	struct rail_map_count c;

	rail_map_count(layer.rails, &c);
	s->mapped.buffers = c.buffers;
	s->mapped.bytes = c.bytes;
	s->mapped.refused = c.refused;
}

static void progress_sum(struct sums *s)
{
	layer_enter();		/* the progress thread counts, too */
	s->progress.turns = library_turn_count();
	s->progress.looks = layer_looks.library;
	s->progress.thread_looks = layer_looks.thread;
	s->progress.rounds = layer_polls() - s->progress.looks;
	layer_leave();
}

static void calls_sum(struct sums *s)
{
	for (int i = 0; i < CALL_COUNT; i++) {
		s->call[i].routed = atomic_load(&calls[i].routed);
		s->call[i].native = atomic_load(&calls[i].native);
		s->call[i].bytes = calls[i].bytes;
		for (int r = 0; r < NATIVE_REASONS; r++)
			s->call[i].why[r] = atomic_load(&calls[i].why[r]);
	}
}

/* ---- The table ------------------------------------------------------------------------ */

static void reasons_print(FILE *f, const uint64_t why[NATIVE_REASONS])
{
	static const char *const text[NATIVE_REASONS] = {
		[NATIVE_SELF] = "on MPI_COMM_SELF",
		[NATIVE_INTER] = "on intercommunicators",
		[NATIVE_COMM] = "on communicators that are not routed",
		[NATIVE_OPTION] = "by --coll",
		[NATIVE_OPERATION] = "with an operation that the MPI library does not reduce the type by",
		[NATIVE_ARGUMENTS] = "with arguments that the MPI library refuses",
	};
	const char *before = "    native: ";

	for (int r = 1; r < NATIVE_REASONS; r++)
		if (why[r]) {
			fprintf(f, "%s%" PRIu64 " %s", before, why[r], text[r]);
			before = ", ";
		}
	if (*before == ',')
		fprintf(f, "\n");
}

static void calls_print(FILE *f, const struct sums *s)
{
	uint64_t bytes = 0;

	fprintf(f, "  %-28s %14s %18s %14s\n", "function", "calls routed", "bytes sent",
		"calls native");
	for (int i = 0; i < CALL_COUNT; i++) {
		bytes += s->call[i].bytes;
		if (s->call[i].routed || s->call[i].native || s->call[i].bytes)
			fprintf(f, "  %-28s %14" PRIu64 " %18" PRIu64 " %14" PRIu64 "\n", names[i],
				s->call[i].routed, s->call[i].bytes, s->call[i].native);
		reasons_print(f, s->call[i].why);
	}
	fprintf(f, "  %-28s %14s %18" PRIu64 "\n", "all functions", "", bytes);
}

/* Rank 0's name of it, which the rail to its own node has on every rank. */
static const char *rail_name(int r, struct rail_info *info)
{
	if (r == LOCAL)
		return "local";
	rail_info(layer.rails, r, info);
	return info->name;
}

static void rails_print(FILE *f, const struct sums *s)
{
	struct rail_info info;

	fprintf(f, "  %-16s %10s %10s %15s %10s %10s %15s %8s %8s\n", "rail", "sent: msgs",
		"chunks", "bytes", "got: msgs", "chunks", "bytes", "stalls", "retries");
	for (int r = 0; r < RAILS; r++) {
		char retries[24] = "-";

		if (!s->rail[r].ranks)
			continue;
		if (s->rail[r].counting == s->rail[r].ranks)
			snprintf(retries, sizeof(retries), "%" PRIu64, s->rail[r].retries);
		fprintf(f, "  %-16s %10" PRIu64 " %10" PRIu64 " %15" PRIu64 " %10" PRIu64 " %10" PRIu64
			" %15" PRIu64 " %8" PRIu64 " %8s\n", rail_name(r, &info),
			s->rail[r].tx_messages, s->rail[r].tx_chunks, s->rail[r].tx_bytes,
			s->rail[r].rx_messages, s->rail[r].rx_chunks, s->rail[r].rx_bytes,
			s->rail[r].stalls, retries);
	}
}

static void mapped_print(FILE *f, const struct sums *s)
{
	if (world_settings.rail.map_buffers)
		fprintf(f, "  receive buffers mapped (--map-buffers): %" PRIu64 ", of %" PRIu64
			" bytes; refused: %" PRIu64 "\n", s->mapped.buffers, s->mapped.bytes,
			s->mapped.refused);
}

static void progress_print(FILE *f, const struct sums *s)
{
	fprintf(f, "  progress: %" PRIu64 " rounds in calls over rails, %" PRIu64 " turns of the MPI library "
		"among them;\n  looks at rails: %" PRIu64 " in the MPI library's progress, %" PRIu64
		" by progress threads\n", s->progress.rounds, s->progress.turns, s->progress.looks,
		s->progress.thread_looks);
}

static void rest_print(FILE *f)
{
	fprintf(f, "  not counted: calls that wait, test, cancel or make communicators, which carry "
		"no bytes of the program;\n  bytes of native calls; and what the MPI library always "
		"carries itself:\n  ");
	for (int i = 0; calls_not_ours[i]; i++)
		fprintf(f, "%s%s", i ? "; " : "", calls_not_ours[i]);
	fprintf(f, "\n");
}

/* least, most: call_time_part of the ranks.  learned: lines, or NULL. */
static void all_print(const struct sums *s, uint64_t least, uint64_t most, const char *learned)
{
	size_t length = 0, at = 0;
	char *text = NULL;
	FILE *f = open_memstream(&text, &length);
	ssize_t n = 1;

	if (!f)
		return;
	fprintf(f, "%s: ledger of %d ranks together; messages are those sent at once, chunks are of "
		"large ones\n", rg_program(), layer.world_size);
	calls_print(f, s);
	rails_print(f, s);
	sizes_print(f, &s->sizes);
	call_time_print(f, &s->times, layer.world_size, least, most);
	mapped_print(f, s);
	fputs(learned ? learned : "", f);
	progress_print(f, s);
	rest_print(f);
	fclose(f);
	for (; text && at < length && n > 0; at += (size_t)n)
		n = write(STDERR_FILENO, text + at, length - at);
	free(text);
}

void call_table_end(bool together)
{
	static struct sums mine, all;
	uint64_t part[2], most[2] = { 0, 0 };
	char *learned;

	if (!calls_counted)
		return;
	calls_counted = false;
	if (!together) {
		rg_warn("ledger: not printed, since some ranks are missing");
		return;
	}
	memset(&mine, 0, sizeof(mine));
	calls_sum(&mine);
	rails_sum(&mine);
	mapped_sum(&mine);
	progress_sum(&mine);
	sizes_read(&mine.sizes);
	call_time_read(&mine.times);
	part[0] = call_time_part(&mine.times);
	part[1] = UINT64_MAX - part[0];
	native.Reduce(&mine, &all, sizeof(mine) / sizeof(uint64_t), MPI_UINT64_T, MPI_SUM, 0,
		      MPI_COMM_WORLD);
	native.Reduce(part, most, 2, MPI_UINT64_T, MPI_MAX, 0, MPI_COMM_WORLD);
	learned = learned_gather();
	if (layer.world_rank == 0)
		all_print(&all, UINT64_MAX - most[1], most[0], learned);
	free(learned);
}
