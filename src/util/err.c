/* err.c - error lines on stderr. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "util/err.h"

enum { LINE_MAX_BYTES = 2048 };	/* below PIPE_BUF: a pipe does not split it */

static const char *program = "railgauge";
static bool quiet;

static bool holding;
static char held[LINE_MAX_BYTES];
static size_t held_bytes;
static char begin[128];
static bool begun;		/* there was an error with these words */

void rg_set_program(const char *name)
{
	const char *slash = strrchr(name, '/');

	program = slash ? slash + 1 : name;
}

const char *rg_program(void)
{
	return program;
}

void rg_set_quiet(bool on)
{
	quiet = on;
}

void rg_let_rank_0_speak(void)
{
	/*
	 * Open MPI's launcher ends this rank as soon as rank 0 has ended, which a busy machine may
	 * delay.
	 */
	enum { OPEN_MPI_SECONDS = 30, OTHER_SECONDS = 2 };

	if (rg_launch_rank() > 0)
		sleep(getenv("OMPI_COMM_WORLD_RANK") ? OPEN_MPI_SECONDS : OTHER_SECONDS);
}

void rg_let_launcher_read(void)
{
	enum { LOOKS = 200 };
	const struct timespec look = { .tv_nsec = 10000000 }, pass_on = { .tv_nsec = 200000000 };
	struct stat st;
	int unread = 0;

	if (!fstat(STDERR_FILENO, &st) && S_ISFIFO(st.st_mode))
		for (int i = 0; i < LOOKS && !ioctl(STDERR_FILENO, FIONREAD, &unread) && unread; i++)
			nanosleep(&look, NULL);
	nanosleep(&pass_on, NULL);
}

int rg_launch_rank(void)
{
	/* SLURM last: a batch script has SLURM_PROCID=0, and mpirun inherits it. */
	static const char *const names[] = {
		"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *text = getenv(names[i]);
		char *end;
		long rank;

		if (!text || !*text)
			continue;
		rank = strtol(text, &end, 10);
		if (!*end && rank >= 0 && rank <= 0x7fffffff)
			return (int)rank;
	}
	return -1;
}

/* Text of the user in the line must not break it. */
static void line_clean(char *line, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if ((unsigned char)line[i] < ' ' || line[i] == 0x7f)
			line[i] = '?';
}

static void line_send(const char *line, size_t bytes)
{
	ssize_t sent;

	do
		sent = write(STDERR_FILENO, line, bytes);
	while (sent < 0 && errno == EINTR);
}

__attribute__((format(printf, 3, 0)))
static void line_write(const char *mark, bool error, const char *fmt, va_list args)
{
	char line[LINE_MAX_BYTES];
	size_t room = sizeof(line) - 1, length;
	int saved = errno, n;

	begun |= error;
	/* Ranks agree on who prints what is kept: perhaps this one alone has an error. */
	if (quiet && !(holding && error))
		return;
	n = snprintf(line, room, "%s: %s%s", program, mark, error ? begin : "");
	length = n < 0 ? 0 : (size_t)n < room ? (size_t)n : room - 1;
	n = vsnprintf(line + length, room - length, fmt, args);
	if (n > 0)
		length += (size_t)n < room - length ? (size_t)n : room - length - 1;
	line_clean(line, length);
	line[length++] = '\n';
	if (!holding || !error) {
		line_send(line, length);
	} else if (!held_bytes) {
		memcpy(held, line, length);
		held_bytes = length;
	}
	errno = saved;
}

void rg_errors_hold(void)
{
	holding = true;
	held_bytes = 0;
}

/* A name may be the begin of another one. */
static bool line_has_word(const char *line, size_t bytes, const char *word)
{
	const size_t length = strlen(word);

	for (size_t i = 1; i + length < bytes; i++)
		if (!memcmp(line + i, word, length) && strchr(" (", line[i - 1]) &&
		    strchr(" :,;)\n", line[i + length]))
			return true;
	return false;
}

void rg_errors_place(const char *host)
{
	char more[128];
	const int n = snprintf(more, sizeof(more), " (host %s)\n", host);

	if (!held_bytes || line_has_word(held, held_bytes, host) || n <= 0 ||
	    (size_t)n >= sizeof(more) || held_bytes + (size_t)n > sizeof(held))
		return;
	line_clean(more, (size_t)n - 1);
	memcpy(held + held_bytes - 1, more, (size_t)n);
	held_bytes += (size_t)n - 1;
}

bool rg_errors_release(bool print)
{
	bool any = held_bytes > 0;

	holding = false;
	if (any && print)
		line_send(held, held_bytes);
	held_bytes = 0;
	return any;
}

bool rg_errors_take(char *text, size_t size)
{
	const size_t name = strlen(program) + strlen(": ");

	if (held_bytes > name)
		snprintf(text, size, "%.*s", (int)(held_bytes - name - 1), held + name);
	return rg_errors_release(false);
}

void rg_errors_begin_with(const char *fmt, ...)
{
	va_list args;

	begun = false;
	va_start(args, fmt);
	vsnprintf(begin, sizeof(begin), fmt, args);
	va_end(args);
}

bool rg_errors_begin_as_ever(void)
{
	*begin = 0;
	return begun;
}

void rg_error(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	line_write("", true, fmt, args);
	va_end(args);
}

void rg_warn(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	line_write("warning: ", false, fmt, args);
	va_end(args);
}

void rg_note(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	line_write("", false, fmt, args);
	va_end(args);
}

int rg_end(int status)
{
	bool failed = ferror(stdout);

	errno = 0;
	failed |= fflush(stdout) != 0;
	if (!failed)
		return status;
	rg_error("standard output: %s", errno ? strerror(errno) : "cannot be written");
	return RG_EXIT_FAULT;
}
