/*
 * loaded.c - see loaded.h.
 *
 * The loader, dlsym included, computes the address of a symbol from its entry in the symbol table of
 * the object that defines it, at each look-up.  So an entry with another value redirects all later
 * look-ups, by whatever search they got there.  The layer has the library's own addresses by then
 * (native.c).  Nothing else reads the entries but dladdr, which finds no name for them.
 */
#include "config.h"

#include "mpi/abi/loaded.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mpi/abi/native.h"

struct object {
	ElfW(Addr) base;
	const char *file;
	const ElfW(Phdr) *segment;
	int segments;
	ElfW(Sym) *symbol;
	const char *names;
	const uint32_t *buckets, *chains;	/* the GNU hash table */
	uint32_t bucket_count, first;		/* first: the lowest symbol in it */
};

/* ---- Symbols of an object ------------------------------------------------------------------ */

/* The loader has added the base to pointers of a section that it may write to. */
static void *pointer_of(const struct object *o, ElfW(Addr) value)
{
	return (void *)(value < o->base ? value + o->base : value);
}

static void hash_open(struct object *o, const uint32_t *table)
{
	const uint32_t bloom_words = table[2] * (uint32_t)(sizeof(ElfW(Addr)) / sizeof(uint32_t));

	o->bucket_count = table[0];
	o->first = table[1];
	o->buckets = table + 4 + bloom_words;
	o->chains = o->buckets + o->bucket_count;
}

/* False: it has no symbols that can be looked up in this way. */
static bool object_open(struct object *o, const struct dl_phdr_info *info)
{
	const ElfW(Dyn) *d = NULL;

	*o = (struct object){ .base = info->dlpi_addr, .file = info->dlpi_name,
			      .segment = info->dlpi_phdr, .segments = info->dlpi_phnum };
	for (int i = 0; i < o->segments; i++)
		if (o->segment[i].p_type == PT_DYNAMIC)
			d = (const ElfW(Dyn) *)(o->base + o->segment[i].p_vaddr);
	for (; d && d->d_tag != DT_NULL; d++) {
		if (d->d_tag == DT_SYMTAB)
			o->symbol = pointer_of(o, d->d_un.d_ptr);
		else if (d->d_tag == DT_STRTAB)
			o->names = pointer_of(o, d->d_un.d_ptr);
		else if (d->d_tag == DT_GNU_HASH)
			hash_open(o, pointer_of(o, d->d_un.d_ptr));
	}
	return o->symbol && o->names && o->bucket_count;
}

static bool is_function(const ElfW(Sym) *s)
{
	return (s->st_info & 0xf) == STT_FUNC && s->st_shndx != SHN_UNDEF;
}

static uint32_t hash_of(const char *name)
{
	uint32_t h = 5381;

	for (; *name; name++)
		h = h * 33 + (unsigned char)*name;
	return h;
}

/* A function that the object defines, or NULL. */
static ElfW(Sym) *function_of(const struct object *o, const char *name)
{
	const uint32_t hash = hash_of(name);
	uint32_t i = o->buckets[hash % o->bucket_count];

	if (i < o->first)
		return NULL;
	for (; ; i++) {
		const uint32_t h = o->chains[i - o->first];

		if ((h | 1) == (hash | 1) && is_function(&o->symbol[i]) &&
		    !strcmp(o->names + o->symbol[i].st_name, name))
			return &o->symbol[i];
		if (h & 1)
			return NULL;
	}
}

static bool object_holds(const struct object *o, const void *address)
{
	const ElfW(Addr) at = (ElfW(Addr))address - o->base;

	for (int i = 0; i < o->segments; i++)
		if (o->segment[i].p_type == PT_LOAD && at - o->segment[i].p_vaddr < o->segment[i].p_memsz)
			return true;
	return false;
}

/* ---- Which object ---------------------------------------------------------------------------- */

/* An address in the layer. */
static const char here[1];

struct search {
	const void *address;
	struct object found;
};

static int search_holder(struct dl_phdr_info *info, size_t size, void *user)
{
	struct search *s = user;

	return object_open(&s->found, info) && object_holds(&s->found, s->address);
}

static bool object_with(const void *address, struct object *o)
{
	struct search s = { .address = address };
	bool found = dl_iterate_phdr(search_holder, &s);

	*o = s.found;
	return found;
}

const char *loaded_file(const void *function)
{
	struct object o;

	return object_with(function, &o) && o.file && *o.file ? o.file : "?";
}

