/* test_secret.c - where the secret is from, who may see its file, and the range of ports. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmocka_all.h"
#include "../scratch.h"
#include "softhca/link/wire/ports.h"
#include "softhca/link/wire/secret.h"
#include "softhca/softhca.h"

enum { AT_ONCE = 8, NOBODY = 65534 };

#define DIGITS "00112233445566778899aabbccddeeffFFEEDDCCBBAA99887766554433221100"

static char directory[SCRATCH_PATH];
static char path[SCRATCH_PATH + 64];

static int set_up(void **state)
{
	if (scratch_make(directory))
		return -1;
	unsetenv("SOFTHCA_SECRET_FILE");
	return setenv("HOME", directory, 1);
}

static int tear_down(void **state)
{
	return scratch_remove(directory);
}

static void write_file(const char *text, mode_t mode)
{
	FILE *f;

	snprintf(path, sizeof(path), "%s/given", directory);
	unlink(path);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(path, mode), 0);
	setenv("SOFTHCA_SECRET_FILE", path, 1);
}

/* A refusal names the place, and nothing of what is there. */
static void assert_refused(const char *given, int error, const char *word)
{
	unsigned char secret[HCA_SECRET_BYTES];

	assert_int_equal(hca_secret_load(given, secret), -error);
	assert_non_null(strstr(softhca_last_error(), word));
	assert_null(strstr(softhca_last_error(), "001122"));
	assert_null(strchr(softhca_last_error(), '\n'));
}

static void assert_is_digits(const unsigned char secret[HCA_SECRET_BYTES])
{
	for (unsigned i = 0; i < HCA_SECRET_BYTES; i++)
		assert_int_equal(secret[i], 0x11 * (i < 16 ? i : 31 - i));
}

static void test_given(void **state)
{
	unsigned char secret[HCA_SECRET_BYTES];

	assert_int_equal(hca_secret_load(DIGITS, secret), 0);
	assert_is_digits(secret);
	assert_refused("", EINVAL, "64 hexadecimal digits");
	assert_refused("00112233", EINVAL, "64 hexadecimal digits");
	assert_refused(DIGITS "0", EINVAL, "64 hexadecimal digits");
	assert_refused("g0112233445566778899aabbccddeeffFFEEDDCCBBAA99887766554433221100", EINVAL,
		       "64 hexadecimal digits");
}

static void test_file(void **state)
{
	unsigned char secret[HCA_SECRET_BYTES];

	write_file(DIGITS "\n", 0600);
	assert_int_equal(hca_secret_load(NULL, secret), 0);
	assert_is_digits(secret);
	write_file(DIGITS, 0400);
	assert_int_equal(hca_secret_load(NULL, secret), 0);
	write_file(DIGITS "\r\n", 0600);
	assert_int_equal(hca_secret_load(NULL, secret), 0);
	write_file("", 0600);
	assert_refused(NULL, EINVAL, path);
	write_file(DIGITS "\n" DIGITS "\n", 0600);
	assert_refused(NULL, EINVAL, path);
	write_file("00112233\n", 0600);
	assert_refused(NULL, EINVAL, path);
	setenv("SOFTHCA_SECRET_FILE", "/nowhere/at/all", 1);
	assert_refused(NULL, ENOENT, "/nowhere/at/all");
	setenv("SOFTHCA_SECRET_FILE", directory, 1);
	assert_refused(NULL, EINVAL, "no regular file");
}

static void test_permissions(void **state)
{
	static const mode_t others[] = { 0640, 0620, 0610, 0604, 0602, 0601, 0666 };

	for (unsigned i = 0; i < sizeof(others) / sizeof(*others); i++) {
		write_file(DIGITS "\n", others[i]);
		assert_refused(NULL, EPERM, "accepted: 0600");
	}
	if (geteuid()) {
		printf("not root: another user's file is not tried\n");
		return;
	}
	write_file(DIGITS "\n", 0600);
	assert_int_equal(chown(path, NOBODY, NOBODY), 0);
	assert_refused(NULL, EPERM, "another user");
}

static void default_path(void)
{
	snprintf(path, sizeof(path), "%s/.softhca/secret", directory);
}

static void assert_mode(const char *of, mode_t mode)
{
	struct stat st;

	assert_int_equal(stat(of, &st), 0);
	assert_int_equal(st.st_mode & 0777, mode);
}

