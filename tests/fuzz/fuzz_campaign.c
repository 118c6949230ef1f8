/* fuzz_campaign.c - the reader of journals on journals whose bytes were changed. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "report/campaign.h"
#include "util/err.h"

const unsigned fuzz_rounds = 40000;

static const char *const seeds[] = {
	"{\"type\":\"campaign\",\"version\":1,\"preset\":\"quick\",\"launches\":2,\"seed\":7,"
	"\"builds\":[{\"name\":\"\",\"dir\":\".\"}],\"programs\":[{\"name\":\"rg_bw\"}]}\n"
	"{\"type\":\"launch\",\"index\":0,\"build\":\"\",\"program\":\"rg_bw\",\"launch\":0,"
	"\"record\":\"records/rg_bw.000.jsonl\",\"exit\":0,\"seconds\":1.5}\n"
	"{\"type\":\"launch\",\"index\":1,\"build\":\"\",\"program\":\"rg_bw\",\"launch\":0,"
	"\"record\":\"records/../a\",\"exit\":0,\"seconds\":1.5}\n",
	"{\"type\":\"campaign\",\"version\":1,\"launches\":3,\"interleaved\":true,"
	"\"builds\":[{\"name\":\"a\"},{\"name\":\"b\"}],\"programs\":[{\"name\":\"p\"},{\"name\":\"q\"}]}\n"
	"{\"type\":\"launch\",\"build\":\"a\",\"program\":\"p\",\"launch\":0,\"record\":\"x\",\"exit\":4}\n"
	"{\"type\":\"launch\",\"build\":\"b\",\"program\":\"q\",\"launch\":2,\"record\":\"y\",\"exit\":0}\n"
	"{\"type\":\"launch\",\"build\":\"a\",\"program\":\"p\",\"launch\":0,\"record\":\"z\",\"exit\":0}\n"
	"{\"type\":\"lau",
};

size_t fuzz_seed(unsigned index, unsigned char *to, size_t most)
{
	size_t length;

	if (index >= sizeof(seeds) / sizeof(seeds[0]))
		return 0;
	length = strlen(seeds[index]);
	memcpy(to, seeds[index], length < most ? length : most);
	return length;
}

static void must(bool holds)
{
	if (!holds)
		abort();
}

/* What the reader promises of a launch. */
static void launch_check(const struct campaign *c, const struct campaign_launch *l)
{
	char *path = campaign_record_path(c, l);

	must(path && strncmp(path, "d/", 2) == 0 && path[2] != '/' && path[2]);
	must(!strstr(path, "/../") && strcmp(path + strlen(path) - 3, "/.."));
	must(campaign_has_build(c, l->build) && l->launch >= 0);
	must(campaign_find(c, l->build, l->program, l->launch) == l);
	free(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct campaign c;
	int rc;

	rg_set_quiet(true);
	rc = campaign_parse("d", (const char *)data, size, &c);
	must(rc == 0 || rc == -EINVAL);
	if (rc)
		return 0;
	must(c.plan && c.launches > 0 && c.whole_bytes <= size && c.torn == (c.whole_bytes < size));
	must(c.whole_bytes && data[c.whole_bytes - 1] == '\n');
	for (size_t i = 0; i < c.launch_count; i++)
		launch_check(&c, &c.launch[i]);
	campaign_free(&c);
	return 0;
}
