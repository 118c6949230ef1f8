/* test_text.c - text that grows, files that are read whole. */
#include "cmocka_all.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/text.h"

static void test_add(void **state)
{
	char text[8] = "";

	(void)state;
	rg_text_add(text, sizeof(text), "%s", "ab");
	rg_text_add(text, sizeof(text), "%d", 34);
	assert_string_equal(text, "ab34");
	rg_text_add(text, sizeof(text), "%s", "56789");
	assert_string_equal(text, "ab34567");
	rg_text_add(text, sizeof(text), "more");
	assert_string_equal(text, "ab34567");
}

static void squeezed(const char *from, const char *to)
{
	char text[64];

	snprintf(text, sizeof(text), "%s", from);
	rg_text_squeeze(text);
	assert_string_equal(text, to);
}

static void test_squeeze(void **state)
{
	(void)state;
	squeezed("MPICH Version:    \t4.0.2", "MPICH Version: 4.0.2");
	squeezed("\t two words\n ", "two words");
	squeezed("a b", "a b");
	squeezed(" \t", "");
	squeezed("", "");
}

static void write_file(const char *path, const char *bytes, size_t count)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, count, f), count);
	assert_int_equal(fclose(f), 0);
}

static void refused(const char *path, size_t most, int error)
{
	errno = 0;
	assert_null(rg_file_read(path, most, NULL));
	assert_int_equal(errno, error);
}

static void test_file(void **state)
{
	char place[] = "/tmp/test_text-XXXXXX", path[64], *text;
	size_t bytes = 99;

	(void)state;
	assert_non_null(mkdtemp(place));
	snprintf(path, sizeof(path), "%s/file", place);
	refused(path, 10, ENOENT);
	write_file(path, "", 0);
	text = rg_file_read(path, 1, &bytes);
	assert_string_equal(text, "");
	assert_int_equal(bytes, 0);
	free(text);
	write_file(path, "a\0bc", 4);
	text = rg_file_read(path, 5, &bytes);
	assert_int_equal(bytes, 4);
	assert_memory_equal(text, "a\0bc", 5);
	free(text);
	refused(path, 4, EFBIG);
	refused(place, 10, EISDIR);
	refused("/dev/null", 10, EINVAL);
	assert_int_equal(unlink(path), 0);
	/* Nobody writes to it. */
	assert_int_equal(mkfifo(path, 0600), 0);
	refused(path, 10, EINVAL);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(place), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_add), cmocka_unit_test(test_squeeze),
					   cmocka_unit_test(test_file) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