/* The first use makes it, whatever the umask; the second finds it. */
static void test_first_use(void **state)
{
	unsigned char first[HCA_SECRET_BYTES], second[HCA_SECRET_BYTES];
	static const unsigned char zero[HCA_SECRET_BYTES];
	const mode_t mask = umask(0);

	assert_int_equal(hca_secret_load(NULL, first), 0);
	umask(mask);
	default_path();
	assert_mode(path, 0600);
	assert_int_equal(hca_secret_load(NULL, second), 0);
	assert_memory_equal(first, second, sizeof(first));
	assert_memory_not_equal(first, zero, sizeof(first));
	unlink(path);
	assert_int_equal(hca_secret_load(NULL, second), 0);
	assert_memory_not_equal(first, second, sizeof(first));
	assert_int_equal(chmod(path, 0644), 0);
	assert_refused(NULL, EPERM, path);
}

/* Processes that begin at once read one secret. */
static void load_and_tell(int go, int tell)
{
	unsigned char secret[HCA_SECRET_BYTES];
	char byte;

	if (read(go, &byte, 1) != 0 || hca_secret_load(NULL, secret) ||
	    write(tell, secret, sizeof(secret)) != sizeof(secret))
		_exit(1);
	_exit(0);
}

static void load_at_once(void)
{
	unsigned char first[HCA_SECRET_BYTES], other[HCA_SECRET_BYTES];
	int go[2], tell[2], status;

	assert_int_equal(pipe(go) | pipe(tell), 0);
	for (int i = 0; i < AT_ONCE; i++) {
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (pid == 0) {
			close(go[1]);
			load_and_tell(go[0], tell[1]);
		}
	}
	close(go[0]);
	close(go[1]);			/* now */
	for (int i = 0; i < AT_ONCE; i++) {
		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	assert_int_equal(read(tell[0], first, sizeof(first)), sizeof(first));
	for (int i = 1; i < AT_ONCE; i++) {
		assert_int_equal(read(tell[0], other, sizeof(other)), sizeof(other));
		assert_memory_equal(first, other, sizeof(first));
	}
	close(tell[0]);
	close(tell[1]);
}

static unsigned files_in(const char *of)
{
	char command[SCRATCH_PATH + 32];
	unsigned count = 0;
	FILE *list;

	snprintf(command, sizeof(command), "ls -A '%s' | wc -l", of);
	list = popen(command, "r");
	assert_non_null(list);
	assert_int_equal(fscanf(list, "%u", &count), 1);
	pclose(list);
	return count;
}

static void test_at_once(void **state)
{
	char under[SCRATCH_PATH + 16];

	default_path();
	snprintf(under, sizeof(under), "%s/.softhca", directory);
	for (int i = 0; i < 20; i++) {
		unlink(path);
		load_at_once();
		assert_int_equal(files_in(under), 1);
		assert_mode(path, 0600);
	}
}

static void test_no_home(void **state)
{
	char file[SCRATCH_PATH + 16];
	FILE *f;

	setenv("HOME", "relative", 1);
	assert_refused(NULL, ENOENT, "SOFTHCA_SECRET_FILE");
	setenv("HOME", "/nowhere/at/all", 1);
	assert_refused(NULL, ENOENT, "/nowhere/at/all/.softhca: ");
	assert_refused(NULL, ENOENT, "(SOFTHCA_SECRET_FILE names a file)");
	snprintf(file, sizeof(file), "%s/file", directory);
	f = fopen(file, "w");
	assert_non_null(f);
	fclose(f);
	setenv("HOME", file, 1);
	assert_refused(NULL, ENOTDIR, file);
}

static void assert_ports(const char *text, unsigned first, unsigned last)
{
	uint16_t from, to;

	assert_int_equal(hca_ports_parse(text, &from, &to), 0);
	assert_int_equal(from, first);
	assert_int_equal(to, last);
}

static void test_ports(void **state)
{
	static const char *const refused[] = {
		"0-5", "x", "5-4", "-", "1-", "-1", "1-65536", "65536", " 1", "1 ", "1-2-3", "+1",
		"0x10", "99999999999999999999"
	};
	uint16_t from = 7, to = 8;

	assert_ports(NULL, 18600, 18855);
	assert_ports("", 18600, 18855);
	assert_ports("20000", 20000, 20000);
	assert_ports("1-65535", 1, 65535);
	for (unsigned i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
		assert_int_equal(hca_ports_parse(refused[i], &from, &to), -EINVAL);
		assert_non_null(strstr(softhca_last_error(), "SOFTHCA_PORTS"));
	}
	assert_int_equal(from, 7);
	assert_int_equal(to, 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_given, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_file, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_permissions, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_first_use, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_at_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_no_home, set_up, tear_down),
		cmocka_unit_test(test_ports),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
