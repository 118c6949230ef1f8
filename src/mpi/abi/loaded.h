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
