/* host.c - the host of a process. */
#include "util/host.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

void rg_host_find(struct rg_host *out)
{
	FILE *in = fopen("/proc/sys/kernel/random/boot_id", "re");
	char line[sizeof(out->boot)] = "";
	struct stat net, ipc;

	memset(out, 0, sizeof(*out));
	if (!in || !fgets(line, sizeof(line), in))
		gethostname(line, sizeof(line) - 1);
	if (in)
		fclose(in);
	memcpy(out->boot, line, strcspn(line, "\n"));
	if (stat("/proc/self/ns/net", &net) == 0) {
		out->net_device = net.st_dev;
		out->net_inode = net.st_ino;
	}
	if (stat("/proc/self/ns/ipc", &ipc) == 0) {
		out->ipc_device = ipc.st_dev;
		out->ipc_inode = ipc.st_ino;
	}
}

bool rg_host_same_machine(const struct rg_host *a, const struct rg_host *b)
{
	return memcmp(a->boot, b->boot, sizeof(a->boot)) == 0;
}

bool rg_host_same(const struct rg_host *a, const struct rg_host *b)
{
	return rg_host_same_machine(a, b) && a->net_device == b->net_device &&
	       a->net_inode == b->net_inode;
}

bool rg_host_shares_memory(const struct rg_host *a, const struct rg_host *b)
{
	return rg_host_same_machine(a, b) && a->ipc_device == b->ipc_device &&
	       a->ipc_inode == b->ipc_inode;
}

enum { WORDS_MOST = 80 };		/* of a name of 107 characters */

/* Words that fit into a name; FNV-1a of others. */
static void name_words(struct sockaddr_un *name, const char *words)
{
	uint64_t sum = 14695981039346656037u;

	if (strlen(words) > WORDS_MOST) {
		for (; *words; words++)
			sum = (sum ^ (unsigned char)*words) * 1099511628211u;
		snprintf(name->sun_path + 1, sizeof(name->sun_path) - 1, "railgauge %016llx",
			 (unsigned long long)sum);
	} else {
		snprintf(name->sun_path + 1, sizeof(name->sun_path) - 1, "railgauge %s", words);
	}
}

/* A name in the abstract space of sockets belongs to one process, and goes with it. */
bool rg_host_first(const char *words, bool otherwise)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool taken;

	if (fd < 0)
		return otherwise;
	name_words(&name, words);
	if (!bind(fd, (struct sockaddr *)&name, sizeof(name)))
		return true;
	taken = errno == EADDRINUSE;
	close(fd);
	return taken ? false : otherwise;
}
