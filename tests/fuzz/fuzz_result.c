/*
 * fuzz_result.c - the reader of result files on files that differ from real ones in structure:
 * records and members that are cut, exchanged, doubled, of another type, huge or deeply nested.
 */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../random.h"
#include "../scratch.h"
#include "fuzz.h"
#include "report/merge.h"
#include "report/report.h"
#include "report/sheet.h"
#include "util/err.h"

const unsigned fuzz_rounds = 40000;

/* ---- Seeds: files of the writer ------------------------------------------------- */

enum { PLAIN, AXIS, MATRIX, APP, KINDS };
static const char *const ways[] = { "native", "stripe" };

static void rows_write(struct report *r, unsigned kind)
{
	for (int i = 0; i < 6; i++) {
		struct report_row row = {
			.way = ways[i % 2], .bytes = UINT64_C(8) << i / 2, .x = i / 2 + 0.5,
			.from = i / 2 % 2, .to = !(i / 2 % 2), .valid = i % 3 - 1, .cut = i == 4,
			.extra = kind == APP ? json_pack("{s:{s:[f, f], s:[f, f], s:[i, i]}}", "app",
				"total_s", 1.5, 2.0, "communication_s", 0.5, 0.25, "sent_bytes", 8,
				16) : json_pack("{s:i, s:{s:i}}", "pairs", 1, "noise", "wait_ns", 5),
		};

		for (int k = 0; k < STATS_ROWS; k++)
			row.stat[k] = k % 3 == 2 ? NAN : 1.5 * (i + k + 1);
		row.stat[STATS_N] = 100;
		report_row(r, &row);
		json_decref(row.extra);
	}
}

static void seed_write(const char *path, unsigned kind)
{
	static const char *const names[] = { "n0", "n1" };
	const struct report_matrix matrix = {
		.names = names, .labels = ways, .count = 2, .slow = 0.9,
	};
	const struct report_axis axis = { "queue", "messages", "Queue length" };
	struct report_table t = {
		.json_path = path, .program = "rg_x", .title = "a test", .metric = REPORT_BANDWIDTH,
		.ways = ways, .way_count = 2, .axis = kind == AXIS ? &axis : NULL,
		.matrix = kind == MATRIX ? &matrix : NULL,
	};
	json_t *run = json_pack("{s:[s, s], s:{s:{s:s}}}", "notes", "fabric: none", "ranks: 2",
				"options", "window", "value", "64");
	struct report *r;

	if (kind == APP)
		json_object_set_new(run, "app", json_pack("{s:s, s:s, s:s, s:i, s:f, s:i}", "class",
			"S", "size", "65536", "operation", "keys ranked", "iterations", 10,
			"operations", 655360.0, "ranks", 2));
	if (report_open(&t, run, &r))
		abort();
	rows_write(r, kind);
	if (report_close(r, 0, NULL))
		abort();
}

size_t fuzz_seed(unsigned index, unsigned char *to, size_t most)
{
	static unsigned char seed[KINDS][8192];
	static size_t bytes[KINDS];
	char directory[SCRATCH_PATH], path[SCRATCH_PATH + 16];
	FILE *file;

	if (index >= KINDS)
		return 0;
	if (!bytes[index]) {
		if (scratch_make(directory))
			abort();
		snprintf(path, sizeof(path), "%s/r.jsonl", directory);
		seed_write(path, index);
		file = fopen(path, "rb");
		if (!file)
			abort();
		bytes[index] = fread(seed[index], 1, sizeof(seed[index]), file);
		fclose(file);
		if (scratch_remove(directory))
			abort();
	}
	if (bytes[index] > most)
		abort();
	memcpy(to, seed[index], bytes[index]);
	return bytes[index];
}

/* ---- Mutations of the structure ------------------------------------------------- */

enum { LINES = 64 };

struct text {
	const unsigned char *line[LINES];
	size_t length[LINES];		/* with the newline, if it has one */
	size_t count;
};

static struct text split(const unsigned char *data, size_t size)
{
	struct text t = { .count = 0 };

	while (size && t.count < LINES) {
		const unsigned char *end = memchr(data, '\n', size);
		size_t length = end ? (size_t)(end - data) + 1 : size;

		t.line[t.count] = data;
		t.length[t.count++] = length;
		data += length;
		size -= length;
	}
	return t;
}

static json_t *strange_value(uint64_t *random)
{
	static const char *const texts[] = {
		"9223372036854775807", "-9223372036854775808", "1e308", "-1e308", "4e-324", "-0.0",
		"-1", "0", "1", "2", "3", "2147483648", "4294967296", "1023", "1024", "null", "true", "false",
		"\"\"", "\"native\"", "\"run\"", "\"row\"", "\"end\"", "[]", "{}", "[[]]", "[null]",
		"{\"name\":{}}", "\"\\u0001\\u001b[2J\"", "\"%s%n\"", "[1,2,3]", "{\"value\":1e308}",
	};

	return json_loads(texts[random_below(random, sizeof(texts) / sizeof(texts[0]))],
			  JSON_DECODE_ANY, NULL);
}

static size_t children(const json_t *value)
{
	return json_is_object(value) ? json_object_size(value) : json_array_size(value);
}

/* Change a member of an object, or of an object in it. */
static void object_change(json_t *object, uint64_t *random)
{
	void *at = json_object_iter(object);
	size_t skip;
	const char *name;
	json_t *value;

	if (!at)
		return;
	for (skip = random_below(random, json_object_size(object)); skip; skip--)
		at = json_object_iter_next(object, at);
	name = json_object_iter_key(at);
	value = json_object_iter_value(at);
	if (children(value) && random_below(random, 3)) {
		if (json_is_object(value))
			object_change(value, random);
		else if (random_below(random, 2))
			json_array_remove(value, random_below(random, json_array_size(value)));
		else
			json_array_insert_new(value, random_below(random, json_array_size(value)),
					      strange_value(random));
		return;
	}
	switch (random_below(random, 4)) {
	case 0:
		json_object_del(object, name);
		break;
	case 1:
		json_object_set(object, random_below(random, 2) ? "x" : "matrix", value);
		break;
	default:
		json_object_set_new(object, name, strange_value(random));
	}
}

