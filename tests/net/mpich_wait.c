/*
 * mpich_wait.c - preloaded into MPICH's ranks (mpirun.sh): UCX goes on while a rank waits for its
 * launcher.
 *
 * MPICH 4.0.2 with UCX 1.13.1, UCX_TLS=tcp, also by themselves on one host: of five jobs of four ranks,
 * one or two stay in MPI_Finalize for ever.  One rank closes its connections, for which UCX needs its
 * peers; these have closed theirs and sleep in a read of PMI's socket.  Here such a read begins when
 * there is something to read, and UCX's progress is called until then.
 */
#include <dlfcn.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

static void *worker;
static unsigned (*worker_progress)(void *worker);

int ucp_worker_create(void *context, const void *params, void **out);

int ucp_worker_create(void *context, const void *params, void **out)
{
	int (*create)(void *, const void *, void **) =
		(int (*)(void *, const void *, void **))dlsym(RTLD_NEXT, "ucp_worker_create");
	int rc = create(context, params, out);

	if (rc == 0 && !worker) {
		worker_progress = (unsigned (*)(void *))dlsym(RTLD_NEXT, "ucp_worker_progress");
		worker = *out;
	}
	return rc;
}

void ucp_worker_destroy(void *which);

void ucp_worker_destroy(void *which)
{
	void (*destroy)(void *) = (void (*)(void *))dlsym(RTLD_NEXT, "ucp_worker_destroy");

	if (which == worker)
		worker = NULL;
	destroy(which);
}

static int is_launchers(int fd)
{
	const char *text = getenv("PMI_FD");

	return text && atoi(text) == fd;
}

ssize_t read(int fd, void *buffer, size_t bytes)
{
	static ssize_t (*next)(int, void *, size_t);
	struct pollfd in = { .fd = fd, .events = POLLIN };

	if (!next)
		next = (ssize_t (*)(int, void *, size_t))dlsym(RTLD_NEXT, "read");
	if (worker && is_launchers(fd))
		while (poll(&in, 1, 1) == 0)
			worker_progress(worker);
	return next(fd, buffer, bytes);
}
