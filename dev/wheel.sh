#!/usr/bin/env bash
# The wheel of the package for Python.
#
#   dev/wheel.sh build [OPTION OF MATURIN…]   for this machine's processor, in target/wheels
#   dev/wheel.sh try [PYTHON…]                installs it into a fresh environment of each of these, or of each CPython that is found, and reads a
#                                             file by it
#
# Zig's linker links it against the symbols of an old glibc, so that it runs on systems as old as that: manylinux_2_28 is Debian 10, Ubuntu 20.04,
# RHEL 8 and what is newer. maturin refuses a wheel that needs more. One wheel is for all versions of CPython from 3.9 on (abi3).
set -euo pipefail
cd "$(dirname "$0")/.."

wheels=target/wheels
tag=manylinux_2_28
# Milliseconds that an import may take, by the fastest of some.
import_ms_max=50

say() { echo "wheel: $*" >&2; }
fail() { say "$*"; exit 1; }

build() {
  local venv=$PWD/target/python-venv
  # maturin finds Zig as a module of the Python on the PATH.
  PATH="$venv/bin:$PATH" "$venv/bin/maturin" build --release --zig --compatibility "$tag" -m crates/python/Cargo.toml -o "$wheels" "$@"
}

# CPythons from 3.9 on, each version once.
pythons() {
  local found candidate version seen=' '
  for candidate in "${HOME}"/.pyenv/versions/3.*/bin/python3 /usr/bin/python3 $(for minor in $(seq 9 20); do command -v "python3.$minor" || true; done); do
    [ -x "$candidate" ] || continue
    version=$("$candidate" -c 'import sys; print("%d.%d" % sys.version_info[:2] if sys.version_info >= (3, 9) and sys.implementation.name == "cpython" else "")' 2>/dev/null) || continue
    case $seen in *" $version "*) continue ;; esac
    [ -n "$version" ] || continue
    seen+="$version "
    found+="$candidate"$'\n'
  done
  printf '%s' "${found:-}"
}

try() {
  local wheel all=("$@") python
  wheel=$(ls -t "$wheels"/marquetry-*-"$tag"_"$(uname -m)".whl 2>/dev/null | head -n 1)
  [ -n "$wheel" ] || fail "there is no wheel of $tag in $wheels: make wheel"
  [ ${#all[@]} -gt 0 ] || mapfile -t all < <(pythons)
  [ ${#all[@]} -gt 0 ] || fail "there is no CPython from 3.9 on"
  for python in "${all[@]}"; do try_one "$wheel" "$python"; done
}

try_one() { # WHEEL PYTHON
  local folder
  folder=$(mktemp -d)
  # shellcheck disable=SC2064 # this folder, whatever is tried next
  trap "rm -rf '$folder'" EXIT
  "$2" -m venv "$folder/venv"
  local python=$folder/venv/bin/python
  "$python" -m pip install --quiet --disable-pip-version-check --no-index "$1"
  # Whatever pyarrow there is for this Python: one that is too old or too new for pyarrow reads without it.
  "$python" -m pip install --quiet --disable-pip-version-check --only-binary :all: pyarrow 2>/dev/null || true
  (cd "$folder" && "$python" - "$import_ms_max" <<'PYTHON')
import json, platform, subprocess, sys, time

import marquetry as mq

with open("trips.csv", "w") as file:
    file.write("id,fare,city\n" + "".join(f"{i},{i / 4},city {i % 13}\n" for i in range(10_000)))
copied = mq.copy("trips.csv", "trips.parquet", codec="zstd", bloom="id", verify=True)
assert copied.rows == 10_000, copied
trips = mq.open("trips.parquet")
assert trips.columns == ["id", "fare", "city"], trips.columns
assert trips.where("city = 'city 3' AND id < 100").count() == 8
assert sum(batch.num_rows for batch in trips.batches()) == 10_000
assert mq.Finder(trips, "id").find(77).count() == 1
try:
    mq.open("none.parquet")
    raise SystemExit("a file that is not there was opened")
except mq.NotFound as error:
    assert isinstance(error, FileNotFoundError)
try:
    import pyarrow
except ImportError:
    arrow = "no pyarrow"
else:
    arrow = "pyarrow " + pyarrow.__version__
    try:
        table = pyarrow.table(trips)
    except TypeError:  # before 14, pyarrow did not know capsules
        arrow += " (too old)"
    else:
        assert table.num_rows == 10_000 and table["fare"][4].as_py() == 1.0
        mq.write(table, "again.parquet")
        assert mq.diff("trips.parquet", "again.parquet").rows == (10_000, 10_000)


def milliseconds(program):
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", program], check=True)
    return (time.perf_counter() - started) * 1e3


taken = min(milliseconds("import marquetry") - milliseconds("pass") for _ in range(7))
assert taken < float(sys.argv[1]), f"importing takes {taken:.0f} ms"
print(f"wheel: CPython {platform.python_version()}, {arrow}: imported in {taken:.0f} ms, read and written", file=sys.stderr)
PYTHON
  rm -rf "$folder"
  trap - EXIT
}

case ${1:-} in
  build) build "${@:2}" ;;
  try) try "${@:2}" ;;
  *) sed -n '2,/^set -e/{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
esac
