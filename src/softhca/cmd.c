/*
 * cmd.c - the softhca command: run a program on software devices; look at
 * fabrics; clean up after what was killed.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base.h"
#include "err.h"
#include "opt.h"
#include "rendezvous.h"
#include "softhca.h"
#include "spec.h"

struct settings {
	const char *soft, *fabric;
	uint64_t node;
};

static struct settings settings;

static int check_spec(const char *text, char *why, size_t why_size)
{
	return softhca_spec_check(text, why, why_size) ? -EINVAL : 0;
}

static const struct opt rows[] = {
	{ .name = "soft", .letter = 's', .type = OPT_TEXT,
	  .offset = offsetof(struct settings, soft), .arg = "SPEC", .check = check_spec,
	  .help = "adapters and their timing: [PROFILE][,key=value...]; see softhca profiles" },
	{ .name = "fabric", .type = OPT_TEXT, .offset = offsetof(struct settings, fabric),
	  .arg = "NAME", .help = "fabric to join: programs of one name reach each other" },
	{ .name = "node", .letter = 'n', .type = OPT_COUNT,
	  .offset = offsetof(struct settings, node), .arg = "N", .standard = "0", .max = 1023,
	  .help = "virtual host that the program runs on" },
	{ .name = NULL },
};

/* ---- Fabrics, as files --------------------------------------------------- */

/* Call visit for the fabrics of this user; the sum of what it returns. */
static int each_fabric(int (*visit)(const char *name, struct hca_rendezvous *r,
				    const struct hca_rendezvous_image *image))
{
	struct hca_rendezvous_image *image = calloc(1, sizeof(*image));
	DIR *dir = opendir(hca_rendezvous_dir());
	char prefix[32];
	struct dirent *e;
	int sum = 0;

	hca_rendezvous_prefix(prefix, sizeof(prefix));
	while (image && dir && (e = readdir(dir))) {
		struct hca_rendezvous r = { .fd = -1 };
		const char *name = e->d_name + strlen(prefix);
		char valid[HCA_NAME_MAX + 1];

		if (strncmp(e->d_name, prefix, strlen(prefix)) != 0 ||
		    hca_rendezvous_name(name, valid))
			continue;
		if (hca_rendezvous_open(name, false, &r)) {
			rg_error("%s", softhca_last_error());
			continue;
		}
		/* A damaged file has no members: NULL. */
		sum += visit(name, &r, hca_rendezvous_read(&r, image) ? NULL : image);
		hca_rendezvous_close(&r);
	}
	if (dir)
		closedir(dir);
	free(image);
	return sum;
}

static bool deserted(const struct hca_rendezvous_image *image)
{
	uint32_t i;

	for (i = 0; image && i < HCA_PROCS_MAX; i++)
		if (hca_member_alive(&image->member[i]) || hca_member_foreign(&image->member[i]))
			return false;
	return true;
}

static int reap_one(const char *name, struct hca_rendezvous *r,
		    const struct hca_rendezvous_image *image)
{
	if (!deserted(image))
		return 0;
	hca_rendezvous_remove(r);
	printf("%s: removed\n", r->path);
	return 1;
}

static int cmd_reap(int argc, char **argv)
{
	if (each_fabric(reap_one) == 0)
		puts("nothing to remove");
	return RG_EXIT_OK;
}

static void name_of(pid_t pid, char *buf, size_t size)
{
	char path[32];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	f = fopen(path, "r");
	if (!f || !fgets(buf, (int)size, f))
		snprintf(buf, size, "?");
	buf[strcspn(buf, "\n")] = '\0';
	if (f)
		fclose(f);
}

static int list_one(const char *name, struct hca_rendezvous *r,
		    const struct hca_rendezvous_image *image)
{
	char why[320], text[200], comm[32];
	struct hca_spec spec;
	uint32_t i, ports;

	if (!image) {
		printf("fabric %s: %s\n", name, softhca_last_error());
		return 1;
	}
	if (!image->nonce || hca_spec_parse(image->spec, &spec, why, sizeof(why)))
		return 0;
	hca_spec_describe(&spec, text, sizeof(text));
	printf("fabric %s: %s\n  spec %s\n", name, text, image->spec);
	for (i = 0; i < HCA_PROCS_MAX; i++) {
		const struct hca_member *m = &image->member[i];

		if (!m->pid)
			continue;
		name_of(m->pid, comm, sizeof(comm));
		printf("  process %d (%s) on node %u%s\n", (int)m->pid, comm, (unsigned)m->node,
		       hca_member_foreign(m) ? ", another pid namespace" :
		       hca_member_alive(m) ? "" : ", dead");
	}
	ports = (uint32_t)(spec.hcas * spec.ports);
	for (i = 0; i < ports; i++)
		printf("  port soft%u:%u of each node: active\n", i / (unsigned)spec.ports,
		       i % (unsigned)spec.ports + 1);
	return 1;
}

static int cmd_list(int argc, char **argv)
{
	if (each_fabric(list_one) == 0)
		puts("no fabric");
	return RG_EXIT_OK;
}

static int cmd_profiles(int argc, char **argv)
{
	const char *name, *accepted, *meaning;
	const struct hca_profile *p;
	char text[HCA_SPEC_MAX];
	unsigned i;

	puts("A spec is [PROFILE][,key=value...].  Profiles:");
	for (p = hca_profiles; p->name; p++) {
		softhca_spec_canonical(p->name, text, sizeof(text));
		printf("  %-12s %s\n%15s%s\n", p->name, p->summary, "", text);
	}
	puts("Keys:");
	for (i = 0; hca_spec_key(i, &name, &accepted, &meaning); i++)
		printf("  %-12s %s (%s)\n", name, meaning, accepted);
	return RG_EXIT_OK;
}

