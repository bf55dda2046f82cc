#!/usr/bin/env bash
# The wheel of the package for Python.
#
#   dev/wheel.sh build [OPTION OF MATURIN…]   for this machine's processor, in target/wheels; with --target aarch64-unknown-linux-gnu for that one
#   dev/wheel.sh try [PYTHON…]                installs it into a fresh environment of each of these, or of each CPython that is found, and reads a
#                                             file by it; by the first and the last, runs the package's tests and the documents' examples
#   dev/wheel.sh try-aarch64                  the wheel for aarch64, by QEMU's user mode and Debian's CPython, which apt-get fetches (60 MB)
#   dev/wheel.sh try-newest                   runs the tests by the newest CPython of Debian's unstable distribution, which apt-get fetches (60 MB)
#
# Zig's linker links it against the symbols of an old glibc, so that it runs on systems as old as that: manylinux_2_28 is Debian 10, Ubuntu 20.04,
# RHEL 8 and what is newer. maturin refuses a wheel that needs more. One wheel is for all versions of CPython from 3.9 on (abi3).
set -euo pipefail
cd "$(dirname "$0")/.."

wheels=target/wheels
tag=manylinux_2_28
trial=$PWD/dev/wheel_trial.py
# Milliseconds that an import may take, by the fastest of some.
import_ms_max=50
# What the tests read beside the package, in whatever version there is for a CPython.
peers=(pyarrow polars duckdb pandas numpy)
# Of crates/python/tests/python those that need neither a server nor minutes.
tests=(test_reading test_finding test_writing test_types test_errors test_processes test_aio test_documents)

untested=()

say() { echo "wheel: $*" >&2; }
fail() { say "$*"; exit 1; }

build() {
  local venv=$PWD/target/python-venv
  # maturin finds Zig as a module of the Python on the PATH.
  PATH="$venv/bin:$PATH" "$venv/bin/maturin" build --release --zig --compatibility "$tag" -m crates/python/Cargo.toml -o "$wheels" "$@"
}

# CPythons from 3.9 on, each version once, the oldest first.
pythons() {
  local candidate version seen=' '
  for candidate in "${HOME}"/.pyenv/versions/3.*/bin/python3 /usr/bin/python3 $(for minor in $(seq 9 20); do command -v "python3.$minor" || true; done); do
    [ -x "$candidate" ] || continue
    version=$("$candidate" -c 'import sys; print("%d.%d" % sys.version_info[:2] if sys.version_info >= (3, 9) and sys.implementation.name == "cpython" else "")' 2>/dev/null) || continue
    case $seen in *" $version "*) continue ;; esac
    [ -n "$version" ] || continue
    seen+="$version "
    printf '%s %s\n' "$version" "$candidate"
  done | sort -V | cut -d ' ' -f 2-
}

wheel_for() { # MACHINE
  local found
  # shellcheck disable=SC2012 # the newest one; their names have no spaces
  found=$(ls -t "$wheels"/marquetry-*-"$tag"_"$1".whl 2>/dev/null | head -n 1) || true
  [ -n "$found" ] || fail "there is no wheel of $tag for $1 in $wheels: dev/wheel.sh build"
  printf '%s\n' "$found"
}

