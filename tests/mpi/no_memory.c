/*
 * no_memory.c - two ranks whose allocations fail where a test says so: argv[1].  "copy" and
 * "requests" are errors that the program sees and survives, "type" and "unexpected" end the job.
 */
#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../capture.h"
#include "suite.h"

enum { COPY_BYTES = 300001, EAGER_BYTES = 5000, REQUESTS = 1 << 16 };

/* The allocation of these bytes or more that fails, once; 0: none. */
static size_t calloc_fails, malloc_fails, aligned_fails;
static bool mprotect_fails;

static bool fails(size_t *from, size_t bytes)
{
	if (!*from || bytes < *from)
		return false;
	*from = 0;
	errno = ENOMEM;
	return true;
}

/* Functions of the C library, before the library's own in all objects of the process. */
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

__attribute__((visibility("default"))) void *malloc(size_t bytes)
{
	return fails(&malloc_fails, bytes) ? NULL : __libc_malloc(bytes);
}

__attribute__((visibility("default"))) void *calloc(size_t count, size_t bytes)
{
	return fails(&calloc_fails, count * bytes) ? NULL : __libc_calloc(count, bytes);
}

__attribute__((visibility("default"))) void *aligned_alloc(size_t alignment, size_t bytes)
{
	return fails(&aligned_fails, bytes) ? NULL : __libc_memalign(alignment, bytes);
}

__attribute__((visibility("default"))) int mprotect(void *at, size_t bytes, int access)
{
	if (mprotect_fails) {
		errno = ENOMEM;
		return -1;
	}
	return (int)syscall(SYS_mprotect, at, bytes, access);
}

static int class_of(int rc)
{
	int class = MPI_SUCCESS;

	MPI_Error_class(rc, &class);
	return class;
}

static void says_once(const char *text, const char *words)
{
	CHECK(strstr(text, words) && strchr(text, '\n') == strrchr(text, '\n'), "said: %s", text);
}

/* The first exchange is refused, on both ranks, and leaves the buffer; the second one is made. */
static void copy(void)
{
	static unsigned char data[COPY_BYTES];
	const int other = 1 - suite_rank;

	suite_fill(data, sizeof(data), suite_rank, 3);
	malloc_fails = sizeof(data);
	capture_begin(2);
	int rc = MPI_Sendrecv_replace(data, COPY_BYTES, MPI_BYTE, other, 1, other, 1,
				      MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	const char *said = capture_end();

	CHECK(class_of(rc) == MPI_ERR_NO_MEM, "error class %d", class_of(rc));
	says_once(said, "no memory for a copy of a message of 300001 bytes");
	suite_verify(data, sizeof(data), sizeof(data), suite_rank, 3);
	rc = MPI_Sendrecv_replace(data, COPY_BYTES, MPI_BYTE, other, 1, other, 1, MPI_COMM_WORLD,
				  MPI_STATUS_IGNORE);
	CHECK(rc == MPI_SUCCESS);
	suite_verify(data, sizeof(data), sizeof(data), other, 3);
}

/* Receives until one is refused, and another, silently; those before it are as good as ever. */
static void requests(void)
{
	static MPI_Request q[REQUESTS];
	static int in[REQUESTS];
	const int other = 1 - suite_rank;
	int n = 0, theirs, rc, last;

	mprotect_fails = true;
	capture_begin(2);
	while ((rc = MPI_Irecv(&in[n], 1, MPI_INT, other, 1, MPI_COMM_WORLD, &q[n])) ==
	       MPI_SUCCESS)
		CHECK(++n < REQUESTS, "so many at once");
	last = MPI_Irecv(&in[n], 1, MPI_INT, other, 1, MPI_COMM_WORLD, &q[n]);
	says_once(capture_end(), "no memory for more requests than ");
	CHECK(class_of(rc) == MPI_ERR_NO_MEM && class_of(last) == MPI_ERR_NO_MEM, "classes %d, %d",
	      class_of(rc), class_of(last));
	mprotect_fails = false;
	for (int more = n + 5000; n < more; n++)
		MPI_Irecv(&in[n], 1, MPI_INT, other, 1, MPI_COMM_WORLD, &q[n]);
	/* A rank that still holds a request of the barrier is refused one receive earlier. */
	MPI_Sendrecv(&n, 1, MPI_INT, other, 2, &theirs, 1, MPI_INT, other, 2, MPI_COMM_WORLD,
		     MPI_STATUS_IGNORE);
	for (int i = 0; i < theirs; i++)
		MPI_Send(&i, 1, MPI_INT, other, 1, MPI_COMM_WORLD);
	MPI_Waitall(n, q, MPI_STATUSES_IGNORE);
	for (int i = 0; i < n; i++)
		CHECK(in[i] == i, "request %d has got %d", i, in[i]);
}

static void type(void)
{
	static int data[30];
	MPI_Datatype columns;

	MPI_Type_vector(10, 1, 3, MPI_INT, &columns);
	MPI_Type_commit(&columns);
	if (suite_rank == 0) {
		calloc_fails = 64;
		MPI_Send(data, 1, columns, 1, 1, MPI_COMM_WORLD);
		CHECK(false, "a send whose type has no memory");
	}
	MPI_Recv(data, 1, columns, 1 - suite_rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Rank 1 finds the first message in the barrier or in its receive of the second one. */
static void unexpected(void)
{
	static char data[EAGER_BYTES];

	if (suite_rank == 1)
		aligned_fails = EAGER_BYTES;
	MPI_Barrier(MPI_COMM_WORLD);
	if (suite_rank == 0)
		for (int tag = 1; tag <= 2; tag++)
			MPI_Send(data, EAGER_BYTES, MPI_BYTE, 1, tag, MPI_COMM_WORLD);
	MPI_Recv(data, EAGER_BYTES, MPI_BYTE, 1 - suite_rank, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	CHECK(false, "an unexpected message without memory");
}

int main(int argc, char **argv)
{
	static const struct { const char *name; void (*run)(void); } modes[] = {
		{"copy", copy}, {"requests", requests}, {"type", type}, {"unexpected", unexpected},
	};

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &suite_rank);
	MPI_Comm_size(MPI_COMM_WORLD, &suite_size);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	suite_where = argc > 1 ? argv[1] : "";
	MPI_Barrier(MPI_COMM_WORLD);
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
		if (!strcmp(suite_where, modes[i].name))
			modes[i].run();
	MPI_Finalize();
	if (suite_rank == 0)
		printf("%s holds\n", suite_where);
	return 0;
}