struct other {
	const void *native;
	int skip;			/* objects left out so far */
	const char *file;
	int (*initialized)(int *flag);
};

static int search_other(struct dl_phdr_info *info, size_t size, void *user)
{
	struct other *other = user;
	const ElfW(Sym) *asked;
	struct object o;

	if (!object_open(&o, info) || !function_of(&o, "PMPI_Init") ||
	    object_holds(&o, other->native) || object_holds(&o, here) || other->skip-- > 0)
		return 0;
	asked = function_of(&o, "PMPI_Initialized");
	if (asked)
		*(void **)&other->initialized = (void *)(o.base + asked->st_value);
	other->file = o.file && *o.file ? o.file : "the program itself";
	return 1;
}

const char *loaded_other_mpi(const void *function, bool initialized)
{
	for (int n = 0; ; n++) {
		struct other other = { .native = function, .skip = n };
		int flag = 0;

		if (!dl_iterate_phdr(search_other, &other))
			return NULL;
		if (!initialized)
			return other.file;
		if (other.initialized && !other.initialized(&flag) && flag)
			return other.file;
	}
}

bool loaded_in_front(void)
{
	void *program = dlopen(NULL, RTLD_LAZY);
	struct object ours;
	bool first;

	if (!program)
		return false;
	first = object_with(here, &ours) && object_holds(&ours, dlsym(program, "PMPI_Init"));
	dlclose(program);
	return first;
}

/* ---- The redirection ------------------------------------------------------------------------- */

static bool is_name_of_mpi(const char *name)
{
	name += *name == 'P';
	return !strncmp(name, "MPI_", 4) || !strncmp(name, "MPIX_", 5);
}

/* The symbols that an object defines are those from o->first up to this one, which is the last chain's end. */
static uint32_t symbols_end(const struct object *o)
{
	uint32_t i = 0;

	for (uint32_t b = 0; b < o->bucket_count; b++)
		i = o->buckets[b] > i ? o->buckets[b] : i;
	if (i < o->first)
		return o->first;
	while (!(o->chains[i - o->first] & 1))
		i++;
	return i + 1;
}

/* Each function of MPI that `ours` has leads from `theirs` to it. */
static void redirect_all(const struct object *ours, struct object *theirs)
{
	const uint32_t end = symbols_end(ours);

	for (uint32_t i = ours->first; i < end; i++) {
		const ElfW(Sym) *mine = &ours->symbol[i];
		const char *name = ours->names + mine->st_name;
		ElfW(Sym) *s = is_function(mine) && is_name_of_mpi(name) ? function_of(theirs, name) : NULL;

		if (s)
			s->st_value = ours->base + mine->st_value - theirs->base;
	}
}

static void redirect_one(struct object *theirs, struct loaded_guard *guard)
{
	ElfW(Sym) *s = function_of(theirs, guard->name);

	if (!s)
		return;
	guard->before = (void *)(theirs->base + s->st_value);
	s->st_value = (ElfW(Addr))guard->with - theirs->base;
}

/* The whole pages of the segment that holds the table, and their protection. */
static bool pages_of(const struct object *o, void **at, size_t *bytes, int *protection)
{
	const ElfW(Addr) page = (ElfW(Addr))sysconf(_SC_PAGESIZE);
	const ElfW(Addr) table = (ElfW(Addr))o->symbol - o->base;

	for (int i = 0; i < o->segments; i++) {
		const ElfW(Phdr) *s = &o->segment[i];
		ElfW(Addr) from = (o->base + s->p_vaddr) & ~(page - 1);

		if (s->p_type != PT_LOAD || table - s->p_vaddr >= s->p_memsz)
			continue;
		*at = (void *)from;
		*bytes = o->base + s->p_vaddr + s->p_memsz - from;
		*protection = (s->p_flags & PF_R ? PROT_READ : 0) |
			      (s->p_flags & PF_W ? PROT_WRITE : 0) |
			      (s->p_flags & PF_X ? PROT_EXEC : 0);
		return true;
	}
	return false;
}

const char *loaded_redirect(const void *function, struct loaded_guard *guard)
{
	struct object ours, theirs;
	int protection;
	size_t bytes;
	void *at;

	if (!object_with(here, &ours) || !object_with(function, &theirs) ||
	    !pages_of(&theirs, &at, &bytes, &protection))
		return "it has no GNU hash table";
	if (mprotect(at, bytes, protection | PROT_WRITE))
		return strerror(errno);
	redirect_all(&ours, &theirs);
	if (guard)
		redirect_one(&theirs, guard);
	mprotect(at, bytes, protection);
	return NULL;
}

