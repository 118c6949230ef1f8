/*
 * cli.h - the railgauge command: a table of subcommands, one file each.
 *
 * A subcommand gets its own arguments (argv[0] is its name), has its own option tables, and
 * returns the exit code.
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cli_command {
	const char *name;
	const char *summary;		/* for railgauge --help */
	int (*run)(int argc, char **argv);
};

#endif
