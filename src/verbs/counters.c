/* counters.c - the counters of a port, as the kernel exports them in sysfs. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verbs/vrb.h"

/*
 * Counters of the performance management agent are as wide as their field in its
 * answer, and stay at their end.  Ports that count traffic in 64 bits show that
 * under the same names: they pass through this value in a moment, if ever.
 */
static const struct { const char *name; uint64_t end; } narrow[] = {
	{ "symbol_error", 0xffff },
	{ "link_error_recovery", 0xff },
	{ "link_downed", 0xff },
	{ "port_rcv_errors", 0xffff },
	{ "port_rcv_remote_physical_errors", 0xffff },
	{ "port_rcv_switch_relay_errors", 0xffff },
	{ "port_xmit_discards", 0xffff },
	{ "port_xmit_constraint_errors", 0xff },
	{ "port_rcv_constraint_errors", 0xff },
	{ "local_link_integrity_errors", 0xf },
	{ "excessive_buffer_overrun_errors", 0xf },
	{ "VL15_dropped", 0xffff },
	{ "port_xmit_data", 0xffffffff },
	{ "port_rcv_data", 0xffffffff },
	{ "port_xmit_packets", 0xffffffff },
	{ "port_rcv_packets", 0xffffffff },
	{ "port_xmit_wait", 0xffffffff },
};

/*
 * Causes of retransmission, each counted once: the requester's timer ran out, or the
 * responder reported a missing packet (sequence) or that it is not ready (RNR).
 */
static const char *const retries[] = {
	/* mlx5 */
	"local_ack_timeout_err", "packet_seq_err", "implied_nak_seq_err", "rnr_nak_retry_err",
	/* rxe; its completer counts timeouts and sequence errors together */
	"completer_retry_err", "rcvd_rnr_err",
	/* mlx4: timeouts, sequence errors and RNR that the requester saw */
	"sq_num_to", "sq_num_oos", "sq_num_rnr",
	/* bnxt_re; irdma and hns count none of RoCE */
	"to_retransmits", "seq_err_naks_rcvd", "rnr_naks_rcvd",
};

bool vrb_counter_is_retry(const char *name)
{
	for (size_t i = 0; i < sizeof(retries) / sizeof(retries[0]); i++)
		if (strcmp(name, retries[i]) == 0)
			return true;
	return false;
}

static bool at_end(const char *name, uint64_t value)
{
	for (size_t i = 0; i < sizeof(narrow) / sizeof(narrow[0]); i++)
		if (strcmp(name, narrow[i].name) == 0 && value == narrow[i].end)
			return true;
	return value == UINT64_MAX;
}

static const char pma[] = "counters", driver[] = "hw_counters";

/* A value is a decimal number and a newline, unlike "N/A (no PMA)". */
static bool value_read(const char *path, uint64_t *value)
{
	FILE *f = fopen(path, "re");
	char text[32], *end;
	size_t n;

	if (!f)
		return false;
	n = fread(text, 1, sizeof(text) - 1, f);
	if (ferror(f))
		n = 0;
	fclose(f);
	text[n] = '\0';
	if (!isdigit((unsigned char)text[0]))
		return false;
	errno = 0;
	*value = strtoull(text, &end, 10);
	return !errno && (*end == '\0' || strcmp(end, "\n") == 0);
}

static int counter_is_visible(const struct dirent *entry)
{
	/* lifespan is a setting: how long the kernel keeps values before it asks the device. */
	return entry->d_name[0] != '.' && strcmp(entry->d_name, "lifespan") != 0;
}

static int directory_read(const char *port, const char *which, vrb_counter_fn *each, void *user)
{
	char dir[PATH_MAX], path[PATH_MAX];
	struct dirent **entry;
	int n, count = 0;

	snprintf(dir, sizeof(dir), "%s/%s", port, which);
	n = scandir(dir, &entry, counter_is_visible, alphasort);
	for (int i = 0; i < n; i++) {
		const char *name = entry[i]->d_name;
		uint64_t value;

		if ((size_t)snprintf(path, sizeof(path), "%s/%s", dir, name) < sizeof(path) &&
		    value_read(path, &value)) {
			each(user, name, which == pma && at_end(name, value) ? NULL : &value);
			count++;
		}
		free(entry[i]);
	}
	if (n >= 0)
		free(entry);
	return count;
}

int vrb_counters_read(const char *port, vrb_counter_fn *each, void *user)
{
	return directory_read(port, pma, each, user) + directory_read(port, driver, each, user);
}

int vrb_netdev_counters_read(const char *netdev, vrb_counter_fn *each, void *user)
{
	char dir[PATH_MAX];

	snprintf(dir, sizeof(dir), "/sys/class/net/%s", netdev);
	return directory_read(dir, "statistics", each, user);
}
