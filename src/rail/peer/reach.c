/* reach.c - see reach.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>

#include "util/clock.h"
#include "util/err.h"
#include "rail/peer/peer_failure.h"
#include "rail/peer/reach.h"
#include "verbs/vrb.h"

bool rail_reach_due(struct rail_reach *r, uint64_t now_ns)
{
	if (!r->due_ns)
		r->due_ns = now_ns + REACH_FIRST_NS;
	if (!rg_reached(r->due_ns, now_ns))
		return false;
	if (now_ns - r->due_ns > REACH_GAP_NS)
		r->cut_ns = r->silent_ns = 0;
	if (!r->silent_ns)
		r->silent_ns = now_ns;
	r->due_ns = now_ns + REACH_EVERY_NS;
	return true;
}

bool rail_reach_is_lost(struct rail_reach *r, int rc, uint64_t now_ns, uint64_t limit_ns)
{
	if (!rc)
		r->cut_ns = 0;
	else if (!r->cut_ns)
		r->cut_ns = now_ns;
	/* Silence counts from a question on, and none is asked over a path that is cut. */
	if (rc)
		r->silent_ns = 0;
	return rc == -ECONNRESET || rc == -ESHUTDOWN || (rc && rg_reached(r->cut_ns + limit_ns, now_ns));
}

bool rail_reach_tell(struct rail_reach *r, uint64_t now_ns)
{
	if (r->told || !r->silent_ns || !rg_reached(r->silent_ns + REACH_TELL_NS, now_ns))
		return false;
	r->told = true;
	return true;
}

bool rail_reach_is_silent(const struct rail_reach *r, uint64_t now_ns)
{
	return r->silent_ns && rg_reached(r->silent_ns + REACH_SILENCE_NS, now_ns);
}

const char *rail_net_address(const unsigned char *gid, char text[INET6_ADDRSTRLEN])
{
	const bool ipv4 = IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)gid);

	inet_ntop(ipv4 ? AF_INET : AF_INET6, ipv4 ? gid + 12 : gid, text, INET6_ADDRSTRLEN);
	return text;
}

const char *rail_reach_ends(const struct vrb_port *port, const struct vrb_ud_address *there,
			    char buf[REACH_ENDS_BYTES])
{
	char own[INET6_ADDRSTRLEN] = "", theirs[INET6_ADDRSTRLEN] = "";

	if (port->net) {
		snprintf(buf, REACH_ENDS_BYTES, "%s %s; there %s", port->netdev, rail_net_address(port->gid.raw, own),
			 rail_net_address(there->gid, theirs));
		return buf;
	}
	inet_ntop(AF_INET6, port->gid.raw, own, sizeof(own));
	inet_ntop(AF_INET6, there->gid, theirs, sizeof(theirs));
	snprintf(buf, REACH_ENDS_BYTES, "LID %u, GID %s; there LID %u, GID %s", port->lid, own, there->lid, theirs);
	return buf;
}

#define REACH_ADVICE(more) "check partition, VLAN, UDP port 4791 in filters, " more "and that both ports are of " \
	"one fabric, or leave the rail out (--rails)"

const char *rail_reach_advice(const struct vrb_port *port)
{
	return port->one_network ? REACH_ADVICE(VRB_ONE_NETWORK_ADVICE ", ") : REACH_ADVICE("");
}

const char *rail_link_advice(const struct vrb_port *port)
{
	if (port->net)
		return "check the interfaces, routes and firewalls of both hosts, or leave the rail out (--soft net=)";
	return port->one_network ? RAIL_ADVICE_AND(", " VRB_ONE_NETWORK_ADVICE) : RAIL_ADVICE;
}

void rail_reach_warn(unsigned peer, const struct vrb_port *port, const struct vrb_ud_address *to)
{
	char ends[REACH_ENDS_BYTES];

	rg_warn("peer %u does not answer over %s (%s): it is stopped, or %s", peer, port->name,
		rail_reach_ends(port, to, ends), rail_reach_advice(port));
}
