/* run.c - does the events of a plan that are this rank's. */
#include "programs.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LIMIT_S = 300 }; /* limit of a program, which takes milliseconds: above it hangs */

const struct plan *running;
const char *running_way = "";
int world_rank;
static volatile int running_event = -1;

/* ---- What went wrong, and how to see it again
 * ------------------------------------------------------ */

static int where(char *to, size_t bytes)
{
	char what[1000] = "communicators are made or freed";
	int e = running_event;

	if (!running)
		return snprintf(to, bytes, "random_programs: rank %d", world_rank);
	if (e >= 0)
		event_text(running, &running->event[e], what, sizeof(what));
	return snprintf(
	    to, bytes,
	    "random_programs: %s: seed %llu program %lu of %d ranks, rank %d, event %d: %s",
	    running_way, (unsigned long long)running->seed, running->number, running->ranks,
	    world_rank, e, what);
}

static int how_to_repeat(char *to, size_t bytes)
{
	if (!running)
		return 0;
	return snprintf(
	    to, bytes,
	    "random_programs: again: mpirun -np %d tests/mpi/random_programs --seed %llu "
	    "--program %lu %s (--print: its plan)\n",
	    running->ranks, (unsigned long long)running->seed, running->number, running_way);
}

static void tell(const char *text, const char *what)
{
	char line[4000];
	int n = snprintf(line, sizeof(line), "%s: %s\n", text, what);

	if (n > (int)sizeof(line) - 1)
		n = sizeof(line) - 1;
	n += how_to_repeat(line + n, sizeof(line) - (size_t)n);
	(void)!write(2, line, (size_t)n);
}

void failed(const char *format, ...)
{
	char text[1500], what[1000];
	va_list args;

	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	where(text, sizeof(text));
	tell(text, what);
	MPI_Abort(MPI_COMM_WORLD, 1);
	abort();
}

void call_failed(const char *call, int rc)
{
	char text[MPI_MAX_ERROR_STRING] = "?";
	int n;

	MPI_Error_string(rc, text, &n);
	failed("%s: %s", call, text);
}

/* All ranks say where they are, then the job ends. */
static void on_alarm(int number)
{
	char text[1500];

	where(text, sizeof(text));
	tell(text, "no end");
	sleep(2);
	_exit(1);
}

/* ---- Programs
 * ---------------------------------------------------------------------------------------- */

/* For all buffered sends of this rank in this program. */
static void *attach(const struct plan *p)
{
	size_t bytes = 0;
	void *mem;
	int i, n;

	for (i = 0; i < p->messages; i++) {
		const struct message *m = &p->message[i];

		if (m->mode != MODE_BUFFERED || world_of(p, m->comm, m->from) != world_rank)
			continue;
		MPI_Pack_size((int)(m->units * units[m->unit].bytes), MPI_BYTE, MPI_COMM_SELF, &n);
		bytes += (size_t)n + 64 + MPI_BSEND_OVERHEAD;
	}
	if (!bytes)
		return NULL;
	mem = malloc(bytes);
	CHECK(mem, "no memory for %zu bytes", bytes);
	DO(MPI_Buffer_attach(mem, (int)bytes));
	return mem;
}

static void detach(void *mem)
{
	void *was;
	int n;

	if (!mem)
		return;
	DO(MPI_Buffer_detach(&was, &n));
	CHECK(was == mem, "MPI_Buffer_detach gave another buffer");
	free(mem);
}

static void event_run(const struct event *e)
{
	if (e->rank >= 0 && e->rank != world_rank)
		return;
	switch (e->kind) {
	case EVENT_SEND:
		send_start(e->index);
		break;
	case EVENT_RECEIVE:
		receive_start(e->index);
		break;
	case EVENT_WAIT:
		wait_for(e);
		break;
	case EVENT_OTHER:
		other_run(e->index);
		break;
	case EVENT_CLOSE:
		receives_close(e->index);
		DO(MPI_Barrier(comm_of[0]));
	}
}

/* Sends whose requests were freed: everything has been received by now. */
static void end(const struct plan *p)
{
	int i;

	for (i = 0; i < p->messages; i++)
		if (sending[i].open) {
			CHECK(p->message[i].request_freed, "message %d is still under way", i);
			send_finish(i);
		}
	for (i = 0; i < p->receives; i++)
		CHECK(!receiving[i].open, "receive %d is still under way", i);
	for (i = 0; i < p->others; i++)
		CHECK(!between[i].open, "%s %d is still under way", other_names[p->other[i].kind],
		      i);
}

void program_run(const struct plan *p)
{
	void *mem;
	int i;

	signal(SIGALRM, on_alarm);
	alarm(LIMIT_S);
	mem = attach(p);
	for (i = 0; i < p->events; i++) {
		running_event = i;
		event_run(&p->event[i]);
	}
	end(p);
	running_event = -1;
	detach(mem);
	alarm(0);
}
