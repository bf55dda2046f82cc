#!/usr/bin/env bash
# Makes ready what the named parts of the work need. Quick when everything is there.
#
#   dev/setup.sh PART…
#
#   rust       cargo and rustc, at least Cargo.toml's rust-version, and a C compiler (the zstd library is C)
#   rust-dev   the same, as new as tests and benchmarks need it: they run the driver for compio too
#   lint       rustfmt, clippy
#   c++        a C++ compiler (the benchmarks link Arrow C++ from the pyarrow wheel)
#   peers      the Parquet implementations of dev/peers.txt, in target/peers-venv
#   find-peers Vortex and DataFusion, as dev/find-peers.txt has them, in target/find-venv (440 MB), which
#              only the benchmark of look-ups compares with
#   spark      Apache Spark as dev/spark.txt has it, in target/spark-venv (760 MB), and Java
#   cassandra  Java and Maven, and Cassandra's jars
#   cluster-peers
#              cqlsh, as dev/cluster-peers.txt has it, DSBulk, and Spark with the Spark Cassandra Connector, in target/cluster-peers (400 MB), which only the
#              benchmark of live clusters compares with
#   chromium   Chromium and ChromeDriver, which the picture of a file is tested in
#   valgrind   valgrind, which counts instructions
#   s3         moto, a server of S3, as dev/moto.txt has it, in target/moto-venv (140 MB)
#   python     maturin, which builds the wheel of crates/python, Zig, which links it, and mypy, as dev/python.txt has it, in target/python-venv (380 MB)
#   azure      Azurite, a server of Azure's blobs, in target/azurite (190 MB), and Node.js
#   ceph       a Ceph of Debian's packages (monitor and OSD), and what its object classes and clients are built with (300 MB)
#   flatbuffers
#              the FlatBuffers library for C++, which the benchmark of the object class reads rows by
#   corpus     parquet-testing at a pinned commit, in target/corpus (16 MB)
#   flights    the demo's file, target/demo/flights-3m.parquet
#   deny       cargo-deny, built from source (minutes)
#   semver     cargo-semver-checks, built from source (minutes)
#
# As root on a Debian machine it installs the missing packages itself; anybody else is told exactly what is
# missing and which commands mend it, and the exit code is 1. It never calls sudo.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$HOME/.cargo/bin:$PATH"

cache=${XDG_CACHE_HOME:-$HOME/.cache}/marquetry
peers=target/peers-venv
find_peers=target/find-venv
spark=target/spark-venv
moto=target/moto-venv
python=target/python-venv
cluster_peers=target/cluster-peers
# Apache-2.0, all three; Maven verifies the checksums.
dsbulk_version=1.10.0
connector_version=3.5.1
connector_spark_version=3.5.6
# MIT.
azurite_package=azurite@3.37.0
azurite=target/azurite
# BSD-3-Clause; the npm package's own checksum is verified by npm, the file's here.
flights_package=vega-datasets@3.2.1
flights_sha256=dbeb920c90f59b6ccaff823dcc3d08f25a97fa1ce128d93f40be4e931f5900b0
flights=target/demo/flights-3m.parquet
# Apache-2.0. The tests list every file of it; a newer commit is taken on purpose, with its new files.
corpus_url=https://github.com/apache/parquet-testing
corpus_commit=1a2a75127be06fc0123f03ebd36c966f7beda27d
corpus=target/corpus/parquet-testing

packages=() # Debian packages that are missing
advice=()   # commands that mend what packages alone do not
optional='' # those of the parts that tests do without: `make test WITHOUT="…"`

main() {
  local part
  for part in "$@"; do
    case $part in
      rust | rust-dev | lint | c++ | peers | find-peers | spark | cassandra | cluster-peers | chromium | valgrind | s3 | python | azure | ceph | flatbuffers | corpus | flights | deny | semver) ;;
      *) sed -n '2,/^set -e/{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}" >&2; fail "unknown part '$part'" ;;
    esac
  done
  for part in "$@"; do
    case $part in peers | cassandra | s3 | azure | chromium | valgrind) optional+="${optional:+ }$part" ;; esac
  done
  for part in "$@"; do "need_$(name "$part")"; done
  install_packages
  for part in "$@"; do "make_$(name "$part")"; done
}

