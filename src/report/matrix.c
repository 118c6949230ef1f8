/*
 * matrix.c - the text view of rows that belong to two nodes each: a line per sender, a column
 * per receiver, and the slow cells as text.
 *
 *	# over single:1 (mlx5_1:1), MB/s, medians
 *	#                0         1         2
 *	         0         -  12041.22  12038.75
 *
 * A cell is slow if it is below a given fraction of the median of all cells of its way.  If all
 * cells of a node are slow, the node is named instead of them.  If ways should be equal, a way is
 * named if its median, without slow nodes, is slow compared with the best way.  (A slow node lowers
 * the median, too, if there are fewer than four.)
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "util/err.h"
#include "report/matrix.h"

enum { NAMED_MAX = 20 };		/* slow cells of a way that are named one by one */

int matrix_open(struct matrix *m, const struct report_table *table)
{
	size_t cells = (size_t)table->way_count * (size_t)table->matrix->count *
		       (size_t)table->matrix->count;

	*m = (struct matrix){ .table = table, .matrix = table->matrix };
	m->cell = malloc(cells * sizeof(m->cell[0]));
	m->slow = calloc((size_t)table->matrix->count, 1);
	if (!m->cell || !m->slow) {
		rg_error("no memory for a matrix of %d nodes", table->matrix->count);
		matrix_free(m);
		return -ENOMEM;
	}
	for (size_t i = 0; i < cells; i++)
		m->cell[i] = NAN;
	return 0;
}

void matrix_free(struct matrix *m)
{
	free(m->cell);
	free(m->slow);
	m->cell = NULL;
	m->slow = NULL;
}

static double *cell_at(const struct matrix *m, int way, int from, int to)
{
	int n = m->matrix->count;

	return &m->cell[((size_t)way * (size_t)n + (size_t)from) * (size_t)n + (size_t)to];
}

void matrix_row(struct matrix *m, const struct report_row *row)
{
	int way = 0;

	while (way < m->table->way_count && strcmp(m->table->ways[way], row->way))
		way++;
	if (way == m->table->way_count || row->from < 0 || row->to < 0 ||
	    row->from >= m->matrix->count || row->to >= m->matrix->count)
		return;
	*cell_at(m, way, row->from, row->to) = row->stat[STATS_N] > 0 ? row->stat[STATS_MEDIAN] : 0;
	m->bytes = row->bytes;
	m->checked += row->valid >= 0;
	m->cut += row->cut;
	if (row->valid != 0)
		return;
	if (m->table->text)
		fprintf(m->table->text, "# validation: Fail: %d to %d over %s\n", row->from,
			row->to, row->way);
	m->failed++;
}

/* ---- What is slow -------------------------------------------------------------- */

/* The median without nodes that are marked as slow; NaN: no cell is left. */
static double median_of(const struct matrix *m, int way)
{
	int n = m->matrix->count, count = 0;
	double *values = malloc((size_t)n * (size_t)n * sizeof(values[0])), median;

	for (int i = 0; values && i < n * n; i++) {
		double value = *cell_at(m, way, i / n, i % n);

		if (isfinite(value) && value > 0 && !m->slow[i / n] && !m->slow[i % n])
			values[count++] = value;
	}
	median = stats_median_of(values, (size_t)count);
	free(values);
	return median;
}

static bool is_slow(const struct matrix *m, double value, double reference)
{
	return isfinite(value) && value > 0 && value < m->matrix->slow * reference;
}

/* Are all cells of the node, two or more, slow on this way? */
static bool node_is_slow(const struct matrix *m, int way, int node, double median)
{
	int cells = 0;

	for (int i = 0; i < m->matrix->count; i++) {
		const double both[] = { *cell_at(m, way, node, i), *cell_at(m, way, i, node) };

		for (int k = 0; k < 2; k++) {
			if (!isfinite(both[k]))
				continue;
			if (!is_slow(m, both[k], median))
				return false;
			cells++;
		}
	}
	return cells > 2;
}

static const char *label_of(const struct matrix *m, int way)
{
	return m->matrix->labels ? m->matrix->labels[way] : m->table->ways[way];
}

static void slow_cells(const struct matrix *m, int way, double median, FILE *out)
{
	const char *const *names = m->matrix->names;
	int n = m->matrix->count, named = 0, more = 0;

	for (int i = 0; i < n * n; i++) {
		int from = i / n, to = i % n;
		double value = *cell_at(m, way, from, to);

		if (!is_slow(m, value, median) || m->slow[from] || m->slow[to])
			continue;
		if (named == NAMED_MAX) {
			more++;
			continue;
		}
		named++;
		fprintf(out, "# slow: %d to %d (%s to %s) over %s: %.2f, %.2f of the median %.2f\n",
			from, to, names[from], names[to], label_of(m, way), value, value / median,
			median);
	}
	if (more)
		fprintf(out, "# slow: ... and %d more over %s\n", more, label_of(m, way));
}

static void slow_nodes(const struct matrix *m, int way, double median, FILE *out)
{
	for (int i = 0; i < m->matrix->count; i++) {
		m->slow[i] = node_is_slow(m, way, i, median);
		if (m->slow[i])
			fprintf(out, "# slow: all to and from %d (%s) over %s: below %.2f of the "
				"median %.2f\n", i, m->matrix->names[i], label_of(m, way),
				m->matrix->slow, median);
	}
}

