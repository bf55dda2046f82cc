# Marquetry's everyday commands. On a bare Debian machine each sets up what it needs when it runs as root, and says
# exactly what to install otherwise (dev/setup.sh).

SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help demo test tests doctests instructions checks counts lint builds semver without-corpus soak ceph-class fuzz bench bench-stall bench-wide bench-disk bench-sstable bench-pq bench-plugin bench-python bench-cluster bench-layouts bench-spark bench-ceph bench-door bench-kernels bench-scale deny wheel wheel-aarch64

TOOLS := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/marquetry/tools
export PATH := $(HOME)/.cargo/bin:$(PATH):$(TOOLS)/bin

# What the tests find their peers by. A test that lacks something is skipped, and on record: dev/testing, dev/skipped.sh.
PEERS_PYTHON := $(CURDIR)/target/peers-venv/bin/python
SPARK_PYTHON := $(CURDIR)/target/spark-venv/bin/python
MOTO_PYTHON := $(CURDIR)/target/moto-venv/bin/python
AZURITE := $(CURDIR)/target/azurite/node_modules/azurite/dist/src/blob/main.js
# make test WITHOUT="peers cassandra corpus" leaves out what this machine cannot have; make soak WITHOUT="spark", too.
# The words are those of dev/skipped.sh; in CI (CI=true) what is missing and not named fails.
export WITHOUT ?=
export MARQUETRY_SKIPPED := $(CURDIR)/target/skipped.txt
# What tests found of what they need: which tests use the corpus.
export MARQUETRY_USED := $(CURDIR)/target/used.txt
PEERS := $(filter-out $(WITHOUT),peers)
CASSANDRA := $(filter-out $(WITHOUT),cassandra)
CHROMIUM := $(filter-out $(WITHOUT),chromium)
STORES := $(filter-out $(WITHOUT),s3 azure)
VALGRIND := $(filter-out $(WITHOUT),valgrind)
CEPH := $(filter-out $(WITHOUT),ceph)
SPARK := $(filter-out $(WITHOUT),spark)
WITH_PEERS := $(if $(PEERS),MARQUETRY_PYTHON=$(PEERS_PYTHON))
WITH_SPARK := $(if $(SPARK),MARQUETRY_SPARK=$(SPARK_PYTHON))
WITH_CASSANDRA := $(if $(CASSANDRA),dev/cassandra.sh with target/test-cassandra --)
WITH_STORES := $(if $(filter s3,$(STORES)),MARQUETRY_MOTO=$(MOTO_PYTHON)) $(if $(filter azure,$(STORES)),MARQUETRY_AZURITE=$(AZURITE))
WITH_CORPUS := $(if $(filter corpus,$(WITHOUT)),MARQUETRY_CORPUS=$(CURDIR)/target/no-corpus)
WITH_CEPH := $(if $(CEPH),dev/ceph.sh with target/test-ceph --osds 2 --store bluestore --)
WITH_ALL := $(WITH_PEERS) $(WITH_STORES) $(WITH_CORPUS) $(WITH_CASSANDRA)
# In CI the versions of Cargo.lock are the only ones.
LOCKED := $(if $(CI),--locked)

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## three million real flights: a Parquet file becomes rows of a real Cassandra
	@dev/demo.sh

# What tests need beside Rust. In CI it is fetched while they compile; anybody else is first told what is missing.
PARTS = $(PEERS) $(CASSANDRA) $(STORES) $(CHROMIUM) $(VALGRIND)

