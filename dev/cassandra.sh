#!/usr/bin/env bash
# A real Apache Cassandra on loopback, for the demo and the tests; it needs a JDK (17 to 23) and Maven, no root.
#
#   dev/cassandra.sh start DIR [OPTION…]            start a server; return when it serves CQL
#   dev/cassandra.sh stop DIR                       stop it and wait until it is gone
#   dev/cassandra.sh where DIR                      print its HOST:PORT; exit 1 unless it runs
#   dev/cassandra.sh with DIR [OPTION…] -- COMMAND… a fresh server for one command, which finds it in
#                                                   MARQUETRY_CASSANDRA=HOST:PORT, and DIR in MARQUETRY_CASSANDRA_DIR;
#                                                   stopped when the command ends
#   dev/cassandra.sh nodetool DIR ARGUMENT…         flush, compact, status, …
#   dev/cassandra.sh dump FILE-Data.db              print an SSTable as JSON, with times as numbers (sstabledump -t)
#   dev/cassandra.sh run FILE.java ARGUMENT…        run a program with Cassandra's classes (environment: HEAP, 3g;
#                                                   COLLECTOR, Serial: a collector of Java's, such as Parallel or G1)
#   dev/cassandra.sh plugin DIR                     compile contrib/cassandra into DIR (without Maven), for --classpath
#   dev/cassandra.sh check-plugin DIR               the plugin's tests that need no server, in DIR
#   dev/cassandra.sh fetch | fetched                only fetch the jars | exit 1 unless they are there
#   dev/cassandra.sh java                           print the Java that would run it; exit 1 if there is none
#
# Options: --address A       address to listen on, 127.0.0.1 unless given (127.0.0.2 keeps servers well apart)
#          --port P          CQL port;     each of the three ports is, unless given,
#          --storage-port P  gossip port;  the first free one from 9042, 7000 and 7199 up,
#          --jmx-port P      JMX port;     so that several servers can run side by side
#          --heap SIZE       the heap, 512m unless given
#          --yaml FILE       more of cassandra.yaml, such as client_encryption_options
#          --classpath PATH  more classes: a plugin's jar, or a directory of classes
#          --java OPTION     an option of Java's, such as -Dname=value; may be repeated
#          --seed A:P        join the cluster of the node whose gossip listens there, instead of being one alone
#
# A cluster of several nodes: each has a DIR and an address of its own (127.0.0.1, 127.0.0.2, …), the same CQL port and
# gossip port, and all but the first have the first one's as --seed. They are started one after the other.
#
# Everything a server writes is in its DIR (conf, data, log, pid). The jars are kept in MARQUETRY_CASSANDRA_JARS
# (${XDG_CACHE_HOME:-~/.cache}/marquetry/cassandra-VERSION unless set). START_SECONDS (120) bounds the start.
# COMPATIBILITY=NONE starts a server that reads and imports SSTables of the versions oa and da.
# CASSANDRA_VERSION=4.1.10 takes another version than 5.0.9.
set -euo pipefail

version=${CASSANDRA_VERSION:-5.0.9}
jars=${MARQUETRY_CASSANDRA_JARS:-${XDG_CACHE_HOME:-$HOME/.cache}/marquetry/cassandra-$version}
start_seconds=${START_SECONDS:-120}
stop_seconds=60

main() {
  local command=${1:-help}
  shift || true
  case $command in
    start) enter "$@"; options "${@:2}"; start_only ;;
    stop) enter "$@"; stop ;;
    where) enter "$@"; where ;;
    with) with "$@" ;;
    nodetool) enter "$@"; nodetool "${@:2}" ;;
    dump) dump "${1:?FILE is missing}" ;;
    run) run "$@" ;;
    plugin) plugin "${1:?DIR is missing}" ;;
    check-plugin) check_plugin "${1:?DIR is missing}" ;;
    fetch) fetch_jars ;;
    fetched) fetched ;;
    java) find_java && echo "$java" ;;
    help | -h | --help) usage ;;
    *) usage >&2; fail "unknown command '$command'" ;;
  esac
}

