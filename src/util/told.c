/* told.c - see told.h. */
#include "config.h"

#include "util/told.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "util/random.h"

#define VARIABLE "RAILGAUGE_EXEC"

/* Length of the address: a name that begins with a zero is not a file's. */
static socklen_t told_address(const char *name, struct sockaddr_un *address)
{
	*address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	snprintf(address->sun_path + 1, sizeof(address->sun_path) - 1, "railgauge-%s", name);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			   strlen(address->sun_path + 1));
}

static int socket_open(void)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	return fd < 0 ? -errno : fd;
}

/* A socket to the listener, or -1. */
static int told_reach(void)
{
	const char *name = getenv(VARIABLE);
	struct sockaddr_un address;
	int fd = name && *name ? socket_open() : -1;

	if (fd < 0 || !connect(fd, (struct sockaddr *)&address, told_address(name, &address)))
		return fd < 0 ? -1 : fd;
	close(fd);
	return -1;
}

bool told_listens(void)
{
	int fd = told_reach();

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

int told_listen(void)
{
	struct sockaddr_un address;
	char name[32];
	int fd = socket_open(), rc;

	if (fd < 0)
		return fd;
	snprintf(name, sizeof(name), "%016llx", (unsigned long long)rg_random());
	if (!bind(fd, (struct sockaddr *)&address, told_address(name, &address)) &&
	    !setenv(VARIABLE, name, 1))
		return fd;
	rc = -errno;
	close(fd);
	return rc;
}

void told_say(void)
{
	int fd = told_reach();

	if (fd < 0)
		return;
	send(fd, "", 1, MSG_NOSIGNAL);
	close(fd);
}
