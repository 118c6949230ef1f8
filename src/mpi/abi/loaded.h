/*
 * loaded.h - the objects that the loader has loaded, and their symbols.
 *
 * A look-up of a function of MPI in the MPI library alone (dlsym with its handle: ctypes, MPI.jl,
 * wi4mpi; objects loaded with RTLD_DEEPBIND) finds the layer's.  A program whose calls of MPI go
 * past the layer is told so.
 */
#ifndef RAILMPI_LOADED_H
#define RAILMPI_LOADED_H

#include <stdbool.h>
#include <stddef.h>

#pragma GCC visibility push(hidden)

/*
 * Set the addresses of the layer's functions in the library's symbol table.  `function` is a
 * function of the library.  `guard`, if not NULL, names one more function that the guard's own
 * replaces.  NULL, or the reason why it is impossible here.
 */
struct loaded_guard {
	const char *name;
	const void *with;
	void *before;			/* out: the library's own; NULL: it has none of that name */
};
const char *loaded_redirect(const void *function, struct loaded_guard *guard);

/*
 * Put functions before those of MPI, for the rest of the process: in the pointers that objects have
 * been linked with, and in the symbol tables of the layer and of the library, for objects and look-ups
 * to come.  A call by a pointer that the program has looked up before goes past.  `function` is a
 * function of the library.  NULL, or the reason why it is impossible here.
 */
struct loaded_entry {
	const char *name;		/* without MPI_; the entries are in the order of strcmp */
	const void *with;		/* the new function, for MPI_NAME and PMPI_NAME */
	const void *before;		/* out: the layer's or the library's; NULL: there is none */
};
const char *loaded_replace(const void *function, struct loaded_entry *entry, int count);

/*
 * A search finds the layer, which is preloaded, before a profiling tool that is linked.  The tool's
 * functions go before the layer's, as natively before the library's; their calls of PMPI lead to the
 * layer.  `function` is a function of the library.  NULL, or the reason why it is impossible here.
 */
const char *loaded_tools(const void *function);

/*
 * The program's own search for functions of MPI ends at the layer.  A tool may come before the
 * layer.
 */
bool loaded_in_front(void);

/* The file of the object that holds this function; "?" if it is not known. */
const char *loaded_file(const void *function);

/*
 * The file of a library in the process that defines MPI and is neither the layer nor the library
 * that holds `function`; NULL: there is none.  `initialized`: only a library whose MPI_Init has
 * been called.
 */
const char *loaded_other_mpi(const void *function, bool initialized);

#pragma GCC visibility pop

#endif
