#!/usr/bin/env bash
# Long runs of the fuzz targets under libFuzzer, led by coverage and by cost, on all cores.
#
#   dev/fuzz/run.sh [TARGET…]         MINUTES=5 for each target; no target: all of them
#   dev/fuzz/run.sh --keep [TARGET…]  put what reached something new into dev/fuzz/corpus, as little of it as does
#
# Stable Rust is enough. Where a nightly toolchain is installed, a second, shorter run looks for faults of memory
# (AddressSanitizer). At the end all that was kept is timed, without what the fuzzer adds: no call may take longer than its units are worth.
# The target `door` is the C interface: door.c, compiled by clang, over the small files of parquet-testing.
# An input that a target does not bear is kept in dev/fuzz/crashes, and the run fails. What reached
# something new stays in target/fuzz/corpus, for the next run.
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD
minutes=${MINUTES:-5}
cores=${CORES:-$(nproc)}
built=${CARGO_TARGET_DIR:-target}/fuzz
work=target/fuzz/corpus
all=(footer page encoding codec file find operations values cql write shred text sstable class cost)
# The files that the target door changes.
DOOR_BASES=${DOOR_BASES:-$(find "${MARQUETRY_CORPUS:-../shared/corpus}/parquet-testing/data" -name '*.parquet' -size -30k 2>/dev/null | sort | tr '\n' ' ')}
export DOOR_BASES

main() {
  local keep=
  if [ "${1-}" = --keep ]; then keep=yes; shift; fi
  if [ $# -eq 0 ]; then
    set -- "${all[@]}"
    if ! command -v clang >/dev/null; then
      dev/skipped.sh --add clang dev/fuzz/run.sh "the C interface under libFuzzer"
    elif [ -z "$DOOR_BASES" ]; then
      dev/skipped.sh --add corpus dev/fuzz/run.sh "the C interface under libFuzzer"
    else
      set -- "$@" door
    fi
  fi
  build stable "$@"
  if [ -n "$keep" ]; then
    for target in "$@"; do keep "$target"; done
    return
  fi
  run stable "$((minutes * 60))" "$@"
  if cargo +nightly --version >/dev/null 2>&1; then
    build address "$@"
    run address "$((minutes * 20))" "$@"
  fi
  judge "$@"
}

# What coverage is counted in: this workspace only, and neither the peers nor their C.
build() {
  local kind=$1 toolchain=() flags= sanitize=fuzzer
  if [ "$kind" = address ]; then toolchain=(+nightly) flags=-Zsanitizer=address sanitize=fuzzer,address; fi
  shift
  host=$(rustc -vV | sed -n 's/^host: //p')
  # The peers' C is not looked at: instrumented by another compiler than Rust's, zstd's static tables look like its stack.
  if [ "$kind" = address ]; then export CFLAGS="${CFLAGS-} -fno-sanitize=address"; fi
  if [ "$*" != door ]; then
    instrumented -p marquetry-fuzz --features libfuzzer --bin libfuzzer
    cp "$built/$kind/$host/fuzz/libfuzzer" "$built/libfuzzer-$kind"
  fi
  if [[ " $* " == *" door "* ]]; then
    instrumented -p marquetry-capi --lib
    clang -std=c11 -O1 -g -fsanitize=$sanitize -DLIBFUZZER -D_GNU_SOURCE -I crates/capi/include dev/fuzz/door.c \
      "$built/$kind/$host/fuzz/libmarquetry_c.a" -lpthread -ldl -lm -o "$built/libfuzzer-$kind-door"
  fi
}

# Of `build`: what cargo builds, for $kind.
instrumented() {
  RUSTC_WORKSPACE_WRAPPER=$root/dev/fuzz/rustc.sh RUSTFLAGS="${RUSTFLAGS-} $flags" CARGO_TARGET_DIR=$built/$kind \
    cargo "${toolchain[@]}" build --profile fuzz --target "$host" "$@"
}

# The program of a kind that has a target.
program() {
  if [ "$2" = door ]; then echo "$built/libfuzzer-$1-door"; else echo "$built/libfuzzer-$1"; fi
}

# Targets side by side; one alone has all cores.
run() {
  local kind=$1 seconds=$2 copies=1
  shift 2
  if [ $# -eq 1 ]; then copies=$cores; fi
  for target in "$@"; do
    for ((copy = 0; copy < copies; copy++)); do echo "$target"; done
  done | xargs -P "$cores" -I{} "$0" --one {} "$kind" "$seconds"
}

one() {
  local target=$1 kind=$2 seconds=$3
  local log program crashes=dev/fuzz/crashes/$target
  program=$(program "$kind" "$target")
  mkdir -p "$work/$target" "$crashes" target/fuzz/logs
  log=target/fuzz/logs/$target-$kind-$$
  if FUZZ_TARGET=$target nice -n 10 "$program" -max_total_time="$seconds" -max_len=4096 -len_control=0 -timeout=20 -rss_limit_mb=3000 \
    -print_final_stats=1 -verbosity=1 -artifact_prefix="$crashes/" "$work/$target" "dev/fuzz/corpus/$target" >"$log" 2>&1; then
    echo "$target: $(grep -aE '^#[0-9]+.*cov:' "$log" | tail -n 1)"
  else
    echo "$target: FAILED"
    # The panic stands before libFuzzer's report, whose last lines name the input.
    grep -aE -A 4 'panicked at|ERROR:|SUMMARY' "$log" | head -n 30
    tail -n 4 "$log"
    for file in $(grep -aoE "$crashes/[a-z]+-[0-9a-f]+" "$log" | sort -u); do
      if [ "$target" = door ]; then
        echo "  see it again: $program $file"
      else
        echo "  see it again: cargo run -p marquetry-fuzz --bin replay $target $file"
      fi
    done
    return 1
  fi
}

# Least of three replays, one after the other: what else the machine does is the least of them, too.
judge() {
  local failed=0
  [ "$*" != door ] || return 0
  cargo build --release -p marquetry-fuzz --bin replay
  for target in "$@"; do
    # A host's own calls are between those of the door: the target cost times what is behind them.
    [ "$target" != door ] || continue
    echo "$target, timed:"
    "${CARGO_TARGET_DIR:-target}/release/replay" --timed "$target" "$work/$target" "dev/fuzz/corpus/$target" || failed=1
  done
  return "$failed"
}

keep() {
  local target=$1 new=$work/$1.new
  rm -rf "$new"
  mkdir -p "$new" "$work/$target" "dev/fuzz/corpus/$target"
  FUZZ_TARGET=$target "$(program stable "$target")" -set_cover_merge=1 -use_counters=0 -max_len=4096 "$new" "dev/fuzz/corpus/$target" "$work/$target" \
    2>&1 | tail -n 1
  # The names of kept crashes tell what they were; those of others are sums.
  find "dev/fuzz/corpus/$target" -type f -regextype posix-extended -regex '.*/[0-9a-f]{40}' -delete
  cp "$new"/* "dev/fuzz/corpus/$target/"
  rm -rf "$new"
  du -sb "dev/fuzz/corpus/$target"
}

if [ "${1-}" = --one ]; then shift; one "$@"; else main "$@"; fi
