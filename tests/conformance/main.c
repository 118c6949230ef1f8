/* main.c - runs the cases, each as two processes. */
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <poll.h>
#include <popt.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conformance.h"
#include "known.h"
#include "machines.h"

static struct options options = { .port = 1, .gid_index = -1 };
static int patience = 60, share = 1;
static unsigned seed;

/* ---- One side ------------------------------------------------------------ */

/* RoCE v2 and not link-local, if there is one. */
static int best_gid(struct side *s)
{
	int i, best = -1, score = -1;

	for (i = 0; i < s->port.gid_tbl_len; i++) {
		struct ibv_gid_entry entry;
		int points;

		if (ibv_query_gid_ex(s->ctx, (uint32_t)s->port_num, (uint32_t)i, &entry, 0))
			continue;
		points = 2 * (entry.gid_type == IBV_GID_TYPE_ROCE_V2) +
			 (entry.gid.raw[0] != 0xfe);
		if (points > score) {
			score = points;
			best = i;
		}
	}
	return best;
}

static void gid_read(struct side *s)
{
	if (s->gid_index >= 0)
		require_equal(ibv_query_gid(s->ctx, (uint8_t)s->port_num, s->gid_index, &s->gid),
			      0);
}

static void open_device(struct side *s)
{
	struct ibv_device **list;
	int i, count;

	list = ibv_get_device_list(&count);
	if (!list)
		fail("ibv_get_device_list: %s", strerror(errno));
	for (i = 0; i < count; i++)
		if (!s->options->device ||
		    strcmp(ibv_get_device_name(list[i]), s->options->device) == 0)
			break;
	if (i == count && !s->options->device)
		skip("no RDMA device (SOFTHCA_EXPOSE=1 shows software ones)");
	if (i == count)
		fail("no device %s", s->options->device);
	s->ctx = ibv_open_device(list[i]);
	require(s->ctx != NULL);
	ibv_free_device_list(list);
	require_equal(ibv_query_device(s->ctx, &s->dev), 0);
	require_equal(ibv_query_port(s->ctx, (uint8_t)s->port_num, &s->port), 0);
	require_equal(s->port.state, IBV_PORT_ACTIVE);
	if (s->options->gid_index >= 0)
		s->gid_index = s->options->gid_index;
	else if (s->options->gid_index == -2 || (s->port.link_layer != IBV_LINK_LAYER_ETHERNET &&
						 !(s->port.flags & IBV_QPF_GRH_REQUIRED)))
		s->gid_index = -1;
	else
		s->gid_index = best_gid(s);
	gid_read(s);
	s->pd = ibv_alloc_pd(s->ctx);
	require(s->pd != NULL);
}

/* Both ends need a GRH where the port of either requires it. */
static void agree_on_grh(struct side *s)
{
	const int mine = s->gid_index;
	int theirs;

	swap(s, &mine, &theirs, sizeof(mine));
	if (mine >= 0 || theirs < 0)
		return;
	s->gid_index = best_gid(s);
	gid_read(s);
}

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		skip("%s: %s", path, strerror(errno));
	close(fd);
}

/* The same user, who may not look into the other side. */
static void be_apart(void)
{
	const unsigned uid = (unsigned)geteuid(), gid = (unsigned)getegid();
	char map[40];

	if (unshare(CLONE_NEWUSER))
		skip("a user namespace: %s", strerror(errno));
	put("/proc/self/setgroups", "deny");
	snprintf(map, sizeof(map), "%u %u 1", uid, uid);
	put("/proc/self/uid_map", map);
	snprintf(map, sizeof(map), "%u %u 1", gid, gid);
	put("/proc/self/gid_map", map);
}

/* A network namespace, as `ip netns` names it or with a process, stands for another host. */
static void enter_host(const char *name)
{
	const bool pid = name[strspn(name, "0123456789")] == '\0';
	char path[100];
	int fd;

	snprintf(path, sizeof(path), pid ? "/proc/%s/ns/net" : "/run/netns/%s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || setns(fd, CLONE_NEWNET))
		fail("%s: %s", path, strerror(errno));
	close(fd);
}

void case_side(int me, int sock, const void *test)
{
	const struct test *t = test;
	struct side s = { .me = me, .sock = sock, .options = &options };
	const char *spec = getenv("SOFTHCA_SPEC");
	char node[16];

	/* Two hosts, if the device knows virtual ones; ports that are interfaces have real ones. */
	snprintf(node, sizeof(node), "%d", spec && strstr(spec, "net=") ? 0 : me);
	setenv("SOFTHCA_NODE", node, 1);
	if (me && options.peer_host)
		enter_host(options.peer_host);
	s.port_num = me && options.peer_port ? options.peer_port : options.port;
	if (options.apart)
		be_apart();
	open_device(&s);
	agree_on_grh(&s);
	t->run(&s);
	barrier(&s);
	require_equal(ibv_dealloc_pd(s.pd), 0);
	require_equal(ibv_close_device(s.ctx), 0);
}

/* ---- A case -------------------------------------------------------------- */

pid_t case_fork(int log)
{
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		alarm((unsigned)patience * 6);
		dup2(log, STDERR_FILENO);
	}
	return pid;
}

