/* profile.c - names for specs: built-in ones and those from files. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softhca/model/profile.h"
#include "softhca/model/spec.h"
#include "util/text.h"

#ifndef RG_SYSCONFDIR
#define RG_SYSCONFDIR "/etc"
#endif

/*
 * Sources of the numbers.  P1, P4 and P5 are the papers that doc/measuring.md names;
 * `railgauge reproduce p1` compares each profile with their figures.  Calibrated values are
 * marked here, and in data/ the figures that gave them; each profile has more figures than
 * calibrated keys (tests/report/test_experiment.c).  All other values follow from the model.
 *
 * mt25208-pcie, mt23108-pcix (P1, verbs, two ports, 4X SDR):
 *	rate	1 GB/s: 4 lanes of 2.5 Gb/s, 8b/10b
 *	mtu	1024, which subnet managers of that generation chose for Tavor
 *	pkt	calibrated on PCI Express, figure 6: 972 MB/s on one port.  1024 bytes then
 *		take 29 ns more, which is 26 bytes of LRH, BTH, ICRC and VCRC and 3 of framing
 *		at 1 GB/s
 *	latency	calibrated, figure 3: an RDMA write of a few bytes, 3.8 and 4.8 us, less the
 *		37 ns of its packet
 *	cqe	calibrated, figure 2: a SEND with its completion in the CQ, 4.8 and 6.9 us, less
 *		the write
 *	reads	4: the driver's default (mthca, rdb_per_qp)
 *	order	timed: the paper's MPI polls memory for small messages (figure 12)
 *    PCI Express x8, 2 GB/s per direction:
 *	bus	read calibrated, figures 8 and 10: two ports, one way, 1486 MB/s with one pair
 *		of processes and 1500 with two (64-byte completions with 20 bytes around each
 *		and flow control make 1.49); write from the same arithmetic, 128 bytes and 20
 *		around them, and flow control: 1.7 GB/s.
 *		Read requests and acknowledgements in the other direction take none.
 *    PCI-X 64 bits 133 MHz, 1067 MB/s both directions together:
 *	bus	calibrated, figures 7 and 9: both ways, 946 MB/s on one port and 948 on two.
 *		Bursts of 512 bytes, 64 clocks, with 8 of address, attributes, turn-around and
 *		arbitration between them make 948 (7 to 9: 961 to 935)
 *	cap	calibrated, figure 6: 781 MB/s on one port, one way: the adapter's own reads
 *
 * mt23108-p5 (P5, MB = 2^20): the same adapter in another host:
 *	latency		calibrated, figure 2: RDMA write 6.0 us
 *	cqe		calibrated, figures 2 and 9: SEND 7.8 us; the CQ instead of memory 1.8 us
 *	cap		calibrated, figure 3: 831 MB/s one way
 *	bus		as above
 * mt23108-pci66: the same in a 64-bit 66 MHz slot: the same bus arithmetic, 533 MB/s
 *	and 64 of 72 clocks.  Not calibrated.
 *
 * wan-0mi, wan-1400mi, wan-8600mi (P4, one port, 8 Gb/s, MTU 2048):
 *	latency	calibrated: the distance, 13 and 81.5 ms; wan-0mi: 5 us, ours, for a reference
 *	pkt	calibrated: UC, 941 MB/s at both distances (2048 bytes in 2176 ns)
 *	outstanding	calibrated: RC, 906 MB/s with messages of 1 MB over 8600 miles
 *	reads	4, as above
 *
 * fdr-2port (P3): 4 lanes of 14.0625 Gb/s, 64b/66b, make 6.818 GB/s a port; 30 bytes of
 *	headers per packet.  One Gen3 x16 slot is 8 GT/s x 16 x 128/130 = 15.75 GB/s per
 *	direction, 256 bytes with 24 around them and some 2.5 % of flow control leave 14.0.
 *	Latency as ConnectX-6's below; nothing is calibrated.
 *
 * hdr-2port, hdr-1slot: ConnectX-6 by its data sheet: 2 x 200 Gb/s, less than 600
 *	ns, 215 million messages per second; 30 bytes of headers per packet.  One Gen4 x16
 *	slot is 16 GT/s x 16 x 128/130 = 31.5 GB/s per direction, 256 bytes with 24 around
 *	them and some 2.5 % of flow control leave 28.1.
 */
#define SDR2 "ports=2,rate=1GB/s,mtu=1024,pkt=29ns,reads=4,"
#define PCIX133 "bus=948MB/s/948MB/s:half"
#define PCI66 "bus=474MB/s/474MB/s:half"
#define WAN "ports=1,rate=1GB/s,mtu=2048,pkt=128ns,outstanding=142,reads=4,"
#define FDR2 "ports=2,rate=6818MB/s,latency=600ns,mtu=4096,pkt=4ns,msg=5ns,bus=14GB/s/14GB/s:full"
#define HDR2 "ports=2,rate=25GB/s,latency=600ns,mtu=4096,pkt=1ns,msg=5ns"

