# Each goal does all of its own set-up.
#
#   make demo          build the library, run the all-reduce on 2 and 4 ranks, threads and processes
#   make test          every test
#   make bench         the benchmark table (bench-peers installs the MPI libraries it compares with)
#   make tune          measure the algorithms of collectives and rewrite the table by which the library chooses
#   make docs          target/docs/index.html: the interfaces and the source
#   make bless         rewrite generated files and expected outputs

CARGO   ?= cargo
JOBS    ?= 2
BUILD   := target/cmake
PREFIX  := $(CURDIR)/target/prefix
# Simulated cards, made by tests/cann_sim/toolkit.sh.
CARDS   := ASCEND_HOME_PATH=$(CURDIR)/target/cann_sim PLD_KERNEL_CACHE=$(CURDIR)/target/kernels
CONSUME := -DCMAKE_PREFIX_PATH=$(PREFIX) -DCMAKE_BUILD_TYPE=Release
RUSTDOC := --document-private-items -D warnings -A rustdoc::private_intra_doc_links
NEXTEST := $(shell $(CARGO) nextest --version >/dev/null 2>&1 && echo nextest run || echo test)

.PHONY: demo test bench bench-peers tune docs docs-python python bless setup package lint \
	test-rust test-hccl-sys test-ucx-sys test-loom test-c test-cpp test-valgrind test-python test-docs

demo: package
	cmake -S examples/c -B target/examples $(CONSUME) >/dev/null
	cmake --build target/examples -j $(JOBS) >/dev/null
	target/examples/allreduce --ranks 2 --print
	target/examples/allreduce --ranks 4
	target/examples/allreduce --ranks 2 --processes
	target/examples/allreduce --ranks 4 --processes

test: lint test-rust test-hccl-sys test-ucx-sys test-loom test-c test-cpp test-valgrind test-python test-docs
	@echo "all tests passed"

setup:
	scripts/setup.sh cmake g++ pkg-config nm valgrind

package: setup
	$(CARGO) build --release --locked -p pld --lib -p pld-tool --bin pld
	cmake -S . -B $(BUILD) -DPLD_LIBRARY=$(CURDIR)/target/release/libpld.so -DCMAKE_INSTALL_PREFIX=$(PREFIX) >/dev/null
	cmake --build $(BUILD) >/dev/null
	cmake --install $(BUILD) >/dev/null

lint: setup
	$(CARGO) fmt --all -- --check
	$(CARGO) clippy --workspace --all-targets --quiet -- -D warnings

test-rust: setup
	scripts/setup.sh ucx ip
	$(CARGO) build --workspace
	$(CARGO) $(NEXTEST) --workspace

# The declarations of CANN's functions: compared with the vendor's headers, and replaced by what bindgen makes of them. And
# the simulated CANN, compiled with the vendor's headers.
test-hccl-sys: setup
	scripts/setup.sh venv clang++
	CANN_INCLUDE=$$(scripts/cann-headers.sh) && export CANN_INCLUDE && \
	$(CARGO) $(NEXTEST) -p pld-abi-check --test cann && \
	g++ -std=c++20 -w -fsyntax-only -DCANN_SIM_VENDOR_HEADERS -Itests/pto_sim $$(echo :$$CANN_INCLUDE | sed 's/:/ -I/g') \
	  tests/cann_sim/*.cpp && \
	$(CARGO) $(NEXTEST) -p hccl-sys --features bindgen && \
	$(CARGO) check -p pld -p hccl-sys --features hccl-sys/bindgen

# The declarations of OpenUCX's functions: compared with the headers of Debian's version and of a newer one, and used with
# the libraries of both.
test-ucx-sys: setup
	scripts/setup.sh venv ucx ucx-headers
	$(CARGO) $(NEXTEST) -p pld-abi-check --test ucx
	$(CARGO) $(NEXTEST) -p ucx-sys
	UCX=$$(scripts/ucx.sh) && export PLD_UCX=$$UCX/lib UCX_INCLUDE=$$UCX/include && \
	$(CARGO) $(NEXTEST) -p pld-abi-check --test ucx && \
	$(CARGO) $(NEXTEST) -p ucx-sys && \
	$(CARGO) $(NEXTEST) -p pld --test transport network

# The protocols between ranks, every interleaving that loom can reach.
test-loom:
	RUSTFLAGS="--cfg loom" $(CARGO) test --release -p pld-sync --target-dir target/loom

# The C interface as a user meets it: against the installed package.
test-c: package
	scripts/setup.sh ucx
	tests/cann_sim/toolkit.sh target/cann_sim
	cmake -S tests/c -B target/tests-c $(CONSUME) >/dev/null
	cmake --build target/tests-c -j $(JOBS)
	$(CARDS) ctest --test-dir target/tests-c --output-on-failure
	$(CARDS) cmake -S examples/c -B target/examples $(CONSUME) >/dev/null
	cmake --build target/examples -j $(JOBS)
	$(CARDS) ctest --test-dir target/examples --output-on-failure

# The C++ layer, likewise, with two compilers.
test-cpp: package
	scripts/setup.sh clang++ ucx
	for compiler in g++ clang++; do \
	  cmake -S tests/cpp -B target/tests-cpp/$$compiler -DCMAKE_CXX_COMPILER=$$compiler -DCMAKE_PREFIX_PATH=$(PREFIX) >/dev/null && \
	  cmake --build target/tests-cpp/$$compiler -j $(JOBS) >/dev/null && \
	  ctest --test-dir target/tests-cpp/$$compiler --output-on-failure || exit 1; \
	done
	cmake -S examples/cpp -B target/examples-cpp $(CONSUME) >/dev/null
	cmake --build target/examples-cpp -j $(JOBS) >/dev/null
	ctest --test-dir target/examples-cpp --output-on-failure

test-valgrind: test-c test-cpp
	ctest --test-dir target/tests-c -T memcheck --output-on-failure
	ctest --test-dir target/tests-cpp/g++ -T memcheck -R cxx17 -E processes --output-on-failure

# The Python package, as its wheel in an environment of its own. (Building it calls cargo, which finds the library built.)
python: package
	scripts/setup.sh venv
	bindings/python-cffi/install.sh

test-python: python
	scripts/setup.sh ucx
	bindings/python-cffi/test.sh

# Every command and every program that a document shows; and that the reference has no warnings.
test-docs: package docs
	scripts/setup.sh ucx
	PATH="$(PREFIX)/bin:$$PATH" scripts/run-docs.sh README.md docs/*.md docs/tutorial/*.md

bench: setup
	$(CARGO) run --release -p pld-bench

bench-peers:
	scripts/setup.sh mpicc venv
	benches/peers/install.sh

tune: setup
	$(CARGO) run --release -p pld-bench -- tune

docs: docs-python
	scripts/setup.sh doxygen
	mkdir -p target/docs
	doxygen docs/Doxyfile
	RUSTDOCFLAGS="$(RUSTDOC)" $(CARGO) doc -p pld -p pld-sync --no-deps --quiet
	rm -rf target/docs/rust && cp -a target/doc target/docs/rust
	cp docs/index.html target/docs/
	@echo "target/docs/index.html"

docs-python: python
	cd target/python && venv/bin/python -m pdoc --output-directory $(CURDIR)/target/docs/python pld

bless:
	PLD_TEST_BLESS=1 $(CARGO) $(NEXTEST) --test filetests --test header --test diagnostics --test collectives_shown --test tutorial
	PLD_TEST_BLESS=1 $(CARGO) $(NEXTEST) -p pld-tool
