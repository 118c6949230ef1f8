/*
 * ledger.c - what each rail carried, by way and size, and the counters of its port.
 *
 * A rank reads its counts just before a collective that all ranks must enter before the next
 * messages.  Then it has no message under way and no rank can have sent a new one, so every message
 * is counted for exactly one way at both ends.
 *
 * Port counters count all users of a port, and kernels show them some 10 ms late.  So only
 * their difference over the whole measurement is reported.
 */
#include "bench/ledger.h"
#include "bench/carrier.h"
#include "bench/ranks.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { FIELDS = sizeof(struct rail_ledger) / sizeof(uint64_t) };

static bool is_kept(const struct bench_job *job)
{
	return job->opt.ledger && job->where.fabric.rail_count;
}

/*
 * The next rail in reports: rails to other nodes first, then the rail within nodes, if any rank has
 * it.
 */
static int next_rail(const struct bench_job *job, int r)
{
	if (++r < job->where.fabric.rail_count)
		return r;
	return r <= RAILMPI_LOCAL && job->where.some_local ? RAILMPI_LOCAL : RAILMPI_LEDGERS;
}

#define for_each_rail(job, r) \
	for (int r = next_rail(job, -1); r < RAILMPI_LEDGERS; r = next_rail(job, r))

static const char *rail_name(const struct bench_job *job, int r)
{
	return r == RAILMPI_LOCAL ? "local" : job->where.fabric.rail[r].name;
}

/* Does the rail count retries?  The rail within nodes does, since it is a software HCA. */
static bool counts_retries(const struct bench_job *job, int r)
{
	return r == RAILMPI_LOCAL || job->where.fabric.rail[r].counts_retries;
}

/* ---- Rails ---------------------------------------------------------------------- */

void ledger_take(struct bench_job *job, struct bench_column *way)
{
	for (int r = 0; is_kept(job) && r < RAILMPI_LEDGERS; r++) {
		struct rail_ledger now;
		const uint64_t *at = (const uint64_t *)&now;
		uint64_t *seen = (uint64_t *)&job->got.ledger_seen[r];

		if (carrier_ledger(job, r, &now))
			continue;
		for (int i = 0; way && i < FIELDS; i++)
			((uint64_t *)&way->ledger[r])[i] += at[i] - seen[i];
		job->got.ledger_seen[r] = now;
	}
}

static json_t *rail_json(const struct bench_job *job, int r, const struct rail_ledger *l)
{
	return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o}",
			 "rail", rail_name(job, r),
			 "tx_messages", (json_int_t)l->tx_messages,
			 "tx_chunks", (json_int_t)l->tx_chunks,
			 "tx_bytes", (json_int_t)l->tx_bytes,
			 "rx_messages", (json_int_t)l->rx_messages,
			 "rx_chunks", (json_int_t)l->rx_chunks,
			 "rx_bytes", (json_int_t)l->rx_bytes,
			 "stalls", (json_int_t)l->stalls,
			 "retries", counts_retries(job, r) ?
			 json_integer((json_int_t)l->retries) : json_null());
}

/* Collect each rail's worst port state over all ranks, at rank 0. */
static void states_collect(const struct bench_job *job, int state[])
{
	int mine[RAILMPI_LEDGERS];

	for (int r = 0; r < RAILMPI_LEDGERS; r++) {
		struct rail_ledger any;

		/* A rank without this rail does not affect the minimum. */
		mine[r] = railmpi_ledger(r, &any) ? INT_MAX : railmpi_port_state(r);
	}
	MPI_Reduce(mine, state, RAILMPI_LEDGERS, MPI_INT, MPI_MIN, 0, job->where.comm);
}

