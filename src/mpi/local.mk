# ---- src/mpi: librailmpi, one build per MPI library -------------------------------
AM_CPPFLAGS += -iquote $(top_srcdir)/src/mpi/coll
railmpi_sources = src/mpi/abi.h src/mpi/args.h src/mpi/bypass.c src/mpi/bypass.h src/mpi/calibrate.c \
	src/mpi/call_count.c src/mpi/call_count.h src/mpi/catch_up.c src/mpi/comm.c src/mpi/dispatch.h \
	src/mpi/dtype.c src/mpi/dump.c src/mpi/dump.h src/mpi/extensions.c \
	src/mpi/fortran.c src/mpi/greet.c src/mpi/init.c src/mpi/isendrecv.c src/mpi/layer.h \
	src/mpi/ledger.c src/mpi/library.c src/mpi/library.h src/mpi/loaded.c src/mpi/loaded.h src/mpi/match.c src/mpi/match.h src/mpi/match_order.c src/mpi/match_order.h src/mpi/native.c src/mpi/native.h \
	src/mpi/lost.c src/mpi/lost.h src/mpi/options.c src/mpi/p2p.c src/mpi/peers.c src/mpi/persist.c src/mpi/windows.c \
	src/mpi/request_status.c \
	src/mpi/pool.c src/mpi/pool.h src/mpi/probe.c src/mpi/progress.c \
	src/mpi/queue.h src/mpi/record.c src/mpi/record.h src/mpi/request.c src/mpi/request.h \
	src/mpi/send.c src/mpi/send.h src/mpi/contents.c src/mpi/contents.h src/mpi/strides.c \
	src/mpi/strides_copy.c src/mpi/strides.h src/mpi/trace.c src/mpi/trace.h src/mpi/unexpected.c \
	src/mpi/unexpected.h src/mpi/wait.c src/mpi/wait_many.c src/mpi/world.c src/mpi/world.h \
	src/mpi/coll/allgather.c src/mpi/coll/allreduce.c \
	src/mpi/coll/alltoall.c src/mpi/coll/barrier.c src/mpi/coll/bcast.c \
	src/mpi/coll/coll.c src/mpi/coll/coll.h src/mpi/coll/coll_data.c \
	src/mpi/coll/coll_file.c src/mpi/coll/coll_op.c \
	src/mpi/coll/coll_types.c src/mpi/coll/reduce.c src/mpi/coll/rooted.c \
	src/mpi/coll/scan.c
# What stays native, from the list that the tests hold against the libraries' functions.
AM_CPPFLAGS += -iquote src/mpi
BUILT_SOURCES += src/mpi/calls_list.h
CLEANFILES += src/mpi/calls_list.h
EXTRA_DIST += src/mpi/calls.txt src/mpi/calls.awk
src/mpi/call_count.lo: src/mpi/calls_list.h
src/mpi/calls_list.h: src/mpi/calls.txt src/mpi/calls.awk
	$(AM_V_GEN)$(MKDIR_P) src/mpi && $(AWK) -f $(srcdir)/src/mpi/calls.awk \
		$(srcdir)/src/mpi/calls.txt >$@.tmp && mv $@.tmp $@
railmpi_libadd = librail-core.la
# Nothing of what is embedded may meet a symbol of the same name elsewhere: see the map.
railmpi_ldflags = $(AM_LDFLAGS) -version-info 0:0:0 \
	-Wl,--version-script=$(srcdir)/src/mpi/librailmpi.map $(RG_DEFS_LDFLAGS) -Wl,-z,now
include_HEADERS += src/mpi/railmpi.h
EXTRA_DIST += src/mpi/librailmpi.map src/mpi/librailmpi.pc.in
if MPI_OPENMPI
lib_LTLIBRARIES += librailmpi-openmpi.la
librailmpi_openmpi_la_SOURCES = $(railmpi_sources)
librailmpi_openmpi_la_LIBADD = $(railmpi_libadd) $(MPI_LIBS)
librailmpi_openmpi_la_LDFLAGS = $(railmpi_ldflags)
pkgconfig_DATA += src/mpi/librailmpi-openmpi.pc
endif
if MPI_MPICH
lib_LTLIBRARIES += librailmpi-mpich.la
librailmpi_mpich_la_SOURCES = $(railmpi_sources)
librailmpi_mpich_la_LIBADD = $(railmpi_libadd) $(MPI_LIBS)
librailmpi_mpich_la_LDFLAGS = $(railmpi_ldflags)
pkgconfig_DATA += src/mpi/librailmpi-mpich.pc
endif
