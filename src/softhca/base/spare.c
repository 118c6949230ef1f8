/* spare.c - see spare.h. */
#include "softhca/base/spare.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include "softhca/base/base.h"
#include "softhca/base/fd.h"

enum { SPARES = 4 };			/* what one peer needs at a time */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned holders, count;
static int spare[SPARES];
static uint64_t ino;			/* of all of them: the program may have closed one */

/* The ends of an unused pipe: all have one inode, which no other file has. */
static int fill(void)
{
	int end[2], high, rc = 0;
	struct stat st;

	hca_fd_begin();
	if (pipe2(end, O_CLOEXEC))
		rc = -errno;
	hca_fd_end();
	if (rc)
		return rc;
	spare[count++] = hca_fd_raise(end[0]);
	spare[count++] = hca_fd_raise(end[1]);
	ino = fstat(spare[0], &st) ? 0 : st.st_ino;
	hca_fd_begin();
	while (count < SPARES && !rc) {
		high = fcntl(spare[0], F_DUPFD_CLOEXEC, spare[0]);
		rc = high < 0 ? -errno : 0;
		if (!rc)
			spare[count++] = high;
	}
	hca_fd_end();
	return rc;
}

static void drop(void)
{
	struct stat st;

	for (; count; count--)
		if (!fstat(spare[count - 1], &st) && S_ISFIFO(st.st_mode) && st.st_ino == ino)
			close(spare[count - 1]);
}

int hca_spare_hold(void)
{
	char why[160];
	int rc = 0;

	pthread_mutex_lock(&lock);
	if (!holders)
		rc = fill();
	if (rc)
		drop();
	else
		holders++;
	pthread_mutex_unlock(&lock);
	return rc ? hca_fail(-rc, "%s", hca_fd_error(-rc, why, sizeof(why))) : 0;
}

void hca_spare_release(void)
{
	pthread_mutex_lock(&lock);
	if (holders && !--holders)
		drop();
	pthread_mutex_unlock(&lock);
}

void hca_spare_lend(void)
{
	pthread_mutex_lock(&lock);
	drop();
}

void hca_spare_return(void)
{
	const int before = errno;

	if (holders)
		(void)!fill();
	pthread_mutex_unlock(&lock);
	errno = before;
}

void hca_spare_in_child(void)
{
	pthread_mutex_init(&lock, NULL);
	drop();
	holders = 0;
}
