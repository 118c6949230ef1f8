/* seats.c - the processes of a job of tests/rail/job.h as members of one process. */
#include <stdio.h>
#include <unistd.h>

#include "../rail/job.h"
#include "virtual.h"

enum {
	/* librail checks the clock, and queues that owe it nothing, every 64 calls. */
	ROUNDS = 160,
};

struct sitter {
	const struct job_seat *seat;
	int rank;
};

static void sit(void *arg)
{
	const struct sitter *s = arg;

	job_sit(s->seat, s->rank);
}

int job_spawn(const struct job_seat *seat, unsigned killed)
{
	static const char *const names[JOB_MAX] = { "rank 0", "rank 1", "rank 2", "rank 3",
						    "rank 4", "rank 5", "rank 6", "rank 7" };
	struct sitter s[JOB_MAX];

	if (killed)
		job_fail(__FILE__, __LINE__, "members of one process cannot be killed");
	alarm(600);
	virtual_begin(&(struct virtual_config){
		.rounds = ROUNDS, .limit_ns = (uint64_t)seat->config->seconds * 1000000000u });
	for (int r = 0; r < seat->count; r++) {
		s[r] = (struct sitter){ seat, r };
		virtual_task(names[r], (unsigned)r, sit, &s[r]);
	}
	virtual_run();
	return 0;
}
