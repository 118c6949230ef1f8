# ---- src/softhca: libsofthca, and the same objects to embed ---------------------
# Who embeds the core also links librg-util.la, and hides ibv_* by a version script.
include_HEADERS += src/softhca/softhca.h
noinst_LTLIBRARIES += libsofthca-core.la
libsofthca_core_la_CPPFLAGS = $(AM_CPPFLAGS) \
	-DRG_SYSCONFDIR='"$(sysconfdir)"' $(SODIUM_CFLAGS)
libsofthca_core_la_SOURCES =
libsofthca_core_la_SOURCES += src/softhca/base/base.h src/softhca/base/errors.c \
	src/softhca/base/fd.c src/softhca/base/fd.h src/softhca/base/spare.c src/softhca/base/spare.h \
	src/softhca/base/gid.c src/softhca/base/gid.h src/softhca/base/heap.c src/softhca/base/heap.h src/softhca/base/layout.h src/softhca/base/lock.c \
	src/softhca/base/maps.c src/softhca/base/maps.h src/softhca/base/place.c \
	src/softhca/base/place.h src/softhca/base/proc.c src/softhca/base/proc.h src/softhca/base/ranges.c \
	src/softhca/base/checked.h src/softhca/base/netif.c src/softhca/base/netif.h \
	src/softhca/base/netif_detail.c src/softhca/base/netif_list.c src/softhca/base/netif_list.h src/softhca/base/rtnetlink.c src/softhca/base/rtnetlink.h \
	src/softhca/base/ranges.h src/softhca/base/segment.c \
	src/softhca/base/segment.h \
	src/softhca/base/sys.h
libsofthca_core_la_SOURCES += src/softhca/pages/held.c src/softhca/pages/held.h \
	src/softhca/pages/landing.c src/softhca/pages/landing.h \
	src/softhca/pages/memory.c src/softhca/pages/memory.h src/softhca/pages/pinned.c src/softhca/pages/pinned.h \
	src/softhca/pages/remap.c src/softhca/pages/remap.h \
	src/softhca/pages/remap_int.h src/softhca/pages/restore.c src/softhca/pages/watch.c
libsofthca_core_la_SOURCES += src/softhca/model/fidelity.c src/softhca/model/fidelity.h \
	src/softhca/model/loss.c src/softhca/model/loss.h src/softhca/model/model.c \
	src/softhca/model/model.h src/softhca/model/profile.c src/softhca/model/profile.h \
	src/softhca/model/schedule.c src/softhca/model/schedule.h src/softhca/model/spec.c \
	src/softhca/model/spec.h src/softhca/model/spec_describe.c src/softhca/model/text.h \
	src/softhca/model/fraction.c src/softhca/model/fraction.h src/softhca/model/like.c \
	src/softhca/model/personality.c src/softhca/model/personality.h \
	src/softhca/model/spec_key.h src/softhca/model/spec_keys.c \
	src/softhca/model/spec_number.c src/softhca/model/spec_value.c
libsofthca_core_la_SOURCES += src/softhca/object/address.c src/softhca/object/ah.c src/softhca/object/ah.h \
	src/softhca/object/wakeup.c src/softhca/object/wakeup.h src/softhca/object/channel.c \
	src/softhca/object/channel.h src/softhca/object/cq.c src/softhca/object/cq.h \
	src/softhca/object/cq_resize.c src/softhca/object/deferred.h src/softhca/object/device.c \
	src/softhca/object/device.h src/softhca/object/dm.c src/softhca/object/dm.h \
	src/softhca/object/event.c src/softhca/object/event.h src/softhca/object/fabric.c \
	src/softhca/object/fabric.h src/softhca/object/link.c src/softhca/object/link.h \
	src/softhca/object/loss.c \
	src/softhca/object/loss.h src/softhca/object/mailbox.c src/softhca/object/mcast.c \
	src/softhca/object/mcast.h src/softhca/object/mr.c src/softhca/object/mw.c \
	src/softhca/object/mw.h src/softhca/object/net.c src/softhca/object/net.h \
	src/softhca/object/pd.c src/softhca/object/qp.c \
	src/softhca/object/qp.h src/softhca/object/qp_state.c src/softhca/object/query.c \
	src/softhca/object/query.h src/softhca/object/pd.h src/softhca/object/mr.h \
	src/softhca/object/atomics.c src/softhca/object/atomics.h \
	src/softhca/object/responder.c src/softhca/object/responder.h \
	src/softhca/object/shared.c src/softhca/object/shared.h src/softhca/object/srq.c \
	src/softhca/object/srq.h
