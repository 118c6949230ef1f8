/* lost_waits.c - see lost_waits.h. */
#include "config.h"

#include "lost_waits.h"

int victim;
unsigned char *out, *in;

/* ---- Errors --------------------------------------------------------------------------------- */

static int class_of(int error)
{
	int class;

	MPI_Error_class(error, &class);
	return class;
}

/* All errors are of one class, that the library does not use for anything else. */
void check_class(int error, const char *what)
{
	static int class;

	CHECK(error != MPI_SUCCESS, "%s: no error", what);
	if (!class)
		class = class_of(error);
	CHECK(class != MPI_ERR_OTHER && class_of(error) == class, "%s: of class %d, not %d", what,
	      class_of(error), class);
}

void check_lost(int error, int which, const char *what)
{
	char text[MPI_MAX_ERROR_STRING] = "", name[64];
	int length;

	check_class(error, what);
	MPI_Error_string(error, text, &length);
	snprintf(name, sizeof(name), "rail: rank %d on host ", which);
	CHECK(!strncmp(text, name, strlen(name)), "%s: '%s', not '%s'", what, text, name);
	CHECK(strstr(text, " is lost: "), "%s: '%s'", what, text);
}

/* ---- Waiting ------------------------------------------------------------------------------ */

static int recv_named(void)
{
	return MPI_Recv(in, 8, MPI_BYTE, victim, NEVER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static int recv_any(void)
{
	return MPI_Recv(in, 8, MPI_BYTE, MPI_ANY_SOURCE, NEVER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static int probe_named(void)
{
	return MPI_Probe(victim, NEVER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static int probe_any(void)
{
	return MPI_Probe(MPI_ANY_SOURCE, NEVER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static int mprobe_named(void)
{
	MPI_Message message;

	return MPI_Mprobe(victim, NEVER, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
}

static int iprobe_loop(void)
{
	int rc, flag = 0;

	do
		rc = MPI_Iprobe(victim, NEVER, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
	while (!rc && !flag);
	CHECK(!flag, "found something");
	return rc;
}

static int improbe_loop(void)
{
	MPI_Message message;
	int rc, flag = 0;

	do
		rc = MPI_Improbe(MPI_ANY_SOURCE, NEVER, MPI_COMM_WORLD, &flag, &message,
				 MPI_STATUS_IGNORE);
	while (!rc && !flag);
	CHECK(!flag, "found something");
	return rc;
}

static int test_loop(void)
{
	MPI_Request request;
	int rc, flag = 0;

	MPI_Irecv(in, 8, MPI_BYTE, victim, NEVER, MPI_COMM_WORLD, &request);
	do
		rc = MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
	while (!flag);
	return rc;
}

static int ssend_unmatched(void)
{
	return MPI_Ssend(out, 8, MPI_BYTE, victim, NEVER, MPI_COMM_WORLD);
}

static int send_large(void)
{
	return MPI_Send(out, LARGE, MPI_BYTE, victim, NEVER, MPI_COMM_WORLD);
}

static int sendrecv(void)
{
	return MPI_Sendrecv(out, LARGE, MPI_BYTE, victim, NEVER, in, LARGE, MPI_BYTE, victim, NEVER,
			    MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/*
 * A half waits for the lost rank, and the other half for a rank that lives and does not know of the
 * loss.
 */
static int sendrecv_from(void)
{
	return MPI_Sendrecv(out, LARGE, MPI_BYTE, (suite_rank + 1) % victim, AMISS, in, LARGE, MPI_BYTE,
			    victim, NEVER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static int sendrecv_to(void)
{
	return MPI_Sendrecv(out, LARGE, MPI_BYTE, victim, NEVER, in, LARGE, MPI_BYTE,
			    (suite_rank + 1) % victim, AMISS, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

#ifdef HAVE_MPI_ISENDRECV
static int isendrecv(int to, int from)
{
	MPI_Request request;

	MPI_Isendrecv(out, LARGE, MPI_BYTE, to, AMISS, in, LARGE, MPI_BYTE, from, AMISS,
		      MPI_COMM_WORLD, &request);
	return MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static int isendrecv_from(void)
{
	return isendrecv((suite_rank + 1) % victim, victim);
}

static int isendrecv_to(void)
{
	return isendrecv(victim, (suite_rank + 1) % victim);
}
#endif

/* Besides one that waits for this rank itself, and is cancelled then. */
static void post_both(MPI_Request request[2])
{
	MPI_Irecv(in, 8, MPI_BYTE, suite_rank, NEVER, MPI_COMM_WORLD, &request[0]);
	MPI_Irecv(in + 8, 8, MPI_BYTE, victim, NEVER, MPI_COMM_WORLD, &request[1]);
}

static void cancel(MPI_Request *request)
{
	int cancelled;
	MPI_Status status;

	CHECK(*request != MPI_REQUEST_NULL, "it is complete");
	MPI_Cancel(request);
	MPI_Wait(request, &status);
	MPI_Test_cancelled(&status, &cancelled);
	CHECK(cancelled, "not cancelled");
}

static int waitany(void)
{
	MPI_Request request[2];
	int rc, index;

	post_both(request);
	rc = MPI_Waitany(2, request, &index, MPI_STATUS_IGNORE);
	CHECK(index == 1, "index %d", index);
	cancel(&request[0]);
	return rc;
}

static int waitall(void)
{
	MPI_Request request[2];
	MPI_Status status[2];
	int rc;

	post_both(request);
	rc = MPI_Waitall(2, request, status);
	CHECK(rc == MPI_ERR_IN_STATUS && status[0].MPI_ERROR == MPI_ERR_PENDING, "rc %d", rc);
	CHECK(request[1] == MPI_REQUEST_NULL, "it stays");
	cancel(&request[0]);
	return status[1].MPI_ERROR;
}

static int testall_loop(void)
{
	MPI_Request request[2];
	int rc, flag = 0;

	post_both(request);
	do
		rc = MPI_Testall(2, request, &flag, MPI_STATUSES_IGNORE);
	while (!flag);
	cancel(&request[0]);
	return rc;
}

static int query(void *nothing, MPI_Status *status)
{
	MPI_Status_set_elements(status, MPI_BYTE, 0);
	MPI_Status_set_cancelled(status, 0);
	status->MPI_SOURCE = status->MPI_TAG = MPI_UNDEFINED;
	return MPI_SUCCESS;
}

static int query_free(void *nothing)
{
	return MPI_SUCCESS;
}

static int query_cancel(void *nothing, int complete)
{
	return MPI_SUCCESS;
}

/* The library has a request in the array, too. */
static int waitall_mixed(void)
{
	MPI_Request request[3];
	MPI_Status status[3];
	int rc;

	MPI_Grequest_start(query, query_free, query_cancel, NULL, &request[2]);
	post_both(request);
	rc = MPI_Waitall(3, request, status);
	CHECK(rc == MPI_ERR_IN_STATUS && status[0].MPI_ERROR == MPI_ERR_PENDING &&
	      status[2].MPI_ERROR == MPI_ERR_PENDING, "rc %d, %d, %d", rc, status[0].MPI_ERROR,
	      status[2].MPI_ERROR);
	cancel(&request[0]);
	MPI_Grequest_complete(request[2]);
	CHECK(MPI_Wait(&request[2], MPI_STATUS_IGNORE) == MPI_SUCCESS, "the library's");
	return status[1].MPI_ERROR;
}

static int waitsome(void)
{
	MPI_Request request[2];
	MPI_Status status[2];
	int rc, count, index[2];

	MPI_Irecv(in, 8, MPI_BYTE, suite_rank, NEVER, MPI_COMM_WORLD, &request[0]);
	rc = MPI_Issend(out, 8, MPI_BYTE, victim, NEVER, MPI_COMM_WORLD, &request[1]);
	if (rc) {
		CHECK(request[1] == MPI_REQUEST_NULL, "a request of what was not begun");
	} else {
		rc = MPI_Waitsome(2, request, &count, index, status);
		CHECK(rc == MPI_ERR_IN_STATUS && count == 1 && index[0] == 1, "rc %d, count %d", rc,
		      count);
		rc = status[0].MPI_ERROR;
	}
	cancel(&request[0]);
	return rc;
}

static int persistent_all(void)
{
	MPI_Request request[2];
	MPI_Status status[2];
	int rc;

	MPI_Recv_init(in, 8, MPI_BYTE, victim, NEVER, MPI_COMM_WORLD, &request[0]);
	MPI_Ssend_init(out, LARGE, MPI_BYTE, victim, NEVER, MPI_COMM_WORLD, &request[1]);
	rc = MPI_Startall(2, request);
	CHECK(rc == MPI_SUCCESS || request[1] != MPI_REQUEST_NULL, "rc %d", rc);
	rc = MPI_Waitall(2, request, status);
	CHECK(rc == MPI_ERR_IN_STATUS, "rc %d", rc);
	check_lost(status[1].MPI_ERROR, victim, "the persistent send");
	MPI_Request_free(&request[0]);
	MPI_Request_free(&request[1]);
	return status[0].MPI_ERROR;
}

const struct lost_wait waits[] = {
	{"MPI_Recv", recv_named}, {"MPI_Recv of any source", recv_any}, {"MPI_Probe", probe_named},
	{"MPI_Send", send_large}, {"MPI_Waitall, persistent", persistent_all},
	{"MPI_Probe of any source", probe_any}, {"MPI_Waitany", waitany},
	{"MPI_Test", test_loop}, {"MPI_Iprobe", iprobe_loop}, {"MPI_Ssend", ssend_unmatched},
	{"MPI_Mprobe", mprobe_named}, {"MPI_Improbe of any source", improbe_loop},
	{"MPI_Waitsome", waitsome}, {"MPI_Sendrecv", sendrecv}, {"MPI_Waitall", waitall},
	{"MPI_Testall", testall_loop}, {"MPI_Waitall, mixed", waitall_mixed},
	{"MPI_Sendrecv from it", sendrecv_from}, {"MPI_Sendrecv to it", sendrecv_to},
#ifdef HAVE_MPI_ISENDRECV
	{"MPI_Isendrecv from it", isendrecv_from}, {"MPI_Isendrecv to it", isendrecv_to},
#endif
};
const int wait_count = sizeof(waits) / sizeof(waits[0]);
