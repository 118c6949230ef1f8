/* citable.c - the verdict on a file, from its records. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "report/citable.h"
#include "util/text.h"

static void unrecorded_add(char *list, size_t size, const char *what)
{
	rg_text_add(list, size, "%s%s", *list ? ", " : "", what);
}

/* ---- Cores of ranks ---------------------------------------------------------------------- */

struct bound_rank { long long core; const char *host; int rank; };

static int bound_compare(const void *a, const void *b)
{
	const struct bound_rank *x = a, *y = b;

	if (x->core != y->core)
		return x->core < y->core ? -1 : 1;
	return strcmp(x->host, y->host) ? strcmp(x->host, y->host) : x->rank - y->rank;
}

/* ranks: those that are bound to one core each. */
static void shared_check(struct citable *c, struct bound_rank *ranks, size_t count)
{
	size_t sharing = 0, first = 0;

	qsort(ranks, count, sizeof(ranks[0]), bound_compare);
	for (size_t i = 1; i < count; i++)
		if (ranks[i].core == ranks[i - 1].core &&
		    strcmp(ranks[i].host, ranks[i - 1].host) == 0 && !sharing++)
			first = i;
	if (sharing)
		snprintf(c->reason[CITABLE_SHARED], CITABLE_TEXT, "ranks %d and %d share a core%s",
			 ranks[first - 1].rank, ranks[first].rank,
			 sharing > 1 ? ", and others do" : "");
}

/* A rank with `cores` of one core is bound. */
static void binding_check(struct citable *c, const json_t *ranks)
{
	size_t count = json_array_size(ranks), bound = 0, free_ranks = 0, unknown = 0, i;
	struct bound_rank *list = calloc(count + 1, sizeof(list[0]));
	const json_t *rank;

	json_array_foreach(ranks, i, rank) {
		const json_t *cores = json_object_get(rank, "cores");
		const char *host = json_string_value(json_object_get(rank, "host"));

		if (!json_array_size(cores))
			unknown++;
		else if (json_array_size(cores) > 1)
			free_ranks++;
		else if (list)
			list[bound++] = (struct bound_rank){
				json_integer_value(json_array_get(cores, 0)), host ? host : "",
				(int)i };
	}
	if (!count || unknown || !list)
		unrecorded_add(c->unrecorded, CITABLE_TEXT, "cores of ranks");
	if (free_ranks)
		snprintf(c->reason[CITABLE_UNBOUND], CITABLE_TEXT,
			 "%zu of %zu ranks are not bound to a core", free_ranks, count);
	if (list)
		shared_check(c, list, bound);
	free(list);
}

/* ---- The run record ------------------------------------------------------------------------ */

/* Machines without frequency scaling, such as virtual ones, record null.  false: not recorded. */
static bool machine_check(struct citable *c, const json_t *machine)
{
	const json_t *governor = json_object_get(machine, "governor");
	const char *text = json_string_value(governor);

	if (text && strcmp(text, "performance"))
		snprintf(c->reason[CITABLE_GOVERNOR], CITABLE_TEXT,
			 "CPU governor %.32s, not performance", text);
	return governor;
}

/* All hosts are checked where they are recorded, else rank 0's. */
static void governor_check(struct citable *c, const json_t *run)
{
	const json_t *hosts = json_object_get(run, "hosts"), *host;
	bool known = machine_check(c, json_object_get(json_object_get(run, "provenance"),
						      "machine"));
	size_t i;

	json_array_foreach(hosts, i, host)
		known = machine_check(c, json_object_get(host, "machine")) && (known || !i);
	if (!known)
		unrecorded_add(c->unrecorded, CITABLE_TEXT, "CPU governor");
}

