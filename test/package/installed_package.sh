#!/usr/bin/env bash
# Installs a build into a folder of its own and uses it as a stranger would: the example through the CMake package (shared
# and static) and through pkg-config (shared and static), each built and run; every public header compiled by itself; the
# tool run from there.
#
#   installed_package.sh CMAKE BUILD_DIR EXAMPLES_DIR CXX FLAGS CC
#     FLAGS: what a program needs beside, e.g. -fsanitize=address when the library was built so; may be empty

set -eu
cmake=$1 build=$2 examples=$3 cxx=$4 flags=$5 cc=$6
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/prefix

step() { printf -- '--- %s\n' "$*"; }
pool=/dev/shm/pmfs-package-$$.pool
[ -w /dev/shm ] || pool=$work/pool
run() {
  rm -f "$pool"
  local status=0
  LD_LIBRARY_PATH=$libdir "$1" "$pool" || status=$?
  rm -f "$pool"
  return $status
}

step "install"
"$cmake" --install "$build" --prefix "$prefix" >"$work/install.log" || {
  cat "$work/install.log"
  exit 1
}
pc=$(find "$prefix" -name libpmfs.pc)
libdir=$(dirname "$(dirname "$pc")")
export PKG_CONFIG_PATH=$libdir/pkgconfig
for f in "$libdir"/libpmfs.so "$libdir"/libpmfs.a "$prefix"/include/pmfs/pmfs.{h,hpp} "$prefix"/bin/pmfs; do
  if [ ! -e "$f" ]; then
    echo "not installed: $f"
    exit 1
  fi
done
for helper in mount.pmfs mount.fuse.pmfs fsck.pmfs; do
  if [ "$(readlink -f "$prefix/sbin/$helper")" != "$prefix/bin/pmfs" ]; then
    echo "no helper for mount(8) or fsck(8): $helper"
    exit 1
  fi
done
if find "$prefix" -name '*sim*' | grep .; then
  echo "the instrumented library must not be installed"
  exit 1
fi
if grep -rlF "$build" "$prefix" --include='*.cmake' --include='*.pc' --include='*.h*'; then
  echo "these files name the build folder"
  exit 1
fi

step "each public header by itself"
for header in "$prefix"/include/pmfs/*.hpp "$prefix"/include/pmfs/*.h; do
  "$cxx" -std=c++20 -Wall -Wextra -Werror -fsyntax-only -I"$prefix/include" -x c++ - <<<"#include \"pmfs/${header##*/}\""
done

for standard in c89 c99 c11; do
  "$cc" -std=$standard -pedantic -Wall -Wextra -Werror -fsyntax-only -I"$prefix/include" -x c - \
    <<<'#include "pmfs/pmfs.h"'
done

step "the library shows what its public headers declare, and no more"
nm -DC --defined-only "$libdir/libpmfs.so" | cut -d' ' -f3- | grep -F pmfs:: | sort >"$work/shown"
if grep -E 'pmfs::(media|dcache|htree|bridge|tools)::|::Impl::' "$work/shown"; then
  echo "these are internal"
  exit 1
fi
printf '%s symbols\n' "$(wc -l <"$work/shown")"
# Each function of pmfs.h, and nothing else that C could call.
sed -E 's|/\*.*\*/||' "$prefix/include/pmfs/pmfs.h" | grep -vE '^ ?\*|^#' | grep -oE '\bpmfs_[a-z_]+\(' | tr -d '(' |
  sort >"$work/declared"
nm -D --defined-only "$libdir/libpmfs.so" | cut -d' ' -f3- | grep -E '^pmfs_' | sort >"$work/shown_c"
diff "$work/declared" "$work/shown_c"
printf '%s C functions\n' "$(wc -l <"$work/declared")"

for kind in shared static; do
  static=OFF
  [ $kind = shared ] || static=ON
  step "CMake package, $kind"
  "$cmake" -S "$examples" -B "$work/cmake-$kind" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_CXX_COMPILER="$cxx" \
    -DCMAKE_C_COMPILER="$cc" -DCMAKE_C_FLAGS="$flags" -DCMAKE_CXX_FLAGS="$flags" -DPMFS_EXAMPLES_STATIC=$static >"$work/log" 2>&1 &&
    "$cmake" --build "$work/cmake-$kind" >>"$work/log" 2>&1 || {
    cat "$work/log"
    exit 1
  }
  run "$work/cmake-$kind/hello_file"
  run "$work/cmake-$kind/hello"
done

# shellcheck disable=SC2046,SC2086  # words on purpose
{
  step "pkg-config, shared: $(pkg-config --libs libpmfs)"
  "$cxx" -std=c++20 $flags "$examples/hello_file.cc" $(pkg-config --cflags --libs libpmfs) -o "$work/hello_shared"
  run "$work/hello_shared"

  step "pkg-config, from C"
  "$cc" -std=c89 -pedantic $flags "$examples/hello.c" $(pkg-config --cflags --libs libpmfs) -o "$work/hello_c"
  run "$work/hello_c"

  step "pkg-config, static: $(pkg-config --static --libs libpmfs)"
  # The linker prefers libpmfs.so where both lie side by side; a static pmfs with shared others is asked for by name.
  "$cxx" -std=c++20 $flags "$examples/hello_file.cc" $(pkg-config --cflags libpmfs) \
    $(pkg-config --static --libs libpmfs | sed 's/-lpmfs/-l:libpmfs.a/') -o "$work/hello_static"
  if readelf -d "$work/hello_static" | grep -F libpmfs; then
    echo "linked the shared library"
    exit 1
  fi
  run "$work/hello_static"
}

step "the first program in README.md, with the command that it gives"
sed -n '/^```cpp$/,/^```$/p' "$examples/../README.md" | sed '/^```/d' >"$work/note.cc"
(
  cd "$work"
  command=$(sed -n 's|^\(c++ .* -o note\) && .*|\1|p' "$examples/../README.md")
  [ -n "$command" ]
  eval "${command/c++/"$cxx" -Wall -Wextra -Werror $flags}"
)
run "$work/note"

step "the tool, from where it was installed"
env -u LD_LIBRARY_PATH "$prefix/bin/pmfs" --help >"$work/help"
grep -q mkfs "$work/help"
echo "good"
