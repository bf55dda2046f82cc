#!/usr/bin/env bash
# Runs the tests that use the corpus as in a clone that has none: each must be skipped, and say so.
#
#   dev/without-corpus.sh FILE   FILE is what `make test` put on record with the corpus (MARQUETRY_USED): lines of a word, a package and a
#                                test program, and a test, with tabs between them
#
# Environment: CI (--locked), MARQUETRY_SKIPPED (what make test skipped)
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$HOME/.cargo/bin:$PATH"

used=$1
if ! grep -q '^corpus' "$used" 2>/dev/null; then
  if [ -n "${MARQUETRY_SKIPPED:-}" ] && grep -q '^corpus' "$MARQUETRY_SKIPPED" 2>/dev/null; then
    echo "make test had no corpus, so that its tests ran without it there."
    exit 0
  fi
  echo "$used names no test that used the corpus: run make test first, with it" >&2
  exit 1
fi

locked=()
[ -z "${CI:-}" ] || locked=(--locked)
programs=()
tests=()
# (Examples in the documentation are programs called rust_out, which cannot be asked for.)
asked() { awk -F '\t' '$1 == "corpus" && $2 !~ /, rust_out$/' "$1"; }
while read -r package program; do
  # A unit test's program has the name of its package.
  if [ "${package//-/_}" = "$program" ]; then programs+=(--lib); else programs+=(--test "$program"); fi
done < <(asked "$used" | cut -f 2 | tr -d , | sort -u)
while read -r name; do tests+=("$name"); done < <(asked "$used" | cut -f 3 | sort -u)

skipped=$PWD/target/skipped-without-corpus.txt
rm -f "$skipped"
# Of the workspace, as make test builds them: another choice of packages has other features, and is built anew.
env -u MARQUETRY_USED MARQUETRY_CORPUS="$PWD/target/no-corpus" MARQUETRY_SKIPPED="$skipped" \
  cargo test "${locked[@]}" --quiet --workspace "${programs[@]}" -- --exact "${tests[@]}"

# What used it is what is skipped without it, test by test (or sooner, for want of something else).
missing=$(comm -23 <(asked "$used" | cut -f 2,3 | sort -u) <(cut -f 2,3 "$skipped" | sort -u))
if [ -n "$missing" ]; then
  printf 'used the corpus, and said nothing without it:\n%s\n' "$missing" >&2
  exit 1
fi
echo "$(grep -c '^corpus' "$skipped") tests are skipped without the corpus, and say so."
