/*
 * loaded.h - the objects that the loader has loaded: their symbols, and what these lead to.
 *
 * A look-up of a function of MPI in the MPI library alone (dlsym with its handle: ctypes, MPI.jl,
 * wi4mpi; objects loaded with RTLD_DEEPBIND) is to find the layer's.  And a program whose calls of
 * MPI go past the layer is to be told so.
 */
#ifndef RAILMPI_LOADED_H
#define RAILMPI_LOADED_H

#include <stdbool.h>
#include <stddef.h>

#pragma GCC visibility push(hidden)

/*
 * In the library's symbol table, set the addresses of the functions that the layer has to the layer's.
 * `function` is one of the library.  NULL, or why that is not possible here.  `guard`, if not NULL: of
 * one more function, by name, which the guard stands before.
 */
struct loaded_guard {
	const char *name;
	const void *with;
	void *before;			/* out: the library's own; NULL: it has none of that name */
};
const char *loaded_redirect(const void *function, struct loaded_guard *guard);

/* Does the program's own search for functions of MPI end at the layer?  A tool may come before it. */
bool loaded_in_front(void);

/* The file of the object that holds this function; "?" if it is not known. */
const char *loaded_file(const void *function);

/*
 * A library in the process that defines MPI, and is neither the layer nor the one that holds
 * `function`: its file, or NULL.  `initialized`: only one in which MPI_Init has been called.
 */
const char *loaded_other_mpi(const void *function, bool initialized);

#pragma GCC visibility pop

#endif
