/*
 * lifecycle.c - sends from and receives into memory that changes between messages, in every way
 * that programs change memory (memory.h), and counts what was wrong.
 *
 *	lifecycle [OPTION]... [KIND]...		two ranks; all kinds unless some are named (the
 *			first, memory that stays, is always there)
 *	  --rounds N	messages per kind, and of the random program	(24)
 *	  --max BYTES	the largest message				(1500000)
 *	  --seed N	of all that is drawn				(1)
 *	  --random	not each kind by itself: both ranks draw kinds independently, round by round,
 *			and every buffer lives through many rounds
 *	  --multiple	MPI_THREAD_MULTIPLE: two threads do this at once
 *	  --more FILE	a shared object with a further table, "kinds"; more than one, if wanted
 *	  --list	the kinds
 *
 * One line per kind.  Exit code 1 if anything was wrong, 77 if nothing could be done, 3 for an
 * option that makes no sense.
 */
#include <dlfcn.h>
#include <getopt.h>
#include <mpi.h>
#include <pthread.h>

#include "message.h"

enum { KINDS_MAX = 96, TABLES = 9, THREADS = 2 };

static const struct kind *kinds[KINDS_MAX];
static int kind_count;

static struct {
	unsigned rounds;
	size_t max;
	uint64_t seed;
	bool random, multiple;
} options = {.rounds = 24, .max = 1500000, .seed = 1};

static int rank, thread_count = 1;
bool life_threaded;

/* Counts of a kind: messages and faults where it was received into, sent from, or changed. */
struct count {
	int messages, wrong;
};

/* A thread, with the data that it may not share with the other. */
struct worker {
	pthread_t thread;
	int index;
	MPI_Comm comm;
	struct count count[KINDS_MAX];
	const char *skipped[KINDS_MAX];
	struct life life[KINDS_MAX];
	bool lives[KINDS_MAX];
	unsigned messages;
};
static struct worker workers[THREADS];

/* ---- What the next message is: the same on both ranks ------------------------------------- */

/*
 * Sizes and offsets come in fours, so that a stale registration for the first would be there,
 * wrongly, for the others.
 */
static struct message message_of(unsigned round, uint64_t seed)
{
	static const size_t sizes[] = {4096, 8192, 8193, 20000, 65536, 200001, 400000, 1048576, 1500000};
	const size_t places[] = {0, 64, PAGE, PAGE + 8};
	static const enum how hows[] = {HOW_SEND, HOW_SEND, HOW_ISEND, HOW_ISEND,
					HOW_SEND, HOW_SEND, HOW_BCAST, HOW_SENDRECV};
	uint64_t state = seed ^ round / 4;
	size_t count = sizeof(sizes) / sizeof(*sizes);
	struct message m = {.from = (int)(round % 2), .how = hows[round % 8], .peer = "the same"};

	while (count > 1 && sizes[count - 1] > options.max)
		count--;
	m.bytes = sizes[random_next(&state) % count];
	m.at = places[random_next(&state) % 4];
	return m;
}

static bool receives(const struct message *m)
{
	return m->how == HOW_SENDRECV || rank != m->from;
}

/* ---- Each kind by itself, at both ends ------------------------------------------------------ */

/* Begin both buffers or none. */
static bool begin(struct worker *w, int k)
{
	uint64_t seed = options.seed * 1000003 + (uint64_t)(k * 64 + w->index * 2 + rank);
	int good, all;

	w->skipped[k] = NULL;
	if (w->index && kinds[k]->flags & KIND_ALONE)
		w->skipped[k] = "one at a time";
	else
		w->skipped[k] = life_begin(&w->life[k], kinds[k], message_limit(options.max), seed);
	good = !w->skipped[k];
	w->lives[k] = good;
	MPI_Allreduce(&good, &all, 1, MPI_INT, MPI_MIN, w->comm);
	if (!all && good) {
		life_end(&w->life[k]);
		w->lives[k] = false;
		w->skipped[k] = "the other rank has none";
	}
	return all;
}