static const struct hca_profile own[] = {
	{ "ideal", "", "one adapter with two ports, untimed: as fast as this machine's memory" },
	{ "mt25208-pcie", SDR2 "order=timed,latency=3763ns,cqe=1us,bus=1493MB/s/1700MB/s:full",
	  "InfiniHost III Ex, two 4X SDR ports, PCI Express x8, 2004" },
	{ "mt23108-pcix", SDR2 "order=timed,latency=4763ns,cqe=2.1us,cap=781MB/s," PCIX133,
	  "InfiniHost, two 4X SDR ports, PCI-X 133 MHz, 2004" },
	{ "mt23108-p5", SDR2 "latency=5963ns,cqe=1.8us,cap=871MB/s," PCIX133,
	  "InfiniHost, PCI-X 133 MHz, in another host, 2003" },
	{ "mt23108-pci66", SDR2 "latency=5963ns,cqe=1.8us," PCI66,
	  "InfiniHost, PCI 64 bits 66 MHz; from the bus's clock, not from measurements" },
	{ "wan-0mi", WAN "latency=5us", "8 Gb/s in one place, to compare wan-1400mi with" },
	{ "wan-1400mi", WAN "latency=13ms", "8 Gb/s over 1400 miles, 2008" },
	{ "wan-8600mi", WAN "latency=81.5ms", "8 Gb/s over 8600 miles, 2008" },
	{ "fdr-2port", FDR2, "two 56 Gb/s ports in one PCI Express Gen3 x16 slot, 2014" },
	{ "hdr-2port", HDR2, "two 200 Gb/s ports, the host no limit" },
	{ "hdr-1slot", HDR2 ",bus=28.1GB/s/28.1GB/s:full",
	  "two 200 Gb/s ports in one PCI Express Gen4 x16 slot" },
};

enum { OWN = sizeof(own) / sizeof(*own), FILE_MAX = 1 << 20 };

void hca_profiles_own(struct hca_profiles *all)
{
	memset(all, 0, sizeof(*all));
	memcpy(all->item, own, sizeof(own));
	all->count = OWN;
}

const struct hca_profile *hca_profile_find(const struct hca_profiles *all, const char *name)
{
	unsigned i;

	for (i = 0; i < all->count; i++)
		if (strcmp(all->item[i].name, name) == 0)
			return &all->item[i];
	return NULL;
}

/* ---- A line -------------------------------------------------------------- */

static const char space[] = " \t\r";

/* The next word, terminated in place; NULL: none. */
static char *profile_word(char **at)
{
	char *begin = *at + strspn(*at, space);

	*at = begin + strcspn(begin, space);
	if (**at)
		*(*at)++ = '\0';
	return *begin ? begin : NULL;
}

static bool is_name(const char *text)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789_-.";

	return strlen(text) <= 40 && strspn(text, letters) == strlen(text);
}

/* Add the profile of a line; `what` receives the error, "" without one. */
static void add_line(struct hca_profiles *all, char *line, char *what, size_t size)
{
	static const char prefix[] = "spec: ";
	struct hca_profile *p = &all->item[all->count];
	char *end, why[HCA_WHY_MAX];
	struct hca_spec spec;

	what[0] = '\0';
	line[strcspn(line, "#")] = '\0';
	p->name = profile_word(&line);
	if (!p->name)
		return;
	p->spec = profile_word(&line);
	line += strspn(line, space);
	for (end = line + strlen(line); end > line && strchr(space, end[-1]); end--)
		end[-1] = '\0';
	p->summary = line;
	if (!is_name(p->name))
		snprintf(what, size, "'%.40s' is not a name (accepted: at most 40 letters, digits, "
			 "'_', '-', '.')", p->name);
	else if (!p->spec)
		snprintf(what, size, "%s: no spec (accepted: NAME SPEC [SUMMARY])", p->name);
	else if (hca_profile_find(all, p->name))
		snprintf(what, size, "%s: there is a profile of that name (accepted: a new one)",
			 p->name);
	else if (all->count + 1 == HCA_PROFILES_MAX)
		snprintf(what, size, "%s: too many (accepted: %d profiles)", p->name,
			 HCA_PROFILES_MAX - 1);
	else if (hca_spec_parse_with(all, p->spec, &spec, why, sizeof(why)))
		snprintf(what, size, "%s: %.*s", p->name, (int)size - 60, why + strlen(prefix));
	else
		all->count++;
}

/* ---- A file -------------------------------------------------------------- */

static int read_file(struct hca_profiles *all, const char *path, bool must, unsigned which,
		     char *why, size_t size)
{
	char *text = rg_file_read(path, FILE_MAX, NULL), *line, *next, what[HCA_WHY_MAX];
	unsigned number = 0;

	if (!text && !must && (errno == ENOENT || errno == ENOTDIR))
		return 0;
	if (!text) {
		snprintf(why, size, "spec: profiles %.200s: %s", path, strerror(errno));
		return -EINVAL;
	}
	all->text[which] = text;
	for (line = text; line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		number++;
		add_line(all, line, what, sizeof(what));
		if (!*what)
			continue;
		snprintf(why, size, "spec: %.100s:%u: %s", path, number, what);
		return -EINVAL;
	}
	return 0;
}

int hca_profiles_load(struct hca_profiles *all, char *why, size_t why_size)
{
	const char *named = getenv("SOFTHCA_PROFILES"), *config = getenv("XDG_CONFIG_HOME");
	const char *home = getenv("HOME");
	char path[PATH_MAX];
	int rc = 0;

	hca_profiles_own(all);
	if (named) {
		if (*named)
			rc = read_file(all, named, true, 0, why, why_size);
	} else {
		if (config && *config)
			snprintf(path, sizeof(path), "%s/softhca/profiles", config);
		else
			snprintf(path, sizeof(path), "%s/.config/softhca/profiles", home ? home : "");
		rc = read_file(all, path, false, 1, why, why_size);
		if (!rc)
			rc = read_file(all, RG_SYSCONFDIR "/softhca/profiles", false, 2, why,
				       why_size);
	}
	if (rc)
		hca_profiles_free(all);
	return rc;
}

void hca_profiles_free(struct hca_profiles *all)
{
	unsigned i;

	for (i = 0; i < sizeof(all->text) / sizeof(*all->text); i++)
		free(all->text[i]);
	memset(all->text, 0, sizeof(all->text));
	all->count = 0;
}