libsofthca_core_la_SOURCES += src/softhca/link/memory/ask.c src/softhca/link/memory/atomic.c \
	src/softhca/link/memory/atomic.h src/softhca/link/memory/descriptors.h \
	src/softhca/link/memory/wakeup_peer.c src/softhca/link/memory/wakeup_peer.h \
	src/softhca/link/memory/bounce.c src/softhca/link/memory/bounce.h \
	src/softhca/link/memory/connect.c src/softhca/link/memory/connect.h \
	src/softhca/link/memory/copy.c src/softhca/link/memory/copy.h \
	src/softhca/link/memory/deferred.c src/softhca/link/memory/deferred.h \
	src/softhca/link/memory/join.c src/softhca/link/memory/join.h \
	src/softhca/link/memory/link.c src/softhca/link/memory/mr_table.c \
	src/softhca/link/memory/mr_table.h src/softhca/link/memory/numbers.c \
	src/softhca/link/memory/numbers.h src/softhca/link/memory/peer.c \
	src/softhca/link/memory/peer.h src/softhca/link/memory/registry.c \
	src/softhca/link/memory/registry.h src/softhca/link/memory/service.c \
	src/softhca/link/memory/service.h src/softhca/link/memory/ask.h \
	src/softhca/link/memory/state.h \
	src/softhca/link/memory/steps.c src/softhca/link/memory/steps.h \
	src/softhca/link/memory/transfer.c src/softhca/link/memory/transfer.h \
	src/softhca/link/memory/ud.c src/softhca/link/memory/ud.h
libsofthca_core_la_SOURCES += src/softhca/link/wire/bytes.h src/softhca/link/wire/call.c \
	src/softhca/link/wire/call_reply.c src/softhca/link/wire/call_state.h \
	src/softhca/base/copy_last.h src/softhca/link/wire/connection.c src/softhca/link/wire/qp_calls.c \
	src/softhca/link/wire/datagram.c src/softhca/link/wire/life.c src/softhca/link/wire/said.c src/softhca/link/wire/link.c src/softhca/link/wire/link.h \
	src/softhca/link/wire/lives.c src/softhca/link/wire/parked.c src/softhca/link/wire/peers.c src/softhca/link/wire/peers.h \
	src/softhca/link/wire/requester.c src/softhca/link/wire/responder.c \
	src/softhca/link/wire/serve.c src/softhca/link/wire/stream.c src/softhca/link/wire/stream.h \
	src/softhca/link/wire/wire.h \
	src/softhca/link/wire/frame.c src/softhca/link/wire/frame.h \
	src/softhca/link/wire/handover.c src/softhca/link/wire/handover.h src/softhca/link/wire/recipient.c \
	src/softhca/link/wire/packets.c src/softhca/link/wire/packets.h \
	src/softhca/link/wire/handshake.c src/softhca/link/wire/handshake.h \
	src/softhca/link/wire/incoming.c src/softhca/link/wire/meet.c src/softhca/link/wire/meet.h \
	src/softhca/link/wire/meet_state.h src/softhca/link/wire/ports.c \
	src/softhca/link/wire/ports.h src/softhca/link/wire/probe.c \
	src/softhca/link/wire/probe_end.c src/softhca/link/wire/probe_state.h src/softhca/link/wire/secret.c \
	src/softhca/link/wire/secret.h src/softhca/link/wire/socket.c src/softhca/link/wire/socket.h
