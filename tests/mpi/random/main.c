/*
 * main.c - random MPI programs (programs.h) over ways.
 *
 *	mpirun -np N random_programs [OPTION...] WAY...
 *
 *	--seed S	of all plans (1)
 *	--programs N	so many over each way (100); --first F: the first one's number (0)
 *	--program N	this one alone
 *	--print		the plans as well; without a WAY nothing is run
 *
 * A WAY is a value of the info key railgauge: native, single, bind, stripe, weighted, pull, with
 * options.  A program and what it is judged by are the same over all ways.
 */
#include "programs.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_USAGE = 3, STACK = 1 << 17 };

static struct arguments {
	unsigned long seed, first, programs;
	bool print;
} arguments = {1, 0, 100, false};
static char complaint[200];

static bool number(const char *name, const char *text, unsigned long least, unsigned long *to)
{
	char *end;

	errno = 0;
	*to = strtoul(text, &end, 10);
	if (text[0] >= '0' && text[0] <= '9' && !*end && !errno && *to >= least)
		return true;
	snprintf(complaint, sizeof(complaint),
		 "--%s is %.40s: a number from %lu to %lu is accepted", name, text, least,
		 (unsigned long)-1);
	return false;
}

static bool parse(int argc, char **argv)
{
	static const struct option options[] = {
	    {"seed", required_argument, NULL, 's'},  {"programs", required_argument, NULL, 'n'},
	    {"first", required_argument, NULL, 'f'}, {"program", required_argument, NULL, 'p'},
	    {"print", no_argument, NULL, 't'},       {0},
	};
	bool one = false, well = true;
	int c;

	opterr = 0;
	while (well && (c = getopt_long(argc, argv, "", options, NULL)) != -1)
		switch (c) {
		case 's':
			well = number("seed", optarg, 0, &arguments.seed);
			break;
		case 'n':
			well = number("programs", optarg, 1, &arguments.programs);
			break;
		case 'p':
			one = true;
			/* fallthrough */
		case 'f':
			well = number(c == 'p' ? "program" : "first", optarg, 0, &arguments.first);
			break;
		case 't':
			arguments.print = true;
			break;
		default:
			snprintf(complaint, sizeof(complaint),
				 "%.40s: accepted are --seed, --programs, --first "
				 "and --program, each with a number, and --print",
				 argv[optind - 1]);
			return false;
		}
	if (one)
		arguments.programs = 1;
	if (well && optind == argc && !arguments.print) {
		snprintf(complaint, sizeof(complaint),
			 "no way: one or more of native, single, bind, stripe, "
			 "weighted, pull (with options), or --print, is wanted");
		return false;
	}
	return well;
}

/* ---- */

static void run_way(const char *way, int ranks)
{
	static struct plan plan, block;
	unsigned long i, number_now, made = (unsigned long)-1;
	bool native = !strcmp(way, "native");
	MPI_Comm base = dup_with_info(MPI_COMM_WORLD, way);

	running_way = way;
	for (i = 0; i < arguments.programs; i++) {
		number_now = arguments.first + i;
		plan_draw(&plan, arguments.seed, number_now, ranks);
		running = &plan;
		if (number_now / BLOCK != made) {
			if (made != (unsigned long)-1)
				comms_free(&block);
			block = plan;
			made = number_now / BLOCK;
			comms_make(&block, base, native);
		}
		program_run(&plan);
	}
	comms_free(&block);
	running = NULL;
	MPI_Comm_free(&base);
}

static void print_plans(int ranks)
{
	static struct plan plan;
	unsigned long i;

	for (i = 0; i < arguments.programs; i++) {
		plan_draw(&plan, arguments.seed, arguments.first + i, ranks);
		plan_print(&plan);
	}
	fflush(stdout);
}

static int run(int argc, char **argv)
{
	unsigned char stack[STACK];
	int ranks, i;

	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	CHECK(ranks <= RANKS_MAX, "%d ranks: at most %d are accepted", ranks, RANKS_MAX);
	if (!parse(argc, argv)) {
		if (world_rank == 0)
			fprintf(stderr, "random_programs: %s\n", complaint);
		return EXIT_USAGE;
	}
	buffers_stack(stack, sizeof(stack));
	if (arguments.print && world_rank == 0)
		print_plans(ranks);
	for (i = optind; i < argc; i++)
		run_way(argv[i], ranks);
	if (world_rank == 0 && i > optind - 1 && optind < argc)
		printf("%lu programs passed, each over %d ways\n", arguments.programs,
		       argc - optind);
	return 0;
}

int main(int argc, char **argv)
{
	int rc;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	rc = run(argc, argv);
	MPI_Finalize();
	return rc;
}
