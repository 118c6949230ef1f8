/* text.c - see text.h. */
#include "util/text.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void rg_text_add(char *buf, size_t size, const char *format, ...)
{
	size_t used = strlen(buf);
	va_list args;

	va_start(args, format);
	vsnprintf(buf + used, size - used, format, args);
	va_end(args);
}

void rg_text_squeeze(char *text)
{
	size_t used = 0;

	for (const char *c = text; *c; c++)
		if (!isspace((unsigned char)*c))
			text[used++] = *c;
		else if (used && text[used - 1] != ' ')
			text[used++] = ' ';
	text[used - (used && text[used - 1] == ' ')] = '\0';
}

/* Room for it, or NULL with errno. */
static char *room_for(int fd, size_t most, size_t *size)
{
	struct stat st;

	if (fstat(fd, &st))
		return NULL;
	*size = (size_t)st.st_size;
	if (S_ISREG(st.st_mode) && *size < most)
		return malloc(*size + 1);
	errno = S_ISREG(st.st_mode) ? EFBIG : S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
	return NULL;
}

char *rg_file_read(const char *path, size_t most, size_t *bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), error;
	size_t size, used = 0;
	ssize_t n = 1;
	char *text;

	if (fd < 0)
		return NULL;
	text = room_for(fd, most, &size);
	while (text && used < size && n) {
		n = read(fd, text + used, size - used);
		if (n < 0 && errno != EINTR) {
			free(text);
			text = NULL;
		}
		used += n > 0 ? (size_t)n : 0;
	}
	error = errno;
	close(fd);
	errno = error;
	if (!text)
		return NULL;
	text[used] = '\0';
	if (bytes)
		*bytes = used;
	return text;
}
