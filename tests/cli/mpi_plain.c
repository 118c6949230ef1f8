/*
 * mpi_plain.c - an MPI program that has never heard of Railgauge: rank 0 and the last rank exchange
 * a message that both check.  Prints what a layer before the MPI library says that it has carried
 * (or that it has none).
 */
#include <dlfcn.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { BYTES = 300000 };

struct ledger { uint64_t tx_messages, tx_chunks, tx_bytes, more[5]; };

static void tell(void)
{
	int (*get)(int rail, struct ledger *out) =
		(int (*)(int, struct ledger *))dlsym(RTLD_DEFAULT, "railmpi_ledger");
	unsigned long long bytes = 0;
	struct ledger l;

	for (int rail = 0; get && get(rail, &l) == 0; rail++)
		bytes += l.tx_bytes;
	printf("layer: %s, %llu bytes\n", get ? "yes" : "no", bytes);
}

int main(int argc, char **argv)
{
	unsigned char *out = malloc(BYTES), *in = malloc(BYTES);
	int rank, size, wrong = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	for (int i = 0; i < BYTES; i++)
		out[i] = (unsigned char)(i * 7 + rank);
	if (rank == 0 || rank == size - 1) {
		int peer = rank ? 0 : size - 1;

		MPI_Sendrecv(out, BYTES, MPI_BYTE, peer, 5, in, BYTES, MPI_BYTE, peer, 5,
			     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		for (int i = 0; i < BYTES; i++)
			wrong += in[i] != (unsigned char)(i * 7 + peer);
	}
	if (rank == 0)
		tell();
	/*
	 * When a rank aborts while another is in MPI_Finalize, Open MPI's mpirun may hang or crash
	 * (4.1.4, PMIx 4.2.2, without Railgauge too).
	 */
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Finalize();
	free(out);
	free(in);
	return wrong ? 1 : 0;
}
