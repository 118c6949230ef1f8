/* check_records.c - what result files say, for the rules of railgauge check. */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/check_records.h"
#include "report/merge.h"
#include "util/err.h"

enum { OF_BYTES = 160 };

static const char *run_text(const struct report_file *f, const char *member)
{
	const char *text = json_string_value(json_object_get(f->run, member));

	return text ? text : "";
}

static const json_t *matrix_of(const struct report_file *f)
{
	return json_object_get(f->run, "matrix");
}

/* "rg_bw, stripe, 65536 bytes" */
static void row_name(const struct report_file *f, const char *way, double x, char of[OF_BYTES])
{
	const json_t *axis = json_object_get(f->run, "x");
	const char *unit = json_string_value(json_object_get(axis, "unit"));

	snprintf(of, OF_BYTES, "%s%s%s, %.12g %s", run_text(f, "program"), *way ? ", " : "", way, x,
		 !json_is_object(axis) ? "bytes" : unit ? unit : "");
}

/* ---- Striping: the largest size that has both ways -------------------------------------- */

static bool is_way(const struct report_row *row, const char *way)
{
	const size_t length = strlen(way);

	return !strncmp(row->way, way, length) && (!row->way[length] || row->way[length] == ':');
}

/* The best of the ways "single", "single:0", ... at a size; NaN: none. */
static double best_single(const struct report_file *f, double x)
{
	double best = NAN;

	report_each(row, f)
		if (row->x == x && is_way(row, "single") && !(row->stat[STATS_MEDIAN] <= best))
			best = row->stat[STATS_MEDIAN];
	return best;
}

static void stripe_add(json_t *list, const struct report_file *f)
{
	const json_t *rails = json_object_get(json_object_get(f->run, "fabric"), "rails");
	double size = -1, single = NAN, stripe = NAN;
	char of[OF_BYTES];

	if (f->metric != REPORT_BANDWIDTH || matrix_of(f) || json_array_size(rails) < 2)
		return;
	report_each(row, f)
		if (is_way(row, "stripe") && row->x > size && isfinite(best_single(f, row->x))) {
			size = row->x;
			stripe = row->stat[STATS_MEDIAN];
			single = best_single(f, row->x);
		}
	if (size < 0)
		return;
	row_name(f, "", size, of);
	json_array_append_new(list, json_pack("{s:s, s:f, s:f, s:i}", "of", of, "stripe", stripe,
					      "single", single, "rails", (int)json_array_size(rails)));
}

/* ---- Nodes' rails: cells of one job, which may have several launches --------------------------- */

struct ends {
	const struct report_files *files;
	int group;
	const struct report_file *first;
	int nodes, ways;
};

static const char *way_at(const struct ends *e, int way)
{
	return json_string_value(json_array_get(json_object_get(e->first->run, "ways"),
						(size_t)way));
}

/* The median of a node's cells over a way: as sender, or as receiver.  NaN: none has a value. */
static double end_median(const struct ends *e, int way, int node, bool sends)
{
	double *values = NULL, median;
	size_t count = 0, room = 0;

	for (int i = 0; i < e->files->count; i++) {
		if (e->files->group[i] != e->group)
			continue;
		report_each(row, &e->files->file[i]) {
			if ((sends ? row->from : row->to) != node || strcmp(row->way, way_at(e, way)) ||
			    !isfinite(row->stat[STATS_MEDIAN]))
				continue;
			if (count == room) {
				double *grown = realloc(values, (room = 2 * room + 64) *
							sizeof(*values));

				if (!grown)
					break;
				values = grown;
			}
			values[count++] = row->stat[STATS_MEDIAN];
		}
	}
	median = stats_median_of(values, count);
	free(values);
	return median;
}

/* "mlx5_1:1" of "single:1 (mlx5_1:1)", else the way. */
static void rail_name(const struct ends *e, int way, char name[OF_BYTES])
{
	const json_t *labels = json_object_get(matrix_of(e->first), "labels");
	const char *label = json_string_value(json_array_get(labels, (size_t)way));
	const char *open = label ? strchr(label, '(') : NULL;

	if (open && open[1])
		snprintf(name, OF_BYTES, "%.*s", (int)strcspn(open + 1, ")"), open + 1);
	else
		snprintf(name, OF_BYTES, "%s", label ? label : way_at(e, way));
}

static void end_add(json_t *list, const struct ends *e, int end, double value, double median)
{
	const int way = end / (2 * e->nodes), node = end / 2 % e->nodes;
	const json_t *names = json_object_get(matrix_of(e->first), "names");
	const char *host = json_string_value(json_array_get(names, (size_t)node));
	char rail[OF_BYTES];

	rail_name(e, way, rail);
	json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:o, s:o}", "node", host ? host : "",
		"rail", rail, "side", end % 2 ? "receives" : "sends",
		"value", isfinite(value) ? json_real(value) : json_null(),
		"median", isfinite(median) ? json_real(median) : json_null()));
}