static int start_joined(const struct test *t, int log, pid_t pid[2])
{
	int sock = machines_case(t->name), me = machines_side();

	pid[me] = case_fork(log);
	if (pid[me] == 0) {
		case_side(me, sock, t);
		exit(0);
	}
	close(sock);
	return 1;
}

/* Weak: tests/virtual/conformance.c has both sides in one process. */
__attribute__((weak)) int case_start(const struct test *t, int log, pid_t pid[2])
{
	int pair[2], me;

	if (machines_joined())
		return start_joined(t, log, pid);
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		return 0;
	for (me = 0; me < 2; me++) {
		pid[me] = case_fork(log);
		if (pid[me] == 0) {
			close(pair[!me]);
			case_side(me, pair[me], t);
			exit(0);
		}
	}
	close(pair[0]);
	close(pair[1]);
	return 2;
}

static char *read_log(int log)
{
	static char text[65536];
	ssize_t n = pread(log, text, sizeof(text) - 1, 0);

	text[n > 0 ? n : 0] = '\0';
	return text;
}

/*
 * 0 passed, 77 skipped, else failed; what the sides said goes to log.  When one has said what
 * is known, the other one may wait for it in vain: it is ended.
 */
static int run_case(const struct test *t, const struct known *known, int log)
{
	struct ends ends = { .failed = 0 };
	int me, left, status;
	pid_t pid[2] = { -1, -1 }, ended;

	left = case_start(t, log, pid);
	if (!left)
		return 1;
	for (; left; left--) {
		ended = wait(&status);
		me = ended == pid[1];
		if (ended != pid[me])
			return 1;
		if (left == 2 && status && known && strstr(read_log(log), known->text))
			kill(pid[!me], SIGKILL);
		if (WIFSIGNALED(status)) {
			dprintf(log, "  side %d: %s\n", me, strsignal(WTERMSIG(status)));
			ends.failed++;
			continue;
		}
		ends.skipped += WEXITSTATUS(status) == 77;
		ends.alone += WEXITSTATUS(status) == EXIT_ALONE;
		ends.failed += WEXITSTATUS(status) && WEXITSTATUS(status) != 77 &&
			       WEXITSTATUS(status) != EXIT_ALONE;
	}
	if (machines_joined())
		machines_add(&ends);
	/* Alone because the other one skipped: both have. */
	return ends.failed ? 1 : ends.skipped ? 77 : ends.alone ? 1 : 0;
}

/* Without a device there is nothing to run; in a child, since each case opens it anew. */
static int probe(void)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		struct side s = { .options = &options, .port_num = options.port };

		open_device(&s);
		exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return 1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* Each list a line: files of cases, in the order they run. */
static const struct test *const lists[] = {
	data_tests,
	queue_tests,
	retry_tests,
	error_tests,
	state_tests,
	uc_tests,
	srq_tests,
	ud_tests,
	group_tests,
	atomic_tests,
	wr_tests,
	attribute_tests,
	flush_tests,
	limit_tests,
	cause_tests,
	event_tests,
	channel_tests,
	cq_tests,
	memory_tests,
};

struct sums {
	int passed, failed, skipped, known;
};

static int run_once(const struct test *t, const struct known *known, const char **said)
{
	/* Not a pipe: what a case leaves running must not keep us waiting for its end. */
	int log = memfd_create("log", MFD_CLOEXEC), rc;

	/* Both sides may write at once: without this the kernel gives a memfd's writers one place. */
	fcntl(log, F_SETFL, O_APPEND);
	/* For what is known not to come, nobody waits long. */
	patience_s = known && known_not_to_come(known) ? 1 : (unsigned)patience;
	rc = run_case(t, known, log);
	*said = read_log(log);
	fputs(*said, stderr);
	close(log);
	return rc;
}

/* The case failed as the device is known to. */
static bool is_known(const struct known *known, int rc, const char *said)
{
	return known && rc && rc != 77 && strstr(said, known->text);
}

static void run_one(const struct test *t, struct sums *sums)
{
	struct known *known = known_find(t->name);
	const char *said, *word;
	int rc = run_once(t, known, &said);

	if (known)
		known->met = true;
	if (is_known(known, rc, said)) {
		sums->known++;
		printf("known %s: %s\n", t->name, known->reason);
	} else if (known && !(known->sometimes && rc == 0)) {
		sums->failed++;
		printf("FAIL %s: %s, but is known to say: %s\n", t->name,
		       rc == 0 ? "passed" : rc == 77 ? "skipped" : "failed otherwise",
		       known->text);
	} else {
		sums->passed += rc == 0;
		sums->skipped += rc == 77;
		sums->failed += rc != 0 && rc != 77;
		word = rc == 0 ? "ok  " : rc == 77 ? "skip" : "FAIL";
		printf("%s %s\n", word, t->name);
	}
}

/* One case of so many, drawn by the seed (FNV-1a of its name behind that). */
static bool is_drawn(const struct test *t)
{
	uint32_t hash = 2166136261u ^ seed;
	const char *c;

	for (c = t->name; *c; c++)
		hash = (hash ^ (unsigned char)*c) * 16777619u;
	return (hash ^ hash >> 16) % (unsigned)share == 0;
}