static void fabric_check(struct citable *c, const json_t *run)
{
	const json_t *fabric = json_object_get(run, "fabric");
	const char *doubt = json_string_value(json_object_get(fabric, "doubt")),
		   *text = json_string_value(json_object_get(fabric, "text"));

	if (!json_is_boolean(json_object_get(fabric, "hardware"))) {
		unrecorded_add(c->unrecorded, CITABLE_TEXT, "fabric");
		return;
	}
	if (doubt && *doubt)
		snprintf(c->reason[CITABLE_DOUBT], CITABLE_TEXT, "model: %s", doubt);
	/* Without rails, messages are the MPI library's. */
	if (json_is_true(json_object_get(fabric, "hardware")) ||
	    !json_array_size(json_object_get(fabric, "rails")))
		return;
	snprintf(c->fabric, CITABLE_TEXT, "%s, not of hardware: %s",
		 json_is_true(json_object_get(fabric, "modelled")) ?
		 "values of a model in software" : "values of a fabric in software",
		 text ? text : "-");
}

void citable_run(struct citable *c, const json_t *run)
{
	const json_t *oversubscribed = json_object_get(run, "oversubscribed");

	*c = (struct citable){ .is_app = json_is_object(json_object_get(run, "app")) };
	if (!json_is_boolean(oversubscribed))
		unrecorded_add(c->unrecorded, CITABLE_TEXT, "oversubscription");
	if (json_is_true(oversubscribed))
		snprintf(c->reason[CITABLE_OVERSUBSCRIBED], CITABLE_TEXT, "more ranks than cores");
	binding_check(c, json_object_get(run, "ranks"));
	governor_check(c, run);
	fabric_check(c, run);
}

/* ---- Rows and the end ---------------------------------------------------------------------- */

/* Launches that the row's interval comes from. */
static long long row_launches(const json_t *row)
{
	const char *of = json_string_value(json_object_get(row, "ci_of"));
	double n = json_number_value(json_object_get(row, "ci_n"));

	if (!of || strcmp(of, "launches"))
		return 1;
	return n >= 0 && n < 1e9 ? (long long)n : 0;
}

void citable_row(struct citable *c, const json_t *row)
{
	const json_t *converged = json_object_get(row, "converged");
	long long launches = row_launches(row);

	disturbance_add(&c->noise, row);
	if (!c->rows++ || launches < c->launches)
		c->launches = launches;
	/* null: counts were given.  A computation that is timed as a whole has no stopping rule. */
	c->unconverged += json_is_false(converged);
	c->no_convergence += !converged && !c->is_app;
	c->no_interval += !json_object_get(row, "ci_of");
	c->cut += json_is_true(json_object_get(row, "cut"));
	c->invalid += json_is_false(json_object_get(row, "valid"));
}

void citable_end(struct citable *c, long long status)
{
	c->ended = true;
	c->status = status;
}

void citable_merge(struct citable *c, const struct citable *launch)
{
	for (int i = 0; i < CITABLE_REASONS; i++)
		if (!*c->reason[i])
			memcpy(c->reason[i], launch->reason[i], CITABLE_TEXT);
	if (!*c->unrecorded)
		memcpy(c->unrecorded, launch->unrecorded, CITABLE_TEXT);
	if (!*c->fabric)
		memcpy(c->fabric, launch->fabric, CITABLE_TEXT);
	disturbance_merge(&c->noise, &launch->noise);
	c->rows += launch->rows;
	c->unconverged += launch->unconverged;
	c->cut += launch->cut;
	c->invalid += launch->invalid;
	c->no_convergence += launch->no_convergence;
	c->no_interval += launch->no_interval;
	c->launches += launch->launches;
	c->ended = c->ended && launch->ended;
	c->status = c->status ? c->status : launch->status;
}

/* ---- The verdict --------------------------------------------------------------------------- */

struct verdict {
	json_t *why;
	unsigned reasons;
};

/* A text that was cut inside of a character loses its rest. */
static void why_add(struct verdict *v, char *text)
{
	json_t *string;

	while (!(string = json_string(text)) && *text)
		text[strlen(text) - 1] = '\0';
	json_array_append_new(v->why, string);
}

