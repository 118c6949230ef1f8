/* fuzz_spec.c - the spec parser on arbitrary input. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "softhca/model/spec.h"

static const char *const seeds[] = {
	"ideal", "rate=1GB/s,latency=2us", "ports=2,hcas=8,mtu=256,window=7,outstanding=9,reads=1",
	"bus=781MB/s/1199MB/s:half,cap=1486MB/s", "msg=100ns,pkt=1.5us,rate=8Gb/s",
	"loss=0.01,jitter=1us,seed=3,down=0/soft0:1@1ms,up=0/soft0:1@2ms", "rate=none,bus=none",
	"down=1023/soft0:2@1us+0/soft0:1@0.5s+0/soft0:1@0,up=none,cqe=1us", "mt25208-pcie,ports=4",
	"wan-8600mi,loss=0.999999999,seed=4294967295", "hcas=8,ports=8,up=700/soft7:8@1s",
	"net=eth0+eth1,rate=1Gb/s+250MB/s", "net=10.0.1.7/24+10.0.2.0/24,reads=4", "net=none",
	"order=rts/never,place=late,srq=0,ud=no,uc=no,inline=96,cqmem=8MiB,rdatom=1,like=mlx5-vf/mlx4",
	"link=ib+eth,lid=0+9,prefix=1/2,grh=required,pkeys=ffff:8001+1/2,gids=gap:ll.v1:ip4.v2!+ip6.v2",
	"fatal=0/soft0:1@1ms,event=sm:0/soft0:1@1ms+gid:1/soft0:2@2s,reach=0/soft0:1-1/soft0:1,qps=3",
	"ports=3,net=fd00::1/64+fe80::1+192.0.2.1", "net=::/0+0.0.0.0/0,seed=1",
};

const unsigned fuzz_rounds = 20000;

size_t fuzz_seed(unsigned index, unsigned char *to, size_t most)
{
	return fuzz_seed_text(seeds, sizeof(seeds) / sizeof(*seeds), index, to);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), why[HCA_WHY_MAX], described[160];
	struct hca_spec spec, again;
	uint32_t i;
	int rc;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	memset(why, 'x', sizeof(why));
	rc = hca_spec_parse(text, &spec, why, sizeof(why));
	if (rc) {
		if (!memchr(why, '\0', sizeof(why)) || strncmp(why, "spec: ", 6) != 0)
			abort();
	} else {
		/* Accepted text is valid, and its canonical form has the same meaning. */
		if (spec.nets && (spec.nets != spec.ports || spec.hcas != 1 || spec.timed ||
				  spec.schedule.count || hca_spec_nodes(&spec) != 1))
			abort();
		if (spec.ports < 1 || spec.ports > HCA_PORTS_MAX || spec.hcas < 1 ||
		    spec.hcas > HCA_HCAS_MAX || spec.mtu < 256 || spec.mtu > 4096 ||
		    !spec.reads || spec.loss_ppb > HCA_ALL_PPB)
			abort();
		for (i = 0; i < spec.schedule.count; i++)
			if (!hca_spec_has_port(&spec, &spec.schedule.change[i].at) ||
			    (i && spec.schedule.change[i].when_ns <
				  spec.schedule.change[i - 1].when_ns))
				abort();
		if (hca_spec_parse(spec.text, &again, why, sizeof(why)) ||
		    strcmp(spec.text, again.text) != 0)
			abort();
		hca_spec_describe(&spec, described, sizeof(described));
	}
	free(text);
	return 0;
}