/* The median of the ends that should be equal to those of `way`: of all ways, or of this alone. */
static double usual(const struct ends *e, const double *value, int way)
{
	const bool alike = json_is_true(json_object_get(matrix_of(e->first), "alike"));
	const int each = 2 * e->nodes, from = alike ? 0 : way * each;
	const int to = alike ? e->ways * each : from + each;
	double *known = malloc((size_t)(to - from) * sizeof(*known)), median;
	size_t count = 0;

	for (int i = from; known && i < to; i++)
		if (isfinite(value[i]))
			known[count++] = value[i];
	median = stats_median_of(known, count);
	free(known);
	return median;
}

/* A direction of a port, as a share of its rail's level: null, or 0: nothing came through. */
static void side_add(json_t *list, const json_t *node, const json_t *port, const char *side,
		     const char *member)
{
	const double share = json_number_value(json_object_get(port, member));

	json_array_append_new(list, json_pack("{s:O*, s:O*, s:s, s:o, s:f}",
		"node", json_object_get(node, "host"), "rail", json_object_get(port, "port"),
		"side", side, "value", share > 0 ? json_real(share) : json_null(), "median", 1.0));
}

/* rg_pairs that accuses: shares of the rail's level, without the partners' effects. */
static void shares_add(json_t *list, const json_t *acceptance)
{
	json_t *node, *port;
	size_t i, j;

	json_array_foreach(json_object_get(acceptance, "nodes"), i, node)
		json_array_foreach(json_object_get(node, "ports"), j, port) {
			side_add(list, node, port, "sends", "sending");
			side_add(list, node, port, "receives", "receiving");
		}
}

static int ends_add(json_t *list, const struct report_files *files, int group,
		    const struct report_file *first)
{
	const json_t *matrix = matrix_of(first);
	struct ends e = { files, group, first, (int)json_array_size(json_object_get(matrix, "names")),
			  (int)json_array_size(json_object_get(first->run, "ways")) };
	const int count = e.ways * e.nodes * 2;
	const json_t *acceptance = json_object_get(first->end, "acceptance");
	double *value;

	if (acceptance) {
		shares_add(list, acceptance);
		return 0;
	}
	if (!matrix || first->metric != REPORT_BANDWIDTH || !count)
		return 0;
	value = malloc((size_t)count * sizeof(*value));
	if (!value)
		return -ENOMEM;
	for (int i = 0; i < count; i++)
		value[i] = end_median(&e, i / (2 * e.nodes), i / 2 % e.nodes, i % 2 == 0);
	for (int i = 0; i < count; i++)
		end_add(list, &e, i, value[i], usual(&e, value, i / (2 * e.nodes)));
	free(value);
	return 0;
}

/* ---- Medians, then and now ------------------------------------------------------------------- */

/* May they be compared?  Another build of Railgauge or another MPI library is no obstacle. */
static bool comparable(const struct report_file *a, const struct report_file *b)
{
	const char *why;

	return !matrix_of(a) && !matrix_of(b) &&
	       (report_same_job(a, b, &why) || !strcmp(why, "mpi") || !strcmp(why, "provenance"));
}

static void medians_add(json_t *list, const struct report_file *kept, const struct report_file *now)
{
	report_each(was, kept) {
		const struct report_row *is = report_file_row(now, was->way, was->x);
		const double before = was->stat[STATS_MEDIAN], after = is ? is->stat[STATS_MEDIAN] : NAN;
		char of[OF_BYTES];

		if (!isfinite(before) || !isfinite(after) || before <= 0)
			continue;
		row_name(kept, was->way, was->x, of);
		json_array_append_new(list, json_pack("{s:s, s:f, s:f, s:f}", "of", of, "was", before,
			"is", after, "worse", kept->metric == REPORT_LATENCY ? after / before - 1 :
							1 - after / before));
	}
}

/* Compare a job of now with the first of kept ones that is like it. */
static int job_compare(json_t *list, const struct report_file *now, const struct report_files *kept)
{
	for (int g = 0; g < kept->group_count; g++) {
		struct report_file merged;
		const struct report_file *job;
		bool like;
		int rc = report_files_job(kept, g, &merged, &job);

		if (rc)
			return rc;
		like = comparable(job, now);
		if (like)
			medians_add(list, job, now);
		report_file_free(&merged);
		if (like)
			break;
	}
	return 0;
}

/* ---- All of them -------------------------------------------------------------------------------- */

static const struct report_file *first_of(const struct report_files *files, int group)
{
	int i = 0;

	while (files->group[i] != group)
		i++;
	return &files->file[i];
}

int check_measure(const struct report_files *now, const struct report_files *kept, json_t **out)
{
	json_t *stripe = json_array(), *rail = json_array(), *medians = json_array();
	int rc = 0;

	for (int g = 0; g < now->group_count && !rc; g++) {
		struct report_file merged;
		const struct report_file *job;

		rc = report_files_job(now, g, &merged, &job);
		if (rc)
			break;
		stripe_add(stripe, job);
		rc = ends_add(rail, now, g, first_of(now, g));
		if (kept && !rc)
			rc = job_compare(medians, job, kept);
		report_file_free(&merged);
	}
	*out = json_pack("{s:o, s:o, s:o}", "stripe", stripe, "rail", rail, "medians", medians);
	if (!rc && !*out)
		rc = -ENOMEM;
	if (rc == -ENOMEM)
		rg_error("check: no memory");
	return rc;
}
