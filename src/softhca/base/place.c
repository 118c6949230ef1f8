/* place.c - see place.h. */
#include "softhca/base/place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PLACES = 3 };

static const char *place_named(unsigned index)
{
	const char *dir = getenv("TMPDIR");

	switch (index) {
	case 0:
		return "/dev/shm";
	case 1:
		return dir && *dir == '/' ? dir : NULL;
	default:
		return "/tmp";
	}
}

const char *hca_place(unsigned index)
{
	const char *dir = getenv("SOFTHCA_DIR"), *place = NULL;
	unsigned i;

	if (dir && *dir)
		return index ? NULL : dir;
	for (i = 0; i < PLACES; i++) {
		place = place_named(i);
		if (place && !index--)
			return place;
	}
	return NULL;
}

/* Not every file system makes files without a name: this one has a name for a moment. */
static int with_name(const char *dir)
{
	char path[256];
	int fd, n = snprintf(path, sizeof(path), "%s/softhca-XXXXXX", dir);

	if (n < 0 || (size_t)n >= sizeof(path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	fd = mkostemp(path, O_CLOEXEC);
	if (fd >= 0)
		unlink(path);
	return fd;
}

int hca_place_file(char *why, size_t size)
{
	const char *dir;
	size_t used = 0;
	unsigned i;

	snprintf(why, size, "no directory");
	for (i = 0; (dir = hca_place(i)); i++) {
		int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

		if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL))
			fd = with_name(dir);
		if (fd >= 0)
			return fd;
		if (used < size)
			used += (size_t)snprintf(why + used, size - used, "%s%.100s: %s",
						 i ? ", " : "", dir, strerror(errno));
	}
	return -1;
}
