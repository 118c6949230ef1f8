/* host_list.c - names of hosts in the short form of Slurm. */
#include "util/host_list.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIGITS_MAX = 18 };

/* A name, cut at the last number before its domain: "n", "07", ".cluster". */
struct part {
	const char *name;
	int before, digits;		/* bytes; digits 0: no number */
	unsigned long long number;
};

static struct part part_of(const char *name)
{
	struct part p = { .name = name };
	int end = (int)strcspn(name, ".");

	while (end && !isdigit((unsigned char)name[end - 1]))
		end--;
	while (p.digits < end && p.digits < DIGITS_MAX &&
	       isdigit((unsigned char)name[end - p.digits - 1]))
		p.digits++;
	p.before = end - p.digits;
	if (p.digits)
		p.number = strtoull(name + p.before, NULL, 10);
	else
		p.before = (int)strlen(name);
	return p;
}

/* The order of families: names that differ in their number only. */
static int family_compare(const struct part *a, const struct part *b)
{
	const int least = a->before < b->before ? a->before : b->before;
	int order = strncmp(a->name, b->name, (size_t)least);

	if (!order)
		order = a->before - b->before;
	if (!order)
		order = !a->digits - !b->digits;
	return order ? order : strcmp(a->name + a->before + a->digits,
				      b->name + b->before + b->digits);
}

static int part_compare(const void *a, const void *b)
{
	const struct part *x = a, *y = b;
	int order = family_compare(x, y);

	if (!order)
		order = (x->number > y->number) - (x->number < y->number);
	return order ? order : x->digits - y->digits;
}

/* Does b follow a, written with as many digits as `first` at least? */
static bool follows(const struct part *first, const struct part *a, const struct part *b)
{
	char text[DIGITS_MAX + 8];

	snprintf(text, sizeof(text), "%0*llu", first->digits, a->number + 1);
	return (int)strlen(text) == b->digits && !strncmp(text, b->name + b->before, (size_t)b->digits);
}

static void digits_print(const struct part *p, FILE *out)
{
	fprintf(out, "%.*s", p->digits, p->name + p->before);
}

/* Prints a family: [from, to). */
static void family_print(const struct part *p, int from, int to, FILE *out)
{
	const bool several = to - from > 1;

	fprintf(out, "%.*s%s", p[from].before, p[from].name, several ? "[" : "");
	for (int i = from, last; i < to; i = last + 1) {
		last = i;
		while (last + 1 < to && follows(&p[i], &p[last], &p[last + 1]))
			last++;
		if (i > from)
			fputc(',', out);
		digits_print(&p[i], out);
		if (last > i) {
			fputc('-', out);
			digits_print(&p[last], out);
		}
	}
	fprintf(out, "%s%s", several ? "]" : "", p[from].name + p[from].before + p[from].digits);
}

/* Sort, without repeated names; the number that is left. */
static int parts_sort(struct part *p, int count)
{
	int kept = 0;

	qsort(p, (size_t)count, sizeof(*p), part_compare);
	for (int i = 0; i < count; i++)
		if (!kept || strcmp(p[kept - 1].name, p[i].name))
			p[kept++] = p[i];
	return kept;
}

char *rg_host_list(const char *const *name, int count)
{
	struct part *p = calloc(count ? (size_t)count : 1, sizeof(*p));
	char *text = NULL;
	size_t bytes;
	FILE *out = p ? open_memstream(&text, &bytes) : NULL;

	for (int i = 0; p && i < count; i++)
		p[i] = part_of(name[i]);
	if (p)
		count = parts_sort(p, count);
	for (int i = 0, end; out && i < count; i = end) {
		for (end = i + 1; end < count && !family_compare(&p[i], &p[end]); )
			end++;
		if (i)
			fputc(',', out);
		family_print(p, i, end, out);
	}
	free(p);
	if (out && fclose(out)) {
		free(text);
		text = NULL;
	}
	return text;
}
