# Thin front of CMake: see CMakeLists.txt. The two commands of the README are `make demo` and `make check`.
BUILD ?= build
CMAKE_FLAGS ?=
JOBS ?= $(shell nproc)
GENERATOR := $(if $(shell command -v ninja),-G Ninja,)

.PHONY: all configure demo check bench fuzz asan tsan clang style format clean setup

all: setup configure
	cmake --build $(BUILD) -j $(JOBS) --target minfer_cli

setup:
	@tools/setup build

configure:
	@cmake -S . -B $(BUILD) $(GENERATOR) $(CMAKE_FLAGS) > $(BUILD).log 2>&1 || { cat $(BUILD).log; exit 1; }; rm -f $(BUILD).log

# Builds, fetches a small model into the cache, and answers a prompt.
demo: all
	tools/get_model smollm2
	$(BUILD)/minfer run -v --greedy SmolLM2-135M-Instruct -n 160 "Explain what a compiler does."

# All tests of this build. ALL=1: also clang, sanitizers, style, the real models (what continuous integration runs).
check: setup
	@tools/setup check
ifdef ALL
	tools/check_all
else
	$(MAKE) configure
	cmake --build $(BUILD) -j $(JOBS)
	ctest --test-dir $(BUILD) -j $(JOBS) --output-on-failure
endif

bench: all
	cmake --build $(BUILD) -j $(JOBS)
	$(BUILD)/bench_kernels
	$(BUILD)/minfer bench SmolLM2-135M-Instruct

# Every fuzz target for FUZZ_SECONDS each, on a scratch copy of its corpus.
FUZZ_SECONDS ?= 600
fuzz:
	@tools/setup check
	tools/fuzz_all $(FUZZ_SECONDS)

asan:
	@tools/setup check
	CC=clang cmake -S . -B $(BUILD)-asan $(GENERATOR) -DCMAKE_BUILD_TYPE=RelWithDebInfo -DMINFER_WERROR=ON -DMINFER_SANITIZE=address,undefined $(CMAKE_FLAGS)
	cmake --build $(BUILD)-asan -j $(JOBS)
	ctest --test-dir $(BUILD)-asan -j $(JOBS) --output-on-failure -LE real

tsan:
	@tools/setup check
	CC=clang cmake -S . -B $(BUILD)-tsan $(GENERATOR) -DCMAKE_BUILD_TYPE=RelWithDebInfo -DMINFER_WERROR=ON -DMINFER_SANITIZE=thread $(CMAKE_FLAGS)
	cmake --build $(BUILD)-tsan -j $(JOBS)
	ctest --test-dir $(BUILD)-tsan -j $(JOBS) --output-on-failure -L threads

clang:
	@tools/setup check
	CC=clang cmake -S . -B $(BUILD)-clang $(GENERATOR) -DMINFER_WERROR=ON $(CMAKE_FLAGS)
	cmake --build $(BUILD)-clang -j $(JOBS)
	ctest --test-dir $(BUILD)-clang -j $(JOBS) --output-on-failure

style:
	@tools/setup check
	tools/check_layers
	tools/check_style

format:
	git ls-files '*.c' '*.h' '*.inc' | xargs clang-format -i

clean:
	rm -rf $(BUILD) $(BUILD)-asan $(BUILD)-tsan $(BUILD)-clang $(BUILD)-fuzz
