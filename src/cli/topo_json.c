/*
 * topo_json.c - railgauge topo --json: one object.  An unknown value is null.
 *
 *	{"type": "topo", "file": name or null (live), "order_assumed", "host", "packages",
 *	 "numa_nodes", "core_count", "usable_core_count",
 *	 "rails": [{"rail", "name", "device", "port", "kind", "link_layer", "state",
 *		    "rate_bytes_per_s" (0: unlimited), "mtu_bytes", "gid", "gid_type",
 *		    "gid_index", "lid", "firmware", "numa_node", "package", "pci",
 *		    "pcie": {"bytes_per_s", "gt_per_s", "lanes", "max_bytes_per_s",
 *			     "max_gt_per_s", "max_lanes"},
 *		    "errors": {counter: value, null at its end}}],
 *	 "gpus": [{"name", "pci", "numa_node", "package"}],
 *	 "cores": [{"name", "cores", "cpus", "numa_node", "package"}],
 *	 "paths": {RAIL: {RAIL or GPU or CORES: "PIX"}},
 *	 "links": [{"at", "bytes_per_s", "rails": [name]}], links on the path of a rail; several
 *		    rails share it
 *	 "ranks": [{"rank", "cores", "cpus", "numa_node", "package",
 *		    "bind": {"rank" or "near": {"rail": name, "path"}}}],
 *	 "warnings": [{"kind", "text"}]}
 */
#include "config.h"

#include <jansson.h>
#include <string.h>

#include "report/report.h"
#include "cli/topo_path.h"
#include "cli/topo_json.h"
#include "cli/topo_warn.h"

static json_t *text_or_null(const char *text)
{
	return text && *text ? report_string(text) : json_null();
}

static json_t *number_if(bool known, uint64_t value)
{
	return known ? json_integer((json_int_t)value) : json_null();
}

static json_t *signed_or_null(int value)
{
	return value >= 0 ? json_integer(value) : json_null();
}

static json_t *gt_or_null(unsigned mt_per_s)
{
	return mt_per_s ? json_real(mt_per_s / 1000.0) : json_null();
}

static json_t *path_or_null(enum topo_path path)
{
	return path == TOPO_UNKNOWN ? json_null() : json_string(topo_path_text(path));
}

static json_t *pcie(const struct topo_rail *rail)
{
	const struct topo_link *l = &rail->link[0];

	if (!rail->link_count)
		return json_null();
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}",
			 "bytes_per_s", number_if(l->bytes_per_s, l->bytes_per_s),
			 "gt_per_s", gt_or_null(l->mt_per_s), "lanes", number_if(l->lanes, l->lanes),
			 "max_bytes_per_s", number_if(l->max_bytes_per_s, l->max_bytes_per_s),
			 "max_gt_per_s", gt_or_null(l->max_mt_per_s),
			 "max_lanes", number_if(l->max_lanes, l->max_lanes));
}

static json_t *spot(const struct topo_spot *s)
{
	return json_pack("{s:s, s:o, s:o, s:o}", "name", s->name, "pci", text_or_null(s->pci),
			 "numa_node", signed_or_null(s->numa),
			 "package", signed_or_null(s->package));
}

/* A counter that has stopped at its end counts nothing more. */
static json_t *errors(const struct topo_rail *rail)
{
	json_t *object = json_object();

	for (int i = 0; i < rail->error_count; i++)
		json_object_set_new(object, rail->error[i].name,
				    number_if(!rail->error[i].at_end, rail->error[i].value));
	return object;
}

static json_t *rail(const struct topo_rail *r)
{
	const struct topo_port *p = &r->port;
	json_t *object = spot(&r->spot);

	json_object_set_new(object, "rail", signed_or_null(r->rail));
	json_object_set_new(object, "name", json_string(r->name));
	json_object_set_new(object, "device", json_string(r->spot.name));
	json_object_set_new(object, "port", number_if(p->number, p->number));
	json_object_set_new(object, "kind", text_or_null(p->kind));
	json_object_set_new(object, "link_layer", text_or_null(p->link_layer));
	json_object_set_new(object, "state", text_or_null(p->state));
	json_object_set_new(object, "rate_bytes_per_s",
			    number_if(p->rate_known, p->rate_bytes_per_s));
	json_object_set_new(object, "mtu_bytes", number_if(p->mtu_bytes, p->mtu_bytes));
	json_object_set_new(object, "gid", text_or_null(p->gid));
	json_object_set_new(object, "gid_type", text_or_null(p->gid_type));
	json_object_set_new(object, "gid_index", signed_or_null(p->gid_index));
	json_object_set_new(object, "lid", signed_or_null(p->lid));
	json_object_set_new(object, "firmware", text_or_null(p->firmware));
	json_object_set_new(object, "pcie", pcie(r));
	json_object_set_new(object, "errors", errors(r));
	return object;
}

static json_t *cores(const struct topo_cores *c)
{
	json_t *object = spot(&c->spot);

	json_object_del(object, "pci");
	json_object_set_new(object, "cores", json_string(c->cores));
	json_object_set_new(object, "cpus", json_string(c->cpus));
	return object;
}