# A part's name as a function's.
name() { tr +- p_ <<<"$1"; }
say() { echo "setup: $*" >&2; }
fail() { say "$*"; exit 1; }
have() { command -v "$1" >/dev/null; }
root() { [ "$(id -u)" -eq 0 ] && have apt-get; }
missing() { packages+=("$@"); }

install_packages() {
  [ ${#packages[@]} -gt 0 ] || [ ${#advice[@]} -gt 0 ] || return 0
  if [ ${#packages[@]} -gt 0 ] && root; then
    say "installing Debian's ${packages[*]}"
    update_package_lists
    quietly env DEBIAN_FRONTEND=noninteractive \
      apt-get install -y --no-install-recommends -o Dpkg::Use-Pty=0 "${packages[@]}"
    packages=()
  fi
  if [ ${#packages[@]} -gt 0 ] || [ ${#advice[@]} -gt 0 ]; then
    say "something is missing. Please run:"
    [ ${#packages[@]} -eq 0 ] || echo "  (as root, on Debian)  apt-get install ${packages[*]}" >&2
    local line
    for line in "${advice[@]}"; do echo "  $line" >&2; done
    [ -z "$optional" ] || echo "Tests can do without some parts:  make test WITHOUT=\"$optional\"" >&2
    exit 1
  fi
}

lists_updated=
update_package_lists() {
  [ -z "$lists_updated" ] || return 0
  quietly apt-get update
  lists_updated=yes
}

# Runs a talkative command; what it says is shown only if it fails.
quietly() {
  mkdir -p target
  if ! "$@" </dev/null >target/setup.log 2>&1; then
    tail -n 20 target/setup.log >&2
    [ -z "$optional" ] || say "tests can do without some parts: make test WITHOUT=\"$optional\""
    fail "this failed: $*  (all it said is in target/setup.log)"
  fi
}

# --- rust: Debian 12's own rustc is too old, so Rust comes through rustup, which Debian packages from 13 on.

msrv=$(sed -nE 's/^rust-version = "([0-9.]+)"/\1/p' Cargo.toml)
msrv_dev=1.95 # compio 0.19 uses cfg_select!

need_rust() {
  have cc || missing gcc libc6-dev
  [ -e /etc/ssl/certs/ca-certificates.crt ] || ! have apt-get || missing ca-certificates
  if rust_is_new_enough || have rustup; then return; fi
  if root && update_package_lists && apt-cache show rustup >/dev/null 2>&1; then
    missing rustup
  else
    advice+=("install Rust $msrv or newer; this machine has $(rustc --version 2>/dev/null || echo none):")
    advice+=("  Debian 13 or newer: (as root) apt-get install rustup, then rustup default stable")
    advice+=("  elsewhere, also Debian 12, whose own rustc is too old: follow https://rustup.rs")
  fi
}

make_rust() {
  if rust_is_new_enough; then return; fi
  say "installing the stable Rust toolchain in ~/.rustup"
  quietly rustup toolchain install stable --profile minimal --component clippy,rustfmt
  rust_is_new_enough || quietly rustup default stable
  rust_is_new_enough || fail "rustc is still older than $msrv: $(rustc --version 2>&1 || true) at $(command -v rustc)"
}

need_rust_dev() { msrv=$msrv_dev; need_rust; }
make_rust_dev() { msrv=$msrv_dev; make_rust; }

rust_is_new_enough() {
  have cargo || return 1
  local version
  version=$(rustc --version 2>/dev/null | cut -d ' ' -f 2)
  [ -n "$version" ] && [ "$(printf '%s\n%s\n' "$msrv" "$version" | sort -V | head -n 1)" = "$msrv" ]
}

need_lint() { :; }

make_lint() {
  if cargo fmt --version >/dev/null 2>&1 && cargo clippy --version >/dev/null 2>&1; then return; fi
  have rustup || fail "cargo fmt or cargo clippy is missing, and there is no rustup to add them with
  without rustup, install the packages that bring rustfmt and clippy to your cargo"
  quietly rustup component add clippy rustfmt
}

need_cpp() { have c++ || missing g++; }

make_cpp() { :; }

# --- peers

need_peers() { need_venv "$peers" dev/peers.txt; }

make_peers() { make_venv "$peers" dev/peers.txt 150 --only-binary :all:; }

need_find_peers() { need_venv "$find_peers" dev/find-peers.txt; }

make_find_peers() { make_venv "$find_peers" dev/find-peers.txt 440 --only-binary :all:; }

need_venv() { # VENV LIST
  if venv_is_there "$1" "$2"; then return; fi
  if ! have python3; then
    missing python3 python3-venv
  elif ! python3 -c 'import ensurepip, venv' 2>/dev/null; then
    missing python3-venv
  fi
}

make_venv() { # VENV LIST MEGABYTES [OPTION…]
  if venv_is_there "$1" "$2"; then return; fi
  python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "$2 needs Python 3.11 or newer, and python3 is $(python3 --version)"
  say "installing what $2 names in $1 (about $3 MB)"
  rm -rf "$1"
  mkdir -p target
  python3 -m venv "$1"
  "$1/bin/python" -m pip install --quiet --disable-pip-version-check "${@:4}" -r "$2" >&2
  cp "$2" "$1/installed.txt" # last: what was interrupted is begun anew
}

venv_is_there() { cmp -s "$2" "$1/installed.txt" && [ -x "$1/bin/python" ]; }

# --- spark

need_spark() {
  need_venv "$spark" dev/spark.txt
  need_java
}

# It is no wheel, but Python's source around its jars.
make_spark() { make_venv "$spark" dev/spark.txt 760 --no-cache-dir; }

need_java() { if ! dev/cassandra.sh java >/dev/null 2>&1; then missing default-jre-headless; fi; }

# --- cassandra

need_cassandra() {
  have ps || missing procps
  need_java
  if ! have mvn && ! dev/cassandra.sh fetched; then missing maven; fi
}

make_cassandra() {
  dev/cassandra.sh java >/dev/null
  dev/cassandra.sh fetch
}

need_cluster_peers() {
  need_cassandra
  need_venv "$cluster_peers/cqlsh-venv" dev/cluster-peers.txt
  if ! have mvn && ! { jars_are_there dsbulk "$dsbulk_version" && jars_are_there spark "$connector_version"; }; then missing maven; fi
}

make_cluster_peers() {
  make_cassandra
  make_venv "$cluster_peers/cqlsh-venv" dev/cluster-peers.txt 30
  local part dsbulk=()
  for part in runner workflow-load workflow-unload connectors-csv codecs-text executor-reactor batcher-reactor; do
    dsbulk+=("com.datastax.oss:dsbulk-$part:$dsbulk_version")
  done
  # It refuses to run without logback, and none of its own artifacts has it.
  make_jars dsbulk "$dsbulk_version" 28 "${dsbulk[@]}" ch.qos.logback:logback-classic:1.2.11
  make_jars spark "$connector_version" 300 "com.datastax.spark:spark-cassandra-connector_2.12:$connector_version" "org.apache.spark:spark-sql_2.12:$connector_spark_version"
}

# make_jars NAME VERSION MB GROUP:ARTIFACT:VERSION…: these and what they need, in a folder of the cluster's peers.
make_jars() {
  local name=$1 version=$2 size=$3 pom=$cluster_peers/$1-pom.xml group artifact of
  shift 3
  if jars_are_there "$name" "$version"; then return; fi
  say "fetching $name $version ($size MB)"
  mkdir -p "$cluster_peers"
  rm -rf "${cluster_peers:?}/$name"
  {
    echo '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
    echo "<groupId>marquetry</groupId><artifactId>$name</artifactId><version>1</version><packaging>pom</packaging><dependencies>"
    while IFS=: read -r group artifact of; do
      echo "<dependency><groupId>$group</groupId><artifactId>$artifact</artifactId><version>$of</version></dependency>"
    done < <(printf '%s\n' "$@")
    echo '</dependencies></project>'
  } >"$pom"
  mvn --batch-mode --quiet -Dstyle.color=never --strict-checksums -f "$pom" dependency:copy-dependencies \
    -DincludeScope=runtime -DoutputDirectory="$PWD/$cluster_peers/$name" </dev/null >&2 || fail "Maven could not fetch $name $version"
  echo "$version" >"$cluster_peers/$name.installed" # last: what was interrupted is begun anew
}

jars_are_there() { [ "$(cat "$cluster_peers/$1.installed" 2>/dev/null)" = "$2" ]; }

# --- chromium

need_chromium() {
  have chromium || missing chromium
  have chromedriver || missing chromium-driver
}

make_chromium() { :; }

# --- valgrind

need_valgrind() { have valgrind || missing valgrind; }

make_valgrind() { :; }

# --- the wheel of the package for Python

need_python() { need_venv "$python" dev/python.txt; }

make_python() { make_venv "$python" dev/python.txt 380; }

# --- servers of object stores, which tests start and stop

need_s3() { need_venv "$moto" dev/moto.txt; }

make_s3() { make_venv "$moto" dev/moto.txt 140; }

need_azure() {
  if azurite_is_there; then return; fi
  have node || missing nodejs
  have npm || missing npm
}

make_azure() {
  if azurite_is_there; then return; fi
  say "installing $azurite_package in $azurite (190 MB, once)"
  rm -rf "$azurite"
  mkdir -p "$azurite"
  # What its packages would run when they are installed builds parts that the server of blobs has no use for.
  quietly npm install --prefix "$azurite" --ignore-scripts --no-audit --no-fund "$azurite_package"
  echo "$azurite_package" >"$azurite/installed.txt"
}

azurite_is_there() { have node && [ "$(cat "$azurite/installed.txt" 2>/dev/null)" = "$azurite_package" ]; }

# --- ceph

need_ceph() {
  have c++ || missing g++
  have ceph-mon || missing ceph-mon
  have ceph-osd || missing ceph-osd
  [ -e /usr/include/rados/objclass.h ] || missing rados-objclass-dev librados-dev
  # The former includes it, and depends on a package that does not have it.
  [ -e /usr/include/rados/buffer.h ] || missing libradospp-dev
}

make_ceph() { :; }

need_flatbuffers() { [ -e /usr/include/flatbuffers/flexbuffers.h ] || missing libflatbuffers-dev; }

make_flatbuffers() { :; }

# --- corpus

need_corpus() { [ -d "$corpus/data" ] || have git || missing git; }

make_corpus() {
  if [ -d "$corpus/data" ] && [ "$(git -C "$corpus" rev-parse HEAD)" = "$corpus_commit" ]; then return; fi
  say "fetching parquet-testing at $corpus_commit (16 MB, once)"
  local new=target/corpus/new
  rm -rf "$new"
  mkdir -p "$new"
  git -C "$new" init --quiet
  quietly git -C "$new" fetch --quiet --depth 1 "$corpus_url" "$corpus_commit"
  git -C "$new" checkout --quiet FETCH_HEAD
  rm -rf "$corpus"
  mv "$new" "$corpus"
}

# --- flights

need_flights() {
  [ -e "$flights" ] || have npm || missing npm
}

make_flights() {
  [ ! -e "$flights" ] || return 0
  say "fetching $flights_package (18 MB, once)"
  local new=target/demo/new
  rm -rf "$new"
  mkdir -p "$new"
  npm pack "$flights_package" --silent --pack-destination "$new" </dev/null >/dev/null
  tar -xzf "$new"/*.tgz -C "$new" package/data/flights-3m.parquet
  echo "$flights_sha256  $new/package/data/flights-3m.parquet" | sha256sum --check --status ||
    fail "$flights_package does not hold the flights-3m.parquet that was expected (SHA-256 differs)"
  mv "$new/package/data/flights-3m.parquet" "$flights"
  rm -rf "$new"
}

# --- deny

need_deny() { :; }

make_deny() {
  if have cargo-deny || [ -x "$cache/tools/bin/cargo-deny" ]; then return; fi
  say "building cargo-deny in $cache/tools (minutes, once)"
  cargo install cargo-deny --locked --root "$cache/tools" </dev/null >&2
}

# --- semver

need_semver() { :; }

make_semver() {
  if have cargo-semver-checks || [ -x "$cache/tools/bin/cargo-semver-checks" ]; then return; fi
  say "building cargo-semver-checks in $cache/tools (minutes, once)"
  cargo install cargo-semver-checks --locked --root "$cache/tools" </dev/null >&2
}

main "$@"