usage() { sed -n '2,/^set -e/{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"; }
say() { echo "cassandra.sh: $*" >&2; }
fail() { say "$*"; exit 1; }

# DIR, the first argument, made and made absolute: the process is later recognised by it.
enter() {
  [ -n "${1:-}" ] || { usage >&2; fail "DIR is missing"; }
  dir=$(mkdir -p "$1" && cd "$1" && pwd -P)
}

address=127.0.0.1 port='' storage_port='' jmx_port='' heap=512m yaml='' seed='' classpath='' java_options=()
options() {
  while [ $# -gt 0 ]; do
    [ $# -ge 2 ] || fail "$1 needs a value"
    case $1 in
      --address) address=$2 ;;
      --port) port=$2 ;;
      --storage-port) storage_port=$2 ;;
      --jmx-port) jmx_port=$2 ;;
      --heap) heap=$2 ;;
      --yaml) yaml=$2 ;;
      --classpath) classpath=:$(cd "$(dirname "$2")" && pwd -P)/$(basename "$2") ;;
      --java) java_options+=("$2") ;;
      --seed) seed=$2 ;;
      *) fail "unknown option '$1'" ;;
    esac
    shift 2
  done
}

# A start that fails or is interrupted leaves nothing behind.
start_only() {
  ! running || fail "a server already runs in $dir, at $(cat "$dir/where")"
  stop_at_exit
  start
  trap - EXIT
}

stop_at_exit() {
  trap stop EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM HUP
}

start() {
  find_java
  fetch_jars
  # Ports are chosen by looking, so one start at a time: the lock is held until the server listens.
  exec 9>"$jars.lock"
  flock 9
  choose_ports
  configure
  [ -z "${COMPATIBILITY:-}" ] || echo "storage_compatibility_mode: $COMPATIBILITY" >>"$dir/conf/cassandra.yaml"
  launch
  await_ready
  exec 9>&-
}

stop() {
  if ! running; then rm -f "$dir/pid" "$dir/where"; return; fi
  local pid deadline=$((SECONDS + stop_seconds))
  pid=$(cat "$dir/pid")
  kill "$pid" 2>/dev/null || true
  while running; do
    if [ $SECONDS -ge $deadline ]; then
      say "process $pid ignored SIGTERM for $stop_seconds s: killed"
      kill -KILL "$pid" 2>/dev/null || true
    fi
    sleep 0.1
  done
  rm -f "$dir/pid" "$dir/where"
}

where() {
  if ! running || [ ! -e "$dir/where" ]; then fail "no server runs in $dir"; fi
  cat "$dir/where"
}

