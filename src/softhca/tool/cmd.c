/*
 * cmd.c - the softhca command: runs a program on software devices, cleans up
 * after killed programs.  cmd_fabric.c has the commands for fabrics in use.
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

#include "softhca/base/base.h"
#include "softhca/tool/cmd.h"
#include "softhca/model/fidelity.h"
#include "util/err.h"
#include "util/opt.h"
#include "softhca/link/memory/registry.h"
#include "softhca/softhca.h"
#include "softhca/model/spec.h"
#include "softhca/link/memory/ask.h"

struct settings {
	const char *soft, *fabric;
	uint64_t node;
	bool drop_in;
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
	  .arg = "NAME", .help = "fabric to join, or to look at: programs of one name reach each other" },
	{ .name = "node", .letter = 'n', .type = OPT_COUNT,
	  .offset = offsetof(struct settings, node), .arg = "N", .standard = "0", .max = 1023,
	  .help = "virtual host that the program runs on" },
	{ .name = "drop-in", .type = OPT_FLAG, .offset = offsetof(struct settings, drop_in),
	  .help = "stand in for libibverbs.so.1: for programs that load it themselves; "
		  "they see no other devices" },
	{ .name = NULL },
};

/* ---- Fabrics, as files --------------------------------------------------- */

/* The visit to each fabric, and a count of visits that returned true. */
struct walk {
	bool (*visit)(const struct walk *w, const char *name, struct hca_registry *r,
		      const struct hca_registry_image *image);
	struct hca_registry_image *image;
	struct hca_identity me;
	int count;
};

static int visit_file(void *arg, const char *path, const char *name)
{
	struct hca_registry r = { .fd = -1 };
	struct walk *w = arg;
	int rc = hca_registry_open_at(path, &r);

	if (rc == -ENOENT)
		return 0;		/* the last member has just left */
	if (rc) {
		rg_error("%s", softhca_last_error());
		return 0;
	}
	/* A damaged file has no members: NULL. */
	w->count += w->visit(w, name, &r, hca_registry_read(&r, w->image) ? NULL : w->image);
	hca_registry_close(&r);
	return 0;
}

/* Visit the fabrics of this user; returns the number of visits that returned true. */
static int each_fabric(bool (*visit)(const struct walk *w, const char *name, struct hca_registry *r,
				     const struct hca_registry_image *image))
{
	struct walk w = { .visit = visit, .image = calloc(1, sizeof(*w.image)) };

	hca_identity_get(&w.me);
	if (w.image)
		hca_registry_each(visit_file, &w);
	free(w.image);
	return w.count;
}

static bool deserted(const struct walk *w, const struct hca_registry_image *image,
		     const char *name)
{
	enum hca_member_state state;
	uint32_t i;

	for (i = 0; image && i < HCA_PROCS_MAX; i++) {
		state = hca_member_look(&w->me, image, i, name);
		if (state == HCA_MEMBER_ALIVE || state == HCA_MEMBER_UNKNOWN)
			return false;
	}
	return true;
}

static bool reap_one(const struct walk *w, const char *name, struct hca_registry *r,
		     const struct hca_registry_image *image)
{
	if (!deserted(w, image, name))
		return false;
	hca_registry_remove(r);
	printf("%s: removed\n", r->path);
	return true;
}

static int cmd_reap(const char *fabric, int argc, char **argv)
{
	if (each_fabric(reap_one) == 0)
		puts("nothing to remove");
	return RG_EXIT_OK;
}