/* ---- Functions put before -------------------------------------------------------------------- */

#if __ELF_NATIVE_CLASS == 64
#define SYMBOL_OF(info) ELF64_R_SYM(info)
#else
#define SYMBOL_OF(info) ELF32_R_SYM(info)
#endif

struct replace {
	struct loaded_entry *entry;
	int count;
	bool failed;
	const struct object *aside;	/* whose pointers stay; calls of PMPI_NAME stay, too; or NULL */
};

static int entry_compare(const void *name, const void *entry)
{
	return strcmp(name, ((const struct loaded_entry *)entry)->name);
}

/* The entry of MPI_NAME or PMPI_NAME, or NULL. */
static struct loaded_entry *entry_of(const struct replace *r, const char *name)
{
	name += *name == 'P' && !r->aside;
	if (strncmp(name, "MPI_", 4))
		return NULL;
	return bsearch(name + 4, r->entry, (size_t)r->count, sizeof(r->entry[0]), entry_compare);
}

/* Is the slot on a page that the loader has made read-only after it had filled it in? */
static bool is_sealed(const struct object *o, ElfW(Addr) at, ElfW(Addr) page)
{
	for (int i = 0; i < o->segments; i++) {
		const ElfW(Phdr) *s = &o->segment[i];
		const ElfW(Addr) from = (o->base + s->p_vaddr) & ~(page - 1);
		const ElfW(Addr) to = (o->base + s->p_vaddr + s->p_memsz) & ~(page - 1);

		if (s->p_type == PT_GNU_RELRO && at >= from && at < to)
			return true;
	}
	return false;
}

static void slot_replace(const struct object *o, struct replace *r, const void **slot, const void *with)
{
	const ElfW(Addr) page = (ElfW(Addr))sysconf(_SC_PAGESIZE);
	void *at = (void *)((ElfW(Addr))slot & ~(page - 1));
	const bool sealed = is_sealed(o, (ElfW(Addr))slot, page);

	if (sealed && mprotect(at, page, PROT_READ | PROT_WRITE)) {
		r->failed = true;
		return;
	}
	__atomic_store_n(slot, with, __ATOMIC_RELEASE);
	if (sealed)
		mprotect(at, page, PROT_READ);
}

/* Pointers to the function that is replaced; one that is not yet looked up finds the new one. */
static void slots_replace(const struct object *o, struct replace *r, const char *table, size_t bytes,
			  size_t each)
{
	for (const char *end = table + bytes; table && each && table + each <= end; table += each) {
		ElfW(Rel) relocation;	/* a RELA begins with one */
		const struct loaded_entry *e;
		const void **slot;

		memcpy(&relocation, table, sizeof(relocation));
		if (!SYMBOL_OF(relocation.r_info))
			continue;
		e = entry_of(r, o->names + o->symbol[SYMBOL_OF(relocation.r_info)].st_name);
		slot = (const void **)(o->base + relocation.r_offset);
		if (e && e->before && *slot == e->before)
			slot_replace(o, r, slot, e->with);
	}
}

static int object_replace(struct dl_phdr_info *info, size_t size, void *user)
{
	const char *table[2] = { NULL, NULL };	/* of data, of calls */
	size_t bytes[2] = { 0, 0 }, each[2] = { 0, sizeof(ElfW(Rela)) };
	const struct replace *r = user;
	const ElfW(Dyn) *d = NULL;
	struct object o;

	object_open(&o, info);
	for (int i = 0; i < o.segments; i++)
		if (o.segment[i].p_type == PT_DYNAMIC)
			d = (const ElfW(Dyn) *)(o.base + o.segment[i].p_vaddr);
	if (!d || !o.symbol || !o.names || (r->aside && r->aside->base == o.base))
		return 0;
	for (; d->d_tag != DT_NULL; d++) {
		switch (d->d_tag) {
		case DT_RELA: case DT_REL: table[0] = pointer_of(&o, d->d_un.d_ptr); break;
		case DT_RELASZ: case DT_RELSZ: bytes[0] = d->d_un.d_val; break;
		case DT_RELAENT: case DT_RELENT: each[0] = d->d_un.d_val; break;
		case DT_JMPREL: table[1] = pointer_of(&o, d->d_un.d_ptr); break;
		case DT_PLTRELSZ: bytes[1] = d->d_un.d_val; break;
		case DT_PLTREL:
			each[1] = d->d_un.d_val == DT_RELA ? sizeof(ElfW(Rela)) : sizeof(ElfW(Rel));
			break;
		default: break;
		}
	}
	for (int i = 0; i < 2; i++)
		slots_replace(&o, user, table[i], bytes[i], each[i]);
	return 0;
}

