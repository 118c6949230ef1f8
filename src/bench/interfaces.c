/*
 * interfaces.c - the network interfaces that carry native messages.
 *
 * Each turn of the native way reads all counters at its begin and end, outside of timed samples:
 * some microseconds on open files.
 */
#include "bench/interfaces.h"
#include "bench/hosts.h"

#include <glob.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <fcntl.h>

enum { INTERFACES_MAX = 64, NAME = 48 };

/* InfiniBand counts words of four bytes. */
static const struct kind {
	const char *name, *pattern, *sent, *received;
	unsigned unit;
	int skip;		/* components of the path before the name */
} kinds[] = {
	{ "net", "/sys/class/net/*/statistics", "tx_bytes", "rx_bytes", 1, 3 },
	{ "infiniband", "/sys/class/infiniband/*/ports/*/counters", "port_xmit_data",
	  "port_rcv_data", 4, 3 },
};
enum { SENT, RECEIVED, SIDES };

static struct interface {
	char name[NAME];
	const struct kind *kind;
	int fd[SIDES];
	uint64_t seen[SIDES], moved[SIDES];
} interface[INTERFACES_MAX];
static int interface_count;
static bool reading, in_turn;

/* ---- Counters ------------------------------------------------------------------- */

/* "lo", "mlx5_0:1" */
static void name_set(struct interface *f, const char *path)
{
	char device[32] = "", port[8] = "";

	if (sscanf(path, "/sys/class/infiniband/%31[^/]/ports/%7[^/]", device, port) == 2)
		snprintf(f->name, sizeof(f->name), "%s:%s", device, port);
	else if (sscanf(path, "/sys/class/net/%31[^/]", device) == 1)
		snprintf(f->name, sizeof(f->name), "%s", device);
}

static int counter_open(const char *directory, const char *name)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static void interface_add(const struct kind *kind, const char *directory)
{
	struct interface *f = &interface[interface_count];

	if (interface_count == INTERFACES_MAX)
		return;
	*f = (struct interface){ .kind = kind };
	name_set(f, directory);
	f->fd[SENT] = counter_open(directory, kind->sent);
	f->fd[RECEIVED] = counter_open(directory, kind->received);
	if (f->fd[SENT] >= 0 && f->fd[RECEIVED] >= 0) {
		interface_count++;
		return;
	}
	for (int side = 0; side < SIDES; side++)
		if (f->fd[side] >= 0)
			close(f->fd[side]);
}

static uint64_t counter_read(const struct interface *f, int side)
{
	char text[32];
	ssize_t n = pread(f->fd[side], text, sizeof(text) - 1, 0);

	if (n <= 0)
		return f->seen[side];
	text[n] = '\0';
	return strtoull(text, NULL, 10) * f->kind->unit;
}

static void counters_take(bool add)
{
	for (int i = 0; i < interface_count; i++)
		for (int side = 0; side < SIDES; side++) {
			struct interface *f = &interface[i];
			uint64_t now = counter_read(f, side);

			if (add && now > f->seen[side])
				f->moved[side] += now - f->seen[side];
			f->seen[side] = now;
		}
}

/* ---- Turns ---------------------------------------------------------------------- */

static bool has_native(const struct bench_job *job)
{
	for (int w = 0; w < job->where.way_count; w++)
		if (job->where.way[w].id == RAILMPI_NATIVE && !job->def->carrier)
			return true;
	return false;
}

void interfaces_open(const struct bench_job *job)
{
	reading = has_native(job) && hosts_leads(job);
	for (size_t k = 0; reading && k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		glob_t found;

		if (glob(kinds[k].pattern, 0, NULL, &found) == 0) {
			for (size_t i = 0; i < found.gl_pathc; i++)
				interface_add(&kinds[k], found.gl_pathv[i]);
			globfree(&found);
		}
	}
}

void interfaces_turn(bool native)
{
	if (!reading || native == in_turn)
		return;
	counters_take(in_turn);
	in_turn = native;
}

/* ---- The record ----------------------------------------------------------------- */

static json_t *mine_json(void)
{
	json_t *list = json_array();

	interfaces_turn(false);
	for (int i = 0; i < interface_count; i++) {
		struct interface *f = &interface[i];

		if (f->moved[SENT] || f->moved[RECEIVED])
			json_array_append_new(list, json_pack("{s:s, s:s, s:i, s:I, s:I}",
				"name", f->name, "kind", f->kind->name, "hosts", 1,
				"sent_bytes", (json_int_t)f->moved[SENT],
				"received_bytes", (json_int_t)f->moved[RECEIVED]));
		close(f->fd[SENT]);
		close(f->fd[RECEIVED]);
	}
	interface_count = 0;
	reading = false;
	return list;
}

/* The object of the same interface in the list, or NULL. */
static json_t *entry_of(json_t *list, const json_t *of)
{
	json_t *entry;
	size_t i;

	json_array_foreach(list, i, entry)
		if (json_equal(json_object_get(entry, "name"), json_object_get(of, "name")) &&
		    json_equal(json_object_get(entry, "kind"), json_object_get(of, "kind")))
			return entry;
	return NULL;
}

static void entry_add(json_t *entry, const json_t *more)
{
	static const char *const sums[] = { "hosts", "sent_bytes", "received_bytes" };

	for (size_t i = 0; i < sizeof(sums) / sizeof(sums[0]); i++)
		json_object_set_new(entry, sums[i], json_integer(
			json_integer_value(json_object_get(entry, sums[i])) +
			json_integer_value(json_object_get(more, sums[i]))));
}

json_t *interfaces_close(const struct bench_job *job)
{
	json_t *all, *sums, *host, *one;
	size_t i, k;

	if (!has_native(job))
		return NULL;
	all = hosts_collect(job, hosts_leads(job) ? mine_json() : NULL);
	if (!all)
		return NULL;
	sums = json_array();
	json_array_foreach(all, i, host)
		json_array_foreach(host, k, one) {
			json_t *entry = entry_of(sums, one);

			if (entry)
				entry_add(entry, one);
			else
				json_array_append(sums, one);
		}
	json_decref(all);
	return json_pack("{s:b, s:o}", "alone", job->where.way_count == 1, "interfaces", sums);
}
