# ---- memory and its life, under a registration cache: tests/memory -----------------------------
memory_sources = tests/memory/forks.c tests/memory/frame.c tests/memory/heap.c \
	tests/memory/lifecycle.c tests/memory/maps.c tests/memory/memory.h tests/memory/message.c \
	tests/memory/message.h tests/memory/shared.c tests/memory/threads.c
# As a program of its own, linked to the layer, and as a module that is loaded after the layer.
memory_programs = tests/memory/lifecycle tests/memory/lifecycle_rails tests/memory/late
check_PROGRAMS += $(memory_programs)
check_LTLIBRARIES += tests/memory/liblifecycle.la tests/memory/lifecycle_module.la
tests_memory_liblifecycle_la_SOURCES = $(memory_sources)
tests_memory_lifecycle_SOURCES = tests/memory/main.c
tests_memory_lifecycle_LDADD = tests/memory/liblifecycle.la $(MPI_LIBS)
tests_memory_lifecycle_LDFLAGS = $(AM_LDFLAGS) -no-install
tests_memory_lifecycle_rails_SOURCES = tests/memory/main.c
tests_memory_lifecycle_rails_LDADD = tests/memory/liblifecycle.la $(RAILMPI_LIB) $(MPI_LIBS)
tests_memory_lifecycle_rails_LDFLAGS = $(mpi_program_ldflags) -no-install
tests_memory_lifecycle_module_la_SOURCES =
tests_memory_lifecycle_module_la_LIBADD = tests/memory/liblifecycle.la $(MPI_LIBS)
tests_memory_lifecycle_module_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -rpath /nowhere
tests_memory_late_LDADD =
# Shared objects that the program itself opens.
memory_modules = tests/memory/module.so tests/memory/module_tls.so
if HAVE_CXX
memory_modules += tests/memory/containers.so
endif
if HAVE_FC
memory_modules += tests/memory/arrays.so
endif
check_DATA = $(memory_modules)
CLEANFILES += $(memory_modules) tests/memory/arrays.mod tests/memory/arrays-f.o
EXTRA_DIST += tests/memory/lib.sh tests/memory/long.sh tests/memory/module.c tests/memory/containers.cc tests/memory/arrays.c \
	tests/memory/arrays.f90
MEMORY_MODULE = $(CC) $(AM_CFLAGS) $(CFLAGS) -shared -fPIC
tests/memory/module.so tests/memory/module_tls.so: tests/memory/module.c tests/memory/memory.h
	$(AM_V_CC)$(MKDIR_P) tests/memory && $(MEMORY_MODULE) -o $@ $(srcdir)/tests/memory/module.c
tests/memory/containers.so: tests/memory/containers.cc tests/memory/memory.h
	$(AM_V_GEN)$(MKDIR_P) tests/memory && $(CXX) -g -O2 -Wall -Wextra -std=c++17 -shared -fPIC \
		-o $@ $(srcdir)/tests/memory/containers.cc
tests/memory/arrays.so: tests/memory/arrays.c tests/memory/arrays.f90 tests/memory/frame.c \
		tests/memory/memory.h
	$(AM_V_GEN)$(MKDIR_P) tests/memory && $(FC) -g -O2 -Wall -fPIC -J tests/memory -c \
		-o tests/memory/arrays-f.o $(srcdir)/tests/memory/arrays.f90 && \
	$(MEMORY_MODULE) -o $@ $(srcdir)/tests/memory/arrays.c $(srcdir)/tests/memory/frame.c \
		tests/memory/arrays-f.o -lgfortran
