/*
 * drawn.c - put before the C library: each secret of 32 bytes that the process draws, in hex digits, in the file
 * HOST.PID of the directory RG_DRAWN.  What is drawn without waiting is no secret, but a nonce.
 */
#include "config.h"		/* _GNU_SOURCE */

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

enum { SECRET_BYTES = 32 };

static void tell(const unsigned char *secret)
{
	const char *dir = getenv("RG_DRAWN");
	char path[512], host[64] = "";
	FILE *f;

	gethostname(host, sizeof(host) - 1);
	snprintf(path, sizeof(path), "%s/%s.%d", dir ? dir : ".", host, (int)getpid());
	f = fopen(path, "a");
	if (!f)
		return;
	for (int i = 0; i < SECRET_BYTES; i++)
		fprintf(f, "%02x", secret[i]);
	fputc('\n', f);
	fclose(f);
}

__attribute__((visibility("default")))
ssize_t getrandom(void *to, size_t bytes, unsigned flags)
{
	ssize_t (*next)(void *, size_t, unsigned), drawn;

	*(void **)&next = dlsym(RTLD_NEXT, "getrandom");
	drawn = next(to, bytes, flags);
	if (drawn == SECRET_BYTES && !flags)
		tell(to);
	return drawn;
}