# Lint is a part of CI's tests only: a newer toolchain's new warnings must not fail them on a user's machine.
test: ## all tests, with the peers, a real Cassandra, servers of S3 and Azure and a browser (WITHOUT="peers cassandra s3 azure chromium valgrind" leaves these out)
	@dev/setup.sh rust-dev $(if $(CI),lint,$(PARTS))
	@mkdir -p target && rm -f $(MARQUETRY_SKIPPED) $(MARQUETRY_USED)
	$(if $(CI),dev/beside.sh "dev/setup.sh rust-dev $(PARTS)" "cargo test $(LOCKED) --workspace --no-run",cargo test --workspace --no-run)
	$(if $(CI),dev/beside.sh "make --no-print-directory checks" "make --no-print-directory tests without-corpus",@$(MAKE) --no-print-directory tests instructions)
	@dev/skipped.sh $(MARQUETRY_SKIPPED)

# In CI, examples in the documentation are among the checks.
tests:
	$(WITH_ALL) cargo test $(LOCKED) --workspace $(if $(CI),--lib --bins --tests)

doctests:
	$(WITH_CORPUS) cargo test $(LOCKED) --workspace --doc

instructions:
	$(if $(VALGRIND),dev/counts.sh,@dev/skipped.sh --add valgrind "make test" "instruction counts")

# What CI does while the tests wait for their servers. Instructions first: they have a folder of their own, and the tests begin meanwhile,
# which could not while clippy holds the build's.
checks:
	@$(MAKE) --no-print-directory instructions
	@$(MAKE) --no-print-directory doctests
	@$(MAKE) --no-print-directory lint
	@$(MAKE) --no-print-directory builds
	@$(MAKE) --no-print-directory semver

counts: ## instructions of kernels, reads and writes, against their baselines (valgrind); dev/counts.sh renew makes new ones
	@dev/setup.sh rust-dev valgrind
	dev/counts.sh

# As in a clone that has none: they are skipped, all others pass.
without-corpus: ## the tests that use the corpus, without it (those that the last make test put on record)
	@$(WITH_PEERS) dev/without-corpus.sh $(MARQUETRY_USED)

builds: ## other builds: each feature alone, none, all; the oldest Rust; aarch64
	@dev/setup.sh rust-dev
	dev/builds.sh

semver: ## the public interface beside that of the last release (cargo-semver-checks; dev/setup.sh semver builds it)
	dev/builds.sh semver

