/* assumptions_signal.c - signals belong to the program: their handlers, masks and threads. */
#include "assumptions.h"

#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

enum { ENOUGH = 15 };

static volatile sig_atomic_t seen;

static void count(int signal)
{
	seen++;
}

static void handle(int signal, int flags)
{
	struct sigaction act = { .sa_handler = count, .sa_flags = flags };

	seen = 0;
	sigemptyset(&act.sa_mask);
	CHECK(sigaction(signal, &act, NULL) == 0);
}

static void every(int which, int us)
{
	struct itimerval t = { { 0, us }, { 0, us } };

	CHECK(setitimer(which, &t, NULL) == 0);
}

/* Until both have seen enough of them: the number of rounds is agreed. */
static void traffic_under(int which)
{
	int mine, least;

	every(which, 1000);
	do {
		struct pair p;

		pair_open(&p);
		traffic();
		pair_shut(&p);
		mine = seen;
		MPI_Allreduce(&mine, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
	} while (least < ENOUGH);
	every(which, 0);
}

static void alarms(void)
{
	handle(SIGALRM, 0);
	traffic_under(ITIMER_REAL);
	signal(SIGALRM, SIG_DFL);
}

static void alarms_restart(void)
{
	handle(SIGALRM, SA_RESTART);
	traffic_under(ITIMER_REAL);
	signal(SIGALRM, SIG_DFL);
}

static void profiler(void)
{
	handle(SIGPROF, SA_RESTART);
	traffic_under(ITIMER_PROF);
	signal(SIGPROF, SIG_DFL);
}

static void on_its_own_stack(void)
{
	stack_t own = { .ss_sp = malloc(65536), .ss_size = 65536 }, none = { .ss_flags = SS_DISABLE };

	CHECK(own.ss_sp && sigaltstack(&own, NULL) == 0);
	handle(SIGALRM, SA_ONSTACK);
	traffic_under(ITIMER_REAL);
	signal(SIGALRM, SIG_DFL);
	sigaltstack(&none, NULL);
	free(own.ss_sp);
}

static void between_start_and_wait(void)
{
	handle(SIGUSR1, 0);
	for (int i = 0; i < 20; i++) {
		struct pair p;

		pair_open(&p);
		kill(getpid(), SIGUSR1);
		pair_shut(&p);
	}
	CHECK(seen == 20, "%d", (int)seen);
	signal(SIGUSR1, SIG_DFL);
}

static bool takes(const char *task, int signal)
{
	unsigned long long blocked = ~0ull;
	char path[300], line[200];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%s/status", task);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		sscanf(line, "SigBlk: %llx", &blocked);
	if (f)
		fclose(f);
	return !(blocked >> (signal - 1) & 1);
}

/*
 * A signal that the program blocks everywhere stays pending for its sigwait, unless another
 * thread takes it: with its default it ends the process.  The libraries have such threads;
 * the script holds against each other how many there are natively and over rails.
 */
static void takers(void)
{
	struct dirent *entry;
	struct pair p;
	int count = 0;
	DIR *tasks;

	pair_open(&p);
	tasks = opendir("/proc/self/task");
	CHECK(tasks);
	while ((entry = readdir(tasks)))
		if (entry->d_name[0] != '.' && takes(entry->d_name, SIGUSR1))
			count++;
	closedir(tasks);
	if (suite_rank == 0)
		printf("threads that take signals: %d\n", count);
	pair_shut(&p);
}

static void masks_are_left_alone(void)
{
	sigset_t mine, before, after;

	sigemptyset(&mine);
	sigaddset(&mine, SIGUSR2);
	sigaddset(&mine, SIGINT);
	sigprocmask(SIG_SETMASK, &mine, &before);
	traffic();
	sigprocmask(SIG_SETMASK, &before, &after);
	for (int s = 1; s < 32; s++)
		CHECK(sigismember(&after, s) == (s == SIGUSR2 || s == SIGINT), "signal %d", s);
}

static void dispositions(void)
{
	struct sigaction pipe, child, chosen = { .sa_handler = SIG_IGN }, before;

	CHECK(sigaction(SIGPIPE, NULL, &pipe) == 0);
	CHECK(pipe.sa_handler == SIG_DFL, "SIGPIPE");
	sigaction(SIGCHLD, &chosen, &before);
	traffic();
	CHECK(sigaction(SIGCHLD, NULL, &child) == 0);
	CHECK(child.sa_handler == SIG_IGN, "SIGCHLD");
	sigaction(SIGCHLD, &before, NULL);
}

static sigjmp_buf back;

static void jump(int signal)
{
	siglongjmp(back, signal);
}

static void faults_are_its_own(void)
{
	struct sigaction act = { .sa_handler = jump }, now, before;
	volatile int *page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	volatile int caught = 0;

	CHECK(page != MAP_FAILED);
	sigaction(SIGSEGV, &act, &before);
	for (volatile int i = 0; i < 3; i++) {
		struct pair p;

		pair_open(&p);
		if (sigsetjmp(back, 1) == SIGSEGV)
			caught++;
		else
			*page = 1;
		pair_shut(&p);
	}
	CHECK(caught == 3);
	sigaction(SIGSEGV, &before, &now);
	CHECK(now.sa_handler == jump);
	munmap((void *)page, 4096);
}

static void time_limit(void)
{
	alarm(600);
	traffic();
	CHECK(alarm(0) > 0);
}

const struct assumption signal_cases[] = {
	{ "signals", "SIGALRM every millisecond", alarms },
	{ "signals", "SIGALRM every millisecond, SA_RESTART", alarms_restart },
	{ "signals", "SIGPROF every millisecond", profiler },
	{ "signals", "sigaltstack", on_its_own_stack },
	{ "signals", "SIGUSR1 between start and wait", between_start_and_wait },
	{ "signals", "threads that take signals", takers },
	{ "signals", "signal masks are left alone", masks_are_left_alone },
	{ "signals", "SIGPIPE and SIGCHLD are left alone", dispositions },
	{ "signals", "SIGSEGV is the program's", faults_are_its_own },
	{ "signals", "alarm as a time limit", time_limit },
	{ 0 },
};