static int cmd_profiles(const char *fabric, int argc, char **argv)
{
	const char *name, *accepted, *meaning;
	struct hca_profiles profiles;
	char why[640];
	unsigned i;

	if (hca_profiles_load(&profiles, why, sizeof(why))) {
		rg_error("%s", why);
		return RG_EXIT_USAGE;
	}
	puts("A spec is [PROFILE][,key=value...].  Profiles:");
	for (i = 0; i < profiles.count; i++) {
		const struct hca_profile *p = &profiles.item[i];

		printf("  %-13s %s\n%16s%s\n", p->name, p->summary, "", *p->spec ? p->spec :
		       "every key as it is when not given");
	}
	hca_profiles_free(&profiles);
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

/* Append `item` to a colon-separated list in the environment, or prepend it. */
static int extend(const char *variable, const char *item, bool before)
{
	const char *list = getenv(variable);
	char *longer;

	if (!list || !*list)
		return setenv(variable, item, 1);
	if (asprintf(&longer, "%s:%s", before ? item : list, before ? list : item) < 0)
		return -1;
	setenv(variable, longer, 1);
	free(longer);
	return 0;
}

static int set_environment(void)
{
	char library[PATH_MAX + 64], path[PATH_MAX + 128], node[16];

	if (find_library(library, sizeof(library))) {
		rg_error("libsofthca.so.0 is neither in the build tree nor in %s", RG_LIBDIR);
		return -ENOENT;
	}
	if (extend("LD_PRELOAD", library, false))
		return -ENOMEM;
	*strrchr(library, '/') = '\0';
	snprintf(path, sizeof(path), "%s/softhca/softhca-files.so", library);
	if (access(path, R_OK) == 0 && extend("LD_PRELOAD", path, false))
		return -ENOMEM;
	snprintf(path, sizeof(path), "%s/softhca", library);
	if (settings.drop_in && extend("LD_LIBRARY_PATH", path, true))
		return -ENOMEM;
	snprintf(node, sizeof(node), "%llu", (unsigned long long)settings.node);
	setenv("SOFTHCA_EXPOSE", "1", 1);
	setenv("SOFTHCA_NODE", node, 1);
	if (settings.soft)
		setenv("SOFTHCA_SPEC", settings.soft, 1);
	if (settings.fabric)
		setenv("SOFTHCA_FABRIC", settings.fabric, 1);
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
	/* The program must not outlive this command if that is killed. */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	sigprocmask(SIG_SETMASK, mask, NULL);
	if (set_environment())
		_exit(RG_EXIT_FAULT);
	execvp(argv[0], argv);
	rg_error("%s: %s", argv[0], strerror(errno));
	_exit(errno == ENOENT ? 127 : 126);
}

static bool clean_up(const struct walk *w, const char *name, struct hca_registry *r,
		     const struct hca_registry_image *image)
{
	char mine[HCA_NAME_MAX + 1];

	if (hca_registry_name(settings.fabric, mine) || strcmp(name, mine) != 0 ||
	    !deserted(w, image, name))
		return false;
	hca_registry_remove(r);
	return true;
}

/* Warn, in one line, if this machine cannot keep to the model. */
static void warn_of_model(void)
{
	const char *text = settings.soft ? settings.soft : getenv("SOFTHCA_SPEC");
	char why[640], line[256];
	struct hca_spec spec;

	/* Errors in the environment are reported when a device is opened. */
	if (text && hca_spec_parse(text, &spec, why, sizeof(why)) == 0 &&
	    hca_fidelity(&spec, 0, line, sizeof(line)) > 0)
		rg_warn("%s", line);
}

/* The program's exit code, or like a shell 128 + the signal that ended it. */
static int run(char **argv)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2,
				       SIGCONT };
	struct sigaction action = { .sa_handler = pass_on };
	sigset_t all, before;
	unsigned i;
	int status;

	warn_of_model();
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
	int operands;			/* with more than these: a program of that name */
	int (*run)(const char *fabric, int argc, char **argv);
} commands[] = {
	{ "profiles", 0, cmd_profiles },
	{ "list", 0, hca_cmd_list },
	{ "port", 2, hca_cmd_port },
	{ "loss", 2, hca_cmd_loss },
	{ "reap", 0, cmd_reap },
};

static int command(int argc, char **argv)
{
	char name[HCA_NAME_MAX + 1];
	struct opt_table table = { .title = "Software HCA", .rows = rows, .values = &settings };
	const struct opt_program program = {
		.name = "softhca",
		.summary = "run a verbs program on software RDMA devices",
		.operands = "PROGRAM [ARGUMENT...] | profiles | list | port | loss | reap",
		.first_operand_ends = true,
		.tables = &table,
		.table_count = 1,
	};
	unsigned char origin[sizeof(rows) / sizeof(*rows)] = { 0 };
	int first, rc;
	unsigned i;

	table.origin = origin;
	rc = opt_parse(&program, argc, argv, &first);
	if (rc)
		return rc > 0 ? RG_EXIT_OK : RG_EXIT_USAGE;
	if (settings.fabric && hca_registry_name(settings.fabric, name)) {
		rg_error("--%s", softhca_last_error());
		return RG_EXIT_USAGE;
	}
	if (first >= argc) {
		rg_error("no program (accepted: %s)", program.operands);
		return RG_EXIT_USAGE;
	}
	/* `softhca -- list` runs a program of that name. */
	for (i = 0; i < sizeof(commands) / sizeof(*commands); i++)
		if (strcmp(argv[first], commands[i].name) == 0 &&
		    argc - first <= commands[i].operands + 1 && strcmp(argv[first - 1], "--") != 0)
			return commands[i].run(settings.fabric, argc - first, argv + first);
	return run(argv + first);
}

int main(int argc, char **argv)
{
	rg_set_program("softhca");
	return rg_end(command(argc, argv));
}
