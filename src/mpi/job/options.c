/* options.c - the layer's options: librail's rows and a few of its own. */
#include "mpi/job/options.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/coll/coll.h"
#include "mpi/railmpi.h"
#include "rail/policy.h"
#include "rail/programs.h"
#include "rail/rail.h"

struct world_settings world_settings;

/* ---- Ways -------------------------------------------------------------------------------- */

static struct opt_choice over_choices[2 + RAILMPI_WAYS_MAX] = {
	{"auto", WORLD_OVER_AUTO, "stripe with two or more rails, else single; also single over "
				  "untimed software HCAs, whose rails are one memory"},
	{"native", RAILMPI_NATIVE, "the MPI library itself"},
};
static struct opt_choice *const ways = over_choices + 1;

_Static_assert(1 + RAIL_POLICIES + RAIL_MAX <= RAILMPI_WAYS_MAX, "all ways are choices");
_Static_assert(RAILMPI_SINGLE == 1 + RAIL_SINGLE && RAILMPI_PULL == 1 + RAIL_PULL &&
	       (int)RAIL_POLICIES < RAILMPI_SINGLE_RAIL, "a policy is its number + 1");

/* "single:N" of a policy that names a rail, for each N. */
static int named_rails_build(const struct rail_policy_row *policy, struct opt_choice *way)
{
	static char name[RAIL_MAX][24], help[RAIL_MAX][48];

	for (int r = 0; r < RAIL_MAX; r++) {
		snprintf(name[r], sizeof(name[r]), "%s:%d", policy->name, r);
		snprintf(help[r], sizeof(help[r]), "large messages over rail %d alone", r);
		way[r] = (struct opt_choice){name[r], RAILMPI_SINGLE_RAIL + r, help[r], ""};
	}
	return RAIL_MAX;
}

static void ways_build(void)
{
	static char shown[24];
	int n = 1;

	if (ways[n].name)
		return;
	for (int p = 0; p < RAIL_POLICIES; p++) {
		const struct rail_policy_row *policy = &rail_policies[p];
		struct opt_choice *way = &ways[n++];

		*way = (struct opt_choice){policy->name, 1 + p, policy->help};
		if (policy->names_rail) {
			snprintf(shown, sizeof(shown), "%s[:N]", policy->name);
			way->shown = shown;
			n += named_rails_build(policy, &ways[n]);
		} else {
			way->traits = RAILMPI_USES_ALL | (policy->spreads ? RAILMPI_CUTS : 0);
		}
	}
}

const struct opt_choice *railmpi_ways(void)
{
	ways_build();
	return ways;
}

/* ---- Rows -------------------------------------------------------------------------------- */

static const struct opt nodes_row = {
	.name = "nodes", .type = OPT_COUNT, .carry = OPT_JOB,
	.offset = offsetof(struct world_settings, nodes), .arg = "N", .standard = "2",
	.min = 1, .max = 1024,
	.help = "virtual nodes that the ranks of one host form, in blocks (software HCA)",
};

static const struct opt coll_row = {
	.name = "coll", .type = OPT_TEXT, .carry = OPT_JOB,
	.offset = offsetof(struct world_settings, coll), .arg = "LIST", .check = coll_check,
	.help = "algorithms of collectives, such as alltoall=pairwise,bcast=chain; native: the MPI "
		"library's algorithms; table: by size and ranks alone; measured: as calls cost, where ranks "
		"share cores, too; @FILE: a table of rg_tune; "
		"else as the first calls cost on this machine",
};

static const struct opt trace_row = {
	.name = "trace", .type = OPT_TEXT, .carry = OPT_JOB,
	.offset = offsetof(struct world_settings, trace), .arg = "FILE",
	.help = "write a line for each of a rank's last messages to FILE.RANK; a %r in FILE is "
		"replaced by the rank",
};

/* Signals that MPI libraries, launchers and the layer leave to programs. */
static const struct opt_choice signals[] = {
	{"none", 0, NULL}, {"HUP", SIGHUP, NULL}, {"USR1", SIGUSR1, NULL}, {"USR2", SIGUSR2, NULL},
	{NULL, 0, NULL},
};

static const struct opt dump_signal_row = {
	.name = "dump-signal", .type = OPT_CHOICE, .carry = OPT_JOB,
	.offset = offsetof(struct world_settings, dump_signal), .arg = "SIGNAL",
	.standard = "none", .choices = signals,
	.help = "at this signal, print a rank's queues of each peer on stderr",
};