try() {
  local wheel all=("$@") python number=0
  wheel=$(wheel_for "$(uname -m)")
  [ ${#all[@]} -gt 0 ] || mapfile -t all < <(pythons)
  [ ${#all[@]} -gt 0 ] || fail "there is no CPython from 3.9 on"
  for python in "${all[@]}"; do
    number=$((number + 1))
    # What holds for the oldest and the newest holds in between.
    case $number in 1 | ${#all[@]}) try_one "$wheel" "$python" tests ;; *) try_one "$wheel" "$python" ;; esac
  done
}

try_one() { # WHEEL PYTHON [tests]
  local folder
  folder=$(mktemp -d)
  # shellcheck disable=SC2064 # this folder, whatever is tried next
  trap "rm -rf '$folder'" EXIT
  "$2" -m venv "$folder/venv"
  local python=$folder/venv/bin/python
  "$python" -m pip install --quiet --disable-pip-version-check --no-index "$1"
  # Without any other package.
  (cd "$folder" && "$python" "$trial" "$import_ms_max")
  if [ "${3:-}" = tests ]; then
    # With the stubs that are installed with it.
    target/python-venv/bin/mypy --strict --cache-dir /dev/null --python-version 3.11 --python-executable "$python" "$trial" >&2
    # One that is too old or too new for them has no tests.
    if "$python" -m pip install --quiet --disable-pip-version-check --only-binary :all: "${peers[@]}"; then
      run_tests "$python" "$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"
    else
      not_tested "$("$python" --version)"
    fi
  fi
  rm -rf "$folder"
  trap - EXIT
}

# What could not be tried is told at the end, and is no success.
not_tested() { # VERSION
  say "$1: not tested further: not all of ${peers[*]} could be installed"
  untested+=("$1")
}

# PACKAGES is the folder in which that Python has the package, and the peers.
run_tests() { # PYTHON PACKAGES
  local root=$PWD
  (cd crates/python/tests/python && MARQUETRY_ROOT=$root PYTHONPATH=$2 "$1" -X utf8 -B -m unittest --failfast "${tests[@]}")
  say "$("$1" --version): the tests pass"
}

try_aarch64() {
  local wheel folder=$PWD/target/python-aarch64 python scratch
  wheel=$(wheel_for aarch64)
  command -v qemu-aarch64 >/dev/null || fail "qemu-aarch64 is needed: Debian's package qemu-user"
  python=$folder/root/usr/bin/python3.11
  if [ ! -x "$python" ]; then
    find_packages "$folder" arm64 bookworm
    unpack "$folder" python3.11-minimal libpython3.11-stdlib
  fi
  rm -rf "$folder/packages"
  # pip checks the wheel's tags.
  target/python-venv/bin/python -m pip install --quiet --disable-pip-version-check --no-index --no-deps --target "$folder/packages" --platform "${tag}_aarch64" \
    --python-version 3.11 --implementation cp --abi abi3 --only-binary :all: "$wheel"
  scratch=$(mktemp -d)
  # shellcheck disable=SC2064 # this folder
  trap "rm -rf '$scratch'" EXIT
  (cd "$scratch" && PYTHONPATH=$folder/packages qemu-aarch64 -L "$folder/root" "$python" "$trial")
  rm -rf "$scratch"
}

try_newest() {
  local wheel folder=$PWD/target/python-newest root=$PWD/target/python-newest/root newest
  wheel=$(wheel_for "$(uname -m)")
  if [ ! -x "$root/usr/bin/python3" ]; then
    find_packages "$folder" "$(dpkg --print-architecture)" sid
    newest=$(apt-cache "${apt[@]}" search '^python3\.[0-9]+-minimal$' | sed 's/-minimal .*//' | sort -V | tail -n 1)
    [ -n "$newest" ] || fail "there is no CPython in Debian's unstable distribution"
    unpack "$folder" "$newest-minimal" "lib$newest-stdlib" "$newest-venv" libstdc++6
    # Its C library is newer than this system's, so its own loader runs it.
    cat >"$root/usr/bin/python3" <<SCRIPT
#!/bin/sh
exec $root/usr/lib64/ld-linux-x86-64.so.2 --argv0 "\$0" --library-path $root/usr/lib/x86_64-linux-gnu $root/usr/bin/$newest "\$@"
SCRIPT
    chmod +x "$root/usr/bin/python3"
  fi
  rm -rf "$folder/packages" "$folder/scratch"
  mkdir "$folder/scratch"
  # The pip that ensurepip would unpack.
  local install=(env "PYTHONPATH=$(echo "$root"/usr/share/python-wheels/pip-*.whl)" "$root/usr/bin/python3" -m pip install --quiet --disable-pip-version-check)
  install+=(--target "$folder/packages" --only-binary :all:)
  "${install[@]}" --no-index "$wheel"
  (cd "$folder/scratch" && PYTHONPATH=$folder/packages "$root/usr/bin/python3" "$trial")
  if "${install[@]}" "${peers[@]}"; then
    run_tests "$root/usr/bin/python3" "$folder/packages"
  else
    not_tested "$("$root/usr/bin/python3" --version)"
  fi
}

# Packages of Debian's for another system than this one, which stays as it is: `apt` gets options of apt-get and apt-cache.
find_packages() { # FOLDER ARCHITECTURE SUITE
  mkdir -p "$1/lists/partial" "$1/cache/archives/partial" "$1/root"
  local mirror
  # Where this machine gets its own packages from.
  # shellcheck disable=SC2016 # apt-get's own words
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Component: main' | grep -v security | head -n 1) || true
  [ -n "$mirror" ] || fail "apt-get knows no source of Debian's packages"
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $3 main" >"$1/sources.list"
  apt=(
    -o APT::Architecture="$2" -o APT::Architectures::="$2" -o Dir::Etc::SourceList="$1/sources.list" -o Dir::Etc::SourceParts=/dev/null
    -o Dir::State::Lists="$1/lists" -o Dir::Cache="$1/cache" -o Dir::State::Status=/dev/null -o Debug::NoLocking=1 -o quiet=2
  )
  apt-get "${apt[@]}" update >&2
}

# These and what they need, in FOLDER/root.
unpack() { # FOLDER PACKAGE…
  local archive
  apt-get "${apt[@]}" install --download-only --yes --no-install-recommends "${@:2}" >&2
  for archive in "$1"/cache/archives/*.deb; do dpkg-deb -x "$archive" "$1/root"; done
}

case ${1:-} in
  build) build "${@:2}" ;;
  try) try "${@:2}" ;;
  try-aarch64) try_aarch64 ;;
  try-newest) try_newest ;;
  *) sed -n '2,/^set -e/{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
esac
[ ${#untested[@]} -eq 0 ] || fail "not tested: ${untested[*]}"
