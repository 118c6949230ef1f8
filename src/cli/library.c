/*
 * library.c - paths of Railgauge's shared libraries.
 *
 * Libraries and helpers are found from the path of this command, as /proc has it, or as the command was
 * called.  In the build tree both are in neighbouring directories.  Installed libraries are in
 * libdir as seen from bindir, so that the installation may be moved as a whole.
 */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/library.h"

static bool library_at(const char *dir, const char *name, char *path, size_t size)
{
	static const char *const suffixes[] = { ".so.0", ".so" };

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		char there[PATH_MAX], *real;

		if (snprintf(there, sizeof(there), "%s/%s%s", dir, name, suffixes[i]) >=
		    (int)sizeof(there))
			continue;
		real = realpath(there, NULL);
		if (!real)
			continue;
		snprintf(path, size, "%s", real);
		free(real);
		return true;
	}
	return false;
}

/* "/usr/local/lib/x" as seen from "/usr/local/bin": "../lib/x". */
static void seen_from(const char *bindir, const char *lib, char *path, size_t size)
{
	const char *bin = RG_BINDIR;
	size_t same = 0, length = 0;

	for (size_t i = 0; ; i++) {
		if ((lib[i] == '/' || !lib[i]) && (bin[i] == '/' || !bin[i]))
			same = i;
		if (!lib[i] || lib[i] != bin[i])
			break;
	}
	length = (size_t)snprintf(path, size, "%s", bindir);
	for (const char *c = bin + same; *c; c++)
		if (*c == '/' && length < size)
			length += (size_t)snprintf(path + length, size - length, "/..");
	if (length < size)
		snprintf(path + length, size - length, "%s", lib + same);
}

/* The path by which this command was called, or which PATH has for its name. */
static int path_as_called(char *path, size_t size)
{
	const char *name = program_invocation_name, *dir = getenv("PATH");
	char there[PATH_MAX], *real = NULL;

	if (strchr(name, '/'))
		real = realpath(name, NULL);
	for (; !real && !strchr(name, '/') && dir && *dir; dir += strspn(dir, ":")) {
		const int length = (int)strcspn(dir, ":");

		if (snprintf(there, sizeof(there), "%.*s/%s", length, dir, name) < (int)sizeof(there) &&
		    access(there, X_OK) == 0)
			real = realpath(there, NULL);
		dir += length;
	}
	if (real)
		snprintf(path, size, "%s", real);
	free(real);
	return real ? 0 : -ENOENT;
}

int cli_directory(char *path, size_t size)
{
	ssize_t length = readlink("/proc/self/exe", path, size - 1);

	path[length > 0 ? length : 0] = '\0';
	if (length <= 0 && path_as_called(path, size))
		return -ENOENT;
	*strrchr(path, '/') = '\0';
	return 0;
}

static bool ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), bytes = strlen(end);

	return length >= bytes && strcmp(text + length - bytes, end) == 0;
}

int cli_library_find(const char *name, char *path, size_t size)
{
	char self[PATH_MAX], dir[PATH_MAX * 2];

	if (!cli_directory(self, sizeof(self))) {
		/*
		 * The build tree: <build>/src/cli/.libs/railgauge, or without the .libs.  A build may
		 * be inside of another one.
		 */
		snprintf(dir, sizeof(dir), "%s/../../%s.libs", self, ends_with(self, "/.libs") ?
			 "../" : "");
		if (library_at(dir, name, path, size))
			return 0;
		seen_from(self, RG_LIBDIR, dir, sizeof(dir));
		if (library_at(dir, name, path, size))
			return 0;
	}
	return library_at(RG_LIBDIR, name, path, size) ? 0 : -ENOENT;
}

int cli_helper_find(const char *name, char *path, size_t size)
{
	char self[PATH_MAX], dir[3][PATH_MAX * 2] = { "", "", RG_PKGLIBEXECDIR };

	if (!cli_directory(self, sizeof(self))) {
		snprintf(dir[0], sizeof(dir[0]), "%s%s", self, ends_with(self, "/.libs") ? "/.." : "");
		seen_from(self, RG_PKGLIBEXECDIR, dir[1], sizeof(dir[1]));
	}
	for (size_t i = 0; i < sizeof(dir) / sizeof(dir[0]); i++) {
		const int length = snprintf(path, size, "%s/%s", dir[i], name);

		if (*dir[i] && length > 0 && (size_t)length < size && access(path, X_OK) == 0)
			return 0;
	}
	return -ENOENT;
}
