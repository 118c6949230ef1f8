# ---- tests/mpi: unmodified MPI programs -----------------------------------------------
# Unmodified MPI programs: they know the library only by its info key.
mpi_suites = tests/mpi/p2p_suite tests/mpi/type_suite tests/mpi/comm_suite tests/mpi/thread_suite \
	tests/mpi/random_programs tests/mpi/coll_suite tests/mpi/learn_suite tests/mpi/reduce_suite tests/mpi/everybody \
	tests/mpi/late_end tests/mpi/strides tests/mpi/calls_suite tests/mpi/beside_suite tests/mpi/spawn \
	tests/mpi/known_calls tests/mpi/mapping tests/mpi/mapping_costs tests/mpi/loading tests/mpi/lost tests/mpi/size_suite \
	tests/mpi/no_memory
check_PROGRAMS += $(mpi_suites) tests/mpi/assumptions
mapping_kit = tests/mpi/mapping_kit.c tests/mpi/mapping_kit.h
tests_mpi_mapping_SOURCES = tests/mpi/mapping.c $(mapping_kit)
tests_mpi_mapping_LDADD = $(MPI_LIBS) -lpthread
tests_mpi_mapping_costs_SOURCES = tests/mpi/mapping_costs.c $(mapping_kit)
# What programs do besides MPI: a stranger to the layer, which stands before it by railgauge exec.
tests_mpi_assumptions_SOURCES = tests/mpi/assumptions.c tests/mpi/assumptions.h \
	tests/mpi/assumptions_call.c tests/mpi/assumptions_error.c \
	tests/mpi/assumptions_finalize.c tests/mpi/assumptions_place.c \
	tests/mpi/assumptions_process.c tests/mpi/assumptions_signal.c \
	tests/mpi/assumptions_thread.c tests/mpi/suite.c tests/mpi/suite.h
tests_mpi_assumptions_LDADD = $(MPI_LIBS) -lpthread -ldl -lm
check_LTLIBRARIES += tests/mpi/assumptions_front.la
tests_mpi_assumptions_front_la_SOURCES = tests/mpi/assumptions_front.c
tests_mpi_assumptions_front_la_LIBADD = $(MPI_LIBS)
# -rpath: else no shared library is made of what is not installed.
tests_mpi_assumptions_front_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -rpath /nowhere
# A program that is not linked to MPI, and what it loads.
tests_mpi_loading_SOURCES = tests/mpi/loading.c tests/mpi/loading.h
tests_mpi_loading_LDADD = -ldl
check_LTLIBRARIES += tests/mpi/loading_module.la tests/mpi/loading_other.la \
	tests/mpi/loading_version.la
loading_ldflags = $(AM_LDFLAGS) -module -avoid-version -shared -rpath /nowhere
tests_mpi_loading_module_la_SOURCES = tests/mpi/loading_module.c
tests_mpi_loading_module_la_LIBADD = $(MPI_LIBS)
tests_mpi_loading_module_la_LDFLAGS = $(loading_ldflags)
tests_mpi_loading_other_la_SOURCES = tests/mpi/loading_other.c
tests_mpi_loading_other_la_LDFLAGS = $(loading_ldflags)
tests_mpi_loading_version_la_SOURCES = tests/mpi/loading_other.c
tests_mpi_loading_version_la_CPPFLAGS = $(AM_CPPFLAGS) -DLOADING_VERSION
tests_mpi_loading_version_la_LDFLAGS = $(loading_ldflags)
EXTRA_DIST += tests/mpi/loading.py
EXTRA_DIST += tests/mpi/tsan.sh
CLEANFILES += tests/mpi/tsan.log tests/mpi/tsan.trs
check_LTLIBRARIES += tests/mpi/unreached.la
tests_mpi_unreached_la_SOURCES = tests/mpi/unreached.c
tests_mpi_unreached_la_LIBADD = -ldl
tests_mpi_unreached_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -rpath /nowhere
# They need no symbol of the layer by name: a default of --as-needed would drop it.
mpi_program_ldflags = $(AM_LDFLAGS) -Wl,--no-as-needed
tests_mpi_p2p_suite_SOURCES = tests/mpi/p2p_suite.c tests/mpi/p2p_cancel.c \
	tests/mpi/p2p_done.c tests/mpi/p2p_requests.c tests/mpi/p2p.h \
	tests/mpi/suite.c tests/mpi/suite.h
tests_mpi_size_suite_SOURCES = tests/mpi/size_suite.c tests/mpi/size_memory.c tests/mpi/size_memory.h \
	tests/mpi/suite.c tests/mpi/suite.h
tests_mpi_size_suite_LDADD = $(RAILMPI_LIB) $(MPI_LIBS)
tests_mpi_size_suite_LDFLAGS = $(mpi_program_ldflags)
tests_mpi_type_suite_SOURCES = tests/mpi/type_suite.c tests/mpi/suite.c tests/mpi/suite.h
tests_mpi_comm_suite_SOURCES = tests/mpi/comm_suite.c tests/mpi/suite.c tests/mpi/suite.h \
	tests/capture.c tests/capture.h
tests_mpi_no_memory_SOURCES = tests/mpi/no_memory.c tests/mpi/suite.c tests/mpi/suite.h \
	tests/capture.c tests/capture.h