static void slow_ways(const struct matrix *m, const double *median, FILE *out)
{
	int best = 0;

	for (int w = 1; w < m->table->way_count; w++)
		if (!(median[w] <= median[best]))
			best = w;
	for (int w = 0; w < m->table->way_count; w++)
		if (is_slow(m, median[w], median[best]))
			fprintf(out, "# slow: %s as a whole: median %.2f, %.2f of %s's\n",
				label_of(m, w), median[w], median[w] / median[best],
				label_of(m, best));
}

/* ---- Printing ----------------------------------------------------------------------- */

static void print_way(const struct matrix *m, int way, FILE *out)
{
	int n = m->matrix->count;

	fprintf(out, "# over %s, %" PRIu64 " bytes, %s, medians; a line sends to a column\n%-10s",
		label_of(m, way), m->bytes, report_metric_unit(m->table->metric), "#");
	for (int to = 0; to < n; to++)
		fprintf(out, "%12d", to);
	fputc('\n', out);
	for (int from = 0; from < n; from++) {
		fprintf(out, "%10d", from);
		for (int to = 0; to < n; to++) {
			double value = *cell_at(m, way, from, to);

			if (isfinite(value) && value > 0)
				fprintf(out, "%12.2f", value);
			else
				fprintf(out, "%12s", value <= 0 ? "DOWN" : "-");
		}
		fputc('\n', out);
	}
}

void matrix_close(struct matrix *m)
{
	double median[REPORT_WAYS_MAX];
	FILE *out = m->cell && (!m->matrix->sparse || m->table->full) ? m->table->text : NULL;

	for (int i = 0; out && i < m->matrix->count; i++)
		fprintf(out, "# %d: %s\n", i, m->matrix->names[i]);
	for (int w = 0; out && w < m->table->way_count; w++)
		print_way(m, w, out);
	for (int w = 0; out && w < m->table->way_count; w++) {
		memset(m->slow, 0, (size_t)m->matrix->count);
		median[w] = median_of(m, w);
		slow_nodes(m, w, median[w], out);
		slow_cells(m, w, median[w], out);
		/* A slow node does not make the way slow: leave it out. */
		median[w] = median_of(m, w);
	}
	if (out && m->matrix->alike)
		slow_ways(m, median, out);
	if (out && m->checked && !m->failed)
		fprintf(out, "# validation: Pass, %d cells\n", m->checked);
	if (out && m->cut)
		fprintf(out, "# cut: %d of the cells: fewer iterations than asked for, because of "
			"--time-cap\n", m->cut);
	if (out)
		fflush(out);
	matrix_free(m);
}

/* ---- Reading -------------------------------------------------------------------------- */

const char *matrix_check(const json_t *run)
{
	json_t *matrix = json_object_get(run, "matrix"), *name;
	size_t ways = json_array_size(json_object_get(run, "ways")), i;

	if (!matrix)
		return NULL;
	if (!json_array_size(json_object_get(matrix, "names")) ||
	    json_array_size(json_object_get(matrix, "names")) > REPORT_MATRIX_MAX ||
	    json_array_size(json_object_get(matrix, "labels")) != ways ||
	    !json_is_number(json_object_get(matrix, "slow")))
		return "a matrix without names, labels or slow";
	json_array_foreach(json_object_get(matrix, "names"), i, name)
		if (!json_is_string(name))
			return "a matrix without names";
	json_array_foreach(json_object_get(matrix, "labels"), i, name)
		if (!json_is_string(name))
			return "a matrix without labels";
	return NULL;
}

const char *matrix_row_check(const json_t *run, const json_t *row)
{
	json_t *names = json_object_get(json_object_get(run, "matrix"), "names");
	json_int_t n = (json_int_t)json_array_size(names);

	for (int i = 0; names && i < 2; i++) {
		json_t *at = json_object_get(row, i ? "to" : "from");

		if (!json_is_integer(at) || json_integer_value(at) < 0 ||
		    json_integer_value(at) >= n)
			return "a row of no cell of the matrix";
	}
	return NULL;
}

static const char **strings(const json_t *array)
{
	size_t n = json_array_size(array), i;
	const char **all = calloc(n, sizeof(all[0]));

	for (i = 0; all && i < n; i++)
		all[i] = json_string_value(json_array_get(array, i));
	return all;
}

int matrix_load(struct report_matrix *out, const json_t *run)
{
	json_t *matrix = json_object_get(run, "matrix");

	*out = (struct report_matrix){
		.names = strings(json_object_get(matrix, "names")),
		.labels = strings(json_object_get(matrix, "labels")),
		.count = (int)json_array_size(json_object_get(matrix, "names")),
		.slow = json_number_value(json_object_get(matrix, "slow")),
		.alike = json_is_true(json_object_get(matrix, "alike")),
		.sparse = json_is_true(json_object_get(matrix, "sparse")),
	};
	if (out->names && out->labels)
		return 0;
	rg_error("no memory for a matrix of %d nodes", out->count);
	matrix_unload(out);
	return -ENOMEM;
}

void matrix_unload(struct report_matrix *m)
{
	free((void *)(uintptr_t)m->names);
	free((void *)(uintptr_t)m->labels);
}
