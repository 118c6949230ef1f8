/*
 * assumptions_place.c - where a program begins: limits, descriptors, scheduling, floating
 * point; and how it ends.  The group names what is prepared before MPI_Init.
 */
#include "assumptions.h"

#include <fenv.h>
#include <locale.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- Before main --------------------------------------------------------------------- */

static int early_flag = -1, early_version;
static double early_time;

__attribute__((constructor)) static void before_main(void)
{
	int flag = -1, minor;

	if (MPI_Initialized(&flag) || flag || MPI_Finalized(&flag) || flag)
		return;
	MPI_Get_version(&early_version, &minor);
	early_flag = flag;
}

/* ---- After main ---------------------------------------------------------------------- */

static bool watched;

__attribute__((destructor)) static void after_main(void)
{
	int up = -1, down = -1;

	if (!watched)
		return;
	MPI_Initialized(&up);
	MPI_Finalized(&down);
	if (up != 1 || down != 1)
		_exit(9);
}

static void finalize(void)
{
	int down = -1;

	MPI_Finalized(&down);
	if (down)
		_exit(8);
	MPI_Finalize();
}

/* ---- Ends that are not MPI_Finalize ------------------------------------------------------ */

static void start(void)
{
	suite_where = "end";
	MPI_Init(NULL, NULL);
	MPI_Comm_rank(MPI_COMM_WORLD, &suite_rank);
	MPI_Comm_size(MPI_COMM_WORLD, &suite_size);
	early_time = MPI_Wtime();
	traffic();
}

static void end_by(const char *how)
{
	struct pair p;

	if (!strcmp(how, "atexit")) {
		atexit(finalize);
		watched = true;
	}
	start();
	if (!strcmp(how, "atexit")) {
		if (suite_rank == 0)
			printf("atexit: ends\n");
		exit(0);
	}
	if (suite_rank == 1) {
		pair_open(&p);
		if (!strcmp(how, "abort"))
			MPI_Abort(MPI_COMM_WORLD, 5);
		if (!strcmp(how, "killed"))
			raise(SIGKILL);
	}
	if (!strcmp(how, "leaves"))
		exit(4);
	for (;;)
		traffic();
}

/* ---- Before MPI_Init ------------------------------------------------------------------------ */

static void limit(int what, rlim_t least)
{
	struct rlimit r = { least, least };

	if (setrlimit(what, &r))
		exit(98);
}

/* A new stack limit counts from the next exec on. */
static void limits(char **argv)
{
	struct rlimit now;

	getrlimit(RLIMIT_STACK, &now);
	if (now.rlim_cur == 256 << 10)
		return;
	limit(RLIMIT_STACK, 256 << 10);
	limit(RLIMIT_NOFILE, 64);
	limit(RLIMIT_MEMLOCK, 64 << 10);
	limit(RLIMIT_CORE, 0);
	execv("/proc/self/exe", argv);
	exit(97);
}

static void one_core(void)
{
	cpu_set_t set, one;
	int cpu = 0;

	sched_getaffinity(0, sizeof(set), &set);
	while (!CPU_ISSET(cpu, &set))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	sched_setaffinity(0, sizeof(one), &one);
	if (nice(19) < 0)
		exit(96);
}

static void odd_place(void)
{
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	signal(SIGCHLD, SIG_DFL);
	umask(0777);
#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5
	setenv("HOME", "/nowhere/at/all", 1);	/* MPI_Init of Open MPI 5.0 fails without one */
#else
	unsetenv("HOME");
#endif
	setenv("TMPDIR", "/nowhere/at/all", 1);
	feenableexcept(FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW);
	fesetround(FE_UPWARD);
	setlocale(LC_ALL, "de_DE.UTF-8");	/* if it is installed */
	if (chdir("/"))
		exit(95);
	one_core();
}

