/* text.h - text appended to a caller's buffer, and the text of a file. */
#ifndef RG_UTIL_TEXT_H
#define RG_UTIL_TEXT_H

#include <stddef.h>

/* Append to the text in buf, truncated at the size of the whole buffer. */
__attribute__((format(printf, 3, 4)))
void rg_text_add(char *buf, size_t size, const char *format, ...);

/* Each run of white space becomes one space; none stays at the ends. */
void rg_text_squeeze(char *text);

/*
 * Read a whole regular file of less than `most` bytes, and append a NUL; free() the result.
 * bytes: gets the length, may be NULL.  On error NULL and errno; EISDIR or EINVAL: not a
 * regular file; EFBIG: too long.  Does not block on a pipe.
 */
char *rg_file_read(const char *path, size_t most, size_t *bytes);

#endif
