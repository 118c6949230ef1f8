/* module.c - a library that lifecycle opens and closes: its static and its thread-local data. */
#include "memory.h"

enum { ZEROS = 4 << 20, INITIALIZED = 256 << 10 };

static unsigned char zeros[ZEROS], initialized[INITIALIZED] = {[0 ... INITIALIZED - 1] = 0x5a};
static _Thread_local unsigned char of_thread[ZEROS];

unsigned char *module_data(size_t bytes, bool of_file)
{
	if (bytes > (of_file ? sizeof(initialized) : sizeof(zeros)))
		return NULL;
	return of_file ? initialized : zeros;
}

unsigned char *module_tls(size_t bytes)
{
	return bytes > sizeof(of_thread) ? NULL : of_thread;
}
