/* cite_bibtex.c - BibTeX entries of the software and of a run. */
#include "config.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "report/cite.h"
#include "report/cite_bibtex.h"

enum { COMMIT_DIGITS = 12 };

/* Characters that BibTeX or TeX interprets, each as TeX prints it. */
static void escaped(FILE *out, const char *text)
{
	for (; *text; text++)
		switch (*text) {
		case '\\':
			fputs("\\textbackslash{}", out);
			break;
		case '~':
			fputs("\\textasciitilde{}", out);
			break;
		case '^':
			fputs("\\textasciicircum{}", out);
			break;
		/* An escaped brace counts as a brace for BibTeX, which needs pairs. */
		case '{':
			fputs("\\textbraceleft{}", out);
			break;
		case '}':
			fputs("\\textbraceright{}", out);
			break;
		case '"':
			fputs("''", out);
			break;
		case '<':
			fputs("\\textless{}", out);
			break;
		case '>':
			fputs("\\textgreater{}", out);
			break;
		case '$': case '&': case '#': case '_': case '%':
			fputc('\\', out);
			fputc(*text, out);
			break;
		default:
			fputc((unsigned char)*text < ' ' || *text == 0x7f ? ' ' : *text, out);
		}
}

static void field(FILE *out, const char *name, const char *text)
{
	fprintf(out, "  %-12s = {", name);
	escaped(out, text);
	fprintf(out, "},\n");
}

/* Keys have letters, digits and a few signs in every style. */
static void key_clean(char *key)
{
	for (; *key; key++)
		if (!isalnum((unsigned char)*key) && !strchr("-_.", *key))
			*key = '-';
}

char *report_cite_software_key(const struct report_file *f, char *buf, size_t size)
{
	struct cite_facts c;

	cite_facts_load(&c, f->run);
	snprintf(buf, size, "railgauge-%.24s-%.*s%s", c.version, COMMIT_DIGITS, c.commit,
		 c.dirty ? "-modified" : "");
	key_clean(buf);
	return buf;
}

/* FNV-1a of the run record: the same file has the same key everywhere. */
static uint32_t run_hash(const json_t *run)
{
	char *text = json_dumps(run, JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(9));
	uint32_t hash = 2166136261u;

	for (const char *at = text; at && *at; at++)
		hash = (hash ^ (unsigned char)*at) * 16777619u;
	free(text);
	return hash;
}

static void run_key(const struct report_file *f, const struct cite_facts *c, char *buf, size_t size)
{
	char day[16] = "";
	int digits = 0;

	for (const char *at = c->date; c->year && *at; at++)
		if (isdigit((unsigned char)*at))
			day[digits++] = *at;
	snprintf(buf, size, "railgauge-%.32s-%s%s%08x", c->program, day, *day ? "-" : "",
		 (unsigned)run_hash(f->run));
	key_clean(buf);
}

static void date_fields(FILE *out, const struct cite_facts *c)
{
	char year[16];

	if (!c->year)
		return;
	snprintf(year, sizeof(year), "%d", c->year);
	field(out, "year", year);
	field(out, "date", c->date);
}

void report_cite_software(const struct report_file *f, FILE *out)
{
	struct cite_facts c;
	char key[CITE_KEY], note[256];

	cite_facts_load(&c, f->run);
	fprintf(out, "@misc{%s,\n  author       = {{The Railgauge authors}},\n  title        = "
		"{{Railgauge}: {MPI} benchmarks and a transport for several network rails},\n",
		report_cite_software_key(f, key, sizeof(key)));
	field(out, "version", c.version);
	if (c.year) {
		snprintf(note, sizeof(note), "%d", c.year);
		field(out, "year", note);
	}
	/* A build may name the project's address (configure.ac). */
	if (*PACKAGE_URL)
		fprintf(out, "  %-12s = {%s},\n", "url", PACKAGE_URL);
	snprintf(note, sizeof(note), "Version %.40s, commit %.64s%s", c.version, c.commit,
		 c.dirty ? ", with local changes" : "");
	field(out, "note", note);
	fprintf(out, "}\n");
}

void cite_bibtex_run(const struct report_file *f, const struct cite_facts *c, FILE *out)
{
	char key[CITE_KEY], title[CITE_TEXT], how[256], note[2 * CITE_TEXT];
	const char *host = json_string_value(json_object_get(json_array_get(
		json_object_get(f->run, "ranks"), 0), "host"));

	run_key(f, c, key, sizeof(key));
	snprintf(title, sizeof(title), "%.64s: %.512s", c->program, c->title);
	snprintf(how, sizeof(how), "Measurement with Railgauge %.40s", c->version);
	snprintf(note, sizeof(note), "%d rank%s; fabric: %s; Railgauge %.40s, commit %.64s%s", c->ranks,
		 c->ranks == 1 ? "" : "s", c->fabric, c->version, c->commit,
		 c->dirty ? ", with local changes" : "");
	fprintf(out, "@misc{%s,\n", key);
	field(out, "title", title);
	field(out, "howpublished", how);
	date_fields(out, c);
	field(out, "version", c->version);
	field(out, "commit", c->commit);
	field(out, "fabric", c->fabric);
	field(out, "host", host ? host : CITE_UNKNOWN);
	field(out, "note", note);
	fprintf(out, "}\n");
}
