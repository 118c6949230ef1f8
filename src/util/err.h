/* err.h - exit codes and the one line on stderr that a user gets. */
#ifndef RG_UTIL_ERR_H
#define RG_UTIL_ERR_H

#include <stdbool.h>

/* Exit codes of every program of ours; 3 and above are usage or faults. */
enum {
	RG_EXIT_OK = 0,
	RG_EXIT_FAILED = 1,	/* a check or a comparison failed */
	RG_EXIT_UNDECIDED = 2,
	RG_EXIT_USAGE = 3,	/* option, environment or input file */
	RG_EXIT_FAULT = 4,	/* device, memory, peer */
};

/* The name that begins each line; argv[0] is fine, its directory is dropped. */
void rg_set_program(const char *name);
const char *rg_program(void);

/*
 * Of many ranks only one should speak: others stay silent but still fail.
 * Before MPI_Init the launcher's environment tells the rank; rg_launch_rank
 * returns it, or -1 when this process was not started by a launcher.
 */
int rg_launch_rank(void);
void rg_set_quiet(bool quiet);

/* "program: text\n" in a single write(2), so that lines of ranks never mix. */
void rg_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void rg_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/*
 * While ranks find out together whether something works, each keeps its first
 * error instead of printing it; then one of them prints and the others drop
 * theirs.  A single level: hold, then release.
 */
void rg_errors_hold(void);
bool rg_errors_release(bool print);	/* true: there was an error */

#endif
