/* hosts.c - the provenance of all hosts of a job. */
#include "bench/hosts.h"
#include "bench/ranks.h"

#include <stdlib.h>
#include <string.h>

#include "topo/topo.h"

enum { HOSTS_TAG = 5 };

static bool is_first(const struct bench_job *job, int rank)
{
	for (int i = 0; i < rank; i++)
		if (strcmp(job->where.place[i].host, job->where.place[rank].host) == 0)
			return false;
	return true;
}

bool hosts_leads(const struct bench_job *job)
{
	return is_first(job, job->b.rank);
}

/* ---- Collecting ----------------------------------------------------------------- */

static void text_send(const struct bench_job *job, json_t *mine)
{
	char *text = json_dumps(mine, JSON_COMPACT);
	const char *sent = text ? text : "null";

	MPI_Send(sent, (int)strlen(sent), MPI_CHAR, 0, HOSTS_TAG, job->where.comm);
	free(text);
}

static json_t *text_receive(const struct bench_job *job, int rank)
{
	MPI_Status status;
	json_t *value;
	char *text;
	int bytes;

	MPI_Probe(rank, HOSTS_TAG, job->where.comm, &status);
	MPI_Get_count(&status, MPI_CHAR, &bytes);
	text = bench_must(malloc((size_t)bytes + 1));
	MPI_Recv(text, bytes, MPI_CHAR, rank, HOSTS_TAG, job->where.comm, MPI_STATUS_IGNORE);
	value = json_loadb(text, (size_t)bytes, JSON_DECODE_ANY, NULL);
	free(text);
	return value ? value : json_null();
}

json_t *hosts_collect(const struct bench_job *job, json_t *mine)
{
	json_t *all = NULL;

	if (job->b.rank == 0) {
		all = json_array();
		json_array_append(all, mine);
		for (int i = 1; i < job->b.size; i++)
			if (is_first(job, i))
				json_array_append_new(all, text_receive(job, i));
	} else if (mine) {
		text_send(job, mine);
	}
	json_decref(mine);
	return all;
}

/* ---- Rails ---------------------------------------------------------------------- */

static json_t *text_or_null(const char *text)
{
	return *text ? report_string(text) : json_null();
}

static json_t *positive(json_int_t value)
{
	return value > 0 ? json_integer(value) : json_null();
}

/* The narrowest known link between a device and its host bridge. */
static json_t *link_json(const struct topo *t, const struct topo_spot *spot)
{
	struct topo_link link[TOPO_LINKS_MAX];
	int n = topo_links(t, spot, link), best = -1;

	for (int i = 0; i < n; i++)
		if (link[i].bytes_per_s &&
		    (best < 0 || link[i].bytes_per_s < link[best].bytes_per_s))
			best = i;
	if (best < 0)
		return json_null();
	return json_pack("{s:s, s:o, s:o, s:I}", "at", link[best].at,
			 "lanes", positive(link[best].lanes),
			 "mt_per_s", positive(link[best].mt_per_s),
			 "bytes_per_s", (json_int_t)link[best].bytes_per_s);
}

static json_t *limits_json(const uint64_t limit[3])
{
	return limit[2] ? json_pack("[I, I, I]", (json_int_t)limit[0], (json_int_t)limit[1],
				    (json_int_t)limit[2]) : json_null();
}

/* The interface of a rail over TCP. */
static json_t *net_json(int rail)
{
	struct railmpi_net net;

	if (railmpi_net(rail, &net))
		return json_null();
	return json_pack("{s:s, s:o, s:o, s:s, s:o, s:o, s:o}", "interface", net.interface,
			 "driver", text_or_null(net.driver), "mtu_bytes", positive(net.mtu_bytes),
			 "offloads", net.offloads,
			 "congestion_control", text_or_null(net.congestion_control),
			 "receive_buffer_bytes", limits_json(net.receive_buffer),
			 "send_buffer_bytes", limits_json(net.send_buffer));
}

/* t: NULL on the software HCA, which is in no place. */
static json_t *rail_json(const struct topo *t, const struct railmpi_rail *rail, int number)
{
	struct topo_spot spot = { .numa = -1 };
	char device[sizeof(rail->name)];

	snprintf(device, sizeof(device), "%.*s", (int)strcspn(rail->name, ":"), rail->name);
	if (t)
		topo_find(t, device, &spot);
	return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o}", "name", rail->name,
			 "net", net_json(number), "firmware", text_or_null(rail->firmware),
			 "pci", text_or_null(spot.pci),
			 "numa", spot.numa < 0 ? json_null() : json_integer(spot.numa),
			 "pcie", t ? link_json(t, &spot) : json_null());
}

static json_t *rails_json(const struct bench_job *job)
{
	const struct railmpi_fabric *f = &job->where.fabric;
	json_t *list = json_array();
	struct topo *t = NULL;

	if (f->rail_count && !f->software_hca && topo_open(TOPO_RAILS, &t))
		t = NULL;
	for (int i = 0; i < f->rail_count; i++)
		json_array_append_new(list, rail_json(t, &f->rail[i], i));
	topo_close(t);
	return list;
}

/* A GID names a host. */
static json_t *gids_json(const struct bench_job *job)
{
	json_t *list = json_array();

	for (int i = 0; i < job->where.fabric.rail_count; i++)
		json_array_append_new(list, job->opt.redact ? json_null() :
				      text_or_null(job->where.fabric.rail[i].gid));
	return list;
}

/* ---- Hosts ---------------------------------------------------------------------- */

static json_t *libraries_json(void)
{
	json_t *all = report_libraries();
	char mpi[MPI_MAX_LIBRARY_VERSION_STRING];
	int length;

	MPI_Get_library_version(mpi, &length);
	mpi[strcspn(mpi, "\n")] = '\0';
	json_object_set_new(all, "mpi", report_string(mpi));
	return all;
}

static json_t *mine_json(const struct bench_job *job)
{
	return json_pack("{s:{s:o, s:o, s:o}, s:s, s:o, s:o}",
			 "alike", "machine", report_machine(), "libraries", libraries_json(),
			 "rails", rails_json(job),
			 "name", job->where.place[job->b.rank].host,
			 "load_average", report_load_average(), "gids", gids_json(job));
}

/* Add a host to the group of its like, or to a new one. */
static void group_add(json_t *groups, const json_t *host)
{
	static const char *const each[][2] = {
		{ "names", "name" }, { "load_average", "load_average" }, { "gids", "gids" },
	};
	json_t *alike = json_object_get(host, "alike"), *group, *found = NULL;
	size_t i;

	json_array_foreach(groups, i, group)
		if (json_equal(json_object_get(group, "alike"), alike))
			found = group;
	if (!found) {
		found = json_pack("{s:O, s:[], s:[], s:[]}", "alike", alike, "names",
				  "load_average", "gids");
		json_array_append_new(groups, found);
	}
	for (i = 0; i < sizeof(each) / sizeof(each[0]); i++)
		json_array_append(json_object_get(found, each[i][0]),
				  json_object_get(host, each[i][1]));
}

json_t *hosts_describe(const struct bench_job *job)
{
	json_t *all = hosts_collect(job, hosts_leads(job) ? mine_json(job) : NULL);
	json_t *groups, *host, *group;
	size_t i;

	if (!all)
		return NULL;
	groups = json_array();
	json_array_foreach(all, i, host)
		if (json_is_object(host))
			group_add(groups, host);
	json_array_foreach(groups, i, group) {
		json_object_update(group, json_object_get(group, "alike"));
		json_object_del(group, "alike");
	}
	json_decref(all);
	return groups;
}
