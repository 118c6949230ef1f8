/* plot_text.c - text of a file in a script: quoted, and broken into lines by characters. */
#include <math.h>
#include <string.h>

#include "report/plot_text.h"

/* Columns of a figure of the usual width at the sizes of the fonts. */
enum { CAPTION_COLUMNS = 108, TITLE_COLUMNS = 64, USUAL_LINES = 5, LINE_PIXELS = 16 };

/* The bytes of the character; 0: not UTF-8. */
static size_t character(const char *text, unsigned *code)
{
	const unsigned char *at = (const unsigned char *)text;
	size_t length = at[0] < 0x80 ? 1 : at[0] >= 0xc2 && at[0] < 0xe0 ? 2 :
		at[0] >= 0xe0 && at[0] < 0xf0 ? 3 : at[0] >= 0xf0 && at[0] < 0xf5 ? 4 : 0;

	*code = length == 1 ? at[0] : at[0] & (0xffu >> (length + 1));
	for (size_t i = 1; i < length; i++) {
		if ((at[i] & 0xc0) != 0x80)
			return 0;
		*code = *code << 6 | (at[i] & 0x3fu);
	}
	return length;
}

/* Text of so many bytes; a quote character becomes `apostrophe`. */
static void plain(FILE *out, const char *text, size_t bytes, const char *apostrophe)
{
	unsigned code;

	for (size_t i = 0; i < bytes;) {
		size_t length = character(text + i, &code);

		if (length == 0)
			fputc('?', out);
		else if (text[i] == '\'')
			fputs(apostrophe, out);
		else if (code < ' ' || code == 0x7f)
			fputc(' ', out);
		else
			fwrite(text + i, 1, length, out);
		i += length ? length : 1;
	}
}

/* gnuplot misreads two doubled quotes in a row: a quote character is a string of its own. */
static void quote(FILE *out, const char *text, size_t bytes)
{
	fputc('\'', out);
	plain(out, text, bytes, "'.\"'\".'");
	fputc('\'', out);
}

char *plot_number(double value, char *buf, size_t size)
{
	snprintf(buf, size, fabs(value) < 1000 || fabs(value) >= 1e15 ? "%.4g" : "%.0f", value);
	return buf;
}

void plot_comment(FILE *out, const char *text)
{
	plain(out, text, strlen(text), "'");
	fputc('\n', out);
}

void plot_quote(FILE *out, const char *text)
{
	quote(out, text, strlen(text));
}

size_t plot_line(const char *text, int columns)
{
	size_t at = 0, blank = 0;
	int used = 0, blank_used = 0;

	while (text[at]) {
		unsigned code;
		size_t length = character(text + at, &code);
		int width = length && code >= 0x1100 ? 2 : 1;

		if (used + width > columns)
			return blank_used > columns / 2 ? blank : at;
		if (text[at] == ' ') {
			blank = at;
			blank_used = used;
		}
		used += width;
		at += length ? length : 1;
	}
	return at;
}

void plot_quote_lines(FILE *out, const char *text, int columns)
{
	const char *between = "";

	do {
		size_t length = plot_line(text, columns);

		fputs(between, out);
		quote(out, text, length);
		between = ".\"\\n\".";
		text += length + strspn(text + length, " ");
	} while (*text);
}

/* Write a definition of `captionN` for each line, unless out is NULL.  Returns their number. */
static int captions(const struct plot *p, FILE *out, double wide)
{
	const json_t *caption = json_object_get(p->file->run, "caption"), *text;
	int lines = 0;
	size_t i;

	json_array_foreach(caption, i, text) {
		const char *at = json_is_string(text) ? json_string_value(text) : "";

		while (*at) {
			size_t length = plot_line(at, (int)(wide * CAPTION_COLUMNS));

			lines++;
			if (out) {
				fprintf(out, "caption%d = ", lines);
				quote(out, at, length);
				fputc('\n', out);
			}
			at += length + strspn(at + length, " ");
		}
	}
	return lines;
}

static const char *title_of(const struct plot *p)
{
	return json_string_value(json_object_get(p->file->run, "title"));
}

static int title_lines(const struct plot *p, double wide)
{
	int lines = 0;

	for (const char *at = title_of(p); *at; lines++) {
		at += plot_line(at, (int)(wide * TITLE_COLUMNS));
		at += strspn(at, " ");
	}
	return lines;
}

static double head_lines(const struct plot *p, double wide)
{
	return 0.9 * captions(p, NULL, wide) + 1.5 * title_lines(p, wide) + 0.9;
}

int plot_head_more(const struct plot *p, double wide)
{
	double more = head_lines(p, wide) - USUAL_LINES;

	return more > 0 ? (int)(more * LINE_PIXELS) : 0;
}

void plot_head(const struct plot *p, FILE *out, double wide)
{
	captions(p, out, wide);
	fprintf(out, "head = %.1f\n", head_lines(p, wide));
}

void plot_head_labels(const struct plot *p, FILE *out, double wide)
{
	int lines = captions(p, NULL, wide), above = title_lines(p, wide);

	for (int n = 1; n <= lines; n++)
		fprintf(out, "set label %d caption%d at screen 0.5, screen 1 center "
			"offset 0, %.2f font ',10' noenhanced\n", n, n,
			-1.5 * above - 0.9 * n + 0.2);
	fprintf(out, "set label %d ", lines + 1);
	plot_quote_lines(out, title_of(p), (int)(wide * TITLE_COLUMNS));
	fprintf(out, " at screen 0.5, screen 1 center offset 0, -1.0 font ',16' noenhanced\n");
}