/*
 * The way of MPI_COMM_WORLD.  Benchmarks have a list of their own under this name and leave the row
 * out.
 */
static const struct opt over_row = {
	.name = "over", .type = OPT_CHOICE, .carry = OPT_LOCAL,
	.offset = offsetof(struct world_settings, over), .arg = "WAY", .standard = "auto",
	.choices = over_choices, .help = "how point-to-point messages travel",
};

/* For other programs: a benchmark has a ledger of its own, by way and size. */
static const struct opt ledger_row = {
	.name = "ledger", .type = OPT_FLAG, .carry = OPT_LOCAL,
	.offset = offsetof(struct world_settings, ledger),
	.help = "at the end, print on stderr the calls and bytes of each rail, by function, and "
		"the calls that stayed native",
};

/* `railgauge exec` sets it to no for its programs, unless it is given. */
static const struct opt quiet_row = {
	.name = "quiet", .type = OPT_FLAG, .carry = OPT_LOCAL, .standard = "yes",
	.offset = offsetof(struct world_settings, quiet),
	.help = "print no line at the start (fabric, rails, way, warnings) and none at the end "
		"(bytes by rail)",
};

static const struct opt start_limit_row = {
	.name = "start-limit", .type = OPT_TIME, .carry = OPT_LOCAL,
	.offset = offsetof(struct world_settings, start_limit_ns), .arg = "SECONDS",
	.standard = "60s", .min = 1000000000, .max = UINT64_C(86400000000000), .bare = "s",
	.help = "how long ranks wait at the start for a rank that takes no part",
};

static struct opt rows[OPT_ROWS_MAX];
static unsigned char origin[OPT_ROWS_MAX];
static int public_rows;
static bool ready;

struct opt_table world_table = {"Transport", rows, &world_settings, origin};

static void rows_build(void)
{
	const struct opt *o;
	int n = 0;

	if (public_rows)
		return;
	for (o = rail_options(); o->name; o++)
		rows[n++] = *o;
	rows[n++] = nodes_row;
	rows[n++] = coll_row;
	rows[n++] = trace_row;
	rows[n++] = dump_signal_row;
	rows[n++] = start_limit_row;
	public_rows = n;
	ways_build();
	rows[n++] = over_row;
	rows[n++] = ledger_row;
	rows[n] = quiet_row;
}

/* The rows that a program offers in its own tables, without the rows for other programs. */
const struct opt *railmpi_options(void)
{
	static struct opt for_all[OPT_ROWS_MAX];

	rows_build();
	memcpy(for_all, rows, (size_t)public_rows * sizeof(rows[0]));
	return for_all;
}

const struct opt *railmpi_program_options(void)
{
	rows_build();
	return rows + public_rows;
}

int railmpi_option(const char *name, const char *text, char *why, size_t why_size)
{
	char *kept = strdup(text);	/* a text value points to it from here on */
	int rc;

	if (!kept)
		return -ENOMEM;
	if (!ready) {
		rows_build();
		opt_defaults(&world_table);
		ready = true;
	}
	rc = opt_set(&world_table, name, kept, OPT_FROM_CALL, why, why_size);
	if (rc)
		free(kept);
	if (rc == -ENOENT) {
		snprintf(why, why_size, "%s: no such option", name);
		rc = -EINVAL;
	}
	return rc;
}

int world_options(void)
{
	int rc;

	if (ready)
		return 0;
	rows_build();
	rc = opt_from_environment(&world_table);
	if (!rc)
		ready = true;
	return rc;
}

struct rail_way world_way(const struct world_settings *s, int way)
{
	bool named = way >= RAILMPI_SINGLE_RAIL, native_way = way == RAILMPI_NATIVE;

	return (struct rail_way){
		/* A native communicator sends nothing over rails: any policy will do. */
		.policy = named || native_way ? RAIL_SINGLE : (enum rail_policy)(way - 1),
		.rail = (uint8_t)(named ? way - RAILMPI_SINGLE_RAIL : 0),
		.threshold = s->rail.threshold,
		.eager = s->rail.eager,
		.rendezvous = (uint8_t)s->rail.rendezvous,
		.completion = (uint8_t)s->rail.completion,
	};
}