static void end(struct worker *w, int k)
{
	w->count[k].wrong += life_check(&w->life[k], "at its end");
	life_end(&w->life[k]);
	w->lives[k] = false;
}

/* A message between a buffer of kind k here, and one of any kind there; counted for one of them. */
static void pass(struct worker *w, struct message *m, int k, int counted)
{
	struct life *l = &w->life[k];

	m->number = w->messages++ * THREADS + (unsigned)w->index;
	w->count[counted].messages++;
	w->count[counted].wrong += life_change(l, m) + message_pass(m, l, options.seed, w->comm);
}

/* The first kind receives what is sent from memory that nothing can be received into. */
static void run_kind(struct worker *w, int k)
{
	bool send_only = kinds[k]->flags & KIND_SEND_ONLY;

	if (!begin(w, k))
		return;
	for (unsigned round = 0; round < options.rounds; round++) {
		struct message m = message_of(round, options.seed + (uint64_t)k);

		if (send_only && m.how == HOW_SENDRECV)
			m.how = HOW_SEND;
		pass(w, &m, send_only && receives(&m) ? 0 : k, k);
	}
	end(w, k);
}

/* The first kind lives together with all others. */
static void run_kinds(struct worker *w)
{
	if (!begin(w, 0))
		return;
	for (unsigned round = 0; round < options.rounds; round++) {
		struct message m = message_of(round, options.seed);

		pass(w, &m, 0, 0);
	}
	for (int k = 1; k < kind_count; k++)
		run_kind(w, k);
	end(w, 0);
}

/* ---- The random program ------------------------------------------------------------------------ */

/* For both ranks, kinds that can do what each does in the message: the same draws on both. */
static void draw_kinds(const bool *all, const struct message *m, uint64_t *state, int kind_of[2])
{
	for (int r = 0; r < 2; r++) {
		bool receives = m->how == HOW_SENDRECV || r != m->from;
		int k;

		do
			k = (int)(random_next(state) % (uint64_t)kind_count);
		while (!all[k] || (receives && kinds[k]->flags & KIND_SEND_ONLY));
		kind_of[r] = k;
	}
}

/* Known failures are left out: a message sent from it is wrong in good memory, too. */
static void run_random(struct worker *w)
{
	uint64_t state = options.seed * 104729 + (uint64_t)w->index;
	bool all[KINDS_MAX];
	int kind_of[2];

	for (int k = 0; k < kind_count; k++)
		all[k] = !(kinds[k]->flags & KIND_SHOWN) && begin(w, k);
	for (unsigned round = 0; round < options.rounds; round++) {
		struct message m = message_of((unsigned)(random_next(&state) % 64), options.seed);
		int k = (int)(random_next(&state) % (uint64_t)kind_count);

		draw_kinds(all, &m, &state, kind_of);
		m.peer = kinds[kind_of[1 - rank]]->name;
		pass(w, &m, kind_of[rank], kind_of[rank]);
		/* Now and then a life ends, and another begins. */
		if (all[k] && random_next(&state) % 16 == 0) {
			end(w, k);
			all[k] = begin(w, k);
		}
	}
	for (int k = 0; k < kind_count; k++)
		if (all[k])
			end(w, k);
}

/* ---- The program --------------------------------------------------------------------------------- */

static void *work(void *argument)
{
	struct worker *w = argument;

	if (options.random)
		run_random(w);
	else
		run_kinds(w);
	return NULL;
}

static void work_all(void)
{
	for (int t = 0; t < thread_count; t++) {
		workers[t].index = t;
		MPI_Comm_dup(MPI_COMM_WORLD, &workers[t].comm);
	}
	for (int t = 1; t < thread_count; t++)
		if (pthread_create(&workers[t].thread, NULL, work, &workers[t]))
			MPI_Abort(MPI_COMM_WORLD, 2);
	work(&workers[0]);
	for (int t = 1; t < thread_count; t++)
		pthread_join(workers[t].thread, NULL);
	for (int t = 0; t < thread_count; t++)
		MPI_Comm_free(&workers[t].comm);
}

