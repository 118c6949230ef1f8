/* hostlist.c - names of hosts in the compact form of Slurm. */
#include "accept/accept.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIGITS_MAX = 15 };

/* A name: text, its last number, text. */
struct host {
	const char *name;
	size_t head, digits;		/* bytes before the number, and of it; 0: no number */
	unsigned long number;
	int place;			/* of the first name with the same text */
};

static struct host host_of(const char *name)
{
	struct host h = { .name = name, .head = strlen(name) };
	size_t end = strcspn(name, ".");

	/* A domain is no part of the number: node7.rack2 counts by 7. */
	while (end > 0 && !isdigit((unsigned char)name[end - 1]))
		end--;
	while (end > h.digits && h.digits < DIGITS_MAX &&
	       isdigit((unsigned char)name[end - h.digits - 1]))
		h.digits++;
	if (h.digits) {
		h.head = end - h.digits;
		h.number = strtoul(name + h.head, NULL, 10);
	}
	return h;
}

static bool same_text(const struct host *a, const struct host *b)
{
	return a->head == b->head && !a->digits == !b->digits &&
	       strncmp(a->name, b->name, a->head) == 0 &&
	       strcmp(a->name + a->head + a->digits, b->name + b->head + b->digits) == 0;
}

static bool is_padded(const struct host *h)
{
	return h->digits > 1 && h->name[h->head] == '0';
}

/* Do both write numbers with as many digits, or neither with zeros in front? */
static bool same_width(const struct host *a, const struct host *b)
{
	return a->digits == b->digits || (!is_padded(a) && !is_padded(b));
}

static int compare(const void *x, const void *y)
{
	const struct host *a = x, *b = y;

	if (a->place != b->place)
		return a->place - b->place;
	if (a->number != b->number)
		return a->number < b->number ? -1 : 1;
	return (a->digits > b->digits) - (a->digits < b->digits);
}

static int hosts_list(const char *const *names, int count, struct host *list)
{
	int kept = 0;

	for (int i = 0; i < count; i++) {
		list[i] = host_of(names[i]);
		list[i].place = i;
		for (int k = 0; k < i; k++)
			if (same_text(&list[i], &list[k]) && same_width(&list[i], &list[k])) {
				list[i].place = list[k].place;
				break;
			}
	}
	qsort(list, (size_t)count, sizeof(list[0]), compare);
	for (int i = 0; i < count; i++)
		if (!kept || strcmp(list[kept - 1].name, list[i].name))
			list[kept++] = list[i];
	return kept;
}

/* The last of the numbers that follow each other. */
static int range_end(const struct host *list, int i, int end)
{
	while (i + 1 < end && list[i + 1].number == list[i].number + 1)
		i++;
	return i;
}

static void numbers_print(FILE *out, const struct host *list, int begin, int end)
{
	for (int i = begin; i < end; i++) {
		int last = range_end(list, i, end);

		fprintf(out, "%s%.*s", i > begin ? "," : "", (int)list[i].digits,
			list[i].name + list[i].head);
		if (last > i)
			fprintf(out, "-%.*s", (int)list[last].digits, list[last].name + list[last].head);
		i = last;
	}
}

static void text_print(FILE *out, const struct host *list, int begin, int end)
{
	const struct host *h = &list[begin];

	if (end - begin == 1) {
		fputs(h->name, out);
		return;
	}
	fprintf(out, "%.*s[", (int)h->head, h->name);
	numbers_print(out, list, begin, end);
	fprintf(out, "]%s", h->name + h->head + h->digits);
}

char *accept_hostlist(const char *const *names, int count)
{
	struct host *list = calloc((size_t)count + 1, sizeof(list[0]));
	char *text = NULL;
	size_t size;
	FILE *out = list ? open_memstream(&text, &size) : NULL;

	if (out) {
		int hosts = hosts_list(names, count, list);

		for (int i = 0, end; i < hosts; i = end) {
			for (end = i + 1; end < hosts && list[end].place == list[i].place; end++)
				;
			if (i)
				fputc(',', out);
			text_print(out, list, i, end);
		}
		if (fclose(out)) {
			free(text);
			text = NULL;
		}
	}
	free(list);
	return text;
}