__attribute__((format(printf, 3, 4)))
static void reason_add(struct verdict *v, enum citable_reason reason, const char *fmt, ...)
{
	char text[2 * CITABLE_TEXT];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	why_add(v, text);
	v->reasons |= CITABLE_BIT(reason);
}

static void rows_judge(const struct citable *c, struct verdict *v)
{
	if (!c->rows) {
		reason_add(v, CITABLE_EMPTY, "no rows");
		return;
	}
	if (c->noise.disturbed)
		reason_add(v, CITABLE_NOISE, "noise in %zu of %zu rows", c->noise.disturbed, c->rows);
	if (c->unconverged)
		reason_add(v, CITABLE_UNCONVERGED, "%zu of %zu rows did not converge",
			   c->unconverged, c->rows);
	if (c->cut)
		reason_add(v, CITABLE_CUT, "%zu of %zu rows were cut by --time-cap", c->cut, c->rows);
	if (c->invalid)
		reason_add(v, CITABLE_INVALID, "validation failed in %zu of %zu rows", c->invalid,
			   c->rows);
	if (c->launches < CITABLE_LAUNCHES_MIN)
		reason_add(v, CITABLE_LAUNCHES, "%lld launch%s, fewer than %d", c->launches,
			   c->launches == 1 ? "" : "es", CITABLE_LAUNCHES_MIN);
}

static void unrecorded_judge(const struct citable *c, struct verdict *v)
{
	char list[2 * CITABLE_TEXT];

	snprintf(list, sizeof(list), "%s", c->unrecorded);
	if (c->noise.unrecorded || c->noise.unknown)
		unrecorded_add(list, sizeof(list), "noise");
	if (c->no_convergence)
		unrecorded_add(list, sizeof(list), "convergence");
	if (c->no_interval)
		unrecorded_add(list, sizeof(list), "intervals");
	if (*list)
		reason_add(v, CITABLE_UNRECORDED, "not recorded: %s", list);
}

json_t *citable_why(const struct citable *c, unsigned *reasons)
{
	struct verdict v = { .why = json_array() };
	char fabric[CITABLE_TEXT];

	for (int i = 0; i < CITABLE_REASONS; i++)
		if (*c->reason[i])
			reason_add(&v, (enum citable_reason)i, "%s", c->reason[i]);
	rows_judge(c, &v);
	if (!c->ended)
		reason_add(&v, CITABLE_UNFINISHED, "the job did not finish");
	else if (c->status)
		reason_add(&v, CITABLE_STATUS, "exit code %lld", c->status);
	unrecorded_judge(c, &v);
	snprintf(fabric, sizeof(fabric), "%s", c->fabric);
	if (*fabric)
		why_add(&v, fabric);
	if (reasons)
		*reasons = v.reasons;
	return v.why;
}

const char *citable_text(const struct citable *c, unsigned these, char *buf, size_t size)
{
	unsigned reasons;
	json_t *why = citable_why(c, &reasons);
	size_t at = 0;

	*buf = '\0';
	for (int i = 0; i < CITABLE_REASONS; i++) {
		if (reasons & these & CITABLE_BIT(i))
			rg_text_add(buf, size, "%s%s", *buf ? "; " : "",
				    json_string_value(json_array_get(why, at)));
		at += (reasons & CITABLE_BIT(i)) != 0;
	}
	json_decref(why);
	return buf;
}

void citable_print(const struct citable *c, FILE *out)
{
	unsigned reasons;
	json_t *why = citable_why(c, &reasons), *reason;
	size_t i;

	if (c->rows) {
		disturbance_print(&c->noise, out);
		fprintf(out, "# citable: %s", reasons ? "no" : "yes");
		json_array_foreach(why, i, reason)
			fprintf(out, "%s%s", i ? "; " : ", ", json_string_value(reason));
		fputc('\n', out);
	}
	json_decref(why);
}
