/* plot_files.c - the files of a figure, each whole or absent. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/err.h"
#include "report/plot_files.h"

static const char *const suffixes[] = { ".dat", ".gp", ".svg", ".png" };
enum { SUFFIXES = sizeof(suffixes) / sizeof(suffixes[0]), SAID = 512, CANNOT_START = 127 };

int plot_files_open(struct plot_files *f, const char *dir, const char *name)
{
	int rc;

	*f = (struct plot_files){ .dir = dir, .name = name };
	if (asprintf(&f->temporary, "%s/.%s.XXXXXX", dir, name) < 0) {
		f->temporary = NULL;
		return -ENOMEM;
	}
	if (mkdtemp(f->temporary))
		return 0;
	rc = -errno;
	rg_error("%s: figures cannot be written here: %s", dir, strerror(-rc));
	free(f->temporary);
	f->temporary = NULL;
	return rc;
}

char *plot_files_path(const struct plot_files *f, const char *suffix)
{
	char *path;

	return asprintf(&path, "%s/%s%s", f->temporary, f->name, suffix) < 0 ? NULL : path;
}

static int file_failed(const struct plot_files *f, const char *suffix, const char *why)
{
	rg_error("%s/%s%s: cannot be written: %s", f->dir, f->name, suffix, why);
	return -EIO;
}

int plot_files_create(const struct plot_files *f, const char *suffix, FILE **out)
{
	char *path = plot_files_path(f, suffix);
	int rc = 0;

	*out = path ? fopen(path, "we") : NULL;
	if (!*out)
		rc = file_failed(f, suffix, strerror(path ? errno : ENOMEM));
	free(path);
	return rc;
}

int plot_files_finish(const struct plot_files *f, const char *suffix, FILE *out)
{
	bool failed = ferror(out);

	if (fclose(out) == 0 && !failed)
		return 0;
	return file_failed(f, suffix, strerror(errno));
}

/* ---- gnuplot ----------------------------------------------------------------------------- */

/* Keep the last line that gnuplot says; read the pipe to its end. */
static void said_last(int fd, char said[SAID])
{
	FILE *in = fdopen(fd, "r");
	char line[SAID];

	said[0] = '\0';
	while (in && fgets(line, sizeof(line), in)) {
		line[strcspn(line, "\n")] = '\0';
		if (line[strspn(line, " \t^")])
			memcpy(said, line, sizeof(line));
	}
	if (in)
		fclose(in);
	else
		close(fd);
}

static void gnuplot_become(const struct plot_files *f, int said)
{
	char script[160];

	snprintf(script, sizeof(script), "./%s.gp", f->name);
	if (chdir(f->temporary) == 0 && dup2(said, STDERR_FILENO) >= 0 &&
	    dup2(said, STDOUT_FILENO) >= 0)
		execlp(RG_GNUPLOT, RG_GNUPLOT, script, (char *)NULL);
	_exit(CANNOT_START);
}

/* *status: of the child.  said: its last words. */
static int gnuplot_run(const struct plot_files *f, int *status, char said[SAID])
{
	int pipe_fd[2], error;
	pid_t child;

	fflush(NULL);
	if (pipe2(pipe_fd, O_CLOEXEC))
		return -errno;
	child = fork();
	error = errno;
	if (child == 0)
		gnuplot_become(f, pipe_fd[1]);
	close(pipe_fd[1]);
	said_last(pipe_fd[0], said);
	if (child < 0)
		return -error;
	while (waitpid(child, status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}

/* Does the file end with these bytes, newlines after them aside? */
static bool file_is_whole(const struct plot_files *f, const char *suffix, const char *end, size_t bytes)
{
	char *path = plot_files_path(f, suffix), tail[16];
	FILE *in = path ? fopen(path, "re") : NULL;
	size_t got = in && fseek(in, -(long)sizeof(tail), SEEK_END) == 0 ?
		fread(tail, 1, sizeof(tail), in) : 0;

	while (got && tail[got - 1] == '\n')
		got--;
	if (in)
		fclose(in);
	free(path);
	return got >= bytes && memcmp(tail + got - bytes, end, bytes) == 0;
}

/* gnuplot exits with 0 when the file system is full. */
static int pictures_check(const struct plot_files *f)
{
	static const char svg[] = "</svg>", png[] = "IEND\xae\x42\x60\x82";
	const char *suffix = !file_is_whole(f, ".svg", svg, sizeof(svg) - 1) ? ".svg" :
		!file_is_whole(f, ".png", png, sizeof(png) - 1) ? ".png" : NULL;
	struct statvfs fs;

	if (!suffix)
		return 0;
	return file_failed(f, suffix, statvfs(f->dir, &fs) == 0 && fs.f_bavail < 64 ?
			   strerror(ENOSPC) : "gnuplot left it incomplete");
}

int plot_files_draw(const struct plot_files *f)
{
	char said[SAID];
	int status, rc = gnuplot_run(f, &status, said);

	if (rc) {
		rg_error("gnuplot cannot be started: %s", strerror(-rc));
		return rc;
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) == CANNOT_START) {
		rc = plot_files_publish(f);
		if (rc)
			return rc;
		rg_error("%s not found: %s/%s.gp is written but not drawn (Debian: apt-get install "
			 "gnuplot-nox)", RG_GNUPLOT, f->dir, f->name);
		return -EIO;
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return pictures_check(f);
	rg_error("%s/%s: gnuplot failed: %s", f->dir, f->name, *said ? said : "no reason given");
	return -EIO;
}

int plot_files_publish(const struct plot_files *f)
{
	for (int i = 0; i < SUFFIXES; i++) {
		char *from = plot_files_path(f, suffixes[i]), *to;
		int rc = from && asprintf(&to, "%s/%s%s", f->dir, f->name, suffixes[i]) >= 0 ? 0 :
			-ENOMEM;

		if (!rc) {
			/* Without gnuplot there are no pictures. */
			if (rename(from, to) && (errno != ENOENT || access(from, F_OK) == 0))
				rc = file_failed(f, suffixes[i], strerror(errno));
			free(to);
		}
		free(from);
		if (rc)
			return rc;
	}
	return 0;
}

void plot_files_close(struct plot_files *f)
{
	for (int i = 0; f->temporary && i < SUFFIXES; i++) {
		char *path = plot_files_path(f, suffixes[i]);

		if (path)
			unlink(path);
		free(path);
	}
	if (f->temporary)
		rmdir(f->temporary);
	free(f->temporary);
	f->temporary = NULL;
}
