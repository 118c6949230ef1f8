# ---- emulated arm64 machines: make check-arm --------------------------------------------------
EXTRA_DIST += tests/arm/cross.sh tests/arm/guest.sh tests/arm/root.sh tests/arm/run.sh
CLEANFILES += tests/arm/*.log tests/arm/*.trs
check-arm:
	@$(AM_TESTS_ENVIRONMENT) $(SHELL) $(srcdir)/tests/arm/run.sh
.PHONY: check-arm
