/* text.h - text that grows in a caller's buffer, and the text of a file. */
#ifndef RG_UTIL_TEXT_H
#define RG_UTIL_TEXT_H

#include <stddef.h>

/* Behind what buf holds; what does not fit is cut off.  size: of the whole buffer. */
__attribute__((format(printf, 3, 4)))
void rg_text_add(char *buf, size_t size, const char *format, ...);

/*
 * A regular file of less than `most` bytes, whole, with a NUL behind it; free() it.
 * *bytes, unless NULL: how many.  NULL with errno; EISDIR or EINVAL: it is no regular file;
 * EFBIG: it is too long.  Does not wait for who writes to a pipe.
 */
char *rg_file_read(const char *path, size_t most, size_t *bytes);

#endif
