/* provenance.c - the origin of a result: machine, software, launch. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "build-info.h"
#include "config.h"
#include "report/report.h"

extern char **environ;

/* The rest of the line of a file that begins with key ("": the first line); NULL: none. */
static json_t *file_line(const char *path, const char *key)
{
	FILE *in = fopen(path, "re");
	char line[512];
	json_t *text = NULL;

	while (in && !text && fgets(line, sizeof(line), in)) {
		char *at = line + strlen(key);

		if (strncmp(line, key, strlen(key)))
			continue;
		at += strspn(at, " \t:");
		at[strcspn(at, "\n")] = '\0';
		text = report_string(at);
	}
	if (in)
		fclose(in);
	return text;
}

static void put(json_t *object, const char *key, json_t *value)
{
	json_object_set_new(object, key, value ? value : json_null());
}

/* Memory in GiB with one digit: equal machines differ in their kilobytes. */
static json_t *memory_gib(void)
{
	json_t *text = file_line("/proc/meminfo", "MemTotal");
	double kib = text ? strtod(json_string_value(text), NULL) : 0;

	json_decref(text);
	return kib > 0 ? json_real(round(kib / 1048576 * 10) / 10) : NULL;
}

json_t *report_machine(void)
{
	json_t *m = json_object();
	struct utsname u;

	if (uname(&u) == 0) {
		put(m, "kernel", report_string(u.release));
		put(m, "architecture", report_string(u.machine));
	}
	put(m, "cpu", file_line("/proc/cpuinfo", "model name"));
	put(m, "cpus_online", json_integer(sysconf(_SC_NPROCESSORS_ONLN)));
	put(m, "memory_gib", memory_gib());
	put(m, "huge_pages", file_line("/sys/kernel/mm/transparent_hugepage/enabled", ""));
	put(m, "governor", file_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", ""));
	put(m, "no_turbo", file_line("/sys/devices/system/cpu/intel_pstate/no_turbo", ""));
	put(m, "clock_source",
	    file_line("/sys/devices/system/clocksource/clocksource0/current_clocksource", ""));
	return m;
}

/* The machine of this process, by name. */
static json_t *machine(void)
{
	json_t *m = report_machine();
	struct utsname u;

	if (uname(&u) == 0)
		put(m, "host", report_string(u.nodename));
	put(m, "memory", file_line("/proc/meminfo", "MemTotal"));
	return m;
}

json_t *report_load_average(void)
{
	FILE *in = fopen("/proc/loadavg", "re");
	double load[3];
	bool known = in && fscanf(in, "%lf %lf %lf", &load[0], &load[1], &load[2]) == 3;

	if (in)
		fclose(in);
	return known ? json_pack("[f, f, f]", load[0], load[1], load[2]) : json_null();
}

/* The job of the batch system; null: none. */
static json_t *slurm(void)
{
	static const char *const names[][2] = {
		{ "job", "SLURM_JOB_ID" }, { "partition", "SLURM_JOB_PARTITION" },
		{ "nodelist", "SLURM_JOB_NODELIST" },
	};
	json_t *s = json_object();

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *text = getenv(names[i][1]);

		put(s, names[i][0], text ? report_string(text) : NULL);
	}
	if (!getenv("SLURM_JOB_ID")) {
		json_decref(s);
		return NULL;
	}
	return s;
}

static json_t *software(void)
{
	json_t *s = json_object();

	put(s, "railgauge", json_string(PACKAGE_VERSION));
	put(s, "commit", report_string(RG_BUILD_COMMIT));
	put(s, "dirty", RG_BUILD_DIRTY < 0 ? json_null() : json_boolean(RG_BUILD_DIRTY));
	put(s, "compiler", report_string(RG_BUILD_CC " " __VERSION__));
	put(s, "cflags", report_string(RG_BUILD_CFLAGS));
	put(s, "sanitizers", json_string(RG_BUILD_SANITIZE));
	put(s, "os", file_line("/etc/os-release", "PRETTY_NAME="));
	return s;
}

static bool begins_with(const char *text, const char *const prefixes[], size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strncmp(text, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	return false;
}

/* Variables that affect a measurement.  The whole environment may hold secrets. */
static json_t *environment(void)
{
	static const char *const prefixes[] = {
		"RAILGAUGE_", "SOFTHCA_", "OMPI_MCA_", "UCX_", "MPICH_", "MPIR_CVAR_", "FI_",
		"SLURM_JOB_ID=", "SLURM_JOB_PARTITION=", "SLURM_JOB_NODELIST=", "SLURM_NNODES=", "SLURM_NTASKS=",
		"OMP_NUM_THREADS=", "LD_PRELOAD=",
	};
	/* Variables between Open MPI's launcher and its ranks. */
	static const char *const internals[] = {
		"OMPI_MCA_orte_", "OMPI_MCA_ess", "OMPI_MCA_pmix", "OMPI_MCA_initial_wdir",
		"OMPI_MCA_shmem_RUNTIME",
	};
	/* A key of other programs, too: not even its place. */
	static const char *const secrets[] = { "SOFTHCA_SECRET" };
	json_t *e = json_object();

	for (char **at = environ; *at; at++) {
		size_t length = strcspn(*at, "=");
		char name[128];

		if (length >= sizeof(name) || !(*at)[length] ||
		    !begins_with(*at, prefixes, sizeof(prefixes) / sizeof(prefixes[0])) ||
		    begins_with(*at, secrets, sizeof(secrets) / sizeof(secrets[0])) ||
		    begins_with(*at, internals, sizeof(internals) / sizeof(internals[0])))
			continue;
		memcpy(name, *at, length);
		name[length] = '\0';
		put(e, name, report_string(*at + length + 1));
	}
	return e;
}

json_t *report_provenance(int argc, char *const *argv)
{
	json_t *p = json_object(), *words = json_array();
	time_t now = time(NULL);
	struct tm utc;
	char text[32];

	for (int i = 0; i < argc; i++)
		json_array_append_new(words, report_string(argv[i]));
	gmtime_r(&now, &utc);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc);
	put(p, "utc", json_string(text));
	put(p, "argv", words);
	put(p, "environment", environment());
	put(p, "slurm", slurm());
	put(p, "load_average", report_load_average());
	put(p, "machine", machine());
	put(p, "software", software());
	return p;
}
