/* told.c - see told.h. */
#include "config.h"

#include "told.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "random.h"

#define VARIABLE "RAILGAUGE_EXEC"

/* The bytes of the address: a name that begins with a zero is not one of a file. */
static socklen_t address_of(const char *name, struct sockaddr_un *address)
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

int told_listen(void)
{
	struct sockaddr_un address;
	char name[32];
	int fd = socket_open(), rc;

	if (fd < 0)
		return fd;
	snprintf(name, sizeof(name), "%016llx", (unsigned long long)rg_random());
	if (!bind(fd, (struct sockaddr *)&address, address_of(name, &address)) &&
	    !setenv(VARIABLE, name, 1))
		return fd;
	rc = -errno;
	close(fd);
	return rc;
}

void told_say(void)
{
	const char *name = getenv(VARIABLE);
	struct sockaddr_un address;
	int fd = name && *name ? socket_open() : -1;

	if (fd < 0)
		return;
	sendto(fd, "", 1, 0, (struct sockaddr *)&address, address_of(name, &address));
	close(fd);
}
