/* way_coll.c - see way_coll.h. */
#include "bench/way_coll.h"
#include "bench/ranks.h"

#include <stdio.h>
#include <string.h>

#include "util/err.h"
#include "util/text.h"

enum { LIST_BYTES = 512 };

static const char own[] = "coll=";

/* The words of --coll but for files, whose rules stay whatever is forced. */
static void job_list(const struct bench_job *job, char *list, size_t size)
{
	const struct opt_table *t = &job->opt.table[1];
	char value[LIST_BYTES], *save = NULL;

	*list = '\0';
	opt_each(row, t) {
		if (strcmp(row->name, "coll"))
			continue;
		opt_text(t, row, value, sizeof(value));
		for (char *word = strtok_r(value, ",", &save); word; word = strtok_r(NULL, ",", &save))
			if (*word != '@' && strcmp(word, "auto"))
				rg_text_add(list, size, "%s%s", *list ? "," : "", word);
	}
}

const char *way_coll_take(const struct bench_job *job, struct bench_column *way, const char *settings)
{
	char list[LIST_BYTES], rest[LIST_BYTES] = "", copy[LIST_BYTES], why[OPT_WHY_BYTES], *save = NULL;
	bool found = false;

	job_list(job, list, sizeof(list));
	snprintf(copy, sizeof(copy), "%s", settings ? settings : "");
	for (char *word = strtok_r(copy, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		const bool is_own = !strncmp(word, own, strlen(own));

		if (is_own)
			rg_text_add(list, sizeof(list), "%s%s", *list ? "," : "", word + strlen(own));
		else
			rg_text_add(rest, sizeof(rest), "%s%s", *rest ? "," : "", word);
		found |= is_own;
	}
	if (!found)
		return settings ? settings : "";
	if (job->def->tune) {
		rg_error("--over %s: each algorithm is forced in its turn here (accepted: ways without coll=)", way->name);
		return NULL;
	}
	if (railmpi_coll(list, why, sizeof(why))) {
		rg_error("--over %s: %s", way->name, why);
		return NULL;
	}
	way->coll = bench_must(strdup(list));
	return bench_must(strdup(rest));
}

void way_coll_complete(struct bench_job *job)
{
	char list[LIST_BYTES];
	bool any = false;

	for (int w = 0; w < job->where.way_count; w++)
		any |= job->where.way[w].coll != NULL;
	if (!any)
		return;
	job_list(job, list, sizeof(list));
	for (int w = 0; w < job->where.way_count; w++)
		if (!job->where.way[w].coll)
			job->where.way[w].coll = bench_must(strdup(*list ? list : "auto"));
}
