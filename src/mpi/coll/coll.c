/*
 * coll.c - the algorithm of a collective: by --coll, else by the rules of its files
 * (coll_file.c), else by the table, which costs on this machine may overrule (coll_learn.c).
 *
 * Nothing here calls MPI: the railgauge command links this file for the option's row.
 */
#include "mpi/coll/coll.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "mpi/coll/coll_file.h"
#include "mpi/railmpi.h"
#include "util/opt.h"
#include "util/text.h"

static const char *const algorithm_names[COLL_ALGORITHMS] = {
	[COLL_AUTO] = "auto",
	[COLL_LIBRARY] = "native",
	[COLL_DISSEMINATION] = "dissemination",
	[COLL_BINOMIAL] = "binomial",
	[COLL_SCATTER_RING] = "scatter-ring",
	[COLL_CHAIN] = "chain",
	[COLL_BRUCK] = "bruck",
	[COLL_DOUBLING] = "doubling",
	[COLL_RING] = "ring",
	[COLL_RING_RAILS] = "ring-rails",
	[COLL_PAIRWISE] = "pairwise",
	[COLL_PAIRWISE_RAILS] = "pairwise-rails",
	[COLL_LINEAR] = "linear",
	[COLL_RABENSEIFNER] = "rabenseifner",
	[COLL_TABLE] = "table",
	[COLL_MEASURED] = "measured",
};

/* An algorithm whose needs do not all hold is replaced by `otherwise`, which needs nothing. */
struct candidate {
	enum coll_algorithm algorithm;
	unsigned needs;
	enum coll_algorithm otherwise;
};

enum { CANDIDATES = 4, RULES = 5 };

/* The first rule that fits counts, and the last one always fits.  `bytes` is m of coll.h. */
static const struct family {
	const char *name;
	struct candidate candidates[CANDIDATES];	/* COLL_AUTO: no more */
	struct coll_rule rules[RULES];			/* `next` is not used */
} families[COLL_COUNT] = {
	[COLL_BARRIER] = {
		"barrier",
		{{COLL_DISSEMINATION}},
		{{0, 0, COLL_DISSEMINATION}},
	},
	[COLL_BCAST] = {
		"bcast",
		{{COLL_BINOMIAL}, {COLL_SCATTER_RING}, {COLL_CHAIN}},
		{{2, 0, COLL_BINOMIAL}, {0, 16 << 10, COLL_BINOMIAL},
		 {0, 512 << 10, COLL_SCATTER_RING}, {0, 0, COLL_CHAIN}},
	},
	[COLL_ALLGATHER] = {
		"allgather",
		{{COLL_BRUCK}, {COLL_DOUBLING, COLL_POWER_OF_TWO, COLL_BRUCK}, {COLL_RING},
		 {COLL_RING_RAILS, COLL_RAILS, COLL_RING}},
		{{2, 0, COLL_DOUBLING}, {0, 256 << 10, COLL_DOUBLING}, {0, 0, COLL_RING}},
	},
	[COLL_ALLGATHERV] = {
		"allgatherv",
		{{COLL_RING}},
		{{0, 0, COLL_RING}},
	},
	[COLL_ALLTOALL] = {
		"alltoall",
		{{COLL_PAIRWISE}, {COLL_BRUCK}, {COLL_LINEAR},
		 {COLL_PAIRWISE_RAILS, COLL_RAILS, COLL_PAIRWISE}},
		{{2, 0, COLL_PAIRWISE}, {0, 256, COLL_BRUCK}, {8, 256 << 10, COLL_LINEAR},
		 {0, 32 << 10, COLL_LINEAR}, {0, 0, COLL_PAIRWISE}},
	},
	[COLL_ALLTOALLV] = {
		"alltoallv",
		{{COLL_PAIRWISE}, {COLL_LINEAR},
		 {COLL_PAIRWISE_RAILS, COLL_RAILS, COLL_PAIRWISE}},
		{{64, 0, COLL_LINEAR}, {0, 0, COLL_PAIRWISE}},
	},
	[COLL_ALLREDUCE] = {
		"allreduce",
		{{COLL_DOUBLING}, {COLL_RABENSEIFNER, COLL_COMMUTES | COLL_DIVIDES, COLL_DOUBLING},
		 {COLL_RING, COLL_COMMUTES | COLL_DIVIDES, COLL_DOUBLING}},
		{{0, 16 << 10, COLL_DOUBLING}, {0, 4 << 20, COLL_RABENSEIFNER}, {0, 0, COLL_RING}},
	},
	[COLL_REDUCE] = {
		"reduce",
		{{COLL_BINOMIAL}, {COLL_RABENSEIFNER, COLL_COMMUTES | COLL_DIVIDES, COLL_BINOMIAL}},
		{{2, 0, COLL_BINOMIAL}, {0, 32 << 10, COLL_BINOMIAL}, {0, 0, COLL_RABENSEIFNER}},
	},
	[COLL_REDUCE_SCATTER] = {
		"reduce_scatter",
		{{COLL_PAIRWISE, COLL_COMMUTES, COLL_BINOMIAL}, {COLL_BINOMIAL}},
		{{8, 0, COLL_PAIRWISE}, {0, 4 << 10, COLL_BINOMIAL}, {0, 0, COLL_PAIRWISE}},
	},
	[COLL_GATHER] = {
		"gather",
		{{COLL_BINOMIAL}, {COLL_LINEAR}},
		{{4, 0, COLL_LINEAR}, {0, 4 << 10, COLL_BINOMIAL}, {0, 0, COLL_LINEAR}},
	},
	[COLL_GATHERV] = {
		"gatherv",
		{{COLL_LINEAR}},
		{{0, 0, COLL_LINEAR}},
	},
	[COLL_SCATTER] = {
		"scatter",
		{{COLL_BINOMIAL}, {COLL_LINEAR}},
		{{4, 0, COLL_LINEAR}, {0, 4 << 10, COLL_BINOMIAL}, {0, 0, COLL_LINEAR}},
	},
	[COLL_SCATTERV] = {
		"scatterv",
		{{COLL_LINEAR}},
		{{0, 0, COLL_LINEAR}},
	},
	[COLL_SCAN] = {
		"scan",
		{{COLL_DOUBLING}, {COLL_LINEAR}},
		{{0, 0, COLL_DOUBLING}},
	},
};

