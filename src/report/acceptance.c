/*
 * acceptance.c - the text view of an acceptance.
 *
 *	# heat map: rates relative to the rail's level, sending/receiving; errors of the port
 *	# level            12041.22 MB/s      12038.75 MB/s
 *	# n13                1.00/0.99          1.01/1.00
 *	# n14                0.78/0.99               DOWN    1287 errors
 */
#include "report/acceptance.h"

#include <inttypes.h>
#include <string.h>

#include "report/record.h"

static const json_t *acceptance_of(const json_t *end)
{
	const json_t *acceptance = json_object_get(end, "acceptance");

	return json_is_object(acceptance) ? acceptance : NULL;
}

/* The number that the file has, so that the map can be printed again to the last digit. */
static double recorded(const json_t *object, const char *member)
{
	return record_number(json_number_value(json_object_get(object, member)));
}

static const char *text_of(const json_t *object, const char *member)
{
	const char *text = json_string_value(json_object_get(object, member));

	return text ? text : "";
}

void acceptance_print_estimate(const json_t *end, FILE *out)
{
	const json_t *acceptance = acceptance_of(end);

	if (acceptance)
		fprintf(out, "# estimate: %s\n", text_of(acceptance, "estimate"));
}

static void rate_print(const json_t *port, FILE *out)
{
	const json_t *sends = json_object_get(port, "sending");
	const json_t *receives = json_object_get(port, "receiving");
	char text[64];

	if (json_is_true(json_object_get(port, "missing_at_start")))
		snprintf(text, sizeof(text), "MISSING");
	else if (!json_is_number(sends) && !json_is_number(receives))
		snprintf(text, sizeof(text), "-");
	else if (json_number_value(sends) <= 0 && json_number_value(receives) <= 0)
		snprintf(text, sizeof(text), "DOWN");
	else
		snprintf(text, sizeof(text), "%.2f/%.2f", json_number_value(sends),
			 json_number_value(receives));
	fprintf(out, "%20s", text);
}

/* Errors of all ports, and retries where they are counted by queue pair. */
static json_int_t count_of(const json_t *ports, const char *member)
{
	json_int_t sum = 0;
	const json_t *port;
	size_t i;

	json_array_foreach(ports, i, port)
		sum += json_integer_value(json_object_get(port, member));
	return sum;
}

static void node_print(const json_t *node, FILE *out)
{
	const json_t *ports = json_object_get(node, "ports"), *port;
	json_int_t errors = count_of(ports, "errors"), retries = count_of(ports, "retries");
	size_t i;

	fprintf(out, "# %-12s", text_of(node, "name"));
	json_array_foreach(ports, i, port)
		rate_print(port, out);
	if (errors)
		fprintf(out, "  %" JSON_INTEGER_FORMAT " errors", errors);
	if (retries)
		fprintf(out, "  %" JSON_INTEGER_FORMAT " retries", retries);
	fputc('\n', out);
}

void acceptance_print_map(const json_t *end, FILE *out)
{
	const json_t *acceptance = acceptance_of(end), *item;
	size_t i;

	if (!acceptance)
		return;
	fprintf(out, "# heat map: rates relative to the rail's level, sending/receiving; errors of the "
		"ports\n# %-12s", "rail");
	json_array_foreach(json_object_get(acceptance, "rails"), i, item)
		fprintf(out, "%20s", text_of(item, "rail"));
	fprintf(out, "\n# %-12s", "level, MB/s");
	json_array_foreach(json_object_get(acceptance, "rails"), i, item)
		fprintf(out, "%20.2f", recorded(item, "level"));
	fprintf(out, "\n# %-12s", "8 bytes, us");
	json_array_foreach(json_object_get(acceptance, "rails"), i, item)
		fprintf(out, "%20.2f", recorded(item, "latency_us"));
	fputc('\n', out);
	json_array_foreach(json_object_get(acceptance, "nodes"), i, item)
		node_print(item, out);
}

void acceptance_print_faults(const json_t *end, FILE *out)
{
	const json_t *acceptance = acceptance_of(end), *faults, *fault, *drain;
	size_t i;

	if (!acceptance)
		return;
	faults = json_object_get(acceptance, "faults");
	json_array_foreach(faults, i, fault)
		fprintf(out, "%s\n", text_of(fault, "text"));
	if (!json_array_size(faults))
		fprintf(out, "accepted: %zu nodes, %zu rails\n",
			json_array_size(json_object_get(acceptance, "nodes")),
			json_array_size(json_object_get(acceptance, "rails")));
	drain = json_object_get(acceptance, "drain");
	if (json_is_string(drain))
		fprintf(out, "drain: %s\n", json_string_value(drain));
}
