/* known.c - known differences of a device from the specification. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "known.h"

#define SOMETIMES "sometimes: "

enum { KNOWN_MAX = 128 };

static struct known known[KNOWN_MAX];
static unsigned known_count;

/* A reason's next line behind what there is of it. */
static int add_reason(struct known *k, const char *line)
{
	char *all;

	if (asprintf(&all, "%s%s%s", k->reason ? k->reason : "", k->reason ? " " : "", line) < 0)
		return -ENOMEM;
	free(k->reason);
	k->reason = all;
	return 0;
}

static int add_row(char *line)
{
	char *colon = strchr(line, ':'), *text;
	struct known *k = &known[known_count];

	if (!colon || colon[1] != ' ' || !colon[2] || known_count == KNOWN_MAX)
		return -EINVAL;
	*colon = '\0';
	text = colon + 2;
	if (known_find(line))
		return -EEXIST;
	k->sometimes = strncmp(text, SOMETIMES, strlen(SOMETIMES)) == 0;
	k->name = strdup(line);
	k->text = strdup(text + (k->sometimes ? strlen(SOMETIMES) : 0));
	known_count++;
	return k->name && k->text ? 0 : -ENOMEM;
}

int known_load(const char *path)
{
	FILE *f = fopen(path, "r");
	char *line = NULL;
	size_t size = 0;
	ssize_t n;
	int rc = f ? 0 : -errno;

	while (!rc && (n = getline(&line, &size, f)) >= 0) {
		if (n > 0 && line[n - 1] == '\n')
			line[n - 1] = '\0';
		if (!line[0] || line[0] == '#')
			continue;
		if (!isspace((unsigned char)line[0]))
			rc = add_row(line);
		else
			rc = known_count ? add_reason(&known[known_count - 1],
						      line + strspn(line, " \t")) : -EINVAL;
	}
	/* No row without its reason. */
	for (unsigned i = 0; !rc && i < known_count; i++)
		if (!known[i].reason)
			rc = -EINVAL;
	free(line);
	if (f)
		fclose(f);
	return rc;
}

struct known *known_find(const char *name)
{
	unsigned i;

	for (i = 0; i < known_count; i++)
		if (strcmp(known[i].name, name) == 0)
			return &known[i];
	return NULL;
}

bool known_not_to_come(const struct known *k)
{
	return strncmp(k->text, "no ", 3) == 0 || strcmp(k->text, "Alarm clock") == 0;
}

int known_unmet(void)
{
	unsigned i, unmet = 0;

	for (i = 0; i < known_count; i++)
		if (!known[i].met) {
			printf("FAIL %s: known to differ, but there is no such case\n",
			       known[i].name);
			unmet++;
		}
	return (int)unmet;
}

void known_free(void)
{
	for (; known_count; known_count--) {
		free(known[known_count - 1].name);
		free(known[known_count - 1].text);
		free(known[known_count - 1].reason);
	}
}
