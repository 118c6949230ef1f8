/* assumptions_process.c - children of a rank, and the environment it changes. */
#include "assumptions.h"

#include <fcntl.h>
#include <locale.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void ended_well(pid_t child)
{
	int status = -1;

	CHECK(child > 0 && waitpid(child, &status, 0) == child);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7, "wait status %x", status);
}

/* The child reads the data that the parent had; data that the child writes are its own. */
static void child_scribbles(const struct pair *p)
{
	for (size_t i = 0; i < LARGE; i++)
		if (p->out[1][i] != suite_byte(suite_rank, p->message, i))
			_exit(1);
	memset(p->out[1], 0x11, LARGE);
	memset(p->in[1], 0x22, LARGE);
	memset(p->in[0], 0x33, SMALL);
}

enum end { BY_EXIT, BY__EXIT, BY_EXEC };

static void child_ends(enum end end)
{
	switch (end) {
	case BY_EXIT:
		exit(7);
	case BY__EXIT:
		_exit(7);
	case BY_EXEC:
		execl("/bin/sh", "sh", "-c", "exit 7", (char *)NULL);
		_exit(1);
	}
}

static void fork_with(enum end end)
{
	struct pair p;
	pid_t child;

	fflush(NULL);
	for (int i = 0; i < 3; i++) {
		pair_open(&p);
		child = fork();
		if (child == 0) {
			child_scribbles(&p);
			child_ends(end);
		}
		/* Once while it lives, once after its end. */
		if (i % 2)
			ended_well(child);
		pair_shut(&p);
		traffic();
		if (!(i % 2))
			ended_well(child);
		traffic();
	}
}

static void fork_exit(void)
{
	fork_with(BY_EXIT);
}

static void fork__exit(void)
{
	fork_with(BY__EXIT);
}

static void fork_exec(void)
{
	fork_with(BY_EXEC);
}

/* A side is late, so that a large message is under way when the other side forks. */
static void fork_in_the_middle(void)
{
	struct pair p;
	pid_t child;
	int flag, token = 0;

	pair_open(&p);
	for (int i = 0; i < 50; i++)
		MPI_Testall(4, p.request, &flag, MPI_STATUSES_IGNORE);
	fflush(NULL);
	child = fork();
	if (child == 0) {
		sleep(1);
		_exit(7);
	}
	pair_shut(&p);
	MPI_Sendrecv_replace(&token, 1, MPI_INT, !suite_rank, 3, !suite_rank, 3, MPI_COMM_WORLD,
			     MPI_STATUS_IGNORE);
	traffic();
	ended_well(child);
}

/*
 * A program with one thread has one while it forks, whatever a layer does in others: the kernel
 * copies registered pages for the child meanwhile, malloc's among them.  Rank 1 forks with a receive
 * posted; rank 0 sends when it sees that the fork has begun, by a file that goes, and nothing may
 * happen to that receive before the fork is over.
 */
static struct {
	const char *path;	/* NULL: a fork that is not watched */
	unsigned char *in;
} watched;

static bool is_blank(const unsigned char *in)
{
	static unsigned char blank[LARGE];

	suite_blank(blank, LARGE);
	return memcmp(in, blank, LARGE) == 0;
}

static void fork_begins(void)
{
	if (!watched.path)
		return;
	unlink(watched.path);
	usleep(200000);
	CHECK(is_blank(watched.in), "a message was received in the middle of a fork");
}

void process_prepare(void)
{
	/* Before the layer's: what begins a fork is called in the opposite order. */
	CHECK(pthread_atfork(fork_begins, NULL, NULL) == 0);
}

