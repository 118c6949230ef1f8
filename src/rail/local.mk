# ---- src/verbs, src/rail: librail -------------------------------------------------
# librail-core is what librail and librailmpi are made of.
include_HEADERS += src/rail/rail.h
# rail.h and railmpi.h include these.
railincludedir = $(includedir)/rail
railinclude_HEADERS = src/rail/learned.h src/rail/ledger.h
noinst_LTLIBRARIES += librail-core.la
librail_core_la_SOURCES = \
	src/verbs/vrb.h src/verbs/absent.c src/verbs/cgroup.c src/verbs/port.c src/verbs/look.c src/verbs/adapter.c src/verbs/qp.c \
	src/verbs/cq.c src/verbs/event.c src/verbs/refused.c src/verbs/ud.c src/verbs/choose.c src/verbs/counters.c src/verbs/fork.c src/verbs/tables.c src/verbs/sysfs.c src/verbs/sysfs.h \
	src/rail/peer/bound_rail.c src/rail/message/cancel.c src/rail/message/chunks.c src/rail/peer/connect.c \
	src/rail/lane/cq.c src/rail/message/eager.c src/rail/message/edges.c src/rail/message/landing.c src/rail/lane/lane.c \
	src/rail/lane/lane_ring.c \
	src/rail/lane/lane_send.c src/rail/open/events.c src/rail/open/limits.c src/rail/open/ledger.c src/rail/memory/mapped.c src/rail/memory/map_choice.c src/rail/memory/map_learner.c src/rail/memory/memory.c src/rail/memory/mr.c \
	src/rail/peer/on_demand.c src/rail/peer/connector.c src/rail/open/open.c src/rail/open/options.c src/rail/message/parts.c src/rail/peer/peer.c \
	src/rail/peer/peer_end.c src/rail/peer/peer_failure.c src/rail/plan.c src/rail/plan.h src/rail/policy.c src/rail/lane/pool.c src/rail/open/progress.c \
	src/rail/peer/queues.c src/rail/message/rate_estimate.c src/rail/peer/reach.c src/rail/message/rndv.c src/rail/message/rndv_receive.c src/rail/message/scheme.c src/rail/message/scheme_expect.c src/rail/message/scheme_look.c src/rail/message/scheme_race.c src/rail/message/late.c src/rail/message/scheme_learner.c src/rail/message/eager_learner.c src/rail/message/copy_learner.c src/rail/open/learner.c src/rail/message/eager_choice.c src/rail/open/costs.c \
	src/rail/message/rndv_send.c src/rail/open/select.c src/rail/open/port_choice.c src/rail/open/port_choice_text.c src/rail/open/peer_gids.c src/rail/open/peer_gids.h src/rail/open/bounds.c src/rail/open/port_loss.c src/rail/open/port_match.c src/rail/open/port_set.c src/rail/open/port_set.h src/rail/open/port_probe.c \
	src/rail/open/port_path.c src/rail/open/gid_lists.c src/rail/open/lists.c src/rail/open/wanted.c src/rail/open/wanted.h src/rail/open/common.c src/rail/open/common.h src/rail/open/port_choice.h \
	src/rail/message/shared_limit.c src/rail/message/slices.c src/rail/message/stripe.c src/rail/message/table.c src/rail/open/trace.c src/rail/open/way.c \
	src/rail/peer/bound_rail.h src/rail/message/cancel.h src/rail/message/chunks.h src/rail/message/eager.h \
	src/rail/lane/eager_lane.h src/rail/message/edges.h src/rail/peer/endpoint_info.h src/rail/message/foreign_writes.h \
	src/rail/message/landing.h src/rail/lane/lane.h src/rail/memory/mapped.h src/rail/memory/map_choice.h src/rail/memory/map_learner.h \
	src/rail/lane/lane_ring.h src/rail/lane/lane_send.h src/rail/memory/mr.h \
	src/rail/peer/on_demand.h src/rail/peer/connector.h src/rail/message/op_queue.h src/rail/message/parts.h src/rail/peer/peer_end.h src/rail/peer/peer_failure.h src/rail/policy.h src/rail/programs.h \
	src/rail/peer/connect.h src/rail/lane/cq.h src/rail/open/events.h src/rail/open/rail_ctx.h src/rail/memory/memory.h \
	src/rail/message/op_end.h src/rail/message/rail_op.h src/rail/open/options.h src/rail/peer/peer.h src/rail/lane/pool.h \
	src/rail/message/rail_record.h src/rail/open/select.h src/rail/open/trace.h \
	src/rail/message/rate_estimate.h src/rail/peer/reach.h src/rail/lane/ring.h src/rail/message/rndv.h src/rail/message/scheme.h src/rail/message/scheme_race.h src/rail/message/scheme_look.h src/rail/message/late.h src/rail/message/scheme_learner.h src/rail/message/eager_learner.h src/rail/message/copy_learner.h src/rail/open/learner.h src/rail/message/eager_choice.h src/rail/open/costs.h \
	src/rail/message/rndv_receive.h src/rail/message/rndv_send.h \
	src/rail/message/shared_limit.h src/rail/message/slices.h src/rail/lane/lane_stage.h src/rail/lane/staging.h src/rail/message/stripe.h \
	src/rail/message/table.h src/rail/lane/wr_id.h
librail_core_la_LIBADD = libsofthca-core.la librg-topo.la librg-util.la
lib_LTLIBRARIES += librail.la
librail_la_SOURCES =
librail_la_LIBADD = librail-core.la
librail_la_LDFLAGS = $(AM_LDFLAGS) -version-info 0:0:0 \
	-Wl,--version-script=$(srcdir)/src/rail/librail.map
EXTRA_librail_la_DEPENDENCIES = src/rail/librail.map
EXTRA_DIST += src/rail/librail.map
pkgconfig_DATA += src/rail/librail.pc
# tests/install.sh builds and runs it from the installed files alone.
railexampledir = $(docdir)/examples
dist_railexample_DATA = doc/rail_example.c
