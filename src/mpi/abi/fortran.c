/*
 * fortran.c - handles of requests and messages in Fortran, with Open MPI (MPICH's equal C's).
 *
 * The library's Fortran handles are indices from 0 on, MPI's constants among them; the layer's are
 * negative.  The library's bindings call MPI_Request_c2f and _f2c, except the bindings that wait
 * and test: they read the index from a field of the library's request, after the handle.  So every
 * slot holds its own index at the place where the library looks.  The distance of that place from
 * the handle is learned from the library's MPI_Request_c2f, which reads the same field.
 */
#include "mpi/abi/fortran.h"

#include <string.h>

#include "mpi/abi/abi.h"
#include "mpi/abi/native.h"
#include "mpi/job/progress.h"

#if RG_OPENMPI

enum {
	FORTRAN_FIRST = -1000,
	LOOK_WORDS = 1024,		/* longer than any request of the library */
};

/* ---- Where the library looks ------------------------------------------------------------- */

/*
 * A request in which every word is its own position: the index that the library finds in it is the
 * place.  No byte is read that has not been written here.
 */
static int place_of_index(void)
{
	_Alignas(64) MPI_Fint request[LOOK_WORDS];
	MPI_Fint place;

	for (MPI_Fint i = 0; i < LOOK_WORDS; i++)
		request[i] = i;
	place = native.Request_c2f((MPI_Request)request);
	return place > 0 && place < LOOK_WORDS ? (int)place : -1;
}

/* Does a request of the library have its index there?  MPI_Request_c2f has just set it. */
static bool is_place_of(int place)
{
	static char never;
	MPI_Fint index, found;
	MPI_Request request;

	if (native.Recv_init(&never, 1, MPI_BYTE, 0, 0, MPI_COMM_SELF, &request))
		return false;
	index = native.Request_c2f(request);
	memcpy(&found, (const char *)request + (size_t)place * sizeof(found), sizeof(found));
	native.Request_free(&request);
	return found == index;
}

int fortran_distance(void)
{
	int place = place_of_index();

	return place > 0 && is_place_of(place) ? place * (int)sizeof(MPI_Fint) : -1;
}

MPI_Fint fortran_of(const void *slot)
{
	return FORTRAN_FIRST - (MPI_Fint)(((const unsigned char *)slot - slab_base) / SLAB_SLOT_BYTES);
}

static void *fortran_slot(MPI_Fint f)
{
	return slab_base + (size_t)(FORTRAN_FIRST - f) * SLAB_SLOT_BYTES;
}

/* ---- What it asks for ----------------------------------------------------------------------- */

MPI_Fint MPI_Request_c2f(MPI_Request request)
{
	return layer.rails && abi_request_ours(request) ? fortran_of(abi_request_slot(request))
							: native.Request_c2f(request);
}
BOTH(Request_c2f);

MPI_Request MPI_Request_f2c(MPI_Fint request)
{
	return layer.rails && request <= FORTRAN_FIRST ? abi_request_handle(fortran_slot(request))
						       : native.Request_f2c(request);
}
BOTH(Request_f2c);

MPI_Fint MPI_Message_c2f(MPI_Message message)
{
	return layer.rails && abi_message_ours(message) ? fortran_of(abi_message_slot(message))
							: native.Message_c2f(message);
}
BOTH(Message_c2f);

MPI_Message MPI_Message_f2c(MPI_Fint message)
{
	return layer.rails && message <= FORTRAN_FIRST ? abi_message_handle(fortran_slot(message))
						       : native.Message_f2c(message);
}
BOTH(Message_f2c);

#endif
