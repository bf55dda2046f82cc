#!/usr/bin/env bash
# Other builds than that of `make test`, which nobody makes every day. What this machine has no tools for is put on record.
#
#   dev/builds.sh           features, msrv and aarch64
#   dev/builds.sh PART…     some of:
#
#   features   each published crate without its default features, with each feature alone, and with all
#   msrv       the published crates with the oldest Rust that is supported, default features
#   aarch64    the published crates for aarch64; and the unit tests of the kernels there, by QEMU's user mode
#   semver     the public interface beside that of the last release (a tag v…)
#   miri       the unit tests of all code that is unsafe (kernels, base's buffers), under Miri
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$HOME/.cargo/bin:$PATH:${XDG_CACHE_HOME:-$HOME/.cache}/marquetry/tools/bin"

locked=()
[ -z "${CI:-}" ] || locked=(--locked)

main() {
  local part
  [ $# -gt 0 ] || set -- features msrv aarch64
  for part in "$@"; do
    case $part in
      features | msrv | aarch64 | semver | miri) "$part" ;;
      *) echo "unknown part '$part'" >&2; exit 1 ;;
    esac
  done
}

# Runs a command, and shows it first.
run() { echo "+ $*" >&2; "$@"; }
lacks() { dev/skipped.sh --add "$1" dev/builds.sh "$2"; }

# The published crates: a line for each, the name and then its features.
crates() { cargo run --quiet "${locked[@]}" -p marquetry-xtask --bin crates; }

features() {
  local name features feature
  crates | while read -r name features; do
    # With all of them others build it. Alone, so that no other crate turns a feature on.
    run cargo check --quiet "${locked[@]}" -p "$name" --no-default-features
    for feature in $features; do
      run cargo check --quiet "${locked[@]}" -p "$name" --no-default-features --features "$feature"
    done
    # One feature is all of them.
    [ "${features/ /}" = "$features" ] || run cargo check --quiet "${locked[@]}" -p "$name" --all-features
  done
}

# `-p NAME` of each.
packages() { crates | awk '{ printf " -p %s", $1 }'; }

msrv() {
  local oldest
  oldest=$(sed -nE 's/^rust-version = "([0-9.]+)"/\1/p' Cargo.toml)
  if ! rustup toolchain list 2>/dev/null | grep -q "^$oldest[.-]"; then
    lacks msrv "a build with Rust $oldest"
    return
  fi
  # A folder of its own, or each toolchain would build all anew.
  # shellcheck disable=SC2046  # words are wanted
  CARGO_TARGET_DIR=target/msrv run cargo "+$oldest" check --quiet "${locked[@]}" $(packages)
}

aarch64() {
  local target=aarch64-unknown-linux-gnu
  if ! rustup target list --installed 2>/dev/null | grep -q "^$target$"; then
    lacks aarch64 "a build for aarch64"
    return
  fi
  # Those without C, which would want a compiler for it.
  CARGO_TARGET_DIR=target/aarch64 run cargo check --quiet "${locked[@]}" --target "$target" \
    -p marquetry-base -p marquetry-kernels -p marquetry-parquet -p marquetry-scylla -p marquetry-arrow -p marquetry-io
  local gcc=aarch64-linux-gnu-gcc qemu=qemu-aarch64
  if [ "$(uname -m)" = aarch64 ]; then
    return  # `make test` runs them.
  elif ! command -v "$gcc" >/dev/null || ! command -v "$qemu" >/dev/null; then
    lacks qemu "the kernels' tests on aarch64"
    return
  fi
  CARGO_TARGET_DIR=target/aarch64 CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=$gcc \
    CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="$qemu -L /usr/aarch64-linux-gnu" \
    run cargo test --quiet "${locked[@]}" --target "$target" -p marquetry-kernels --lib
}

semver() {
  local release
  release=$(git describe --tags --abbrev=0 --match 'v[0-9]*' 2>/dev/null || true)
  if [ -z "$release" ]; then
    echo "NOT CHECKED: the public interface; there is no release yet to compare it with (a tag v…)"
  elif ! command -v cargo-semver-checks >/dev/null; then
    lacks semver "the public interface beside that of $release"
  else
    run cargo semver-checks --baseline-rev "$release" --workspace
  fi
}

miri() {
  if ! cargo +nightly miri --version >/dev/null 2>&1; then
    lacks miri "kernels and base's buffers under Miri"
    return
  fi
  # What else is in base has no unsafe code, and tests of many megabytes.
  MIRIFLAGS="-Zmiri-disable-isolation" CARGO_TARGET_DIR=target/miri \
    run cargo +nightly miri test "${locked[@]}" -p marquetry-base --lib buffer
  MIRIFLAGS="-Zmiri-disable-isolation" CARGO_TARGET_DIR=target/miri \
    run cargo +nightly miri test "${locked[@]}" -p marquetry-kernels --lib
}

main "$@"
