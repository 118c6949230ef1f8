/*
 * confine.c - runs a program as a container may: in namespaces of its own, without calls or files.
 *
 *	confine WORD... -- PROGRAM [ARGUMENT...]
 *
 * In this order:	user, pid, net	a namespace of its own; in the user namespace the same user
 *			proc		a /proc of the pid namespace
 *			hidepid, noproc	/proc that hides processes; none
 *			ro=DIR, own=DIR	an empty file system there, read-only or of its own
 *			deny=CALL	a system call fails with EPERM
 *			old=FEATURE	a feature of newer kernels or of some file systems is absent
 *
 * Exit code 77, with the reason: the system does not permit it.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

static void may_not(const char *what)
{
	fprintf(stderr, "confine: %s: %s\n", what, strerror(errno));
	exit(77);
}

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		may_not(path);
	close(fd);
}

static void user_namespace(void)
{
	const unsigned uid = (unsigned)geteuid(), gid = (unsigned)getegid();
	char map[40];

	if (unshare(CLONE_NEWUSER))
		may_not("user");
	put("/proc/self/setgroups", "deny");
	snprintf(map, sizeof(map), "%u %u 1", uid, uid);
	put("/proc/self/uid_map", map);
	snprintf(map, sizeof(map), "%u %u 1", gid, gid);
	put("/proc/self/gid_map", map);
}

/* The first process of the namespace is this one's child, and ends with it. */
static void pid_namespace(void)
{
	int status;
	pid_t pid;

	if (unshare(CLONE_NEWPID))
		may_not("pid");
	pid = fork();
	if (pid < 0)
		may_not("fork");
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		return;
	}
	signal(SIGTERM, SIG_IGN);
	waitpid(pid, &status, 0);
	exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

static void mount_at(const char *kind, const char *dir, unsigned long flags, const char *data)
{
	static int own;

	if (!own && (unshare(CLONE_NEWNS) ||
		     mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL)))
		may_not("mount");
	own = 1;
	if (kind ? mount(kind, dir, kind, flags, data) : umount2(dir, MNT_DETACH))
		may_not(dir);
}

static const struct {
	const char *name;
	long number;
} calls[] = {
	{ "memfd_create", SYS_memfd_create },
	{ "process_vm_readv", SYS_process_vm_readv },
	{ "process_vm_writev", SYS_process_vm_writev },
	{ "membarrier", SYS_membarrier },
	{ "userfaultfd", SYS_userfaultfd },
	{ "socket", SYS_socket },
#ifdef SYS_pidfd_open
	{ "pidfd_open", SYS_pidfd_open },
#endif
#ifdef SYS_pidfd_getfd
	{ "pidfd_getfd", SYS_pidfd_getfd },
#endif
};

static void install(struct sock_filter *filter, size_t count)
{
	struct sock_fprog program = { (unsigned short)count, filter };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		may_not("a filter of calls");
}

static void deny(const char *name)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	size_t i;

	for (i = 0; i < sizeof(calls) / sizeof(*calls) && strcmp(calls[i].name, name); i++)
		;
	if (i == sizeof(calls) / sizeof(*calls)) {
		fprintf(stderr, "confine: deny=%s: no such call\n", name);
		exit(3);
	}
	filter[1].k = (unsigned)calls[i].number;
	install(filter, sizeof(filter) / sizeof(*filter));
}

static const struct {
	const char *name;
	int call, argument;
	unsigned mask, value;
	int err;
} features[] = {
	/* Files without a name: 020000000 is O_TMPFILE without O_DIRECTORY. */
	{ "tmpfile", SYS_openat, 2, 020000000, 020000000, EOPNOTSUPP },
	/* MADV_POPULATE_WRITE */
	{ "populate", SYS_madvise, 2, ~0u, 23, EINVAL },
	/* qemu-user has no such call. */
	{ "robust", SYS_get_robust_list, 0, 0, 0, ENOSYS },
	/* SO_BINDTODEVICE, SO_BINDTOIFINDEX: before Linux 5.7 for CAP_NET_RAW alone */
	{ "bind", SYS_setsockopt, 2, ~0u, 25, EPERM },
	{ "bind", SYS_setsockopt, 2, ~0u, 62, EPERM },
};

static void take_row_away(size_t i)
{
	const size_t word = offsetof(struct seccomp_data, args[0]) +
		8 * (size_t)features[i].argument +
		(__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 4 : 0);
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)features[i].call, 0, 4),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)word),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, features[i].mask),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, features[i].value, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)features[i].err),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	install(filter, sizeof(filter) / sizeof(*filter));
}

static void take_away(const char *name)
{
	size_t i, found = 0;

	for (i = 0; i < sizeof(features) / sizeof(*features); i++)
		if (!strcmp(features[i].name, name)) {
			take_row_away(i);
			found++;
		}
	if (!found) {
		fprintf(stderr, "confine: old=%s: no such feature\n", name);
		exit(3);
	}
}

static void confine(const char *word)
{
	if (!strcmp(word, "user")) {
		user_namespace();
	} else if (!strcmp(word, "pid")) {
		pid_namespace();
	} else if (!strcmp(word, "net")) {
		if (unshare(CLONE_NEWNET))
			may_not(word);
	} else if (!strcmp(word, "proc") || !strcmp(word, "hidepid")) {
		mount_at("proc", "/proc", 0, *word == 'h' ? "hidepid=2" : NULL);
	} else if (!strcmp(word, "noproc")) {
		mount_at(NULL, "/proc", 0, NULL);
	} else if (!strncmp(word, "ro=", 3)) {
		mount_at("tmpfs", word + 3, MS_RDONLY, NULL);
	} else if (!strncmp(word, "own=", 4)) {
		mount_at("tmpfs", word + 4, 0, "mode=1777");
	} else if (!strncmp(word, "deny=", 5)) {
		deny(word + 5);
	} else if (!strncmp(word, "old=", 4)) {
		take_away(word + 4);
	} else {
		fprintf(stderr, "confine: %s: no such word\n", word);
		exit(3);
	}
}

int main(int argc, char **argv)
{
	int i;

	for (i = 1; i < argc && strcmp(argv[i], "--"); i++)
		confine(argv[i]);
	if (i + 1 >= argc) {
		fprintf(stderr, "usage: confine WORD... -- PROGRAM [ARGUMENT...]\n");
		return 3;
	}
	execvp(argv[i + 1], argv + i + 1);
	fprintf(stderr, "confine: %s: %s\n", argv[i + 1], strerror(errno));
	return 127;
}
