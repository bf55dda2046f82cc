#!/usr/bin/env bash
# Writes files with each of the other writers into a folder of OUT, and OUT/expected.json: what they hold.
#
#   run.sh OUT [PART...]        PART: java, java-1.7, go, go-older, js, clickhouse, spark; all of them where none is named
#
# Each part needs its own tool (mvn and java, go, npm and node, python3) and fetches what it depends on, in the versions named
# beside its source. MARQUETRY_PYTHON is a Python that has the peers of dev/peers.txt.
set -euo pipefail
out=$(mkdir -p "$1" && cd "$1" && pwd)
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
python=${MARQUETRY_PYTHON:?a Python with the peers}
build=$here/../../../target/writers
mkdir -p "$build"
build=$(cd "$build" && pwd)

java_files() { # SOURCE
  (
    cd "$here/$1"
    mvn -q -B dependency:build-classpath -Dmdep.outputFile="$build/$1.classpath"
    mapfile -t sources < <(find src -name '*.java')
    javac -nowarn -d "$build/$1" -cp "$(cat "$build/$1.classpath")" "${sources[@]}"
    java -cp "$build/$1:$(cat "$build/$1.classpath")" Files "$out/$1"
  )
}

go_files() { # SOURCE ARGUMENT...
  (cd "$here/$1" && go build -o "$build/$1" . && "$build/$1" "$out" "${@:2}")
}

python_files() { # SCRIPT
  if [ ! -x "$build/venv/bin/python" ]; then
    python3 -m venv "$build/venv"
    "$build/venv/bin/pip" install --quiet -r "$here/python/requirements.txt"
  fi
  "$build/venv/bin/python" "$here/python/$1" "$out"
}

parts=("${@:2}")
[ ${#parts[@]} -gt 0 ] || parts=(java java-1.7 go go-older js clickhouse spark)
for part in "${parts[@]}"; do
  case $part in
    java) java_files parquet-java ;;
    java-1.7) java_files parquet-java-1.7 ;;
    go)
      "$python" "$here/python/arrow_tables.py" "$build/arrow"
      go_files go "$build/arrow"
      ;;
    go-older) go_files go-older ;;
    js)
      mkdir -p "$build/js"
      cp "$here"/js/* "$build/js/"
      (cd "$build/js" && npm install --silent && node files.mjs "$out")
      ;;
    clickhouse | spark) python_files "${part}_files.py" ;;
    *)
      echo "run.sh: unknown part '$part'" >&2
      exit 1
      ;;
  esac
done
"$python" "$here/expect.py" "$out"
