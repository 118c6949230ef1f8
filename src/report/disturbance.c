/* disturbance.c - rows that the machine disturbed. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "report/disturbance.h"

/* A count of the member; false: not known. */
static bool count_of(const json_t *noise, const char *name, double *out)
{
	const json_t *value = json_object_get(noise, name);

	*out = json_number_value(value);
	return json_is_number(value) && *out >= 0;
}

/* "stripe, 8 bytes", "stripe, queue 16", "single:1, nodes 0 to 3" */
static void row_name(const json_t *row, char *buf, size_t size)
{
	const char *way = json_string_value(json_object_get(row, "way"));
	const json_t *x = json_object_get(row, "x"), *from = json_object_get(row, "from");
	const char *name = json_string_value(json_object_get(x, "name"));

	if (name)
		snprintf(buf, size, "%s, %s %g", way ? way : "-", name,
			 json_number_value(json_object_get(x, "value")));
	else if (from)
		snprintf(buf, size, "%s, nodes %d to %d", way ? way : "-",
			 (int)json_integer_value(from),
			 (int)json_integer_value(json_object_get(row, "to")));
	else
		snprintf(buf, size, "%s, %lld bytes", way ? way : "-",
			 (long long)json_integer_value(json_object_get(row, "bytes")));
}

static void kind_add(struct disturbance_kind *k, double share, int rank, const json_t *row)
{
	if (k->rows++ && share <= k->share)
		return;
	k->share = share;
	k->rank = rank;
	row_name(row, k->row, sizeof(k->row));
}

/* Shares of a row; a row that is not disturbed has share 0. */
struct shares {
	bool recorded, known;
	double waited, stolen;
};

/* Samples of a launch of the row; false: not known. */
static bool samples_of(const json_t *row, double *out)
{
	const char *of = json_string_value(json_object_get(row, "ci_of"));
	double launches;

	if (!count_of(row, "n", out))
		return false;
	if (of && strcmp(of, "launches") == 0 && count_of(row, "ci_n", &launches) && launches > 1)
		*out /= launches;
	return true;
}

/* Can a wait of this share of the time have moved the median? */
static bool can_move(const json_t *row, const json_t *noise, double share)
{
	double slices, n;

	if (share >= DISTURBANCE_SHARED_SHARE)
		return true;
	return !count_of(noise, "slices", &slices) || !samples_of(row, &n) ||
	       slices > DISTURBANCE_TOUCHED * sqrt(n);
}

static struct shares shares_of(const json_t *row)
{
	const json_t *noise = json_object_get(row, "noise");
	struct shares s = { .recorded = json_is_object(noise) };
	double wait_ns, wall_ns, ticks, span_ns, share;

	s.known = count_of(noise, "wait_ns_most", &wait_ns) && count_of(noise, "wall_ns", &wall_ns);
	share = s.known && wall_ns > 0 ? wait_ns / wall_ns : 1;
	if (s.known && wait_ns >= DISTURBANCE_WAIT_NS_MIN && share >= DISTURBANCE_WAIT_SHARE &&
	    can_move(row, noise, share))
		s.waited = share;
	if (count_of(noise, "steal_ticks", &ticks) && count_of(noise, "span_ns", &span_ns) &&
	    ticks >= DISTURBANCE_STEAL_TICKS_MIN &&
	    ticks * DISTURBANCE_TICK_NS >= span_ns * DISTURBANCE_STEAL_SHARE)
		s.stolen = span_ns > 0 ? ticks * DISTURBANCE_TICK_NS / span_ns : 1;
	return s;
}

bool disturbance_of_row(const json_t *row)
{
	struct shares s = shares_of(row);

	return s.waited > 0 || s.stolen > 0;
}

void disturbance_add(struct disturbance *d, const json_t *row)
{
	const json_t *rank = json_object_get(json_object_get(row, "noise"), "rank");
	struct shares s = shares_of(row);

	d->rows++;
	d->unrecorded += !s.recorded;
	d->unknown += s.recorded && !s.known;
	d->disturbed += s.waited > 0 || s.stolen > 0;
	if (s.waited > 0)
		kind_add(&d->waited, s.waited, (int)json_integer_value(rank), row);
	if (s.stolen > 0)
		kind_add(&d->stolen, s.stolen, -1, row);
}

static void kind_merge(struct disturbance_kind *k, const struct disturbance_kind *launch)
{
	size_t rows = k->rows + launch->rows;

	if (launch->rows && (!k->rows || launch->share > k->share))
		*k = *launch;
	k->rows = rows;
}

void disturbance_merge(struct disturbance *d, const struct disturbance *launch)
{
	d->rows += launch->rows;
	d->disturbed += launch->disturbed;
	d->unrecorded += launch->unrecorded;
	d->unknown += launch->unknown;
	kind_merge(&d->waited, &launch->waited);
	kind_merge(&d->stolen, &launch->stolen);
}

void disturbance_print(const struct disturbance *d, FILE *out)
{
	const struct disturbance_kind *k = &d->waited;

	if (d->unknown)
		fprintf(out, "# noise: not known in %zu of %zu rows: the kernel does not tell how long "
			"ranks wait for a core (/proc/self/schedstat)\n", d->unknown, d->rows);
	if (k->rows)
		fprintf(out, "# noise: ranks waited for a core in %zu of %zu rows, most in %s: rank %d "
			"for %.3g %% of the time\n", k->rows, d->rows, k->row, k->rank,
			100 * k->share);
	k = &d->stolen;
	if (k->rows)
		fprintf(out, "# noise: a hypervisor took cores in %zu of %zu rows, most in %s: %.3g %% "
			"of one core\n", k->rows, d->rows, k->row, 100 * k->share);
}
