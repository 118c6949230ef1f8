/* test_experiment.c - papers' files are read as they are, or refused in one line. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture.h"
#include "util/err.h"
#include "report/experiment.h"
#include "scratch.h"

static char dir[SCRATCH_PATH], path[SCRATCH_PATH + 16], data[4096];
static char text[1 << 16];	/* data/p1.json */
static size_t text_bytes;

static int setup(void **state)
{
	const char *srcdir = getenv("srcdir");
	char original[sizeof(data) + 16];
	FILE *in;

	rg_set_program("test_experiment");
	snprintf(data, sizeof(data), "%s/data", srcdir ? srcdir : ".");
	snprintf(original, sizeof(original), "%s/p1.json", data);
	in = fopen(original, "r");
	if (!in)
		return -1;
	text_bytes = fread(text, 1, sizeof(text) - 1, in);
	fclose(in);
	if (scratch_make(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/p1.json", dir);
	return 0;
}

static int teardown(void **state)
{
	return scratch_remove(dir);
}

static void write_file(const char *bytes, size_t count)
{
	FILE *out = fopen(path, "w");

	assert_non_null(out);
	assert_int_equal(fwrite(bytes, 1, count, out), count);
	assert_int_equal(fclose(out), 0);
	setenv("RAILGAUGE_DATA", dir, 1);
}

/* ---- The paper that comes with us --------------------------------------------------- */

static void test_p1(void **state)
{
	const struct experiment_paper *p1;
	struct experiment_papers papers;
	const struct experiment *e;
	char buf[EXPERIMENT_TEXT];
	int figures[32] = { 0 };
	struct experiment_point point;

	setenv("RAILGAUGE_DATA", data, 1);
	assert_int_equal(experiment_load(&papers), 0);
	p1 = experiment_paper_find(&papers, "p1");
	assert_non_null(p1);
	for (int i = 0; i < p1->count; i++)
		figures[p1->list[i].figure]++;
	/* On two adapters each; figure 5 has two operations. */
	for (int f = 2; f <= 19; f++)
		assert_int_equal(figures[f], f == 5 ? 4 : 2);
	e = experiment_find(&papers, "p1-fig13-pcie");
	assert_non_null(e);
	assert_string_equal(experiment_quoted(e, buf, sizeof(buf)),
			    "one port 971 MB/s (shorter version 969); two ports 1497 MB/s "
			    "(shorter version 1497) (on the paper's hardware)");
	assert_string_equal(experiment_command(e, 0, buf, sizeof(buf)),
			    "mpirun -np 2 rg_bw --experiment p1-fig13-pcie");
	assert_string_equal(experiment_ids(&papers, NULL, "rg_is", buf, sizeof(buf)),
			    "p1-fig18-pcie, p1-fig18-pcix");
	assert_true(experiment_point(e->quoted, 1, &point));
	assert_string_equal(point.way, "stripe");
	assert_true(point.value == 1497 && point.x == 1 << 20);
	assert_null(point.calibrated);
	e = experiment_find(&papers, "p1-fig2-pcie");
	assert_non_null(e);
	assert_true(experiment_point(e->quoted, 0, &point));
	assert_true(point.value == 4.8 && point.x == 1);
	assert_string_equal(point.calibrated, "cqe");
	e = experiment_find(&papers, "p1-fig18-pcie");
	assert_non_null(e);
	assert_false(experiment_point(e->quoted, 0, &point));
	assert_false(experiment_point(e->quoted, 99, &point));
	assert_null(experiment_find(&papers, "p1-fig13"));
	assert_null(experiment_paper_find(&papers, "../p1"));
	experiment_free(&papers);
}

/* ---- Calibration -------------------------------------------------------------------- */

/* All of one profile; the wan profiles count as one and differ in latency. */
struct fit { const char *profile, *of[8], *key[8]; int keys, figures; };

static struct fit *fit_of(struct fit fits[8], const char *profile)
{
	struct fit *f = fits;

	while (f->profile && strcmp(f->profile, profile))
		f++;
	assert_true(f < fits + 8);
	f->profile = profile;
	return f;
}

static void fit_add(struct fit *fit, const char *soft, const char *key)
{
	const char *of = strcmp(key, "latency") == 0 ? soft : fit->profile;

	fit->figures++;
	for (int k = 0; k < fit->keys; k++)
		if (strcmp(fit->key[k], key) == 0 && strcmp(fit->of[k], of) == 0)
			return;
	assert_true(fit->keys < 8);
	fit->of[fit->keys] = of;
	fit->key[fit->keys++] = key;
}

/* With as many free keys as figures to calibrate them on, any model fits. */
static void test_free_keys(void **state)
{
	struct experiment_papers papers;
	struct experiment_point point;
	struct fit fits[9] = { 0 };
	int profiles = 0;

	setenv("RAILGAUGE_DATA", data, 1);
	assert_int_equal(experiment_load(&papers), 0);
	for (int p = 0; p < papers.count; p++)
		for (int i = 0; i < papers.list[p].count; i++) {
			const struct experiment *e = &papers.list[p].list[i];
			const char *soft = json_string_value(json_object_get(e->options, "soft"));

			for (size_t q = 0; q < json_array_size(e->quoted); q++) {
				experiment_point(e->quoted, q, &point);
				if (point.calibrated)
					fit_add(fit_of(fits, strncmp(soft, "wan-", 4) ? soft : "wan"),
						soft, point.calibrated);
			}
		}
	for (; fits[profiles].profile; profiles++)
		assert_true(fits[profiles].keys < fits[profiles].figures);
	assert_int_equal(profiles, 4);
	experiment_free(&papers);
}

static void test_scale(void **state)
{
	assert_true(experiment_scale(REPORT_LATENCY, "us") == 1);
	assert_true(experiment_scale(REPORT_BANDWIDTH, "MB/s") == 1);
	/* 1048576 MB/s are 10^6 times 2^20 bytes per second. */
	assert_true(experiment_scale(REPORT_BANDWIDTH, "MiB/s") * 1048576 == 1000000);
	assert_true(experiment_scale(REPORT_LATENCY, "MiB/s") == 0);
	assert_true(experiment_scale(REPORT_BANDWIDTH, "%") == 0);
}

/* A record may hold anything. */
static void test_point_of_anything(void **state)
{
	static const char *const texts[] = {
		"{}", "[]", "[7]", "[{}]", "[{\"what\":1,\"unit\":\"u\",\"way\":\"w\",\"x\":1}]",
		"[{\"what\":\"w\",\"unit\":\"u\",\"way\":\"w\"}]",
	};
	struct experiment_point point;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		json_t *any = json_loads(texts[i], 0, NULL);

		assert_false(experiment_point(any, 0, &point));
		json_decref(any);
	}
}

/* The given buffer never overflows. */
static void test_short_buffers(void **state)
{
	struct experiment_papers papers;
	char buf[24];

	setenv("RAILGAUGE_DATA", data, 1);
	assert_int_equal(experiment_load(&papers), 0);
	assert_int_equal(strlen(experiment_quoted(&papers.list[0].list[0], buf, sizeof(buf))), 23);
	assert_int_equal(strlen(experiment_text(&papers.list[0].list[0], buf, sizeof(buf))), 23);
	assert_int_equal(strlen(experiment_ids(&papers, NULL, NULL, buf, sizeof(buf))), 23);
	experiment_free(&papers);
}

/* ---- Damaged ones ----------------------------------------------------------------------- */

#define HEAD "{\"paper\":\"p1\",\"title\":\"t\",\"source\":\"s\",\"experiments\":["
#define BODY(id, figure, program, ranks, options, quoted) "{\"id\":\"" id "\",\"figure\":" figure \
	",\"program\":\"" program "\",\"ranks\":" ranks ",\"cells\":1,\"adapter\":\"a\",\"shows\":\"b\"," \
	"\"options\":" options ",\"quoted\":" quoted "}"
#define ONE(id, figure, program, ranks, options, quoted) \
	HEAD BODY(id, figure, program, ranks, options, quoted) "]}"
#define GOOD BODY("p1-a", "1", "rg_bw", "[2]", "{}", "[]")
#define QUOTED(q) ONE("p1-a", "1", "rg_bw", "[2]", "{}", "[" q "]")

static const struct { const char *text, *words; } damaged[] = {
	{ "", "p1.json:1: damaged: " },
	{ "{", "p1.json:1: damaged: " },
	{ "[]", "damaged: " },
	{ "{}", "damaged: Object item not found: paper" },
	{ "{\"paper\":\"p1\",\"paper\":\"p1\"}", "duplicate" },
	{ "{\"paper\":\"p2\",\"title\":\"t\",\"source\":\"s\",\"experiments\":[]}",
	  "paper is not p1" },
	{ HEAD "]}", "experiments is not a list" },
	{ HEAD "7]}", "experiment 0: " },
	{ HEAD GOOD "," GOOD "]}", "experiment 1: p1-a twice" },
	{ HEAD GOOD "],\"more\":1}", "damaged: " },
	{ ONE("p2-a", "1", "rg_bw", "[2]", "{}", "[]"), "id is not p1-..." },
	{ ONE("p1-../a", "1", "rg_bw", "[2]", "{}", "[]"), "id is not p1-..." },
	{ ONE("p1-a", "0", "rg_bw", "[2]", "{}", "[]"), "figure is not in 1 to 999" },
	{ ONE("p1-a", "\"1\"", "rg_bw", "[2]", "{}", "[]"), "Expected integer" },
	{ ONE("p1-a", "1", "sh -c", "[2]", "{}", "[]"), "program is not rg_..." },
	{ ONE("p1-a", "1", "rg_bw", "[]", "{}", "[]"), "ranks is not a list" },
	{ ONE("p1-a", "1", "rg_bw", "[2.5]", "{}", "[]"), "ranks: not a number" },
	{ ONE("p1-a", "1", "rg_bw", "[1,2,3,4,5,6,7,8,9]", "{}", "[]"), "ranks is not a list" },
	{ ONE("p1-a", "1", "rg_bw", "[2]", "[]", "[]"), "options is not an object" },
	{ ONE("p1-a", "1", "rg_bw", "[2]", "{\"window\":64}", "[]"), "options are not names" },
	{ ONE("p1-a", "1", "rg_bw", "[2]", "{\"x\":\"a\\nb\"}", "[]"), "options are not names" },
	{ ONE("p1-a", "1", "rg_bw", "[2]", "{}", "{}"), "quoted is not a list" },
	{ QUOTED("{\"what\":\"w\",\"unit\":\"u\"}"), "quoted 0: Object item not found: value" },
	{ QUOTED("{\"what\":\"w\\n# \",\"unit\":\"u\",\"value\":1}"), "not a line of text" },
	{ QUOTED("{\"what\":\"w\",\"unit\":\"u\",\"value\":\"1\"}"), "quoted 0: Expected" },
	{ QUOTED("{\"what\":\"w\",\"unit\":\"u\",\"value\":1e999}"), "damaged: " },
	{ QUOTED("{\"what\":\"w\",\"unit\":\"u\",\"value\":1,\"longer\":1}"), "quoted 0: " },
	{ QUOTED("{\"what\":\"w\",\"unit\":\"u\",\"value\":1,\"x\":1}"), "quoted 0: way without x" },
	{ QUOTED("{\"what\":\"w\",\"unit\":\"u\",\"value\":1,\"way\":\"w\"}"), "x without way" },
	{ QUOTED("{\"what\":\"w\",\"unit\":\"u\",\"value\":1,\"way\":\"w\",\"x\":\"1\"}"),
	  "quoted 0: Expected" },
};

static void test_damaged(void **state)
{
	struct experiment_papers papers;

	write_file(HEAD GOOD "]}", strlen(HEAD GOOD "]}"));
	assert_int_equal(experiment_load(&papers), 0);
	experiment_free(&papers);
	for (size_t i = 0; i < sizeof(damaged) / sizeof(damaged[0]); i++) {
		const char *said;
		int rc;

		write_file(damaged[i].text, strlen(damaged[i].text));
		capture_begin(2);
		rc = experiment_load(&papers);
		said = capture_end();
		if (rc >= 0 || !strstr(said, damaged[i].words) || !strstr(said, path) ||
		    strchr(said, '\n') != said + strlen(said) - 1)
			fail_msg("%s: %d, '%s'", damaged[i].text, rc, said);
	}
}

/* 0, or an error: never a crash, never an error without a line. */
static void load_mutant(const char *mutant, size_t bytes)
{
	struct experiment_papers papers;
	bool error;
	int rc;

	write_file(mutant, bytes);
	rg_errors_hold();
	rc = experiment_load(&papers);
	error = rg_errors_release(false);
	assert_int_equal(rc != 0, error);
	assert_int_equal(rc != 0, papers.count == 0);
	if (!rc)
		experiment_free(&papers);
}

static void test_mutants(void **state)
{
	static const char spice[] = "{}[]\",:0-9e.\\un \n\x80\xff";
	static char mutant[sizeof(text)];

	srandom(1);
	for (int round = 0; round < 2000; round++) {
		size_t bytes = text_bytes;

		memcpy(mutant, text, bytes);
		for (long n = random() % 3; n >= 0; n--)
			mutant[(size_t)random() % bytes] =
				spice[(size_t)random() % (sizeof(spice) - 1)];
		if (random() % 4 == 0)
			bytes = (size_t)random() % bytes;
		load_mutant(mutant, bytes);
	}
}

/* ---- Files ---------------------------------------------------------------------------------- */

static void refused(const char *words)
{
	struct experiment_papers papers;
	const char *said;
	int rc;

	setenv("RAILGAUGE_DATA", dir, 1);
	capture_begin(2);
	rc = experiment_load(&papers);
	said = capture_end();
	if (rc >= 0 || !strstr(said, words))
		fail_msg("%d, '%s', not '%s'", rc, said, words);
}

/* No paper's numbers follow from what this machine learns: schemes and algorithms are given. */
static void test_pinned(void **state)
{
	struct experiment_papers papers;
	int messages = 0;

	(void)state;
	setenv("RAILGAUGE_DATA", data, 1);
	assert_int_equal(experiment_load(&papers), 0);
	for (int p = 0; p < papers.count; p++)
		for (int i = 0; i < papers.list[p].count; i++) {
			const struct experiment *e = &papers.list[p].list[i];

			if (!strncmp(e->program, "rg_verbs", strlen("rg_verbs")))
				continue;
			assert_non_null(json_object_get(e->options, "rendezvous"));
			if (strcmp(e->program, "rg_latency") && strcmp(e->program, "rg_bw") &&
			    strcmp(e->program, "rg_bibw"))
				assert_non_null(json_object_get(e->options, "coll"));
			messages++;
		}
	assert_true(messages >= 16);
	experiment_free(&papers);
	setenv("RAILGAUGE_DATA", dir, 1);
}

static void test_files(void **state)
{
	char other[SCRATCH_PATH + 16];

	unlink(path);
	refused("no papers' experiments");
	assert_int_equal(mkdir(path, 0777), 0);
	refused("p1.json: cannot be read: Is a directory");
	rmdir(path);
	assert_int_equal(symlink("/dev/zero", path), 0);
	refused("p1.json: cannot be read: ");
	unlink(path);
	assert_int_equal(symlink("nowhere", path), 0);
	refused("p1.json: cannot be read: No such file");
	unlink(path);
	/* Other files are no papers. */
	snprintf(other, sizeof(other), "%s/p1-x.json", dir);
	assert_int_equal(symlink("nowhere", other), 0);
	refused("no papers' experiments");
	unlink(other);
	setenv("RAILGAUGE_DATA", dir, 1);
	strcat(dir, "x");
	refused("experiments cannot be read: No such file");
	dir[strlen(dir) - 1] = '\0';
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_p1), cmocka_unit_test(test_free_keys),
		cmocka_unit_test(test_scale),
		cmocka_unit_test(test_point_of_anything), cmocka_unit_test(test_short_buffers),
		cmocka_unit_test(test_damaged), cmocka_unit_test(test_mutants),
		cmocka_unit_test(test_files), cmocka_unit_test(test_pinned),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
