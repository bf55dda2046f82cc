#!/usr/bin/env bash
# libmarquetry for C and C++: builds it, and installs it with its headers, for pkg-config and CMake.
#
#   dev/capi.sh install PREFIX [BUILT]   to PREFIX/lib and PREFIX/include; BUILT: a folder with libmarquetry_c.so and .a that are built,
#                                        with MARQUETRY_SONAME set as below; without it they are built, with PROFILE (release)
set -euo pipefail
cd "$(dirname "$0")/.."

[ "${1:-}" = install ] && [ $# -ge 2 ] || { sed -n '2,5s/^# \{0,1\}//p' "$0" >&2; exit 1; }
prefix=$2
built=${3:-}
version=$(sed -nE '/^\[workspace.package\]/,/^\[/s/^version = "([0-9.]+)"/\1/p' Cargo.toml)
# While the major version is 0, the ABI may change with each minor one.
soname=libmarquetry.so.${version%.*}

if [ -z "$built" ]; then
  profile=${PROFILE:-release}
  MARQUETRY_SONAME=$soname cargo build --profile "$profile" -p marquetry-capi --lib
  built=${CARGO_TARGET_DIR:-target}/$([ "$profile" = release ] && echo release || echo debug)
fi

for file in libmarquetry_c.so libmarquetry_c.a; do
  [ -e "$built/$file" ] || { echo "there is no $built/$file: if cargo builds elsewhere, name the folder as BUILT" >&2; exit 1; }
done
# Programs are linked against the name that is in the library: another one, or none, is not found when they start, or is found too late.
dynamic=$( (readelf -d "$built/libmarquetry_c.so" || objdump -p "$built/libmarquetry_c.so") 2>/dev/null) || {
  echo "neither readelf nor objdump reads $built/libmarquetry_c.so: its soname is not checked, so nothing is installed" >&2
  exit 1
}
found=$(sed -nE 's/.*SONAME[^[]*\[(.*)\].*/\1/p; s/^ *SONAME +([^ ]+)$/\1/p' <<< "$dynamic")
[ "$found" = "$soname" ] || {
  echo "$built/libmarquetry_c.so has ${found:+the soname }${found:-no soname}, not $soname: build it with MARQUETRY_SONAME=$soname" >&2
  exit 1
}

mkdir -p "$prefix/lib/pkgconfig" "$prefix/lib/cmake/marquetry" "$prefix/include"
prefix=$(cd "$prefix" && pwd)
install -m 644 crates/capi/include/marquetry.h crates/capi/include/marquetry.hpp "$prefix/include"
install -m 644 "$built/libmarquetry_c.a" "$prefix/lib/libmarquetry.a"
install -m 755 "$built/libmarquetry_c.so" "$prefix/lib/libmarquetry.so.$version"
ln -sf "libmarquetry.so.$version" "$prefix/lib/$soname"
ln -sf "$soname" "$prefix/lib/libmarquetry.so"

cat > "$prefix/lib/pkgconfig/marquetry.pc" <<END
prefix=$prefix
libdir=\${prefix}/lib
includedir=\${prefix}/include

Name: marquetry
Description: Apache Parquet for ScyllaDB and Apache Cassandra
URL: https://github.com/marquetry/marquetry
Version: $version
Libs: -L\${libdir} -lmarquetry
Libs.private: -lpthread -ldl -lm
Cflags: -I\${includedir}
END

cat > "$prefix/lib/cmake/marquetry/marquetry-config.cmake" <<'END'
# marquetry::marquetry, the shared library, and marquetry::marquetry-static.
get_filename_component(_marquetry_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
find_package(Threads REQUIRED)
if(NOT TARGET marquetry::marquetry)
  add_library(marquetry::marquetry SHARED IMPORTED)
  set_target_properties(marquetry::marquetry PROPERTIES
    IMPORTED_LOCATION "${_marquetry_prefix}/lib/libmarquetry.so"
    INTERFACE_INCLUDE_DIRECTORIES "${_marquetry_prefix}/include")
  add_library(marquetry::marquetry-static STATIC IMPORTED)
  set_target_properties(marquetry::marquetry-static PROPERTIES
    IMPORTED_LOCATION "${_marquetry_prefix}/lib/libmarquetry.a"
    INTERFACE_INCLUDE_DIRECTORIES "${_marquetry_prefix}/include"
    INTERFACE_LINK_LIBRARIES "Threads::Threads;${CMAKE_DL_LIBS};m")
endif()
unset(_marquetry_prefix)
END
# The version that is found is good for those of the same minor version.
cat > "$prefix/lib/cmake/marquetry/marquetry-config-version.cmake" <<END
set(PACKAGE_VERSION "$version")
if(PACKAGE_FIND_VERSION VERSION_GREATER PACKAGE_VERSION)
  set(PACKAGE_VERSION_COMPATIBLE FALSE)
elseif(NOT "\${PACKAGE_FIND_VERSION_MAJOR}.\${PACKAGE_FIND_VERSION_MINOR}" STREQUAL "${version%.*}")
  set(PACKAGE_VERSION_COMPATIBLE FALSE)
else()
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
  if(PACKAGE_FIND_VERSION VERSION_EQUAL PACKAGE_VERSION)
    set(PACKAGE_VERSION_EXACT TRUE)
  endif()
endif()
END
echo "libmarquetry $version is in $prefix"