static json_t *paths_of(const struct topo_report *r, int from)
{
	const struct topo *t = r->topo;
	const struct topo_spot *s = &r->rail[from].spot;
	json_t *object = json_object();

	for (int i = 0; i < r->rail_count; i++)
		json_object_set_new(object, r->rail[i].name,
				    path_or_null(topo_rail_path(r, from, i)));
	for (int i = 0; i < t->gpu_count; i++)
		json_object_set_new(object, t->gpu[i].name,
				    path_or_null(topo_path(t, s, &t->gpu[i])));
	for (int i = 0; i < t->cores_count; i++)
		json_object_set_new(object, t->cores[i].spot.name,
				    path_or_null(topo_path(t, s, &t->cores[i].spot)));
	return object;
}

static json_t *bound(const struct topo_report *r, const struct topo_rank *rank, enum topo_bind b)
{
	if (rank->uses[b] < 0)
		return json_null();
	return json_pack("{s:s, s:o}", "rail", r->rail[rank->uses[b]].name,
			 "path", path_or_null(rank->path[b]));
}

static json_t *rank(const struct topo_report *r, unsigned index)
{
	const struct topo_rank *k = &r->rank[index];

	return json_pack("{s:i, s:s, s:s, s:o, s:o, s:{s:o, s:o}}", "rank", (int)index,
			 "cores", k->block.cores, "cpus", k->block.cpus,
			 "numa_node", signed_or_null(k->block.numa),
			 "package", signed_or_null(k->block.package),
			 "bind", "rank", bound(r, k, TOPO_BIND_RANK),
			 "near", bound(r, k, TOPO_BIND_NEAR));
}

/* The shared links, from which warnings are derived. */
static json_t *links(const struct topo_report *r)
{
	json_t *list = json_array();
	struct topo_shared s;

	topo_shares_find(r, &s);
	for (int i = 0; i < s.count; i++) {
		const struct topo_link *link = &s.share[i].link;
		json_t *below = json_array();

		for (int b = 0; b < s.rails; b++)
			if (s.share[i].rails & UINT32_C(1) << b)
				json_array_append_new(below, json_string(s.rail[b]->name));
		json_array_append_new(list, json_pack("{s:s, s:o, s:o}", "at", link->at,
			"bytes_per_s", number_if(link->bytes_per_s, link->bytes_per_s),
			"rails", below));
	}
	return list;
}

static json_t *need_json(const struct rail_plan_need *n)
{
	return json_pack("{s:i, s:i, s:i, s:I}", "queue_pairs", (int)n->queue_pairs, "srq_receives",
			 (int)n->srq_receives, "cq_entries", (int)n->cq_entries, "pinned_bytes",
			 (json_int_t)n->pinned_bytes);
}

/* NULL: none were asked for. */
static json_t *needs(const struct topo_report *r)
{
	static const char *const kinds[] = { [TOPO_BY_RING] = "ring", [TOPO_BY_SEND] = "send" };
	const struct topo_need need = topo_need(r);
	json_t *all;

	if (!r->job_ranks)
		return NULL;
	all = json_pack("{s:i, s:I, s:I, s:I}", "job_ranks", (int)r->job_ranks, "peers_of_rank",
			(json_int_t)need.peers, "peers_of_node", (json_int_t)need.connections,
			"eager_bytes", (json_int_t)need.eager);
	for (int kind = 0; kind < TOPO_EAGER_KINDS; kind++) {
		json_t *peer = need_json(&need.peer[kind]);

		json_object_set_new(peer, "narrow", need_json(&need.narrow[kind]));
		json_object_set_new(peer, "cq_bytes_of_rank", json_integer((json_int_t)need.cq_bytes[kind]));
		json_object_set_new(json_object_get(peer, "narrow"), "cq_bytes_of_rank",
				    json_integer((json_int_t)need.narrow_cq_bytes[kind]));
		json_object_set_new(all, kinds[kind], peer);
	}
	return all;
}

json_t *topo_json(const struct topo_report *r)
{
	const struct topo *t = r->topo;
	json_t *rails = json_array(), *gpus = json_array(), *groups = json_array();
	json_t *paths = json_object(), *ranks = json_array(), *warnings = json_array();

	for (int i = 0; i < r->rail_count; i++) {
		json_array_append_new(rails, rail(&r->rail[i]));
		json_object_set_new(paths, r->rail[i].name, paths_of(r, i));
	}
	for (int i = 0; i < t->gpu_count; i++)
		json_array_append_new(gpus, spot(&t->gpu[i]));
	for (int i = 0; i < t->cores_count; i++)
		json_array_append_new(groups, cores(&t->cores[i]));
	for (unsigned i = 0; i < r->rank_count; i++)
		json_array_append_new(ranks, rank(r, i));
	for (int i = 0; i < r->warning_count; i++)
		json_array_append_new(warnings, json_pack("{s:s, s:s}",
			"kind", r->warning[i].kind, "text", r->warning[i].text));
	return json_pack("{s:s, s:o, s:b, s:o, s:i, s:i, s:i, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o*}",
			 "type", "topo", "file", text_or_null(r->file),
			 "order_assumed", (int)r->assumed,
			 "host", text_or_null(t->host), "packages", t->package_count,
			 "numa_nodes", t->numa_count, "core_count", t->core_count,
			 "usable_core_count", t->usable_count,
			 "rails", rails, "gpus", gpus, "cores", groups, "paths", paths,
			 "links", links(r), "ranks", ranks, "warnings", warnings,
			 "needs", needs(r));
}
