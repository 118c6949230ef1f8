# ---- src/verbs, src/rail: librail -------------------------------------------------
# librail-core is what librail and librailmpi are made of.
include_HEADERS += src/rail/rail.h
noinst_LTLIBRARIES += librail-core.la
librail_core_la_SOURCES = \
	src/verbs/vrb.h src/verbs/port.c src/verbs/look.c src/verbs/adapter.c src/verbs/qp.c \
	src/verbs/cq.c src/verbs/ud.c src/verbs/choose.c src/verbs/counters.c src/verbs/fork.c \
	src/rail/bound_rail.c src/rail/cancel.c src/rail/chunks.c src/rail/connect.c \
	src/rail/cq.c src/rail/eager.c src/rail/edges.c src/rail/landing.c src/rail/lane.c \
	src/rail/lane_ring.c \
	src/rail/lane_send.c src/rail/ledger.c src/rail/mapped.c src/rail/memory.c src/rail/mr.c \
	src/rail/on_demand.c src/rail/open.c src/rail/options.c src/rail/parts.c src/rail/peer.c \
	src/rail/peer_end.c src/rail/peer_failure.c src/rail/policy.c src/rail/pool.c src/rail/progress.c \
	src/rail/queues.c src/rail/rate_estimate.c src/rail/reach.c src/rail/rndv.c src/rail/rndv_receive.c \
	src/rail/rndv_send.c src/rail/select.c \
	src/rail/shared_limit.c src/rail/stripe.c src/rail/table.c src/rail/trace.c src/rail/way.c \
	src/rail/bound_rail.h src/rail/cancel.h src/rail/chunks.h src/rail/eager.h \
	src/rail/eager_lane.h src/rail/edges.h src/rail/endpoint_info.h src/rail/foreign_writes.h \
	src/rail/landing.h src/rail/lane.h src/rail/mapped.h \
	src/rail/lane_ring.h src/rail/lane_send.h src/rail/likely.h src/rail/mr.h \
	src/rail/on_demand.h src/rail/op_queue.h src/rail/parts.h src/rail/peer_end.h src/rail/peer_failure.h src/rail/policy.h \
	src/rail/rail_connect.h src/rail/rail_cq.h src/rail/rail_ctx.h src/rail/rail_memory.h \
	src/rail/rail_op.h src/rail/rail_options.h src/rail/rail_peer.h src/rail/rail_pool.h \
	src/rail/rail_record.h src/rail/rail_select.h src/rail/rail_trace.h \
	src/rail/rate_estimate.h src/rail/reach.h src/rail/ring.h src/rail/rndv.h \
	src/rail/shared_limit.h src/rail/staging.h src/rail/stripe.h \
	src/rail/table.h src/rail/wr_id.h
librail_core_la_LIBADD = libsofthca-core.la librg-topo.la librg-util.la
lib_LTLIBRARIES += librail.la
librail_la_SOURCES =
librail_la_LIBADD = librail-core.la
librail_la_LDFLAGS = $(AM_LDFLAGS) -version-info 0:0:0 \
	-Wl,--version-script=$(srcdir)/src/rail/librail.map
EXTRA_librail_la_DEPENDENCIES = src/rail/librail.map
EXTRA_DIST += src/rail/librail.map
pkgconfig_DATA += src/rail/librail.pc
