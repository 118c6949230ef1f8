/* err.h - exit codes, and error lines on stderr: one line per error. */
#ifndef RG_UTIL_ERR_H
#define RG_UTIL_ERR_H

#include <stdbool.h>
#include <stddef.h>

/* Exit codes of all programs of Railgauge; 3 and above are usage errors or faults. */
enum {
	RG_EXIT_OK = 0,
	RG_EXIT_FAILED = 1,	/* a check or a comparison failed */
	RG_EXIT_USAGE = 3,	/* option, environment or input file */
	RG_EXIT_FAULT = 4,	/* device, memory, peer */
};

/* Set the name at the start of each line: that of argv[0], without its directory. */
void rg_set_program(const char *name);
const char *rg_program(void);

/*
 * Only one of many ranks should print an error; the others fail silently.  Before MPI_Init the rank
 * is in the launcher's environment: rg_launch_rank returns it, or -1 if this process was not
 * started by a launcher.
 */
int rg_launch_rank(void);
void rg_set_quiet(bool quiet);
/*
 * Call before a rank ends with an error and without MPI.  A silent rank must end after rank 0: Open
 * MPI's launcher ends all ranks at the end of the first (MPICH's does not).
 */
void rg_let_rank_0_speak(void);

/*
 * Call between the line of an error and MPI_Abort, which overtakes a line that the launcher has not
 * read: MPICH's launcher prints nothing more.  Takes 0.2 s, at most 2 s longer.
 */
void rg_let_launcher_read(void);

/* "program: text\n" in a single write(2), so that lines of ranks never mix. */
void rg_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void rg_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The same for information that the user requested. */
void rg_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/*
 * Between these two calls an error begins with these words, so that who detects it need not know what it ends, and who
 * knows adds no line.  True from the latter: there was an error.  Calls do not nest.
 */
void rg_errors_begin_with(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
bool rg_errors_begin_as_ever(void);

/*
 * The exit code of a program that would end with `status`: RG_EXIT_FAULT, after a line, if text on
 * standard output could not be written.
 */
int rg_end(int status);

/*
 * While ranks agree on the success of a step, each keeps its first error instead
 * of printing it, a quiet one, too.  Afterwards one rank prints its error and the others drop
 * theirs.  Calls do not nest: hold, then release.
 */
void rg_errors_hold(void);
/* Adds " (host NAME)" to the error that is kept, unless it names this host already. */
void rg_errors_place(const char *host);
bool rg_errors_release(bool print);	/* true: there was an error */
/* As rg_errors_release, but the error becomes text, without the program's name. */
bool rg_errors_take(char *text, size_t size);

#endif