libsofthca_core_la_SOURCES += src/softhca/engine/progress_thread.c src/softhca/engine/progress_thread.h \
	src/softhca/engine/cq_ex.c src/softhca/engine/engine.c src/softhca/engine/engine.h \
	src/softhca/engine/flush.c src/softhca/engine/flush.h src/softhca/engine/deferred_wait.c \
	src/softhca/engine/deferred_wait.h src/softhca/engine/pace.c src/softhca/engine/pace.h \
	src/softhca/engine/poll.c src/softhca/engine/poll.h src/softhca/engine/port_events.c \
	src/softhca/engine/port_events.h src/softhca/engine/post.c src/softhca/engine/post.h \
	src/softhca/engine/qp_states.c src/softhca/engine/qp_states.h src/softhca/engine/recv.c \
	src/softhca/engine/under_way.c src/softhca/engine/under_way.h \
	src/softhca/engine/wait.c src/softhca/engine/wait.h src/softhca/engine/wr.c src/softhca/engine/wr.h
libsofthca_core_la_SOURCES += src/softhca/api/about.c src/softhca/api/fabric.c \
	src/softhca/api/fabric.h src/softhca/api/inherit.c src/softhca/api/inherit.h \
	src/softhca/api/kern.c src/softhca/api/kern.h src/softhca/api/map.c \
	src/softhca/api/open.c src/softhca/api/open.h src/softhca/api/real.c \
	src/softhca/api/real.h src/softhca/api/shim.c src/softhca/api/strings.c \
	src/softhca/api/verbs_names.h
libsofthca_core_la_LIBADD = librg-memwatch.la $(SODIUM_LIBS)

# The core under the symbol versions of libibverbs, to be preloaded.
lib_LTLIBRARIES += libsofthca.la
libsofthca_la_SOURCES = src/softhca/api/versions.c
libsofthca_la_LIBADD = libsofthca-core.la librg-util.la
libsofthca_la_LDFLAGS = $(AM_LDFLAGS) -version-info 0:0:0 \
	-Wl,--version-script=$(srcdir)/src/softhca/libsofthca.map
libsofthca_la_DEPENDENCIES = libsofthca-core.la librg-util.la src/softhca/libsofthca.map
EXTRA_DIST += src/softhca/libsofthca.map
pkgconfig_DATA += src/softhca/libsofthca.pc

# The directory softhca/ next to the library has files.c, and the name of libibverbs for
# programs that load libibverbs themselves.  The build tree has the same.  (automake
# counts a directory of its own name to the data.)
dropindir = $(libdir)/softhca
dropin_LTLIBRARIES = softhca-files.la
softhca_files_la_SOURCES = src/softhca/api/files.c
softhca_files_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version
all-local: .libs/softhca/libibverbs.so.1
# Links have the time of what they name, which is older: made once.
.libs/softhca/libibverbs.so.1: | libsofthca.la softhca-files.la
	$(AM_V_GEN)$(MKDIR_P) .libs/softhca && cd .libs/softhca && \
		ln -sf ../softhca-files.so . && ln -sf ../libsofthca.so.0 libibverbs.so.1
install-data-hook:
	cd $(DESTDIR)$(dropindir) && rm -f softhca-files.la && \
		ln -sf ../libsofthca.so.0 libibverbs.so.1
uninstall-hook:
	rm -f $(DESTDIR)$(dropindir)/libibverbs.so.1 $(DESTDIR)$(dropindir)/softhca-files.so
	-rmdir $(DESTDIR)$(dropindir)
clean-local:
	rm -rf .libs/softhca fuzz.o fuzz.s tsan

bin_PROGRAMS += softhca
softhca_SOURCES = src/softhca/tool/cmd.c src/softhca/tool/cmd.h src/softhca/tool/cmd_fabric.c \
	src/softhca/tool/inspect.c src/softhca/tool/inspect.h
softhca_CPPFLAGS = $(AM_CPPFLAGS) -DRG_LIBDIR='"$(libdir)"'
softhca_LDADD = libsofthca-core.la librg-cmdline.la