static void fork_alone(void)
{
	char path[] = "/tmp/rg-fork-XXXXXX";
	unsigned char *mine = malloc(LARGE);
	MPI_Request request;
	pid_t child;

	CHECK(mine != NULL);
	if (suite_rank == 0) {
		suite_fill(mine, LARGE, 0, 9);
		MPI_Recv(path, sizeof(path), MPI_CHAR, 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		for (int ms = 0; ms < 60000 && access(path, F_OK) == 0; ms++)
			usleep(1000);
		MPI_Send(mine, LARGE, MPI_BYTE, 1, 6, MPI_COMM_WORLD);
	} else {
		close(mkstemp(path));
		suite_blank(mine, LARGE);
		MPI_Irecv(mine, LARGE, MPI_BYTE, 0, 6, MPI_COMM_WORLD, &request);
		MPI_Send(path, sizeof(path), MPI_CHAR, 0, 5, MPI_COMM_WORLD);
		fflush(NULL);
		watched.path = path;
		watched.in = mine;
		child = fork();
		watched.path = NULL;
		if (child == 0)
			_exit(7);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		suite_verify(mine, LARGE, LARGE, 0, 9);
		ended_well(child);
	}
	free(mine);
}

/* MPI_Alloc_mem's memory is the program's like any other. */
static void fork_alloc_mem(void)
{
	unsigned char *mine;
	pid_t child;

	MPI_Alloc_mem(LARGE, MPI_INFO_NULL, &mine);
	suite_fill(mine, LARGE, suite_rank, 5);
	MPI_Sendrecv_replace(mine, LARGE, MPI_BYTE, !suite_rank, 4, !suite_rank, 4, MPI_COMM_WORLD,
			     MPI_STATUS_IGNORE);
	fflush(NULL);
	child = fork();
	if (child == 0) {
		for (size_t i = 0; i < LARGE; i++)
			if (mine[i] != suite_byte(!suite_rank, 5, i))
				_exit(1);
		_exit(7);
	}
	ended_well(child);
	suite_verify(mine, LARGE, LARGE, !suite_rank, 5);
	MPI_Free_mem(mine);
}

static void call_system(void)
{
	struct pair p;
	int status;

	for (int i = 0; i < 2; i++) {
		pair_open(&p);
		status = system("exit 7");
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7, "%x", status);
		pair_shut(&p);
	}
}

static void call_popen(void)
{
	char text[20] = "";
	struct pair p;
	FILE *in;

	pair_open(&p);
	in = popen("echo word; exit 7", "r");
	CHECK(in && fgets(text, sizeof(text), in) && strcmp(text, "word\n") == 0, "'%s'", text);
	pair_shut(&p);
	traffic();
	CHECK(WEXITSTATUS(pclose(in)) == 7);
}

static void call_posix_spawn(void)
{
	char *argv[] = { "sh", "-c", "exit 7", NULL };
	struct pair p;
	pid_t child;

	pair_open(&p);
	CHECK(posix_spawn(&child, "/bin/sh", NULL, NULL, argv, environ) == 0);
	pair_shut(&p);
	traffic();
	ended_well(child);
}

/* Files that are opened get low numbers, and close-on-exec is not forgotten. */
static void descriptors(void)
{
	int fd = open("/dev/null", O_RDONLY), status;

	CHECK(fd >= 0 && fd < 200, "%d", fd);
	close(fd);
	/* Programs that are exec'ed inherit nothing of the layer. */
	if (suite_rank == 0) {
		fflush(stdout);
		status = system("ls -l /proc/self/fd | grep -q 'softhca\\|infiniband'");
		CHECK(WEXITSTATUS(status) == 1, "a child inherits what is ours");
	}
}

static void environment(void)
{
	MPI_Comm comm;

	setenv("RAILGAUGE_OVER", "nonsense", 1);
	setenv("RAILGAUGE_SOFT", "nonsense", 1);
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	traffic();
	clearenv();
	MPI_Comm_free(&comm);
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Sendrecv(NULL, 0, MPI_BYTE, !suite_rank, 0, NULL, 0, MPI_BYTE, !suite_rank, 0, comm,
		     MPI_STATUS_IGNORE);
	MPI_Comm_free(&comm);
}

static void elsewhere(void)
{
	mode_t before = umask(0777);
	MPI_Comm comm;

	CHECK(chdir("/") == 0);
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	traffic();
	MPI_Comm_free(&comm);
	umask(before);
}

const struct assumption process_cases[] = {
	{ "process", "fork, child ends by exit", fork_exit },
	{ "process", "fork, child ends by _exit", fork__exit },
	{ "process", "fork and exec", fork_exec },
	{ "process", "fork while messages are under way", fork_in_the_middle },
	{ "process", "fork, child reads MPI_Alloc_mem's memory", fork_alloc_mem },
	{ "process", "a fork is alone", fork_alone },
	{ "process", "system", call_system },
	{ "process", "popen", call_popen },
	{ "process", "posix_spawn", call_posix_spawn },
	{ "process", "descriptors", descriptors },
	{ "process", "umask 0777, another directory", elsewhere },
	{ "process", "setenv and clearenv after MPI_Init", environment },
	{ 0 },
};