/* The value of --coll. */
struct setting {
	enum coll_algorithm forced[COLL_COUNT];		/* COLL_AUTO: not this one */
	struct coll_rules rules;
};

static struct setting now;

/*
 * The last collective's algorithm and bytes, for railmpi_coll_used; threads may have several at
 * once.
 */
static _Atomic int used_algorithm;
static _Atomic size_t used_bytes;

/* ---- Choosing ------------------------------------------------------------------------------- */

bool coll_is_ours(enum coll_id id)
{
	return now.forced[id] != COLL_LIBRARY;
}

bool coll_is_measured_anyway(enum coll_id id)
{
	return now.forced[id] == COLL_MEASURED;
}

static bool fits(const struct coll_rule *r, int ranks, size_t bytes)
{
	return (!r->ranks || ranks <= r->ranks) && (!r->bytes || bytes <= r->bytes);
}

/* COLL_AUTO: none fits. */
static enum coll_algorithm by_file(enum coll_id id, int ranks, size_t bytes)
{
	const struct coll_rule *r;
	short i = now.rules.first[id];

	for (; i; i = r->next) {
		r = &now.rules.rule[i - 1];
		if (fits(r, ranks, bytes))
			return r->algorithm;
	}
	return COLL_AUTO;
}

static enum coll_algorithm by_table(enum coll_id id, int ranks, size_t bytes)
{
	const struct coll_rule *r;

	for (r = families[id].rules; !fits(r, ranks, bytes); r++)
		;
	return r->algorithm;
}

enum coll_algorithm coll_possible(enum coll_id id, enum coll_algorithm a, int ranks, unsigned holds)
{
	const struct candidate *c = families[id].candidates;

	if ((ranks & (ranks - 1)) == 0)
		holds |= COLL_POWER_OF_TWO;
	while (c->algorithm != a)
		c++;
	return c->needs & ~holds ? c->otherwise : a;
}