static ElfW(Sym) *named(const struct object *o, const char *before, const char *name)
{
	char whole[64];

	snprintf(whole, sizeof(whole), "%s%s", before, name);
	return function_of(o, whole);
}

/* The functions as a look-up finds them: the layer's, else the library's. */
static void entries_find(const struct replace *r, const struct object *ours, const struct object *theirs)
{
	for (int i = 0; i < r->count; i++) {
		struct loaded_entry *e = &r->entry[i];
		const ElfW(Sym) *mine = named(ours, "MPI_", e->name), *s = mine;

		if (!s)
			s = named(theirs, "MPI_", e->name);
		e->before = s ? (void *)((mine ? ours : theirs)->base + s->st_value) : NULL;
	}
}

static bool symbols_replace(const struct replace *r, const struct object *o)
{
	static const char *const before[] = { "MPI_", "PMPI_" };
	int protection;
	size_t bytes;
	void *at;

	if (!pages_of(o, &at, &bytes, &protection) || mprotect(at, bytes, protection | PROT_WRITE))
		return false;
	for (int i = 0; i < r->count; i++)
		for (size_t b = 0; b < (r->aside ? 1 : sizeof(before) / sizeof(before[0])); b++) {
			const struct loaded_entry *e = &r->entry[i];
			ElfW(Sym) *s = e->before ? named(o, before[b], e->name) : NULL;

			if (s && o->base + s->st_value == (ElfW(Addr))e->before)
				s->st_value = (ElfW(Addr))e->with - o->base;
		}
	mprotect(at, bytes, protection);
	return true;
}

const char *loaded_replace(const void *function, struct loaded_entry *entry, int count)
{
	struct replace r = { .entry = entry, .count = count };
	struct object ours, theirs;

	if (!object_with(here, &ours) || !object_with(function, &theirs))
		return "an object has no GNU hash table";
	entries_find(&r, &ours, &theirs);
	if (!symbols_replace(&r, &ours) || !symbols_replace(&r, &theirs))
		return strerror(errno);
	dl_iterate_phdr(object_replace, &r);
	return r.failed ? "pages cannot be written to" : NULL;
}

/* ---- Linked tools ------------------------------------------------------------------------------- */

static int entry_order(const void *a, const void *b)
{
	return strcmp(((const struct loaded_entry *)a)->name, ((const struct loaded_entry *)b)->name);
}

/* The functions that a search without the layer finds before the library's. */
static int tools_find(const struct object *ours, const struct object *theirs, uint32_t end,
		      struct loaded_entry *entry)
{
	int count = 0;

	for (uint32_t i = ours->first; i < end; i++) {
		const ElfW(Sym) *mine = &ours->symbol[i];
		const char *name = ours->names + mine->st_name;
		const void *next = is_function(mine) && !strncmp(name, "MPI_", 4) ? dlsym(RTLD_NEXT, name) : NULL;

		if (next && !object_holds(theirs, next) && !object_holds(ours, next))
			entry[count++] = (struct loaded_entry){
				.name = name + 4, .with = next,
				.before = (void *)(ours->base + mine->st_value) };
	}
	qsort(entry, (size_t)count, sizeof(*entry), entry_order);
	return count;
}

const char *loaded_tools(const void *function)
{
	struct object ours, theirs;
	struct replace r = { .aside = &ours };
	const char *why = NULL;
	uint32_t end;

	if (!object_with(here, &ours) || !object_with(function, &theirs))
		return "an object has no GNU hash table";
	end = symbols_end(&ours);
	r.entry = calloc(end - ours.first + 1, sizeof(*r.entry));
	if (!r.entry)
		return strerror(ENOMEM);
	r.count = tools_find(&ours, &theirs, end, r.entry);
	if (r.count && !symbols_replace(&r, &ours))
		why = strerror(errno);
	else if (r.count)
		dl_iterate_phdr(object_replace, &r);
	free(r.entry);
	return r.failed ? "pages cannot be written to" : why;
}