/* A record whose members differ; the length of its text in `to`, 0: it is left as it is. */
static size_t record_change(const unsigned char *line, size_t length, char *to, size_t most,
			    uint64_t *random)
{
	json_t *record = json_loadb((const char *)line, length, 0, NULL);
	size_t bytes;

	if (!json_is_object(record)) {
		json_decref(record);
		return 0;
	}
	for (uint64_t times = 1 + random_below(random, 3); times; times--)
		object_change(record, random);
	bytes = json_dumpb(record, to, most - 1, JSON_COMPACT);
	json_decref(record);
	if (bytes == 0 || bytes > most - 1)
		return 0;
	to[bytes] = '\n';
	return bytes + 1;
}

/* Text that no writer of JSON makes. */
static size_t damage(char *to, size_t most, uint64_t *random)
{
	size_t depth = (size_t)random_below(random, most < 4000 ? most : 4000);

	switch (random_below(random, 4)) {
	case 0:
		memset(to, random_below(random, 2) ? '[' : '{', depth);
		return depth;
	case 1:
		memset(to, '9', depth);
		return depth;
	case 2:
		to[0] = '\0';
		return 1;
	default:
		to[0] = '\n';
		return 1;
	}
}

size_t fuzz_mutate(unsigned char *data, size_t size, size_t most, uint64_t *random)
{
	static unsigned char out[1 << 16];
	struct text t = split(data, size);
	size_t used = 0, chosen, other;

	if (!t.count || most > sizeof(out))
		return size;
	chosen = (size_t)random_below(random, t.count);
	other = (size_t)random_below(random, t.count);
	switch (random_below(random, 8)) {
	case 0:				/* exchange two lines */
		t.line[LINES - 1] = t.line[chosen];
		used = t.length[chosen];
		t.line[chosen] = t.line[other];
		t.length[chosen] = t.length[other];
		t.line[other] = t.line[LINES - 1];
		t.length[other] = used;
		used = 0;
		break;
	case 1:				/* without a line */
		t.length[chosen] = 0;
		break;
	case 2:				/* cut */
		t.length[chosen] = (size_t)random_below(random, t.length[chosen] + 1);
		t.count = chosen + 1;
		break;
	default:
		break;
	}
	for (size_t i = 0; i < t.count; i++) {
		size_t copies = i == other && random_below(random, 8) == 0 ? 2 : 1, got = 0;

		if (i == chosen && random_below(random, 8) == 0)
			used += damage((char *)out + used, most - used, random);
		if (i == chosen && random_below(random, 4))
			got = record_change(t.line[i], t.length[i], (char *)out + used, most - used,
					    random);
		used += got;
		for (; !got && copies && used + t.length[i] < most; copies--) {
			memcpy(out + used, t.line[i], t.length[i]);
			used += t.length[i];
		}
	}
	memcpy(data, out, used);
	return used;
}

/* ---- Reading -------------------------------------------------------------------- */

static void must(bool holds)
{
	if (!holds)
		abort();
}

/* What the reader promises of each row. */
static void rows_check(const struct report_file *f)
{
	report_each(row, f) {
		const struct report_row *found = report_file_row(f, row->way, row->x);
		json_t *record = report_file_record(f, row);

		must(isfinite(row->x) && found && found <= row && found->x == row->x);
		must(record && strcmp(json_string_value(json_object_get(record, "way")),
				      row->way) == 0);
		must(row->from >= 0 && row->from < REPORT_MATRIX_MAX && row->to >= 0);
		json_decref(record);
	}
	if (json_object_get(f->end, "rows"))
		must(json_integer_value(json_object_get(f->end, "rows")) ==
		     (json_int_t)f->row_count);
}

static void views_check(const struct report_file *f, FILE *sink)
{
	const struct report_file *twice[] = { f, f };
	struct report_file merged;
	struct sheet s;

	must(report_print(f, sink, true) == 0);
	sheet_csv(f, sink);
	must(report_merge(twice, 2, &merged) == 0);
	must(merged.row_count == f->row_count);
	twice[1] = &merged;
	must(sheet_make(twice, 2, &s) == 0);
	sheet_text(&s, sink, false);
	sheet_text(&s, sink, true);
	sheet_latex(&s, sink);
	sheet_free(&s);
	report_file_free(&merged);
}

static int row_count(void *user, const struct report_file *f, const struct report_row *row,
		     const json_t *record)
{
	must(f->run && row->way && json_is_object(record));
	++*(size_t *)user;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static FILE *sink;
	struct report_file f, again;
	size_t counted = 0;
	int rc;

	if (!sink) {
		rg_set_quiet(true);
		sink = fopen("/dev/null", "w");
		must(sink);
	}
	rc = report_read_stream(fmemopen((void *)(uintptr_t)data, size, "r"), "fuzz", NULL, NULL,
				&f);
	must(rc == 0 || rc == -EINVAL);
	if (rc)
		return 0;
	rows_check(&f);
	if (size % 4 == 0)
		views_check(&f, sink);
	if (size % 8 == 1) {
		rc = report_read_stream(fmemopen((void *)(uintptr_t)data, size, "r"), "fuzz",
					row_count, &counted, &again);
		must(rc == 0 && counted == f.row_count && again.row_count == counted);
		report_file_free(&again);
	}
	report_file_free(&f);
	return 0;
}