void coll_use(enum coll_algorithm a, size_t bytes)
{
	atomic_store_explicit(&used_algorithm, (int)a, memory_order_relaxed);
	atomic_store_explicit(&used_bytes, bytes, memory_order_relaxed);
}

enum coll_algorithm coll_choose_open(enum coll_id id, int ranks, size_t bytes, unsigned holds,
				     bool *open)
{
	enum coll_algorithm a = now.forced[id];

	if (a == COLL_MEASURED)
		a = COLL_AUTO;
	*open = a == COLL_AUTO;
	if (a == COLL_AUTO || a == COLL_TABLE) {
		a = by_file(id, ranks, bytes);
		*open = *open && a == COLL_AUTO;
	}
	if (a == COLL_AUTO)
		a = by_table(id, ranks, bytes);
	a = coll_possible(id, a, ranks, holds);
	coll_use(a, bytes);
	return a;
}

enum coll_algorithm coll_choose(enum coll_id id, int ranks, size_t bytes, unsigned holds)
{
	bool open;

	return coll_choose_open(id, ranks, bytes, holds, &open);
}

/* ---- The option ----------------------------------------------------------------------------- */

static bool family_has(const struct family *f, enum coll_algorithm a)
{
	int i;

	for (i = 0; i < CANDIDATES && f->candidates[i].algorithm; i++)
		if (f->candidates[i].algorithm == a)
			return true;
	return false;
}

/* Words of --coll that name no algorithm. */
static bool is_for_all(enum coll_algorithm a)
{
	return a == COLL_AUTO || a == COLL_LIBRARY || a == COLL_TABLE || a == COLL_MEASURED;
}

/* The algorithm is accepted by --coll NAME= (option), or by a rule of a file. */
static bool is_accepted(const struct family *f, enum coll_algorithm a, bool option)
{
	return family_has(f, a) || (option && is_for_all(a));
}

static enum coll_algorithm algorithm_named(const char *name)
{
	int a = 0;

	while (a < COLL_ALGORITHMS && strcmp(algorithm_names[a], name))
		a++;
	return (enum coll_algorithm)a;
}

static int family_named(const char *name)
{
	int i;

	for (i = 0; i < COLL_COUNT && strcmp(families[i].name, name); i++)
		;
	return i;
}

static int refuse_collective(const char *name, bool option, char *why, size_t why_size)
{
	int i;

	snprintf(why, why_size, "no collective '%.40s' (accepted: %s", name,
		 option ? "NAME=ALGORITHM,... of " : "");
	for (i = 0; i < COLL_COUNT; i++)
		rg_text_add(why, why_size, "%s%s", i ? ", " : "", families[i].name);
	rg_text_add(why, why_size, option ? "; auto, measured, table or native for all; @FILE)" : ")");
	return -EINVAL;
}

static int refuse_algorithm(const struct family *f, const char *name, bool option, char *why,
			    size_t why_size)
{
	const char *comma = "";
	int a;

	snprintf(why, why_size, "no %s '%.40s' (accepted: ", f->name, name);
	for (a = 0; a < COLL_ALGORITHMS; a++)
		if (is_accepted(f, (enum coll_algorithm)a, option)) {
			rg_text_add(why, why_size, "%s%s", comma, algorithm_names[a]);
			comma = ", ";
		}
	rg_text_add(why, why_size, ")");
	return -EINVAL;
}

static int names_find(const char *collective, const char *algorithm, bool option, int *id,
		      enum coll_algorithm *a, char *why, size_t why_size)
{
	*id = family_named(collective);
	*a = algorithm_named(algorithm);
	if (*id == COLL_COUNT)
		return refuse_collective(collective, option, why, why_size);
	if (!is_accepted(&families[*id], *a, option))
		return refuse_algorithm(&families[*id], algorithm, option, why, why_size);
	return 0;
}

int coll_names(const char *collective, const char *algorithm, enum coll_id *id,
	       enum coll_algorithm *a, char *why, size_t why_size)
{
	int i, rc = names_find(collective, algorithm, false, &i, a, why, why_size);

	*id = (enum coll_id)i;
	return rc;
}

