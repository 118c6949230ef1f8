/*
 * options_use.c - options after parsing: a row by its name, the comparison among ranks, and
 * the values that the transport gets.
 */
#include "bench/options_use.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "util/text.h"

const struct opt *options_find(const struct bench_job *job, const char *name,
			       const struct opt_table **table)
{
	for (int i = 0; i < job->opt.table_count; i++)
		opt_each(row, &job->opt.table[i])
			if (opt_is_named(row, name)) {
				*table = &job->opt.table[i];
				return row;
			}
	return NULL;
}

/* ---- Among ranks ------------------------------------------------------------------------ */

/*
 * Must all ranks have the same value?  Rank 0 alone uses a file's name, and variables may not reach
 * other ranks.
 */
static bool is_for_all(const struct opt *row)
{
	return row->type != OPT_TEXT || row->carry != OPT_LOCAL;
}

/* The n-th row of all tables, with its value as text; NULL after the last row. */
static const struct opt *row_at(const struct bench_job *job, int n, char *text, size_t size)
{
	for (int i = 0; i < job->opt.table_count; i++)
		opt_each(row, &job->opt.table[i])
			if (n-- == 0) {
				opt_text(&job->opt.table[i], row, text, size);
				return row;
			}
	return NULL;
}

int options_agree(const struct bench_job *job)
{
	enum { ROWS = 3 * OPT_ROWS_MAX };
	struct { int row; char text[128]; } odd = { .row = -1 };
	uint64_t digest[ROWS] = { 0 };
	const struct opt *row;
	char text[1024];
	int who, first;

	for (int n = 0; (row = row_at(job, n, text, sizeof(text))); n++)
		digest[n] = job->b.rank == 0 && is_for_all(row) ? opt_digest(text) : 0;
	MPI_Bcast(digest, ROWS, MPI_UINT64_T, 0, job->where.comm);
	for (int n = 0; odd.row < 0 && (row = row_at(job, n, text, sizeof(text))); n++)
		if (is_for_all(row) && digest[n] != opt_digest(text)) {
			odd.row = n;
			snprintf(odd.text, sizeof(odd.text), "%.*s", (int)sizeof(odd.text) - 1, text);
		}
	who = odd.row < 0 ? job->b.size : job->b.rank;
	MPI_Allreduce(&who, &first, 1, MPI_INT, MPI_MIN, job->where.comm);
	if (first == job->b.size)
		return 0;
	MPI_Bcast(&odd, sizeof(odd), MPI_BYTE, first, job->where.comm);
	row = row_at(job, odd.row, text, sizeof(text));
	if (row)
		rg_error("--%s: rank %d has '%s', rank 0 '%s' (accepted: the same on all ranks; "
			 "RAILGAUGE_ variables are exported by the launcher)", row->name, first,
			 odd.text, text);
	return RG_EXIT_USAGE;
}

/* ---- To the transport ------------------------------------------------------------------------ */

int options_to_transport(const struct bench_job *job)
{
	const struct opt_table *t = &job->opt.table[1];
	char why[OPT_WHY_BYTES], text[1024];

	/* Each way has a communicator of its own: MPI_COMM_WORLD stays native. */
	if (railmpi_option("over", "native", why, sizeof(why))) {
		rg_error("%s", why);
		return -EINVAL;
	}
	opt_each(row, t) {
		opt_text(t, row, text, sizeof(text));
		if (!(row->carry & OPT_JOB) || !*text)
			continue;
		if (railmpi_option(row->name, text, why, sizeof(why))) {
			rg_error("--%s", why);
			return -EINVAL;
		}
	}
	return 0;
}

void options_of_communicator(const struct bench_job *job, char *text, size_t size)
{
	const struct opt_table *t = &job->opt.table[1];
	char value[256];

	*text = '\0';
	opt_each(row, t)
		if (row->carry & OPT_COMM && *opt_text(t, row, value, sizeof(value)))
			rg_text_add(text, size, ",%s=%s", row->name,
				 value);
}