json_t *ledger_row(struct bench_job *job, struct bench_column *way)
{
	struct rail_ledger sum[RAILMPI_LEDGERS];
	int state[RAILMPI_LEDGERS];
	json_t *list;

	if (!is_kept(job))
		return NULL;
	MPI_Reduce(way->ledger, sum, RAILMPI_LEDGERS * FIELDS, MPI_UINT64_T, MPI_SUM, 0,
		   job->where.comm);
	memset(way->ledger, 0, sizeof(way->ledger));
	states_collect(job, state);
	if (job->b.rank)
		return NULL;
	list = json_array();
	for_each_rail(job, r) {
		json_t *rail = rail_json(job, r, &sum[r]);

		for (int i = 0; i < FIELDS; i++)
			((uint64_t *)&way->total[r])[i] += ((const uint64_t *)&sum[r])[i];
		json_object_set_new(rail, "state",
				    json_string(railmpi_port_state_text(state[r])));
		json_array_append_new(list, rail);
	}
	return list;
}

/* ---- Ports ------------------------------------------------------------------------ */

/* Does this rank report ports?  The first rank of a node does. */
static bool speaks(const struct bench_job *job)
{
	const struct bench_place *me = &job->where.place[job->b.rank];

	for (int i = 0; i < job->b.rank; i++)
		if (job->where.place[i].node == me->node)
			return false;
	return true;
}

static void counter_keep(void *user, const char *name, const uint64_t *value)
{
	json_object_set_new(user, name, value && *value <= INT64_MAX ?
			    json_integer((json_int_t)*value) : json_null());
}

/* Counters by rail: name -> value, null if it is not known. */
static json_t *counters_read(const struct bench_job *job)
{
	json_t *list = json_array();

	for (int r = 0; r < job->where.fabric.rail_count; r++) {
		json_t *counters = json_object();

		railmpi_port_counters(r, counter_keep, counters);
		json_array_append_new(list, counters);
	}
	return list;
}

/* Differences; null for a counter that is unknown at either time or was reset in between. */
static json_t *counters_since(const json_t *begin, json_t *end)
{
	json_t *all = json_object(), *value;
	const char *name;

	json_object_foreach(end, name, value) {
		const json_t *before = json_object_get(begin, name);
		json_int_t moved = json_integer_value(value) - json_integer_value(before);

		json_object_set_new(all, name, json_is_integer(value) &&
				    json_is_integer(before) && moved >= 0 ?
				    json_integer(moved) : json_null());
	}
	return all;
}

/* The sum of counters of retries; null: none exists, or one is not known. */
static json_t *retries_of(json_t *counters)
{
	json_int_t sum = 0;
	bool counted = false;
	const char *name;
	json_t *value;

	json_object_foreach(counters, name, value) {
		if (!railmpi_counter_is_retry(name))
			continue;
		if (json_is_null(value))
			return json_null();
		counted = true;
		sum += json_integer_value(value);
	}
	return counted ? json_integer(sum) : json_null();
}

/* Bytes by a port's counter in units of four bytes, or by a network interface's. */
static json_t *bytes_of(const json_t *counters, const char *port, const char *netdev)
{
	const json_t *words = json_object_get(counters, port),
		     *bytes = json_object_get(counters, netdev);

	return json_is_integer(words) ? json_integer(4 * json_integer_value(words)) :
	       json_is_integer(bytes) ? json_integer(json_integer_value(bytes)) : json_null();
}

static json_t *port_json(const struct bench_job *job, int r, json_t *counters)
{
	const struct bench_place *me = &job->where.place[job->b.rank];
	const int state = railmpi_port_state(r);

	return json_pack("{s:i, s:o, s:s, s:s, s:b, s:o, s:o, s:o, s:o}", "node", me->node,
			 "host", report_string(me->host), "rail", job->where.fabric.rail[r].name,
			 "state", railmpi_port_state_text(state),
			 "active", state == RAILMPI_PORT_ACTIVE,
			 "tx_bytes", bytes_of(counters, "port_xmit_data", "tx_bytes"),
			 "rx_bytes", bytes_of(counters, "port_rcv_data", "rx_bytes"),
			 "retries", retries_of(counters), "counters", counters);
}

static json_t *ports_mine(const struct bench_job *job)
{
	json_t *now = counters_read(job), *list = json_array();

	for (int r = 0; r < job->where.fabric.rail_count; r++)
		json_array_append_new(list, port_json(job, r,
			counters_since(json_array_get(job->got.counters, (size_t)r),
				       json_array_get(now, (size_t)r))));
	json_decref(now);
	return list;
}

