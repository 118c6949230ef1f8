/*
 * fortran.c - handles of requests and messages in Fortran (Open MPI; MPICH's are those of C).
 *
 * The library's Fortran handles are indices from 0 on, MPI's constants among them; the
 * layer's are negative.  The library's bindings call MPI_Request_c2f and _f2c, except those
 * that wait and test: these read the index from a field of the library's request, behind the
 * handle.  So every slot holds its own index at the place where the library looks.  The
 * distance of that place from the handle is learned from requests of the library.
 */
#include "layer.h"

#include <string.h>

#if RG_OPENMPI

enum {
	FORTRAN_FIRST = -1000,
	LOOK_BYTES = 160,		/* a request of the library is larger, whichever sends it */
};

/* ---- Where the library looks ------------------------------------------------------------- */

/* The bytes of a request at which its index stands, one bit each; `index` is known. */
static uint64_t places_of(MPI_Request r, MPI_Fint index)
{
	unsigned char bytes[LOOK_BYTES];
	uint64_t places = 0;
	MPI_Fint word;

	memcpy(bytes, r, sizeof(bytes));
	for (size_t i = 0; i < sizeof(bytes) / sizeof(word); i++) {
		memcpy(&word, bytes + i * sizeof(word), sizeof(word));
		places |= (uint64_t)(word == index) << i;
	}
	return places;
}

/* Three requests have the index of each at one place in common. */
int fortran_distance(void)
{
	enum { REQUESTS = 3 };
	MPI_Request request[REQUESTS];
	uint64_t places = ~(uint64_t)0;
	static char never;
	int n;

	for (n = 0; n < REQUESTS; n++)
		if (native.Recv_init(&never, 1, MPI_BYTE, 0, n, MPI_COMM_SELF, &request[n]))
			break;
	for (int i = 0; i < n; i++)
		places &= places_of(request[i], native.Request_c2f(request[i]));
	for (int i = 0; i < n; i++)
		native.Request_free(&request[i]);
	if (n < REQUESTS || !places)
		return -1;
	return __builtin_ctzll(places) * (int)sizeof(MPI_Fint);
}

MPI_Fint fortran_of(const void *slot)
{
	return FORTRAN_FIRST - (MPI_Fint)(((const unsigned char *)slot - slab_base) / SLAB_SLOT_BYTES);
}

static void *slot_of(MPI_Fint f)
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
	return layer.rails && request <= FORTRAN_FIRST ? abi_request_handle(slot_of(request))
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
	return layer.rails && message <= FORTRAN_FIRST ? abi_message_handle(slot_of(message))
						       : native.Message_f2c(message);
}
BOTH(Message_f2c);

#endif