lint: ## formatting, clippy, documentation, shell scripts, licences
	@dev/setup.sh rust-dev lint
	cargo fmt --all --check
	cargo clippy $(LOCKED) --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc $(LOCKED) --workspace --no-deps
	@if command -v shellcheck >/dev/null; then set -x; shellcheck .ci/run dev/*.sh; \
	else dev/skipped.sh --add shellcheck "make lint" "shell scripts"; fi
	@if command -v cargo-deny >/dev/null; then set -x; cargo deny check --hide-inclusion-graph bans licenses sources; \
	else dev/skipped.sh --add deny "make lint" "licences and sources of dependencies"; fi

deny: ## dependencies: licences, sources, advisories (from the network); builds cargo-deny when there is none
	@dev/setup.sh rust deny
	cargo deny check --hide-inclusion-graph

soak: ## the long tests, those marked #[ignore], as make test builds them; then Miri, fuzz and deny
	@dev/setup.sh rust-dev $(PEERS) $(CASSANDRA) $(STORES) $(SPARK) $(CEPH)
	@mkdir -p target && rm -f $(MARQUETRY_SKIPPED)
	cargo test $(LOCKED) --workspace --lib --bins --tests --no-run
	$(WITH_SPARK) $(WITH_ALL) $(WITH_CEPH) cargo test $(LOCKED) --workspace --lib --bins --tests -- --ignored
	dev/builds.sh miri
	@$(MAKE) --no-print-directory fuzz
	@$(MAKE) --no-print-directory deny
	@dev/skipped.sh $(MARQUETRY_SKIPPED)

wheel: ## the wheel of the package for Python, for this machine's processor, in target/wheels; and whether it works in each CPython that is found
	@dev/setup.sh rust python
	dev/wheel.sh build $(LOCKED)
	dev/wheel.sh try

wheel-aarch64: ## the wheel for aarch64, linked by Zig (rustup target add aarch64-unknown-linux-gnu), and whether it works there, by QEMU's user mode
	@dev/setup.sh rust python
	dev/wheel.sh build $(LOCKED) --target aarch64-unknown-linux-gnu
	dev/wheel.sh try-aarch64

ceph-class: ## the object class for Ceph's OSDs, in target/ceph/classes (docs/ceph.md); dev/ceph.sh install puts it where they look for it
	@dev/setup.sh rust c++
	dev/ceph.sh build

fuzz: ## the fuzz targets under libFuzzer: MINUTES=5 for each, TARGET="page codec" for some of them
	@dev/setup.sh rust-dev c++
	MINUTES=$(or $(MINUTES),5) dev/fuzz/run.sh $(TARGET)

bench: ## reading, writing, whole programs and look-ups against the peers, some hours; results in target/bench
	@dev/setup.sh rust-dev c++ peers
	MARQUETRY_PYTHON=$(PEERS_PYTHON) dev/bench/run.sh

bench-stall: ## the longest that readers keep their thread, against the peers, and writers; what bounded steps cost
	@dev/setup.sh rust-dev c++ peers
	MARQUETRY_PYTHON=$(PEERS_PYTHON) dev/bench/run.sh --only-stall
	dev/bench/run.sh --only-stall-writing

bench-wide: ## ten of very many columns, against the peers: opening and reading files of up to 100,000 columns
	@dev/setup.sh rust-dev c++ peers
	dev/bench/run.sh --only-wide

bench-kernels: ## each kernel at each level of instructions, beside a copy of as many bytes, in bytes a cycle; two minutes
	@dev/setup.sh rust-dev
	PEERS_VENV=none dev/bench/run.sh --only-kernels

bench-scale: ## files of 10 MB to 10 GB, of 10 to 100,000 columns, of 1 to 10,000 row groups, against the peers; 13 GB of disk, 13 GB of memory
	dev/bench/run.sh --only-scale

bench-disk: ## the same rows in SSTables and in Parquet: sizes
	dev/bench/run.sh --only-disk

bench-door: ## what the C interface costs beside Rust, in instructions; FILE="a.parquet b.parquet": of these files
	@dev/setup.sh rust-dev c++ peers
	dev/bench/door.sh $(FILE)

bench-sstable: ## reading SSTables, against cqlite and sstabledump; writing them, against CQLSSTableWriter and loads by CQL
	dev/bench/run.sh --only-sstable
	dev/bench/run.sh --only-sstable-writing

bench-plugin: ## what the plugin costs a Cassandra under load, in target/bench/plugin.md; some ten minutes
	@dev/setup.sh rust-dev cassandra
	cargo test --release $(LOCKED) -p marquetry-cli --test live the_plugin_costs -- --ignored --nocapture

bench-python: ## reading into pyarrow and Polars, beside their own readers and the crate in Rust; importing
	@dev/setup.sh rust-dev peers
	dev/bench/run.sh --only-python

bench-pq: ## one partition, and all, from an SSTable and from a Parquet file of it
	dev/bench/run.sh --only-pq

bench-cluster: ## loads into and unloads from a Cassandra on this machine, against cqlsh COPY, DSBulk and Spark's connector
	dev/bench/run.sh --only-cluster

bench-layouts: ## four million events in each layout of a table in Cassandra, and in a Parquet file: disk, loads, reading
	dev/bench/run.sh --only-layouts

bench-ceph: ## the object class in a Ceph on this machine: what others wait beside its queries, what moves, what a client works; rows and columns
	@dev/setup.sh rust-dev c++ ceph flatbuffers
	PEERS_VENV=none dev/bench/run.sh --only-ceph

bench-spark: ## the queries of the published experiment by Spark: on Parquet and on tables, by its own reader, its connector for Cassandra, and ours
	dev/bench/run.sh --only-spark
