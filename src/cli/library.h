/* library.h - Railgauge's shared libraries and helpers, in the build tree or installed. */
#ifndef CLI_LIBRARY_H
#define CLI_LIBRARY_H

#include "cli/cli.h"

/* The directory of this command, where it really is.  0 or -ENOENT. */
int cli_directory(char *path, size_t size);
/* "librailmpi-openmpi" -> its path.  0 or -ENOENT. */
int cli_library_find(const char *name, char *path, size_t size);
/* "railgauge-gather-openmpi", a program that the command starts, -> its path.  0 or -ENOENT. */
int cli_helper_find(const char *name, char *path, size_t size);

#endif
