# SPDX-License-Identifier: Apache-2.0
# The door: what a person types. Meson builds, tools/ does the rest.
PREFIX ?= /usr/local
TARGET ?= keeper_init
SECONDS ?= 60
CYCLES ?= 2000
KILLS ?= 2000
SUITE ?= bookworm
MESON_FLAGS ?=
BENCH ?=

.DEFAULT_GOAL := build
.PHONY: build run test lint battery bench fuzz fault cycles kills model guest install clean packages-build packages-test packages-fuzz packages-guest packages-peers

build: build/build.ninja
	@ninja -C build --quiet

build/build.ninja:
	@meson setup build --prefix=$(PREFIX) -Dtests=$$(pkg-config --exists cmocka && echo true || echo false) $(MESON_FLAGS) >/dev/null

packages-build packages-test packages-fuzz packages-guest packages-peers: packages-%:
	@tools/install-packages $*

run: packages-build
	@$(MAKE) --no-print-directory build
	@tools/demo build/src/pale

test: packages-test
	@exec tools/run-tests

lint:
	@exec tools/lint

# The leak battery as whoever calls; with PEER=bwrap|srt|codex|firejail|podman|runsc its attempts behind that sandbox.
battery: packages-test $(if $(PEER),packages-peers)
	@$(MAKE) --no-print-directory build
	@test -f build-weak/build.ninja || meson setup build-weak -Dweaken=true -Dtests=false >/dev/null
	@ninja -C build-weak --quiet
	@mkdir -p build/battery
	@exec tools/battery $(if $(PEER),--peer $(PEER) --json build/battery/peer-$(PEER).json)

bench: packages-build
	@$(MAKE) --no-print-directory build
	@bench/peers
	@exec bench/run $(BENCH)

fuzz: packages-fuzz
	@exec tools/fuzz $(TARGET) $(SECONDS)

fault: packages-test
	@PALE_FAULT=full exec tools/run-tests --only fault --only leftovers

cycles: packages-test
	@$(MAKE) --no-print-directory build
	@PALE_CYCLES=$(CYCLES) exec tools/run-tests --only cycles

# Random steps over several boxes, compared with a model of them: SECONDS=36000 for a night, SEED=N for the same again.
model: packages-test
	@PALE_MODEL_SECONDS=$(SECONDS) $(if $(SEED),PALE_MODEL_SEED=$(SEED)) exec tools/run-tests --only model --only model-user --only leftovers

# The daemon is killed so many times while fifty clients work.
kills: packages-test
	@$(MAKE) --no-print-directory build
	@exec tests/kills.py --kills $(KILLS)

guest: packages-guest
	@exec tools/guest --suite $(SUITE)

install: build
	@meson configure build --prefix=$(PREFIX) >/dev/null
	@DESTDIR="$(DESTDIR)" tools/install build

clean:
	@rm -rf build build-weak build-asan build-fuzz build-replay build-guest build-peers build-release
