/*
 * program.c - the kind of a program: static or dynamic, and its MPI library.
 *
 * A preloaded library has no effect on a program without a dynamic loader, and harms a program that
 * was built for another MPI library.  The ELF header shows whether a program has a loader.  The
 * loader itself lists the libraries that the program would load, also indirectly (as Fortran
 * programs do): LD_TRACE_LOADED_OBJECTS.
 */
#include "config.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/program.h"

static bool is_executable(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

int cli_program_find(const char *name, char *path, size_t size)
{
	const char *at = getenv("PATH");

	if (strchr(name, '/')) {
		snprintf(path, size, "%s", name);
		if (access(path, F_OK))
			return -errno;
		return is_executable(path) ? 0 : -EACCES;
	}
	for (at = at ? at : "/usr/bin:/bin"; ; at += 1) {
		size_t length = strcspn(at, ":");

		snprintf(path, size, "%.*s%s%s", (int)length, at, length ? "/" : "", name);
		if (is_executable(path))
			return 0;
		at += length;
		if (!*at)
			return -ENOENT;
	}
}

/* ---- ELF ---------------------------------------------------------------------- */

static int elf_kind(int fd, enum cli_program_kind *kind)
{
	static const unsigned char native_class = sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32;
	ElfW(Ehdr) head;
	ElfW(Phdr) segment;
	ssize_t got = pread(fd, &head, sizeof(head), 0);

	*kind = CLI_PROGRAM_SCRIPT;
	if (got < SELFMAG || memcmp(head.e_ident, ELFMAG, SELFMAG))
		return got < 0 ? -errno : 0;
	*kind = CLI_PROGRAM_FOREIGN;
	if (got < (ssize_t)sizeof(head) || head.e_ident[EI_CLASS] != native_class ||
	    head.e_phentsize != sizeof(segment))
		return 0;
	*kind = CLI_PROGRAM_STATIC;
	for (int i = 0; i < head.e_phnum; i++) {
		off_t at = (off_t)head.e_phoff + (off_t)i * (off_t)sizeof(segment);

		if (pread(fd, &segment, sizeof(segment), at) != (ssize_t)sizeof(segment))
			break;
		if (segment.p_type == PT_INTERP)
			*kind = CLI_PROGRAM_NO_MPI;
	}
	return 0;
}

/* ---- Its libraries ----------------------------------------------------------------- */

static FILE *loader_start(const char *path, pid_t *child)
{
	int ends[2];

	if (pipe(ends))
		return NULL;
	*child = fork();
	if (*child == 0) {
		int nowhere = open("/dev/null", O_WRONLY);

		dup2(ends[1], STDOUT_FILENO);
		dup2(nowhere, STDERR_FILENO);
		close(ends[0]);
		close(ends[1]);
		unsetenv("LD_PRELOAD");
		setenv("LD_TRACE_LOADED_OBJECTS", "1", 1);
		execl(path, path, (char *)NULL);
		_exit(127);
	}
	close(ends[1]);
	if (*child < 0)
		close(ends[0]);
	return *child < 0 ? NULL : fdopen(ends[0], "r");
}

/* Both MPI libraries are called libmpi; the version differs. */
static void library_note(const char *line, enum cli_program_kind *kind)
{
	const char *name = line + strspn(line, " \t");

	if (strncmp(name, "libmpich.so.", 12) == 0 || strncmp(name, "libmpi.so.12", 12) == 0)
		*kind = CLI_PROGRAM_MPICH;
	else if (strncmp(name, "libmpi.so.", 10) == 0)
		*kind = CLI_PROGRAM_OPENMPI;
}

int cli_program_kind(const char *path, enum cli_program_kind *kind)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), rc;
	char line[4096];
	pid_t child;
	FILE *in;

	/* A program may be executable and unreadable: try it. */
	if (fd < 0) {
		*kind = CLI_PROGRAM_SCRIPT;
		return errno == EACCES ? 0 : -errno;
	}
	rc = elf_kind(fd, kind);
	close(fd);
	if (rc || *kind != CLI_PROGRAM_NO_MPI)
		return rc;
	in = loader_start(path, &child);
	if (!in)
		return -errno;
	while (fgets(line, sizeof(line), in))
		library_note(line, kind);
	fclose(in);
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
	return 0;
}
