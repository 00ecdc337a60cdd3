# The front door. Meson does the work; each target sets up what it needs first (tools/setup:
# silent when all is there).
#
#   make            build/caisson and what is installed with it; tests are built by `make test`
#   make demo       what it does, in a throw-away folder
#   make test       every test
#   make test-vm    control groups v2, AppArmor, older kernels, in guests: docs/testing-vm.md, 6 to 10 minutes
#   make check      the rules of the house: sizes, rooms, form, banned calls, docs
#   make bench      times against the peers that are installed
#   make fuzz       replays the corpora; FUZZ_SECONDS=60 searches, with clang, that long per target
#   make soak       many short runs and killed sandboxes, then looks for what they left behind
#   make install    prefix=/usr/local, DESTDIR=

prefix ?= /usr/local
DESTDIR ?=
BUILD ?= build
FUZZ_SECONDS ?= 0
# The system's Python: meson and pytest of a package belong to it, whatever comes first on PATH.
PYTHON ?= /usr/bin/python3

.DEFAULT_GOAL := all
.PHONY: all demo test test-vm check bench fuzz soak install uninstall clean

# One word per job, so that `make V=1` shows what runs.
Q = $(if $(V),,@)

define setup
$(Q)PYTHON=$(PYTHON) tools/setup $(1)
endef

# AppArmor goes by the path behind links. Without the profile the weaker walls are left, and
# tools/setup has said so: that ends nothing.
profile = tools/setup $(1) "$$(readlink -f "$(2)")" || :

define build
$(call setup,$(1))
$(Q)test -f "$(BUILD)/build.ninja" || meson setup "$(BUILD)" --prefix="$(prefix)"
$(Q)ninja -C "$(BUILD)" $(2)
$(Q)test ! -e "$(BUILD)/caisson" || $(call profile,profile,$(BUILD)/caisson)
endef

# $(call script,FILE,WHAT): runs a part that may be missing from a stripped source tree.
define script
$(Q)test -x $(1) || { echo "make $@: this tree has no $(1), $(2)" >&2; exit 1; }
$(Q)$(1)
endef

all:
	$(call build,build,installed)

demo:
	$(call build,build,installed)
	$(call script,examples/demo/run,the demonstration)

# Both halves run, so that one failure does not hide another.
test:
	$(call build,test)
	$(Q)BUILD="$$(readlink -f "$(BUILD)")" PYTHON=$(PYTHON) tools/test

test-vm:
	$(call build,test)
	$(Q)BUILD=$(BUILD) tests/vm/run --all

check:
	$(call setup,check)
	$(Q)$(PYTHON) tools/check

bench:
	$(call build,bench)
	$(call script,bench/run,the benchmark)

fuzz:
	$(call setup,$(if $(filter 0,$(FUZZ_SECONDS)),build,fuzz))
	$(Q)PYTHON=$(PYTHON) tools/fuzz $(FUZZ_SECONDS)

soak:
	$(call build,build)
	$(call script,bench/soak,the soak test)
	$(Q)CSN_SOAK=1 CAISSON="$$(readlink -f "$(BUILD)")/caisson" $(PYTHON) -m pytest -q -s -p no:cacheprovider \
		tests/faults/test_stay_kill.py tests/jobs/test_job_kill.py

# Says before it builds for a minute what meson would say in twenty lines of Python afterwards.
define writable
where="$(prefix)"; while ! test -e "$$where" && test "$$where" != "$$(dirname "$$where")"; do where=$$(dirname "$$where"); done; \
	test -w "$$where" || { echo "make $@: $$where is not yours to write: make $@ prefix=\"\$$HOME/.local\", or sudo make $@" >&2; exit 1; }
endef

install:
	$(Q)test -n "$(DESTDIR)" || { $(writable); }
	$(call setup,build)
	$(Q)if test -f "$(BUILD)/build.ninja"; then meson configure "$(BUILD)" -Dprefix="$(prefix)"; \
	else meson setup "$(BUILD)" --prefix="$(prefix)"; fi
	$(Q)ninja -C "$(BUILD)" installed
	$(Q)meson install -C "$(BUILD)" --no-rebuild --quiet $(if $(DESTDIR),--destdir "$$(readlink -m "$(DESTDIR)")")
	$(Q)test -n "$(DESTDIR)" || $(call profile,profile,$(prefix)/bin/caisson)
	$(Q)test -n "$(DESTDIR)" || case ":$$PATH:" in *":$(prefix)/bin:"*) ;; \
		*) echo "make $@: $(prefix)/bin is not on PATH: export PATH=\"$(prefix)/bin:\$$PATH\"" >&2 ;; esac

# Removes what meson says it installs, and nothing else.
uninstall:
	$(Q)$(PYTHON) tools/uninstall "$(BUILD)" "$(prefix)" "$(DESTDIR)"
	$(Q)test -n "$(DESTDIR)" || $(call profile,unprofile,$(prefix)/bin/caisson)

clean:
	rm -rf "$(BUILD)" build-gcc build-clang build-asan build-fuzz
