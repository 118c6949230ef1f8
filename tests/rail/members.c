/*
 * members.c - the processes of a job (job.h) as members of one process, each a thread: with a thread
 * sanitizer, what librail publishes to its peers through memory that an HCA writes is seen as what
 * threads publish.  test_traffic.c has the messages; `make check-threads`.
 */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "job.h"
#include "softhca/api/fabric.h"

struct sitter {
	const struct job_seat *seat;
	int rank;
};

static void *sit(void *arg)
{
	const struct sitter *s = arg;

	hca_fabric_member = (unsigned)s->rank;
	job_sit(s->seat, s->rank);
	return NULL;
}

int job_spawn(const struct job_seat *seat, unsigned killed)
{
	struct sitter sitter[JOB_MAX];
	pthread_t thread[JOB_MAX];

	if (killed)
		job_fail(__FILE__, __LINE__, "members of one process cannot be killed");
	alarm(seat->config->seconds ? (unsigned)seat->config->seconds : 600);
	for (int r = 0; r < seat->count; r++) {
		sitter[r] = (struct sitter){ seat, r };
		if (pthread_create(&thread[r], NULL, sit, &sitter[r]))
			abort();
	}
	for (int r = 0; r < seat->count; r++)
		pthread_join(thread[r], NULL);
	return 0;
}