/* Does the name match a pattern of the list, whose separator is a comma? */
static bool matches(const char *patterns, const char *name)
{
	char one[64];
	int n;

	for (; sscanf(patterns, "%63[^,]%n", one, &n) == 1; patterns += n + (patterns[n] == ','))
		if (!fnmatch(one, name, 0))
			return true;
	return false;
}

static int run_all(const char *only, const char *except, bool list)
{
	struct sums sums = { 0 };
	const struct test *t;
	unsigned i;

	for (i = 0; i < sizeof(lists) / sizeof(*lists); i++)
		for (t = lists[i]; t->name; t++) {
			if ((only && !matches(only, t->name)) ||
			    (except && matches(except, t->name)) || !is_drawn(t))
				continue;
			if (list)
				puts(t->name);
			else
				run_one(t, &sums);
		}
	if (list)
		return 0;
	if (!only && !except && share == 1)
		sums.failed += known_unmet();
	fflush(stdout);
	printf("%d passed, %d failed, %d skipped", sums.passed, sums.failed, sums.skipped);
	if (sums.known)
		printf(", %d known to differ", sums.known);
	puts("");
	return sums.failed || !sums.passed;
}

int main(int argc, char **argv)
{
	char *only = NULL, *except = NULL, *device = NULL, *known = NULL, *text = NULL;
	char *join = NULL;
	int list = 0, lid = 0, arena = 0, apart = 0, rc;
	const struct poptOption rows[] = {
		{ "device", 'd', POPT_ARG_STRING, &device, 0, "default: the first", "NAME" },
		{ "port", 'i', POPT_ARG_INT, &options.port, 0, "port of side 0 (and 1)", "N" },
		{ "peer-port", 0, POPT_ARG_INT, &options.peer_port, 0, "port of side 1", "N" },
		{ "gid-index", 'g', POPT_ARG_INT, &options.gid_index, 0, "default: the best", "N" },
		{ "lid", 0, POPT_ARG_NONE, &lid, 0, "address by LID, without GRH", NULL },
		{ "arena", 0, POPT_ARG_NONE, &arena, 0, "buffers from libsofthca's arena", NULL },
		{ "peer-host", 0, POPT_ARG_STRING, &options.peer_host, 0,
		  "the network namespace of side 1", "NAME|PID" },
		{ "join", 0, POPT_ARG_STRING, &join, 0,
		  "another machine has side 1, or, at HOST, side 0: the same list in step", "[HOST]:PORT" },
		{ "apart", 0, POPT_ARG_NONE, &apart, 0, "each side in a user namespace of its own", NULL },
		{ "only", 0, POPT_ARG_STRING, &only, 0, "cases that match", "PATTERN[,...]" },
		{ "except", 0, POPT_ARG_STRING, &except, 0, "cases that are left out", "PATTERN[,...]" },
		{ "share", 0, POPT_ARG_INT, &share, 0, "one case of N, drawn", "N" },
		{ "seed", 0, POPT_ARG_STRING, &text, 0, "of what is drawn; default: RG_SEED", "SEED" },
		{ "known", 0, POPT_ARG_STRING, &known, 0, "how the device differs (known.h)",
		  "FILE" },
		{ "patience", 0, POPT_ARG_INT, &patience, 0,
		  "how long a case waits for what should come, default 60", "SECONDS" },
		{ "list", 0, POPT_ARG_NONE, &list, 0, "names of the cases", NULL },
		POPT_AUTOHELP
		POPT_TABLEEND
	};
	poptContext p = poptGetContext(NULL, argc, (const char **)argv, rows, 0);

	rc = poptGetNextOpt(p);
	if (rc != -1 || poptPeekArg(p)) {
		fprintf(stderr, "conformance: %s: %s\n", poptBadOption(p, 0),
			rc == -1 ? "no operands" : poptStrerror(rc));
		return 3;
	}
	if (patience < 1 || patience > 600) {
		fprintf(stderr, "conformance: --patience %d: 1 to 600 accepted\n", patience);
		return 3;
	}
	if (share < 1 || share > 100) {
		fprintf(stderr, "conformance: --share %d: 1 to 100 accepted\n", share);
		return 3;
	}
	if (share > 1) {
		seed = drawn_seed(text);
		printf("one case of %d, seed %u\n", share, seed);
	}
	options.device = device;
	options.arena = arena;
	options.apart = apart;
	options.wire = options.peer_host || join || getenv("SOFTHCA_LINK");
	if (lid)
		options.gid_index = -2;
	rc = known ? known_load(known) : 0;
	if (rc) {
		fprintf(stderr, "conformance: %s: %s\n", known, strerror(-rc));
		return 3;
	}
	rc = list ? 0 : probe();
	if (!rc && !list && join)
		machines_join(join);
	if (!rc)
		rc = run_all(only, except, list);
	poptFreeContext(p);
	known_free();
	free(known);
	free(join);
	free(only);
	free(except);
	free(text);
	free(device);
	return rc;
}