/* Ports of all nodes, at rank 0. */
static json_t *ports_collect(const struct bench_job *job)
{
	json_t *mine = speaks(job) ? ports_mine(job) : json_array(), *list = json_array();
	char *text = bench_must(json_dumps(mine, JSON_COMPACT)), *all = ranks_texts(job, text);
	const char *at = all;

	for (int i = 0; all && i < job->b.size; i++, at += strlen(at) + 1) {
		json_t *theirs = json_loads(at, 0, NULL);

		json_array_extend(list, theirs);
		json_decref(theirs);
	}
	free(all);
	free(text);
	json_decref(mine);
	return list;
}

/* ---- For people ---------------------------------------------------------------------- */

static void way_note(const struct bench_job *job, const struct bench_column *way)
{
	uint64_t all = 0;

	for_each_rail(job, r)
		all += way->total[r].tx_bytes;
	for_each_rail(job, r) {
		const struct rail_ledger *l = &way->total[r];
		char retries[48] = "";

		if (counts_retries(job, r))
			snprintf(retries, sizeof(retries), ", %" PRIu64 " retries", l->retries);
		report_note(job->got.report, "ledger %s %s: %" PRIu64 " bytes (%.1f %%), "
			    "%" PRIu64 " eager messages, %" PRIu64 " chunks, %" PRIu64 " stalls%s",
			    way->name, rail_name(job, r), l->tx_bytes,
			    all ? 100.0 * (double)l->tx_bytes / (double)all : 0.0,
			    l->tx_messages, l->tx_chunks, l->stalls, retries);
	}
}

/* Print the changes of a port's counters; a counter without change is left out. */
static void port_note(const struct bench_job *job, json_t *port)
{
	json_t *counters = json_object_get(port, "counters"), *value;
	const char *state = json_string_value(json_object_get(port, "state")), *name;
	char text[768] = "", where[96];

	if (job->where.host_count > 1)
		snprintf(where, sizeof(where), "%s",
			 json_string_value(json_object_get(port, "host")));
	else
		snprintf(where, sizeof(where), "node %d",
			 (int)json_integer_value(json_object_get(port, "node")));
	json_object_foreach(counters, name, value) {
		size_t used = strlen(text);

		if (json_integer_value(value))
			snprintf(text + used, sizeof(text) - used, "%s %s %" JSON_INTEGER_FORMAT,
				 used ? "," : "; counters of all its users:", name,
				 json_integer_value(value));
	}
	/* Most ports of the software HCA are active and without changes: no line. */
	if (*text || !json_is_true(json_object_get(port, "active")))
		report_note(job->got.report, "port %s of %s: %s%s",
			    json_string_value(json_object_get(port, "rail")), where, state, text);
}

/* ---- Begin and end --------------------------------------------------------------------- */

void ledger_open(struct bench_job *job)
{
	if (!is_kept(job))
		return;
	job->where.some_local = ranks_max(job, job->where.fabric.has_local);
	if (speaks(job))
		job->got.counters = counters_read(job);
	ledger_take(job, NULL);
}

json_t *ledger_close(struct bench_job *job)
{
	json_t *ports, *port, *ways;
	size_t i;

	if (!is_kept(job)) {
		if (job->got.report && job->opt.ledger)
			report_note(job->got.report, "ledger: no rails in use");
		return NULL;
	}
	ports = ports_collect(job);
	json_decref(job->got.counters);
	job->got.counters = NULL;
	if (!job->got.report) {
		json_decref(ports);
		return NULL;
	}
	ways = json_object();
	for (int w = 0; w < job->where.way_count; w++) {
		json_t *rails = json_array();

		way_note(job, &job->where.way[w]);
		for_each_rail(job, r)
			json_array_append_new(rails,
					      rail_json(job, r, &job->where.way[w].total[r]));
		json_object_set_new(ways, job->where.way[w].name, rails);
	}
	json_array_foreach(ports, i, port)
		port_note(job, port);
	return json_pack("{s:{s:o, s:o}}", "ledger", "ways", ways, "ports", ports);
}