/* Rank 0's table of both; returns the count of faults, or -1 without any message. */
static int report(void)
{
	struct count both;
	int wrong = 0, messages = 0;

	for (int k = 0; k < kind_count; k++) {
		struct count mine = {0, 0};

		for (int t = 0; t < thread_count; t++) {
			mine.messages += workers[t].count[k].messages;
			mine.wrong += workers[t].count[k].wrong;
		}
		MPI_Allreduce(&mine, &both, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
		messages += both.messages;
		if (!(kinds[k]->flags & KIND_SHOWN))
			wrong += both.wrong;
		if (rank)
			continue;
		if (!both.messages && !workers[0].skipped[k])
			continue;
		if (workers[0].skipped[k])
			printf("%-18s skipped: %s\n", kinds[k]->name, workers[0].skipped[k]);
		else
			printf("%-18s %4d wrong of %d%s\n", kinds[k]->name, both.wrong, both.messages,
			       kinds[k]->flags & KIND_SHOWN ? " (a documented limit)" : "");
	}
	if (!rank)
		printf("seed %llu: %d wrong\n", (unsigned long long)options.seed, wrong);
	fflush(stdout);
	return messages ? wrong : -1;
}

static void add_table(const struct kind *table, char **names)
{
	for (; table->name; table++) {
		char **name = names;

		while (*name && strcmp(*name, table->name))
			name++;
		if ((*name || !*names || !kind_count) && kind_count < KINDS_MAX)
			kinds[kind_count++] = table;
	}
}

static const struct kind *more_kinds(const char *file)
{
	void *object = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	const struct kind *table = object ? dlsym(object, "kinds") : NULL;

	if (!table) {
		fprintf(stderr, "lifecycle: %s\n", dlerror());
		exit(77);
	}
	return table;
}

static void parse(int argc, char **argv)
{
	static const struct option known[] = {
		{"rounds", 1, NULL, 'n'}, {"max", 1, NULL, 'm'}, {"seed", 1, NULL, 's'},
		{"random", 0, NULL, 'r'}, {"multiple", 0, NULL, 't'}, {"more", 1, NULL, 'k'},
		{"list", 0, NULL, 'l'}, {NULL, 0, NULL, 0},
	};
	const struct kind *tables[TABLES] = {map_kinds, heap_kinds, shared_kinds, thread_kinds, fork_kinds};
	int c, count = 5;
	bool list = false;

	while ((c = getopt_long(argc, argv, "", known, NULL)) != -1)
		switch (c) {
		case 'n': options.rounds = (unsigned)strtoul(optarg, NULL, 0); break;
		case 'm': options.max = strtoul(optarg, NULL, 0); break;
		case 's': options.seed = strtoull(optarg, NULL, 0); break;
		case 'r': options.random = true; break;
		case 't': options.multiple = true; break;
		case 'k':
			if (count < TABLES)
				tables[count++] = more_kinds(optarg);
			break;
		case 'l': list = true; break;
		default: exit(3);
		}
	for (int i = 0; i < count; i++)
		add_table(tables[i], argv + optind);
	if (kind_count < 2) {
		fprintf(stderr, "lifecycle: no such kind (--list shows them)\n");
		exit(3);
	}
	for (int k = 0; list && k < kind_count; k++)
		puts(kinds[k]->name);
	if (list)
		exit(0);
}

int lifecycle_main(int argc, char **argv)
{
	int wanted, provided, size, wrong;

	parse(argc, argv);
	heap_early(message_limit(options.max));
	wanted = options.multiple ? MPI_THREAD_MULTIPLE : MPI_THREAD_FUNNELED;
	MPI_Init_thread(&argc, &argv, wanted, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (size != 2 || provided < wanted) {
		fprintf(stderr, "lifecycle: skipped: %d ranks, not 2, or threads of level %d\n", size,
			provided);
		MPI_Finalize();
		return 77;
	}
	thread_count = options.multiple ? THREADS : 1;
	life_threaded = options.multiple;
	work_all();
	wrong = report();
	MPI_Finalize();
	return wrong < 0 ? 77 : wrong > 0;
}
