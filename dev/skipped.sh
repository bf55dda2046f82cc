#!/usr/bin/env bash
# Says which tests and checks did not run, what each lacks, and how to get it.
#
#   dev/skipped.sh FILE                      FILE has lines of a word, a test program and a test, with tabs between them
#   dev/skipped.sh --add WORD PROGRAM TEST   adds one to the file that MARQUETRY_SKIPPED names, and says so
#
# In CI (CI=true) it fails, unless WITHOUT="word word" names everything that is missing.
set -euo pipefail

main() {
  local record=$1 words word
  if [ "$record" = --add ]; then
    printf 'NOT CHECKED: %s; it needs %s\n' "$4" "$(how "$2")"
    [ -z "${MARQUETRY_SKIPPED:-}" ] || printf '%s\t%s\t%s\n' "$2" "$3" "$4" >>"$MARQUETRY_SKIPPED"
    return
  fi
  if [ ! -s "$record" ]; then
    echo "Every test ran."
    return
  fi
  words=$(cut -f 1 "$record" | sort -u)
  echo "$(sort -u "$record" | wc -l) tests did not run, or not all of them:"
  for word in $words; do
    echo "  $word: $(how "$word")"
    awk -F "\t" -v word="$word" '$1 == word' "$record" | sort -u | cut -f 2,3 | sed 's/\t/: /; s/^/    /'
  done
  [ -n "${CI:-}" ] || return 0
  for word in $words; do
    case " ${WITHOUT:-} " in
      *" $word "*) ;;
      *) echo "In CI nothing is skipped that WITHOUT does not name: \"$word\" is missing." >&2; exit 1 ;;
    esac
  done
}

how() {
  case $1 in
    corpus) echo "parquet-testing at its pinned commit; dev/setup.sh corpus fetches it" ;;
    real) echo "real files, which are not ours to pass on; CONTRIBUTING.md names them (MARQUETRY_CORPUS)" ;;
    sstables) echo "SSTables of real servers, which are not kept here; CONTRIBUTING.md says which (MARQUETRY_SSTABLES)" ;;
    peers) echo "other implementations of Parquet; dev/setup.sh peers installs them, make test does" ;;
    spark) echo "Apache Spark; dev/setup.sh spark installs it, make soak does" ;;
    cassandra) echo "a Cassandra; dev/setup.sh cassandra installs it, make test does" ;;
    ceph) echo "a Ceph; dev/setup.sh ceph installs it, make soak does" ;;
    chromium) echo "Chromium and ChromeDriver; dev/setup.sh chromium installs them, make test does" ;;
    s3) echo "moto, a server of S3; dev/setup.sh s3 installs it, make test does" ;;
    azure) echo "Azurite, a server of Azure's blobs; dev/setup.sh azure installs it, make test does" ;;
    uring) echo "Linux's io_uring, which this system or its container does not allow; sysctl kernel.io_uring_disabled=0" ;;
    fifo) echo "mkfifo; apt-get install coreutils" ;;
    msrv) echo "the oldest supported Rust; rustup toolchain install $(sed -nE 's/^rust-version = "([0-9.]+)"/\1/p' "$(dirname "$0")/../Cargo.toml") --profile minimal" ;;
    aarch64) echo "the standard library for aarch64; rustup target add aarch64-unknown-linux-gnu" ;;
    qemu) echo "QEMU's user mode and a compiler for aarch64; apt-get install qemu-user gcc-aarch64-linux-gnu libc6-dev-arm64-cross" ;;
    miri) echo "Miri; rustup toolchain install nightly --profile minimal --component miri,rust-src" ;;
    mandoc) echo "mandoc; apt-get install mandoc" ;;
    compiler) echo "compilers of C11 and C++20; apt-get install gcc g++" ;;
    clang) echo "clang and its runtimes; apt-get install clang" ;;
    valgrind) echo "valgrind; dev/setup.sh valgrind installs it, make test does" ;;
    counts) echo "a processor with AVX2, and baselines of instruction counts for this compiler; dev/counts.sh renew makes them" ;;
    liburing) echo "liburing's header and library; apt-get install liburing-dev" ;;
    seastar) echo "Seastar, built and installed so that pkg-config finds it; github.com/scylladb/seastar" ;;
    shellcheck) echo "shellcheck; apt-get install shellcheck" ;;
    deny) echo "cargo-deny; make deny builds it" ;;
    semver) echo "cargo-semver-checks and a release to compare with; dev/setup.sh semver builds the former" ;;
    *) echo "unknown" ;;
  esac
}

main "$@"
