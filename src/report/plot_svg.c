/* plot_svg.c - title and description of an SVG: gnuplot writes a name of its own. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "util/err.h"
#include "util/text.h"
#include "report/plot_svg.h"
#include "report/plot_text.h"

enum { SVG_BYTES_MAX = 256 << 20 };

static void escape(FILE *out, const char *text)
{
	for (; *text; text++)
		switch (*text) {
		case '&':
			fputs("&amp;", out);
			break;
		case '<':
			fputs("&lt;", out);
			break;
		case '>':
			fputs("&gt;", out);
			break;
		default:
			fputc((unsigned char)*text < ' ' || *text == 0x7f ? ' ' : *text, out);
		}
}

/* "stripe: 2.28 to 14.5" of each way. */
static void ranges(const struct plot *p, FILE *out)
{
	for (int w = 0; w < p->way_count; w++) {
		double least = INFINITY, most = -INFINITY;
		char low[PLOT_NUMBER], high[PLOT_NUMBER];

		for (size_t i = 0; i < p->row_count; i++)
			if (p->row[i].way == w && isfinite(p->row[i].value)) {
				least = fmin(least, p->row[i].value);
				most = fmax(most, p->row[i].value);
			}
		fputs(w ? "; " : " ", out);
		escape(out, p->way[w]);
		if (most >= least)
			fprintf(out, " %s to %s", plot_number(least, low, sizeof(low)),
				plot_number(most, high, sizeof(high)));
		else
			fprintf(out, " without values");
	}
}

static void describe(const struct plot *p, FILE *out)
{
	const json_t *caption = json_object_get(p->file->run, "caption"), *text;
	char quantity[PLOT_TEXT];
	size_t i;

	fprintf(out, "<title id=\"title\">Railgauge ");
	escape(out, json_string_value(json_object_get(p->file->run, "program")));
	fprintf(out, ": ");
	escape(out, json_string_value(json_object_get(p->file->run, "title")));
	fprintf(out, "</title>\n<desc id=\"desc\">");
	escape(out, plot_quantity(p, quantity, sizeof(quantity)));
	fprintf(out, ", %s%s, by way:", plot_statistic(p), p->mean ? "s" : "s of rows");
	ranges(p, out);
	fputc('.', out);
	json_array_foreach(caption, i, text)
		if (json_is_string(text)) {
			fputc(' ', out);
			escape(out, json_string_value(text));
			fputc('.', out);
		}
	fprintf(out, "</desc>\n");
}

/* The text after the element of that name, which begins at or after `text`; NULL: none. */
static const char *after(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	return at ? at + strlen(name) : NULL;
}

int plot_svg_describe(const struct plot *p, const struct plot_files *files)
{
	char *path = plot_files_path(files, ".svg");
	char *svg = path ? rg_file_read(path, SVG_BYTES_MAX, NULL) : NULL;
	const char *start = svg ? after(svg, "<svg") : NULL;
	const char *title = start ? strstr(start, "<title>") : NULL;
	const char *rest = title ? after(title, "</desc>\n") : NULL;
	FILE *out;
	int rc = rest ? 0 : -EINVAL;

	if (rc)
		rg_error("%s/%s.svg: gnuplot's file has no title", files->dir, files->name);
	if (!rc)
		rc = plot_files_create(files, ".svg", &out);
	if (!rc) {
		fwrite(svg, 1, (size_t)(start - svg), out);
		fprintf(out, " role=\"img\" aria-labelledby=\"title desc\"");
		fwrite(start, 1, (size_t)(title - start), out);
		describe(p, out);
		fputs(rest, out);
		rc = plot_files_finish(files, ".svg", out);
	}
	free(svg);
	free(path);
	return rc;
}