/* ---- Running a program --------------------------------------------------- */

static pid_t child;

static void pass_on(int signal)
{
	if (child > 0)
		kill(child, signal);
}

/* Next to this program in the build tree, else where it was installed. */
static int find_library(char *path, size_t size)
{
	static const char *const places[] = { "%s/libsofthca.so.0", "%s/.libs/libsofthca.so.0",
					      "%s/../lib/libsofthca.so.0" };
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	unsigned i;

	self[n > 0 ? n : 0] = '\0';
	if (strrchr(self, '/'))
		*strrchr(self, '/') = '\0';
	for (i = 0; i < sizeof(places) / sizeof(*places); i++) {
		snprintf(path, size, places[i], self);
		if (access(path, R_OK) == 0)
			return 0;
	}
	snprintf(path, size, "%s/libsofthca.so.0", RG_LIBDIR);
	return access(path, R_OK) == 0 ? 0 : -ENOENT;
}

static int set_environment(void)
{
	const char *before = getenv("LD_PRELOAD");
	char library[PATH_MAX + 64], node[16], *preload;

	if (find_library(library, sizeof(library))) {
		rg_error("libsofthca.so.0 is neither in the build tree nor in %s", RG_LIBDIR);
		return -ENOENT;
	}
	if (asprintf(&preload, "%s%s%s", before ? before : "", before && *before ? ":" : "",
		     library) < 0)
		return -ENOMEM;
	snprintf(node, sizeof(node), "%llu", (unsigned long long)settings.node);
	setenv("LD_PRELOAD", preload, 1);
	setenv("SOFTHCA_EXPOSE", "1", 1);
	setenv("SOFTHCA_NODE", node, 1);
	if (settings.soft)
		setenv("SOFTHCA_SPEC", settings.soft, 1);
	if (settings.fabric)
		setenv("SOFTHCA_FABRIC", settings.fabric, 1);
	free(preload);
	return 0;
}

static int start_child(char **argv, const sigset_t *mask)
{
	child = fork();
	if (child < 0) {
		rg_error("fork: %s", strerror(errno));
		return -1;
	}
	if (child > 0)
		return 0;
	/* Should this command be killed, the program must not stay behind. */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	sigprocmask(SIG_SETMASK, mask, NULL);
	if (set_environment())
		_exit(RG_EXIT_FAULT);
	execvp(argv[0], argv);
	rg_error("%s: %s", argv[0], strerror(errno));
	_exit(errno == ENOENT ? 127 : 126);
}

static int clean_up(const char *name, struct hca_rendezvous *r,
		    const struct hca_rendezvous_image *image)
{
	char mine[HCA_NAME_MAX + 1];

	if (hca_rendezvous_name(settings.fabric, mine) || strcmp(name, mine) != 0 ||
	    !deserted(image))
		return 0;
	hca_rendezvous_remove(r);
	return 1;
}

/* The program's exit code; as a shell says it: 128 + the signal that ended it. */
static int run(char **argv)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2,
				       SIGCONT };
	struct sigaction action = { .sa_handler = pass_on };
	sigset_t all, before;
	unsigned i;
	int status;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &before);
	if (start_child(argv, &before))
		return RG_EXIT_FAULT;
	for (i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		sigaction(signals[i], &action, NULL);
	sigprocmask(SIG_SETMASK, &before, NULL);
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return RG_EXIT_FAULT;
	child = 0;
	each_fabric(clean_up);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* ---- The command --------------------------------------------------------- */

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
} commands[] = {
	{ "profiles", cmd_profiles },
	{ "list", cmd_list },
	{ "reap", cmd_reap },
};

int main(int argc, char **argv)
{
	char name[HCA_NAME_MAX + 1];
	struct opt_table table = { .title = "Software HCA", .rows = rows, .values = &settings };
	const struct opt_program program = {
		.name = "softhca",
		.summary = "run a verbs program on software RDMA devices",
		.operands = "PROGRAM [ARGUMENT...] | profiles | list | reap",
		.first_operand_ends = true,
		.tables = &table,
		.table_count = 1,
	};
	unsigned char origin[sizeof(rows) / sizeof(*rows)] = { 0 };
	int first, rc;
	unsigned i;

	rg_set_program("softhca");
	table.origin = origin;
	rc = opt_parse(&program, argc, argv, &first);
	if (rc)
		return rc > 0 ? RG_EXIT_OK : RG_EXIT_USAGE;
	if (settings.fabric && hca_rendezvous_name(settings.fabric, name)) {
		rg_error("--%s", softhca_last_error());
		return RG_EXIT_USAGE;
	}
	if (first >= argc) {
		rg_error("no program (accepted: %s)", program.operands);
		return RG_EXIT_USAGE;
	}
	/* `softhca -- list` runs a program of that name. */
	for (i = 0; i < sizeof(commands) / sizeof(*commands); i++)
		if (strcmp(argv[first], commands[i].name) == 0 && first + 1 == argc &&
		    strcmp(argv[first - 1], "--") != 0)
			return commands[i].run(argc - first, argv + first);
	return run(argv + first);
}
