/* text.h - text that is appended to, within the bounds of its buffer. */
#ifndef HCA_TEXT_H
#define HCA_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct hca_text {
	char *buf;
	size_t size, used;
};

/* False: the text did not fit and is cut. */
__attribute__((format(printf, 2, 3)))
static inline bool hca_append(struct hca_text *t, const char *fmt, ...)
{
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(t->buf + t->used, t->size - t->used, fmt, args);
	va_end(args);
	if (n < 0 || (size_t)n >= t->size - t->used) {
		t->used = t->size - 1;
		return false;
	}
	t->used += (size_t)n;
	return true;
}

#endif
