/* secret.c - see secret.h. */
#include "softhca/link/wire/secret.h"

#include <fcntl.h>
#include <pwd.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "softhca/base/base.h"

enum { DIGITS = 2 * HCA_SECRET_BYTES, PATH_BYTES = 4096 };

#define ACCEPTED "(accepted: 64 hexadecimal digits)"
#define ELSEWHERE "(SOFTHCA_SECRET_FILE names a file)"

/* `bytes` of text: the digits, and white space after them. */
static bool digits_parse(const char *text, size_t bytes, unsigned char secret[HCA_SECRET_BYTES])
{
	size_t used;

	if (bytes < DIGITS ||
	    sodium_hex2bin(secret, HCA_SECRET_BYTES, text, DIGITS, NULL, &used, NULL) ||
	    used != HCA_SECRET_BYTES)
		return false;
	return strspn(text + DIGITS, " \t\r\n") == bytes - DIGITS;
}

/* ---- A file of the secret ------------------------------ */

static int file_check(const char *path, const struct stat *st)
{
	if (!S_ISREG(st->st_mode))
		return hca_fail(EINVAL, "%s: the secret is in no regular file", path);
	if (st->st_uid != geteuid() && st->st_uid != 0)
		return hca_fail(EPERM, "%s: the secret is another user's", path);
	if (st->st_mode & 077)
		return hca_fail(EPERM, "%s: mode 0%03o: others may access the secret "
				"(accepted: 0600, 0400)", path, (unsigned)st->st_mode & 0777);
	return 0;
}

static int contents_read(const char *path, int fd, unsigned char secret[HCA_SECRET_BYTES])
{
	char text[DIGITS + 16];
	ssize_t bytes;
	bool valid;

	bytes = read(fd, text, sizeof(text) - 1);
	if (bytes < 0)
		return hca_fail(errno, "%s: %s", path, strerror(errno));
	text[bytes] = 0;
	valid = digits_parse(text, (size_t)bytes, secret);
	sodium_memzero(text, sizeof(text));
	return valid ? 0 : hca_fail(EINVAL, "%s: no secret " ACCEPTED, path);
}

/* -ENOENT without a line. */
static int file_load(const char *path, unsigned char secret[HCA_SECRET_BYTES])
{
	int rc, fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0)
		return errno == ENOENT ? -ENOENT : hca_fail(errno, "%s: %s", path, strerror(errno));
	if (fstat(fd, &st))
		rc = hca_fail(errno, "%s: %s", path, strerror(errno));
	else
		rc = file_check(path, &st);
	if (!rc)
		rc = contents_read(path, fd, secret);
	close(fd);
	return rc;
}

/* ---- The first use ------------------------------ */

static int home_directory(char *home, size_t size)
{
	const char *given = getenv("HOME");
	struct passwd entry, *found = NULL;
	char strings[PATH_BYTES];

	if (!given || !*given)
		given = getpwuid_r(geteuid(), &entry, strings, sizeof(strings), &found) || !found ?
			NULL : found->pw_dir;
	if (!given || *given != '/')
		return hca_fail(ENOENT, "no home directory for the secret " ELSEWHERE);
	if ((size_t)snprintf(home, size, "%s", given) >= size)
		return hca_fail(ENAMETOOLONG, "HOME is too long");
	return 0;
}

/* Random digits and a newline, in a descriptor.  0 or -errno (silent). */
static int digits_write(int fd)
{
	unsigned char drawn[HCA_SECRET_BYTES];
	char text[DIGITS + 1];
	int rc = 0;

	if (getrandom(drawn, sizeof(drawn), 0) != sizeof(drawn))
		return -EIO;
	sodium_bin2hex(text, sizeof(text), drawn, sizeof(drawn));
	text[DIGITS] = '\n';
	errno = EIO;
	if (write(fd, text, sizeof(text)) != sizeof(text) || fsync(fd))
		rc = -errno;
	sodium_memzero(text, sizeof(text));
	sodium_memzero(drawn, sizeof(drawn));
	return rc;
}

/*
 * The file gets its name when it is complete, and only if no other has the name: of processes that
 * make it at once, all read the same secret.
 */
static int file_name(const char *unnamed, const char *path)
{
	int rc = link(unnamed, path) ? -errno : 0;

	if (rc == -EPERM || rc == -EOPNOTSUPP || rc == -ENOSYS || rc == -EMLINK)
		rc = renameat2(AT_FDCWD, unnamed, AT_FDCWD, path, RENAME_NOREPLACE) ? -errno : 0;
	unlink(unnamed);
	return rc == -EEXIST ? 0 : rc;
}

static int file_make(const char *path)
{
	char unnamed[PATH_BYTES + 8];
	int fd, rc;

	snprintf(unnamed, sizeof(unnamed), "%s.XXXXXX", path);
	fd = mkostemp(unnamed, O_CLOEXEC);
	if (fd < 0)
		return hca_fail(errno, "%s: %s " ELSEWHERE, path, strerror(errno));
	rc = fchmod(fd, 0600) ? -errno : digits_write(fd);
	if (close(fd) && !rc)
		rc = -errno;
	if (rc)
		unlink(unnamed);
	else
		rc = file_name(unnamed, path);
	return rc ? hca_fail(-rc, "%s: %s " ELSEWHERE, path, strerror(-rc)) : 0;
}

static int load_default(unsigned char secret[HCA_SECRET_BYTES])
{
	char path[PATH_BYTES];
	int rc = home_directory(path, sizeof(path) - sizeof("/.softhca/secret"));
	size_t home = strlen(path);

	if (rc)
		return rc;
	strcpy(path + home, "/.softhca/secret");
	rc = file_load(path, secret);
	if (rc != -ENOENT)
		return rc;
	path[home + strlen("/.softhca")] = 0;
	if (mkdir(path, 0700) && errno != EEXIST)
		return hca_fail(errno, "%s: %s " ELSEWHERE, path, strerror(errno));
	path[home + strlen("/.softhca")] = '/';
	rc = file_make(path);
	if (!rc)
		rc = file_load(path, secret);
	return rc == -ENOENT ? hca_fail(ENOENT, "%s: %s", path, strerror(ENOENT)) : rc;
}

int hca_secret_load(const char *given_hex, unsigned char secret[HCA_SECRET_BYTES])
{
	const char *path = getenv("SOFTHCA_SECRET_FILE");
	int rc;

	if (given_hex)
		return digits_parse(given_hex, strlen(given_hex), secret) ? 0 :
		       hca_fail(EINVAL, "no secret was given " ACCEPTED);
	if (!path || !*path)
		return load_default(secret);
	rc = file_load(path, secret);
	return rc == -ENOENT ? hca_fail(ENOENT, "SOFTHCA_SECRET_FILE=%s: %s", path,
					strerror(ENOENT)) : rc;
}