with() {
  enter "$@"
  shift
  local given=()
  while [ $# -gt 0 ] && [ "$1" != -- ]; do given+=("$1"); shift; done
  [ $# -ge 2 ] || fail "usage: with DIR [OPTION…] -- COMMAND…"
  shift
  options ${given[@]+"${given[@]}"}
  stop # what an earlier run that was killed may have left
  rm -rf "$dir/data"
  stop_at_exit
  start
  MARQUETRY_CASSANDRA=$(where) MARQUETRY_CASSANDRA_DIR=$dir "$@"
}

nodetool() {
  find_java
  where >/dev/null
  "$java" -Xmx128m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 "${module_flags[@]}" -Duser.home="$dir" \
    -Dlogback.configurationFile="file://$dir/conf/logback-tools.xml" -Dcassandra.storagedir="$dir/tool" \
    -cp "$jars/*" org.apache.cassandra.tools.NodeTool -h 127.0.0.1 -p "$(cat "$dir/jmx-port")" "$@"
}

# Reads files of all versions; those of oa only if told that no older node must read what it writes.
dump() {
  local file
  file=$(cd "$(dirname "$1")" && pwd -P)/$(basename "$1")
  alone -Xmx256m -XX:TieredStopAtLevel=1 -- org.apache.cassandra.tools.SSTableExport "$file" -t
}

run() {
  alone -Xmx"${HEAP:-3g}" -- "$@"
}

# By the compiler in Java's own modules, which is there without a JDK's commands, too.
plugin() {
  find_java
  fetch_jars
  local classes folders=(main "${@:2}") all
  classes=$(mkdir -p "$1" && cd "$1" && pwd -P)
  all=$(printf '%s:' "$jars"/*.jar)
  (
    cd "$(dirname "${BASH_SOURCE[0]}")/../contrib/cassandra/src"
    find "${folders[@]}" -name '*.java' -exec "$java" -m jdk.compiler/com.sun.tools.javac.Main --release 11 -Werror \
      -Xlint:all,-processing,-classfile,-path -cp "$all" -d "$classes" {} +
  )
}

# Those of src/check.
check_plugin() {
  plugin "$1/classes" check
  "$java" -ea -cp "$1/classes:$jars/*" com.marquetry.cassandra.InboxCheck "$1/work"
}

# Java with Cassandra's classes, without a server: options, --, and what is run.
alone() {
  find_java
  fetch_jars
  local flags=()
  while [ "$1" != -- ]; do flags+=("$1"); shift; done
  shift
  dir=$(mktemp -d)
  trap 'rm -rf "$dir"' EXIT
  port=9042 storage_port=7000 jmx_port=7199
  configure
  echo "storage_compatibility_mode: ${COMPATIBILITY:-NONE}" >>"$dir/conf/cassandra.yaml"
  "$java" "${flags[@]}" "-XX:+Use${COLLECTOR:-Serial}GC" "${module_flags[@]}" -Duser.home="$dir" \
    -Dcassandra.config="file://$dir/conf/cassandra.yaml" -Dcassandra.storagedir="$dir/tool" \
    -Dlogback.configurationFile="file://$dir/conf/logback-tools.xml" \
    -cp "$jars/*" "$@"
}

# Is the process of the pid file alive, and ours? (A pid is soon another process's.)
running() {
  local pid
  pid=$(cat "$dir/pid" 2>/dev/null) && [ -n "$pid" ] || return 1
  case $(ps -p "$pid" -o args= 2>/dev/null) in
    *"-Dcassandra.storagedir=$dir/data "*) return 0 ;;
    *) return 1 ;;
  esac
}

# Cassandra 5.0 is made for JDK 17. It installs a security manager, which needs a flag from 18 on and is gone in 24.
find_java() {
  local candidate major
  for candidate in "${JAVA_HOME:-/nowhere}/bin/java" "$(command -v java || true)" /usr/lib/jvm/*-17-*/bin/java \
    /usr/lib/jvm/*-21-*/bin/java; do
    [ -x "$candidate" ] || continue
    major=$("$candidate" -version 2>&1 | sed -nE '1,5s/.* version "([0-9]+).*/\1/p' | head -n 1)
    if [ "${major:-0}" -ge 17 ] && [ "$major" -le 23 ]; then
      java=$candidate
      [ "$major" -eq 17 ] || module_flags+=(-Djava.security.manager=allow)
      return
    fi
  done
  fail "Cassandra $version needs a JDK from 17 to 23 on the PATH or in JAVA_HOME
  Debian 12 and 13, as root: apt-get install default-jre-headless maven"
}

fetched() { [ -e "$jars/cassandra-all-$version.jar" ]; }

fetch_jars() {
  if fetched; then return; fi
  command -v mvn >/dev/null || fail "Maven fetches Cassandra's jars, and there is no mvn on the PATH
  Debian, as root: apt-get install maven"
  say "fetching Cassandra $version (70 MB, once) to $jars"
  mkdir -p "$(dirname "$jars")"
  local new
  new=$(mktemp -d "$jars.XXXXXX")
  cat >"$new/pom.xml" <<POM
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>marquetry</groupId><artifactId>cassandra</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies><dependency>
    <groupId>org.apache.cassandra</groupId><artifactId>cassandra-all</artifactId><version>$version</version>
  </dependency></dependencies>
</project>
POM
  if ! mvn --batch-mode --quiet -Dstyle.color=never --strict-checksums -f "$new/pom.xml" dependency:copy-dependencies \
    -DincludeScope=runtime -DoutputDirectory="$new" </dev/null >&2; then
    rm -rf "$new"
    fail "Maven could not fetch Cassandra $version"
  fi
  rm "$new/pom.xml"
  chmod 755 "$new" # mktemp's directories are their owner's alone
  # Renamed only when whole; if another start was faster, its jars are as good.
  mv -T "$new" "$jars" 2>/dev/null || rm -rf "$new"
}

choose_ports() {
  if [ -n "$port" ]; then
    free "$address" "$port" || fail "$address:$port is taken"
  else
    port=$(first_free "$address" 9042)
    [ "$port" = 9042 ] || say "$address:9042 is taken, so this server takes $address:$port"
  fi
  [ -n "$storage_port" ] || storage_port=$(first_free "$address" 7000)
  [ -n "$jmx_port" ] || jmx_port=$(first_free 127.0.0.1 7199)
}

first_free() { # ADDRESS PORT
  local p
  for ((p = $2; p < $2 + 100; p++)); do
    if free "$1" "$p"; then echo "$p"; return; fi
  done
  fail "no free port on $1 from $2 to $((p - 1))"
}

free() { ! (exec 3<>"/dev/tcp/$1/$2") 2>/dev/null; }

configure() {
  mkdir -p "$dir/conf"
  echo "$jmx_port" >"$dir/jmx-port"
  cat >"$dir/conf/cassandra.yaml" <<YAML
cluster_name: marquetry
num_tokens: 1
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
endpoint_snitch: SimpleSnitch
seed_provider:
  - class_name: org.apache.cassandra.locator.SimpleSeedProvider
    parameters: [{seeds: "${seed:-$address:$storage_port}"}]
listen_address: $address
storage_port: $storage_port
rpc_address: $address
native_transport_port: $port
commitlog_sync: periodic
commitlog_sync_period: 10000ms
# On a busy machine of few cores, a page of an aggregation over all rows takes longer than the 5 s that are the default.
read_request_timeout: 60000ms
range_request_timeout: 60000ms
# "fast", the default, would write Deflate and Zstd tables as LZ4 when they are flushed.
flush_compression: table
materialized_views_enabled: true
YAML
  [ -z "$yaml" ] || cat "$yaml" >>"$dir/conf/cassandra.yaml"
  logback INFO System.out >"$dir/conf/logback.xml"
  logback WARN System.err >"$dir/conf/logback-tools.xml"
}

logback() { # LEVEL STREAM
  cat <<XML
<configuration>
  <appender name="A" class="ch.qos.logback.core.ConsoleAppender"><target>$2</target>
    <encoder><pattern>%-5level %date{HH:mm:ss.SSS} %logger{20} - %msg%n</pattern></encoder></appender>
  <root level="$1"><appender-ref ref="A"/></root>
</configuration>
XML
}

# A node that is alone has nobody to hear of; one that joins must have heard of all the others' tokens.
launch() {
  local ring_delay_ms=100
  [ -z "$seed" ] || ring_delay_ms=5000
  launch_java
}

# Its own session: a Ctrl-C meant for the script does not reach the server, the script's trap stops it in order.
launch_java() {
  # 4.1 measures objects with an agent, where Java's classes are closed to it.
  case $version in 4.*) java_options+=("-javaagent:$(echo "$jars"/jamm-*.jar)") ;; esac
  setsid "$java" "-Xms$heap" "-Xmx$heap" -XX:+UseSerialGC -XX:MaxDirectMemorySize=256m "${module_flags[@]}" \
    -Dcassandra.config="file://$dir/conf/cassandra.yaml" -Dcassandra.storagedir="$dir/data" \
    -Dlogback.configurationFile="file://$dir/conf/logback.xml" -Duser.home="$dir" \
    -Dcassandra-foreground=yes -Dcassandra.jmx.local.port="$jmx_port" \
    -Dcassandra.ring_delay_ms="$ring_delay_ms" -Dcassandra.skip_wait_for_gossip_to_settle=0 \
    ${java_options[@]+"${java_options[@]}"} -cp "$jars/*$classpath" org.apache.cassandra.service.CassandraDaemon >"$dir/log" 2>&1 </dev/null 9>&- &
  local pid=$!
  echo "$pid" >"$dir/pid"
  # `running` recognises the process by its arguments, which are its own only after its exec.
  until running || ! kill -0 "$pid" 2>/dev/null; do sleep 0.02; done
}

await_ready() {
  local deadline=$((SECONDS + start_seconds))
  until grep -q 'Starting listening for CQL clients' "$dir/log"; do
    if ! running; then
      log_tail
      fail "Cassandra $version ended while it started; its log is $dir/log"
    fi
    if [ $SECONDS -ge $deadline ]; then
      log_tail
      fail "Cassandra $version did not serve CQL within $start_seconds s; its log is $dir/log"
    fi
    sleep 0.1
  done
  until ! free "$address" "$port"; do sleep 0.02; done
  echo "$address:$port" >"$dir/where"
}

log_tail() {
  say "the end of its log:"
  tail -n 25 "$dir/log" >&2
}

# The JDK's internals that Cassandra 5.0 reaches into.
module_flags=()
for package in java.io java.lang java.lang.module java.lang.reflect java.nio java.util java.util.concurrent \
  java.util.concurrent.atomic jdk.internal.loader jdk.internal.math jdk.internal.module jdk.internal.ref \
  jdk.internal.reflect jdk.internal.util.jar sun.nio.ch; do
  module_flags+=(--add-opens "java.base/$package=ALL-UNNAMED")
done
module_flags+=(--add-opens java.rmi/sun.rmi.transport.tcp=ALL-UNNAMED)
module_flags+=(--add-opens jdk.management/com.sun.management.internal=ALL-UNNAMED)
for package in java.base/java.lang.ref java.base/jdk.internal.misc java.management.rmi/com.sun.jmx.remote.internal.rmi \
  java.rmi/sun.rmi.registry java.rmi/sun.rmi.server java.rmi/sun.rmi.transport.tcp java.sql/java.sql \
  jdk.attach/sun.tools.attach jdk.unsupported/sun.misc; do
  module_flags+=(--add-exports "$package=ALL-UNNAMED")
done

main "$@"
