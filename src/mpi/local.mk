# ---- src/mpi: librailmpi, one build per MPI library -------------------------------
railmpi_sources = \
	src/mpi/abi/abi.h src/mpi/abi/args.h src/mpi/abi/bypass.c src/mpi/abi/bypass.h \
	src/mpi/abi/dispatch.h src/mpi/abi/endpoints_stay.h src/mpi/abi/extensions.c \
	src/mpi/abi/fortran.c src/mpi/abi/fortran.h src/mpi/abi/loaded.c src/mpi/abi/loaded.h \
	src/mpi/abi/native.c src/mpi/abi/native.h \
	src/mpi/coll/allgather.c src/mpi/coll/allreduce.c src/mpi/coll/alltoall.c \
	src/mpi/coll/barrier.c src/mpi/coll/bcast.c src/mpi/coll/coll.c src/mpi/coll/coll.h \
	src/mpi/coll/coll_agree.c src/mpi/coll/coll_agree.h \
	src/mpi/coll/coll_data.c src/mpi/coll/coll_data.h src/mpi/coll/coll_file.c \
	src/mpi/coll/coll_file.h src/mpi/coll/coll_job.c src/mpi/coll/coll_job.h \
	src/mpi/coll/coll_kept.c src/mpi/coll/coll_kept.h src/mpi/coll/coll_learn.c src/mpi/coll/coll_learn.h src/mpi/coll/coll_op.c src/mpi/coll/coll_op.h \
	src/mpi/coll/coll_types.c src/mpi/coll/coll_types.h src/mpi/coll/reduce.c \
	src/mpi/coll/rooted.c src/mpi/coll/scan.c \
	src/mpi/comm/comm.c src/mpi/comm/comm.h src/mpi/comm/comm_table.c \
	src/mpi/comm/comm_table.h src/mpi/comm/lost.c src/mpi/comm/lost.h src/mpi/comm/peers.c \
	src/mpi/comm/peers.h src/mpi/comm/windows.c \
	src/mpi/job/calibrate.c src/mpi/job/calibrate.h src/mpi/job/catch_up.c \
	src/mpi/job/catch_up.h src/mpi/job/agree.c src/mpi/job/agree.h src/mpi/job/common_rails.c src/mpi/job/common_rails.h src/mpi/job/find_rails.c src/mpi/job/find_rails.h \
	src/mpi/job/rail_net.c src/mpi/job/rail_choice.c src/mpi/job/rail_choice.h src/mpi/job/rail_choice_text.c \
	src/mpi/job/handshake.c src/mpi/job/handshake.h src/mpi/job/hello.c src/mpi/job/hello.h src/mpi/job/domains.c src/mpi/job/domains.h \
	src/mpi/job/init.c src/mpi/job/launched.c src/mpi/job/launched.h src/mpi/job/library.c src/mpi/job/library.h src/mpi/job/options.c \
	src/mpi/job/options.h src/mpi/job/places.c src/mpi/job/places.h \
	src/mpi/job/progress.c src/mpi/job/progress.h src/mpi/job/start_coll.c src/mpi/job/start_coll.h src/mpi/job/world.c \
	src/mpi/job/world.h \
	src/mpi/p2p/isendrecv.c src/mpi/p2p/match.c src/mpi/p2p/match.h \
	src/mpi/p2p/match_order.c src/mpi/p2p/match_order.h src/mpi/p2p/p2p.c \
	src/mpi/p2p/persist.c src/mpi/p2p/pool.c src/mpi/p2p/pool.h src/mpi/p2p/probe.c \
	src/mpi/p2p/queue.h src/mpi/p2p/request.c src/mpi/p2p/request.h \
	src/mpi/p2p/request_status.c src/mpi/p2p/send.c src/mpi/p2p/send.h \
	src/mpi/p2p/unexpected.c src/mpi/p2p/unexpected.h src/mpi/p2p/wait.c \
	src/mpi/p2p/wait_many.c \
	src/mpi/type/contents.c src/mpi/type/contents.h src/mpi/type/dtype.c \
	src/mpi/type/dtype.h src/mpi/type/strides.c src/mpi/type/strides.h \
	src/mpi/type/strides_copy.c src/mpi/type/strides_copy.h \
	src/mpi/watch/call_count.c src/mpi/watch/call_count.h src/mpi/watch/call_table.c \
	src/mpi/watch/call_table.h src/mpi/watch/call_time.c src/mpi/watch/call_time.h src/mpi/watch/dump.c \
	src/mpi/watch/dump.h src/mpi/watch/ledger.c src/mpi/watch/learned.c src/mpi/watch/learned.h \
	src/mpi/watch/sizes.c src/mpi/watch/sizes.h src/mpi/watch/timed_calls.h src/mpi/watch/tell.c src/mpi/watch/tell.h src/mpi/watch/trace.c src/mpi/watch/trace.h
# What stays native, from the list that the tests hold against the libraries' functions.
BUILT_SOURCES += src/mpi/abi/calls_list.h
CLEANFILES += src/mpi/abi/calls_list.h
EXTRA_DIST += src/mpi/abi/calls.txt src/mpi/abi/calls.awk
src/mpi/watch/call_table.lo: src/mpi/abi/calls_list.h
src/mpi/abi/calls_list.h: src/mpi/abi/calls.txt src/mpi/abi/calls.awk
	$(AM_V_GEN)$(MKDIR_P) src/mpi/abi && $(AWK) -f $(srcdir)/src/mpi/abi/calls.awk \
		$(srcdir)/src/mpi/abi/calls.txt >$@.tmp && mv $@.tmp $@
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
