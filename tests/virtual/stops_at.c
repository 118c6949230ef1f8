/* stops_at.c - a verb stops before any of its instructions. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "stops.h"

#if STOPS_KNOWN

extern const char __executable_start[], etext[];

enum { TRACE_MAX = 1 << 16, BREAKPOINT = 0xcc, TRAP_FLAG = 0x100 };

static const char *trace[TRACE_MAX];
uint64_t trace_length;

static struct {
	_Atomic bool tracing;
	bool stopped, passing;		/* passing: one step, then the breakpoint is set again */
	unsigned char *at, byte;	/* the breakpoint, NULL: none; the byte that it replaced */
	uint64_t passes;
	const void *task;
	void (*call)(void);
} stop;

static void set_breakpoint(unsigned char *at)
{
	stop.byte = *at;
	*(volatile unsigned char *)at = BREAKPOINT;
	stop.at = at;
}

static void remove_breakpoint(void)
{
	if (stop.at)
		*(volatile unsigned char *)stop.at = stop.byte;
	stop.at = NULL;
}

/* Note an instruction; false: tracing ends. */
static bool note_instruction(const char *at)
{
	if (!atomic_load(&stop.tracing) || virtual_self() != stop.task)
		return false;
	/* The C library may be used meanwhile. */
	if (at < __executable_start || at >= etext)
		return true;
	if (trace_length == TRACE_MAX)
		fail("a verb of more than %d instructions", TRACE_MAX);
	trace[trace_length++] = at;
	return true;
}

static void on_trap(int signal, siginfo_t *info, void *context)
{
	greg_t *g = ((ucontext_t *)context)->uc_mcontext.gregs;
	unsigned char *at = (unsigned char *)(uintptr_t)g[REG_RIP];

	(void)signal, (void)info;
	if (stop.at && at == stop.at + 1 && *stop.at == BREAKPOINT) {
		const bool here = virtual_self() == stop.task;

		g[REG_RIP]--;
		if (here && !stop.passes) {
			int error;

			/* First of all: the access to errno may meet it, too. */
			remove_breakpoint();
			error = errno;
			stop.stopped = true;
			stop.call();
			errno = error;
			return;
		}
		stop.passes -= here;
		*(volatile unsigned char *)stop.at = stop.byte;
		stop.passing = true;
		g[REG_EFL] |= TRAP_FLAG;
	} else if (stop.passing) {
		stop.passing = false;
		*(volatile unsigned char *)stop.at = BREAKPOINT;
		g[REG_EFL] &= ~(greg_t)TRAP_FLAG;
	} else if (!note_instruction((const char *)at)) {
		g[REG_EFL] &= ~(greg_t)TRAP_FLAG;
	}
}

static void set_trap_flag(void)
{
	/* Past the red zone. */
	__asm__ volatile("lea -128(%%rsp), %%rsp; pushfq; orq %0, (%%rsp); popfq; "
			 "lea 128(%%rsp), %%rsp" : : "i"(TRAP_FLAG) : "memory", "cc");
}

/* Step again after a wait; others were not stepped. */
void virtual_returns(void)
{
	if (atomic_load(&stop.tracing) && virtual_self() == stop.task)
		set_trap_flag();
}

void trace_verb(void (*verb)(void))
{
	uint64_t length;

	trace_length = 0;
	stop.task = virtual_self();
	atomic_store(&stop.tracing, true);
	set_trap_flag();
	verb();
	length = trace_length;
	atomic_store(&stop.tracing, false);
	trace_length = length;
}

bool stop_verb(void (*verb)(void), uint64_t number, void (*stopped)(void))
{
	uint64_t i;

	stop.task = virtual_self();
	stop.call = stopped;
	stop.stopped = false;
	for (i = stop.passes = 0; i < number; i++)
		stop.passes += trace[i] == trace[number];
	set_breakpoint((unsigned char *)(uintptr_t)trace[number]);
	verb();
	remove_breakpoint();
	return stop.stopped;
}

const void *trace_at(uint64_t number)
{
	return number < trace_length ? trace[number] : NULL;
}

/* The only thread does not execute this text while it is written. */
static void make_text_writable(void)
{
	const uintptr_t page = 4096, begin = (uintptr_t)__executable_start & -page;
	const uintptr_t end = ((uintptr_t)etext + page - 1) & -page;

	if (mprotect((void *)begin, end - begin, PROT_READ | PROT_WRITE | PROT_EXEC)) {
		fprintf(stderr, "skipped: the program may not be written to: %s\n",
			strerror(errno));
		exit(77);
	}
}

void stops_prepare(void)
{
	struct sigaction trap = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | SA_NODEFER };

	make_text_writable();
	require_equal(sigaction(SIGTRAP, &trap, NULL), 0);
}

#endif
