/* suite.c - see suite.h. */
#include "suite.h"

#include <unistd.h>

int suite_rank, suite_size;
const char *suite_where = "start";

const size_t suite_sizes[] = {
	0,    1,    7,	  8,	31,   32,    33,    63,	   64,	  65,	 127,	  128,	   1000,
	4096, 8191, 8192, 8193, 8320, 16384, 16385, 65536, 99999, 262144, 1048576, 3000001,
};
const int suite_size_count = sizeof(suite_sizes) / sizeof(suite_sizes[0]);

void suite_verify(const void *buf, size_t bytes, size_t room, int source, unsigned message)
{
	const unsigned char *p = buf;
	size_t i;

	for (i = 0; i < bytes; i++)
		CHECK(p[i] == suite_byte(source, message, i),
		      "byte %zu of %zu is %02x, not %02x (message %u from %d)", i, bytes, p[i],
		      suite_byte(source, message, i), message, source);
	for (; i < room; i++)
		CHECK(p[i] == 0xee, "byte %zu behind a message of %zu was written", i, bytes);
}

void suite_status(const MPI_Status *status, int source, int tag, size_t bytes)
{
	int count;

	MPI_Get_count(status, MPI_BYTE, &count);
	CHECK(status->MPI_SOURCE == source, "source %d, not %d", status->MPI_SOURCE, source);
	CHECK(status->MPI_TAG == tag, "tag %d, not %d", status->MPI_TAG, tag);
	CHECK((size_t)count == bytes, "count %d, not %zu", count, bytes);
}

static MPI_Comm make_comm(const char *way)
{
	MPI_Info info;
	MPI_Comm comm;

	MPI_Info_create(&info);
	MPI_Info_set(info, "railgauge", way);
	if (MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm) != MPI_SUCCESS)
		MPI_Abort(MPI_COMM_WORLD, 2);
	MPI_Info_free(&info);
	return comm;
}

/* Calls on many requests may raise their error on another communicator than the case's. */
static void set_errors(MPI_Comm comm, MPI_Errhandler handler)
{
	MPI_Comm_set_errhandler(comm, handler);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
}

static bool is_native(const struct suite_case *k, const char *way)
{
	const char *coll = getenv("RAILGAUGE_COLL");

	return !strcmp(way, "native") || (k->collective && coll && !strcmp(coll, "native"));
}

/* Is it a word of the list? */
static bool is_named(const char *name, const char *list)
{
	const size_t length = strlen(name);
	const char *at = list;

	while ((at = strstr(at, name))) {
		if ((at == list || at[-1] == ' ') && (at[length] == ' ' || !at[length]))
			return true;
		at += length;
	}
	return false;
}

int suite_main(int argc, char **argv, int thread_level, const struct suite_case *cases)
{
	const char *only = getenv("RG_CASE");
	const struct suite_case *k;
	int a, provided, ran = 0;
	char where[128];
	MPI_Comm comm;

	MPI_Init_thread(&argc, &argv, thread_level, &provided);
	if (provided < thread_level) {
		MPI_Finalize();
		return 77;
	}
	for (a = 1; a < argc; a++) {
		comm = make_comm(argv[a]);
		MPI_Comm_rank(comm, &suite_rank);
		MPI_Comm_size(comm, &suite_size);
		for (k = cases; k->name; k++) {
			if (suite_size < k->min_ranks || (only && !is_named(k->name, only)))
				continue;
			if (k->native_defect && is_native(k, argv[a]))
				continue;
			snprintf(where, sizeof(where), "%s: %s", argv[a], k->name);
			suite_where = where;
			set_errors(comm, k->changes_errors ? MPI_ERRORS_RETURN : MPI_ERRORS_ARE_FATAL);
			k->run(comm);
			MPI_Barrier(comm);
			ran++;
		}
		suite_where = argv[a];
		MPI_Comm_free(&comm);
	}
	MPI_Comm_rank(MPI_COMM_WORLD, &suite_rank);
	MPI_Finalize();
	if (suite_rank == 0)
		printf("%d cases passed\n", ran);
	return ran ? 0 : 99;
}
