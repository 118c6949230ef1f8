/* contents.c - see contents.h. */
#include "mpi/type/contents.h"

#include <stdlib.h>

#include "mpi/abi/native.h"

#ifdef HAVE_MPI_SEND_C
bool contents_envelope(MPI_Datatype handle, MPI_Count n[4], int *combiner)
{
	return native.Type_get_envelope_c(handle, &n[0], &n[1], &n[2], &n[3], combiner) ==
	       MPI_SUCCESS;
}

static bool arguments(MPI_Datatype handle, const MPI_Count n[4], int integers[],
		      MPI_Aint addresses[], MPI_Count counts[], MPI_Datatype types[])
{
	return native.Type_get_contents_c(handle, n[0], n[1], n[2], n[3], integers, addresses,
					  counts, types) == MPI_SUCCESS;
}
#else
bool contents_envelope(MPI_Datatype handle, MPI_Count n[4], int *combiner)
{
	int integers, addresses, types, rc;

	rc = native.Type_get_envelope(handle, &integers, &addresses, &types, combiner);
	n[0] = integers;
	n[1] = addresses;
	n[2] = 0;
	n[3] = types;
	return rc == MPI_SUCCESS;
}

static bool arguments(MPI_Datatype handle, const MPI_Count n[4], int integers[],
		      MPI_Aint addresses[], MPI_Count counts[], MPI_Datatype types[])
{
	return native.Type_get_contents(handle, (int)n[0], (int)n[1], (int)n[3], integers,
					addresses, types) == MPI_SUCCESS;
}
#endif

/* Predefined types may not be freed, even if contents_get returns them. */
bool contents_are_predefined(int combiner)
{
#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
	if (combiner == MPI_COMBINER_VALUE_INDEX)
		return true;
#endif
	return combiner == MPI_COMBINER_NAMED || combiner == MPI_COMBINER_F90_REAL ||
	       combiner == MPI_COMBINER_F90_COMPLEX || combiner == MPI_COMBINER_F90_INTEGER;
}

void contents_free(struct contents *c)
{
	MPI_Count n[4];
	int combiner;
	size_t i;

	for (i = 0; i < c->types; i++)
		if (contents_envelope(c->type[i], n, &combiner) && !contents_are_predefined(combiner))
			native.Type_free(&c->type[i]);
	free(c->number);
	free(c->type);
}

/* All in one list.  n: of the envelope. */
bool contents_get(MPI_Datatype handle, const MPI_Count n[4], struct contents *c)
{
	size_t integers = (size_t)n[0], addresses = (size_t)n[1], i;
	int *integer = calloc(integers + 1, sizeof(*integer));
	MPI_Aint *address = calloc(addresses + 1, sizeof(*address));
	bool well;

	c->large = (size_t)n[2];
	c->numbers = integers + addresses + c->large;
	c->number = calloc(c->numbers + 1, sizeof(*c->number));
	c->type = calloc((size_t)n[3] + 1, sizeof(*c->type));
	c->types = 0;
	well = integer && address && c->number && c->type &&
	       arguments(handle, n, integer, address, c->number + integers + addresses, c->type);
	if (well) {
		c->types = (size_t)n[3];
		for (i = 0; i < integers; i++)
			c->number[i] = integer[i];
		for (i = 0; i < addresses; i++)
			c->number[integers + i] = address[i];
	}
	free(integer);
	free(address);
	if (!well)
		contents_free(c);
	return well;
}