/* The treatment of @FILE. */
enum files { FILES_NAMED, FILES_READ, FILES_REFUSED };

static int file_parse(const char *path, struct setting *set, enum files files, char *why,
		      size_t why_size)
{
	if (files == FILES_READ)
		return coll_file_read(path, &set->rules, why, why_size);
	if (*path && files == FILES_NAMED)
		return 0;
	snprintf(why, why_size, files == FILES_NAMED ? "@ without a name (accepted: @FILE)" :
		 "@FILE: not any more (accepted: NAME=ALGORITHM,...)");
	return -EINVAL;
}

/* "bcast=chain", "@FILE", or "native", "table", "auto": all of them. */
static int item_parse(char *item, struct setting *set, enum files files, char *why,
		      size_t why_size)
{
	char *value = strchr(item, '=');
	enum coll_algorithm a;
	int i, rc;

	if (*item == '@')
		return file_parse(item + 1, set, files, why, why_size);
	if (!value) {
		a = algorithm_named(item);
		if (!is_for_all(a))
			return refuse_collective(item, true, why, why_size);
		for (i = 0; i < COLL_COUNT; i++)
			set->forced[i] = a;
		return 0;
	}
	*value++ = '\0';
	rc = names_find(item, value, true, &i, &a, why, why_size);
	if (!rc)
		set->forced[i] = a;
	return rc;
}

static int list_parse(const char *text, struct setting *set, enum files files, char *why,
		      size_t why_size)
{
	char copy[1024], *rest = copy, *item;
	int rc = 0;

	if (snprintf(copy, sizeof(copy), "%s", text) >= (int)sizeof(copy)) {
		snprintf(why, why_size, "longer than %zu characters", sizeof(copy) - 1);
		return -EINVAL;
	}
	while (!rc && (item = strsep(&rest, ",")))
		rc = item_parse(item, set, files, why, why_size);
	return rc;
}

int coll_check(const char *text, char *why, size_t why_size)
{
	struct setting set = {.rules.count = 0};

	return list_parse(text, &set, FILES_NAMED, why, why_size);
}

int coll_set(const char *text, char *why, size_t why_size)
{
	struct setting set = {.rules.count = 0};
	int rc = list_parse(text ? text : "auto", &set, FILES_READ, why, why_size);

	if (!rc)
		now = set;
	return rc;
}

uint64_t coll_digest(void)
{
	char text[64];
	uint64_t digest = 0;
	int id;

	/* The digest depends on the order of rules. */
	for (id = 0; id < COLL_COUNT; id++) {
		short i = now.rules.first[id];

		digest = digest * 31 + (uint64_t)now.forced[id];
		for (; i; i = now.rules.rule[i - 1].next) {
			const struct coll_rule *r = &now.rules.rule[i - 1];

			snprintf(text, sizeof(text), "%d %d %zu %d", id, r->ranks, r->bytes,
				 (int)r->algorithm);
			digest = digest * 31 + opt_digest(text);
		}
	}
	return digest;
}

const char *coll_name(enum coll_id id)
{
	return families[id].name;
}

const char *coll_algorithm_name(enum coll_algorithm a)
{
	return algorithm_names[a];
}

/* ---- railmpi.h ------------------------------------------------------------------------------ */

int railmpi_coll(const char *list, char *why, size_t why_size)
{
	struct setting set = {.rules.count = 0};
	int rc = list_parse(list, &set, FILES_REFUSED, why, why_size);

	if (!rc)
		memcpy(now.forced, set.forced, sizeof(now.forced));
	return rc;
}

const char *railmpi_coll_candidate(const char *collective, int i)
{
	int id = family_named(collective);
	enum coll_algorithm a;

	if (id == COLL_COUNT || i < 0 || i >= CANDIDATES)
		return NULL;
	a = families[id].candidates[i].algorithm;
	return a == COLL_AUTO ? NULL : algorithm_names[a];
}

const char *railmpi_coll_used(size_t *bytes)
{
	*bytes = atomic_load_explicit(&used_bytes, memory_order_relaxed);
	return algorithm_names[atomic_load_explicit(&used_algorithm, memory_order_relaxed)];
}