tests_mpi_no_memory_LDADD = $(RAILMPI_LIB) $(MPI_LIBS)
tests_mpi_no_memory_LDFLAGS = $(mpi_program_ldflags)
tests_mpi_calls_suite_SOURCES = tests/mpi/calls_suite.c tests/mpi/suite.c tests/mpi/suite.h
tests_mpi_calls_suite_LDADD = $(RAILMPI_LIB) $(MPI_LIBS)
tests_mpi_calls_suite_LDFLAGS = $(mpi_program_ldflags)
# A program that shares sources with a library has flags of its own, and so objects of its own.
tests_mpi_strides_CPPFLAGS = $(AM_CPPFLAGS)
tests_mpi_strides_SOURCES = tests/mpi/strides.c src/mpi/type/contents.c src/mpi/type/contents.h \
	src/mpi/type/strides.c src/mpi/type/strides_copy.c src/mpi/type/strides.h
tests_mpi_strides_LDADD = librg-util.la $(MPI_LIBS)
tests_mpi_lost_SOURCES = tests/mpi/lost.c tests/mpi/lost_waits.c tests/mpi/lost_waits.h tests/mpi/suite.c tests/mpi/suite.h
tests_mpi_lost_LDADD = $(RAILMPI_LIB) $(MPI_LIBS)
tests_mpi_lost_LDFLAGS = $(mpi_program_ldflags)
tests_mpi_spawn_LDADD = $(MPI_LIBS)
tests_mpi_known_calls_LDADD = $(RAILMPI_LIB) $(MPI_LIBS)
# Pointers to functions that the loader fills in and seals before the program begins.
tests_mpi_known_calls_LDFLAGS = $(mpi_program_ldflags) -Wl,-z,relro,-z,now
tests_mpi_beside_suite_SOURCES = tests/mpi/beside_suite.c tests/mpi/beside_turns.c \
	tests/mpi/beside.h tests/mpi/suite.c tests/mpi/suite.h
tests_mpi_beside_suite_LDADD = $(RAILMPI_LIB) $(MPI_LIBS)
tests_mpi_beside_suite_LDFLAGS = $(mpi_program_ldflags)
tests_mpi_thread_suite_SOURCES = tests/mpi/thread_suite.c tests/mpi/thread_allowed.c \
	tests/mpi/thread_forbidden.c tests/mpi/threads.h tests/mpi/suite.c tests/mpi/suite.h
tests_mpi_everybody_SOURCES = tests/mpi/everybody.c tests/mpi/suite.h
tests_mpi_everybody_LDADD = $(RAILMPI_LIB) $(MPI_LIBS)
tests_mpi_everybody_LDFLAGS = $(mpi_program_ldflags)
tests_mpi_late_end_LDADD = $(RAILMPI_LIB) $(MPI_LIBS)
tests_mpi_late_end_LDFLAGS = $(mpi_program_ldflags)
tests_mpi_random_programs_SOURCES = tests/mpi/random/arrivals.c tests/mpi/random/buffers.c \
	tests/mpi/random/collective.c tests/mpi/random/comms.c tests/mpi/random/main.c \
	tests/mpi/random/order.c tests/mpi/random/other.c tests/mpi/random/plan.c \
	tests/mpi/random/programs.h tests/mpi/random/receives.c tests/mpi/random/reduction.c \
	tests/mpi/random/run.c tests/mpi/random/sends.c tests/mpi/random/text.c \
	tests/mpi/random/types.c tests/mpi/random/wait.c
tests_mpi_random_programs_LDADD = $(RAILMPI_LIB) $(MPI_LIBS)
tests_mpi_random_programs_LDFLAGS = $(mpi_program_ldflags)
tests_mpi_learn_suite_SOURCES = tests/mpi/learn_suite.c tests/mpi/suite.c tests/mpi/suite.h
tests_mpi_learn_suite_LDADD = $(RAILMPI_LIB) $(MPI_LIBS)
tests_mpi_learn_suite_LDFLAGS = $(mpi_program_ldflags)
tests_mpi_coll_suite_SOURCES = tests/mpi/coll_suite.c tests/mpi/against.c tests/mpi/against.h \
	tests/mpi/suite.c tests/mpi/suite.h
tests_mpi_coll_suite_LDADD = $(RAILMPI_LIB) $(MPI_LIBS)
tests_mpi_coll_suite_LDFLAGS = $(mpi_program_ldflags)
tests_mpi_reduce_suite_SOURCES = tests/mpi/reduce_suite.c tests/mpi/against.c tests/mpi/against.h \
	tests/mpi/suite.c tests/mpi/suite.h
tests_mpi_reduce_suite_LDADD = $(RAILMPI_LIB) $(MPI_LIBS)
tests_mpi_reduce_suite_LDFLAGS = $(mpi_program_ldflags)
tests_mpi_p2p_suite_LDADD = $(RAILMPI_LIB) $(MPI_LIBS)
tests_mpi_p2p_suite_LDFLAGS = $(mpi_program_ldflags)
tests_mpi_type_suite_LDADD = $(RAILMPI_LIB) $(MPI_LIBS)
tests_mpi_type_suite_LDFLAGS = $(mpi_program_ldflags)
tests_mpi_comm_suite_LDADD = $(RAILMPI_LIB) $(MPI_LIBS)
tests_mpi_comm_suite_LDFLAGS = $(mpi_program_ldflags)
tests_mpi_thread_suite_LDADD = $(RAILMPI_LIB) $(MPI_LIBS)
tests_mpi_thread_suite_LDFLAGS = $(mpi_program_ldflags)
