/*
 * assumptions - see assumptions.h.
 *
 *	assumptions GROUP [CASE]	the cases of a group, or one of them
 *
 * Prints the name of each case that held, and whether a layer stood before the library.
 */
#include "assumptions.h"

#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>


static const struct assumption *const themes[] = {
	signal_cases, process_cases, thread_cases, call_cases, error_cases, place_cases,
	finalize_cases,
};

void exchange(int tag, size_t bytes)
{
	static _Atomic unsigned messages;
	unsigned char *out = malloc(bytes + 1), *in = malloc(bytes + 16);
	unsigned message = tag ? 0 : messages++;
	int other = !suite_rank;
	MPI_Status st;

	CHECK(out && in);
	suite_fill(out, bytes, suite_rank, message);
	suite_blank(in, bytes + 16);
	MPI_Sendrecv(out, (int)bytes, MPI_BYTE, other, tag, in, (int)bytes + 16, MPI_BYTE, other, tag,
		     MPI_COMM_WORLD, &st);
	suite_verify(in, bytes, bytes + 16, other, message);
	free(out);
	free(in);
}

void traffic(void)
{
	int sum = 0, one = suite_rank + 1;

	exchange(0, SMALL);
	exchange(0, MIDDLE);
	exchange(0, LARGE);
	MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	CHECK(sum == 3);
}

static const size_t pair_bytes[] = { SMALL, LARGE };

void pair_open(struct pair *p)
{
	static unsigned message = 1000;
	int other = !suite_rank;

	p->message = message++;
	for (int i = 0; i < 2; i++) {
		p->out[i] = malloc(pair_bytes[i]);
		p->in[i] = malloc(pair_bytes[i] + 16);
		CHECK(p->out[i] && p->in[i]);
		suite_fill(p->out[i], pair_bytes[i], suite_rank, p->message);
		suite_blank(p->in[i], pair_bytes[i] + 16);
		MPI_Irecv(p->in[i], (int)pair_bytes[i] + 16, MPI_BYTE, other, 70 + i, MPI_COMM_WORLD,
			  &p->request[i]);
		MPI_Isend(p->out[i], (int)pair_bytes[i], MPI_BYTE, other, 70 + i, MPI_COMM_WORLD,
			  &p->request[2 + i]);
	}
}

void pair_shut(struct pair *p)
{
	MPI_Waitall(4, p->request, MPI_STATUSES_IGNORE);
	for (int i = 0; i < 2; i++) {
		suite_verify(p->in[i], pair_bytes[i], pair_bytes[i] + 16, !suite_rank, p->message);
		free(p->out[i]);
		free(p->in[i]);
	}
}

static int run_group(const char *group, const char *only)
{
	static char where[100];
	int ran = 0;

	suite_where = where;
	for (size_t t = 0; t < sizeof(themes) / sizeof(themes[0]); t++)
		for (const struct assumption *a = themes[t]; a->name; a++) {
			if (strcmp(a->group, group) || (only && strcmp(a->name, only)))
				continue;
			snprintf(where, sizeof(where), "%s: %s", group, a->name);
			MPI_Barrier(MPI_COMM_WORLD);
			a->run();
			traffic();
			MPI_Barrier(MPI_COMM_WORLD);
			if (suite_rank == 0) {
				printf("holds: %s\n", a->name);
				fflush(stdout);
			}
			ran++;
		}
	return ran;
}

static char **arguments;

static void *life(void *unused)
{
	const char *group = arguments[1];
	bool threads = strncmp(group, "thread", 6) == 0;
	int got, ran;

	if (threads)
		MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &got);
	else
		MPI_Init(NULL, NULL);
	MPI_Comm_rank(MPI_COMM_WORLD, &suite_rank);
	MPI_Comm_size(MPI_COMM_WORLD, &suite_size);
	CHECK(suite_size == 2, "two ranks");
	change_place(group);
	CHECK(!threads || got == MPI_THREAD_MULTIPLE);
	traffic();
	ran = run_group(group, arguments[2]);
	MPI_Finalize();
	if (suite_rank == 0 && finalize_well())
		printf("%s: %d cases hold, layer: %s\n", group, ran,
		       dlsym(RTLD_DEFAULT, "railmpi_ledger") ? "yes" : "no");
	fflush(stdout);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t second;

	if (argc < 2) {
		fprintf(stderr, "usage: assumptions GROUP [CASE]\n");
		return 2;
	}
	arguments = argv;
	prepare(argv[1], argv);
	if (strncmp(argv[1], "thread", 6)) {
		life(NULL);
		return 0;
	}
	/* MPI's main thread is not the process's. */
	if (pthread_create(&second, NULL, life, NULL))
		return 1;
	pthread_join(second, NULL);
	return 0;
}
