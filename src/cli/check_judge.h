/* check_judge.h - rules over facts: pure. */
#ifndef CLI_CHECK_JUDGE_H
#define CLI_CHECK_JUDGE_H

#include <jansson.h>

#include "cli/check_rules.h"

/* Known facts; NULL: nothing of that kind.  Members that are absent or of another type are unknown. */
struct check_facts {
	const json_t *nodes;		/* array of {"topo": object of topo_json.c} */
	/* Earlier values of error counters: {host: {port: {counter: value, null at its end}}}. */
	const json_t *before;
	const json_t *kept;		/* array of objects of topo_json.c, at acceptance */
	/*
	 * From records (check_records.c):
	 *	{"stripe": [{"of", "stripe", "single", "rails"}],
	 *	 "rail": [{"node", "rail", "side": "sends" or "receives", "value", "median"}],
	 *	 "medians": [{"of", "was", "is", "worse": fraction, below 0: better}]}
	 * value null: nothing came through; median 1: value is a share.
	 */
	const json_t *measured;
};

/*
 * Judge: {"type": "check", "verdict": "pass" or "fail", "nodes": "n[1-9]",
 *	   "rules": [{"rule": text, "verdict": "pass", "fail" or "unknown", "judged": number of ports,
 *		      nodes or values, "unknown": number of those that nothing is known of,
 *		      "findings": [{"node", "port", "text"}]}]}
 * node and port are null where a finding is about more.  A rule that knows of nothing to judge is
 * unknown, and fails nothing.  A new reference; NULL: no memory.
 */
json_t *check_judge(const struct check_rules *rules, const struct check_facts *facts);

/* Error counters of nodes, as `before` has them.  A new reference. */
json_t *check_counters(const json_t *nodes);

#endif