void prepare(const char *group, char **argv)
{
	if (!strcmp(group, "closed")) {
		close(0);
		close(1);
		close(2);
	} else if (!strcmp(group, "limits")) {
		limits(argv);
	} else if (!strcmp(group, "as")) {
		limit(RLIMIT_AS, (rlim_t)4 << 30);
	} else if (!strcmp(group, "as-large")) {
		limit(RLIMIT_AS, (rlim_t)100 << 30);
	} else if (!strcmp(group, "fsize")) {
		limit(RLIMIT_FSIZE, (rlim_t)1 << 30);
	} else if (!strcmp(group, "odd")) {
		odd_place();
	} else if (!strcmp(group, "end")) {
		end_by(argv[2]);
	} else if (!strcmp(group, "process")) {
		process_prepare();
	}
}

/* ---- Between MPI_Init and the first message --------------------------------------------------- */

static void become_nobody(void)
{
	enum { NOBODY = 65534 };

	if (setgid(NOBODY) || setuid(NOBODY))
		exit(94);
}

void change_place(const char *group)
{
	if (!strcmp(group, "setuid"))
		become_nobody();
	else if (!strcmp(group, "setuid-one") && suite_rank == 1)
		become_nobody();
	/* The environment has nothing that libraries look for. */
	if (!strcmp(group, "chroot") && (chroot("/sys") || chdir("/")))
		exit(93);
}

/* ---- After it -------------------------------------------------------------------------------- */

static void rounding(void)
{
	const int modes[] = { FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD, FE_TONEAREST };
	double in = 1.5, sum;

	feclearexcept(FE_ALL_EXCEPT);
	feenableexcept(FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW);
	for (int i = 0; i < 4; i++) {
		fesetround(modes[i]);
		traffic();
		MPI_Allreduce(&in, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
		CHECK(sum == 3 && fegetround() == modes[i]);
	}
	CHECK(fegetexcept() == (FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW));
	fedisableexcept(FE_ALL_EXCEPT);
}

static void flags_stay(void)
{
	feclearexcept(FE_ALL_EXCEPT);
	traffic();
	CHECK(!fetestexcept(FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW));
}

static void early_calls(void)
{
	CHECK(early_flag == 0 && early_version >= 3, "%d, %d", early_flag, early_version);
}

static void works(void)
{
	MPI_Comm comm;
	struct pair p;

	for (int i = 0; i < 3; i++) {
		MPI_Comm_dup(MPI_COMM_WORLD, &comm);
		pair_open(&p);
		traffic();
		pair_shut(&p);
		MPI_Comm_free(&comm);
	}
}

/* Eager and by rendezvous, before a fork and after it. */
static void confined(void)
{
	static const size_t sizes[] = { 0, 1, 8, 4096, 64 << 10, 1 << 20, 4 << 20 };
	int status = -1;
	pid_t child;

	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
			for (int again = 0; again < 3; again++)
				exchange(0, sizes[i]);
		child = fork();
		if (child == 0)
			_exit(0);
		CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
	}
	works();
}

static void one_word(void)
{
	char word[20] = "";

	if (suite_rank == 0)
		CHECK(fgets(word, sizeof(word), stdin) && strcmp(word, "word\n") == 0, "'%s'", word);
}

const struct assumption place_cases[] = {
	{ "odd", "odd place: calls before MPI_Init", early_calls },
	{ "odd", "odd place: messages", works },
	{ "odd", "rounding modes and floating-point traps", rounding },
	{ "odd", "floating-point flags", flags_stay },
	{ "odd", "stdin is a pipe", one_word },
	{ "closed", "descriptors 0, 1 and 2 closed", works },
	{ "limits", "small limits", works },
	{ "as", "4 GiB of address space", works },
	{ "as-large", "100 GiB of address space", works },
	{ "fsize", "files of 1 GiB at most", works },
	{ "confined", "messages of all sizes in confined surroundings", confined },
	{ "setuid", "setuid after MPI_Init", confined },
	{ "setuid-one", "setuid after MPI_Init by one rank", confined },
	{ "chroot", "chroot after MPI_Init", confined },
	{ 0 },
};
