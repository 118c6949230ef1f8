/* errors.c - error messages of one line. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "softhca/base/base.h"
#include "softhca/softhca.h"

static _Thread_local char last_error[640];

int hca_fail(int err, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(last_error, sizeof(last_error), fmt, args);
	va_end(args);
	return -err;
}

void hca_say(const char *fmt, ...)
{
	char line[768] = "softhca: ";
	size_t used = strlen(line);
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(line + used, sizeof(line) - used - 1, fmt, args);
	va_end(args);
	if (n < 0)
		return;
	used += (size_t)n < sizeof(line) - used - 1 ? (size_t)n : sizeof(line) - used - 2;
	line[used++] = '\n';
	if (write(STDERR_FILENO, line, used) < 0)
		return;		/* stderr is closed: no other place for it */
}

HCA_EXPORT const char *softhca_last_error(void)
{
	return last_error;
}
