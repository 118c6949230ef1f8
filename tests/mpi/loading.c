/*
 * loading.c - a program that is not linked to MPI, as an interpreter: it calls MPI by pointers that it
 * looks up in the library (ctypes, MPI.jl), through a module that is linked to it (mpi4py), and
 * through one that is loaded with RTLD_DEEPBIND.
 *
 *	loading LIBRARY [MODULE [DEEP_MODULE]]	all the ways, in all pairs of a sender and a receiver
 *
 * The first way begins, the last one ends.  LOADING_ALSO names a library that is loaded before.
 */
#include <dlfcn.h>
#include <mpi.h>		/* for types; no function of it is linked */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loading.h"

enum { SMALL = 64, LARGE = 300000 };

/* ---- By pointers ------------------------------------------------------------------------ */

static struct {
	void *library;
	__typeof__(&MPI_Init) Init;
	__typeof__(&MPI_Comm_rank) Comm_rank;
	__typeof__(&MPI_Send) Send;
	__typeof__(&MPI_Recv) Recv;
	__typeof__(&MPI_Finalize) Finalize;
	MPI_Comm world;
	MPI_Datatype byte;
} mpi;

static void *look_up(const char *name)
{
	void *f = dlsym(mpi.library, name);

	if (!f) {
		fprintf(stderr, "loading: %s\n", dlerror());
		exit(3);
	}
	return f;
}

static int begin(void)
{
	int rank;

	return mpi.Init(NULL, NULL) || mpi.Comm_rank(mpi.world, &rank) ? -1 : rank;
}

static int send(const void *bytes, int count, int to)
{
	return mpi.Send(bytes, count, mpi.byte, to, LOADING_TAG, mpi.world);
}

static int receive(void *bytes, int count, int from)
{
	return mpi.Recv(bytes, count, mpi.byte, from, LOADING_TAG, mpi.world, MPI_STATUS_IGNORE);
}

static int end(void)
{
	return mpi.Finalize();
}

static const struct caller by_pointers = { begin, send, receive, end };

static const struct caller *open_pointers(const char *path)
{
	mpi.library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!mpi.library) {
		fprintf(stderr, "loading: %s\n", dlerror());
		exit(3);
	}
	*(void **)&mpi.Init = look_up("MPI_Init");
	*(void **)&mpi.Comm_rank = look_up("MPI_Comm_rank");
	*(void **)&mpi.Send = look_up("PMPI_Send");
	*(void **)&mpi.Recv = look_up("MPI_Recv");
	*(void **)&mpi.Finalize = look_up("MPI_Finalize");
#ifdef OPEN_MPI
	mpi.world = look_up("ompi_mpi_comm_world");
	mpi.byte = look_up("ompi_mpi_byte");
#else
	mpi.world = MPI_COMM_WORLD;
	mpi.byte = MPI_BYTE;
#endif
	return &by_pointers;
}

/* ---- By modules ------------------------------------------------------------------------- */

static const struct caller *open_module(const char *path, int flags)
{
	void *module = dlopen(path, RTLD_LOCAL | flags);
	const struct caller *caller = module ? dlsym(module, "loading_caller") : NULL;

	if (!caller) {
		fprintf(stderr, "loading: %s\n", dlerror());
		exit(3);
	}
	return caller;
}

/* ---- All of them ------------------------------------------------------------------------ */

static unsigned char byte_at(int message, int i)
{
	return (unsigned char)(i * 7 + message * 31 + (i >> 8));
}

/* A message from rank 0 to rank 1, or back. */
static int deliver(const struct caller *sender, const struct caller *receiver, int from, int rank,
		   int message, int count)
{
	unsigned char *bytes = malloc((size_t)count);
	int wrong = 0;

	if (!bytes)
		return 1;
	if (rank == from) {
		for (int i = 0; i < count; i++)
			bytes[i] = byte_at(message, i);
		wrong = sender->send(bytes, count, !rank);
	} else {
		memset(bytes, 0, (size_t)count);
		wrong = receiver->receive(bytes, count, !rank);
		for (int i = 0; i < count; i++)
			wrong += bytes[i] != byte_at(message, i);
	}
	free(bytes);
	return wrong;
}

int main(int argc, char **argv)
{
	const struct caller *way[3];
	int ways = 0, message = 0, rank, wrong = 0;

	if (argc < 2 || argc > 4)
		return 2;
	if (getenv("LOADING_ALSO") && !dlopen(getenv("LOADING_ALSO"), RTLD_NOW | RTLD_LOCAL))
		return 5;
	way[ways++] = open_pointers(argv[1]);
	if (argc > 2)
		way[ways++] = open_module(argv[2], RTLD_NOW);
	if (argc > 3)
		way[ways++] = open_module(argv[3], RTLD_LAZY | RTLD_DEEPBIND);
	rank = way[0]->begin();
	if (rank < 0)
		return 4;
	for (int s = 0; s < ways; s++)
		for (int r = 0; r < ways; r++)
			for (int large = 0; large < 2; large++)
				for (int from = 0; from < 2; from++)
					wrong += deliver(way[s], way[r], from, rank, message++,
							 large ? LARGE : SMALL);
	wrong += way[ways - 1]->end();
	printf("loading: rank %d, %d messages, %d wrong\n", rank, message, wrong);
	return wrong ? 1 : 0;
}
