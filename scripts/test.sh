#!/usr/bin/env bash
# Installs what is needed (Debian 12 or later, Ubuntu 24.04), builds, and runs the tests.
#
#   scripts/test.sh         gcc, release, in build/: functional tests and a bounded crash exploration; 15 minutes at most
#   scripts/test.sh --all   also: long forms of the tests, clang, address, undefined-behaviour and thread sanitizer, and
#                           clang-tidy; each in a build folder of its own
#
# The last line is "N passed, N failed, N skipped". Fails if anything failed.

set -u
cd "$(dirname "$0")/.." || exit 1
# shellcheck source-path=SCRIPTDIR
. scripts/lib.sh
exec </dev/null

all=no
case "${1:-}" in
  '') ;;
  --all) all=yes ;;
  *) sed -n '2,8s/^# \{0,1\}//p' "$0" && exit 2 ;;
esac
jobs=${PMFS_JOBS:-$(nproc)}
passed=0 failed=0 skipped=0
table=()
began=$SECONDS

# add_row NAME PASSED FAILED SKIPPED SECONDS
add_row() {
  passed=$((passed + $2)) failed=$((failed + $3)) skipped=$((skipped + $4))
  table+=("$(printf '%-28s %7d %7d %8d %7d s' "$1" "$2" "$3" "$4" "$5")")
}

# --- ctest's results ---------------------------------------------------------------------------------------------------------

# results FILE: one line a test, "status<TAB>name<TAB>seconds<TAB>why skipped", from the JUnit file that ctest writes.
results() {
  awk '
    function attribute(name,   s) {
      s = $0
      if (!sub(".*[ \t]" name "=\"", "", s)) return ""
      sub("\".*", "", s)
      return s
    }
    function unescaped(s) {
      gsub(/&lt;/, "<", s); gsub(/&gt;/, ">", s); gsub(/&quot;/, "\"", s); gsub(/&apos;/, "\047", s); gsub(/&amp;/, "\\&", s)
      return s
    }
    function flush_case() { if (name != "") printf "%s\t%s\t%s\t%s\n", status, name, seconds, why; name = "" }
    /<testcase / {
      flush_case()
      name = unescaped(attribute("name")); seconds = attribute("time"); why = ""
      status = attribute("status")
      status = status == "run" ? "passed" : status == "disabled" ? "skipped" : "failed"
    }
    /<skipped message="SKIP_/ { status = "skipped" }  # any other test that was not run is a failure
    match($0, /SKIP: .*/) && name != "" && why == "" {
      why = substr($0, RSTART + 6, RLENGTH - 6); sub(/<\/system-out>.*/, "", why); why = unescaped(why)
    }
    END { flush_case() }' "$1"
}

# test_row NAME BUILD_DIR CTEST_ARGUMENT...: runs the tests of a build and adds them to the table.
test_row() {
  local name=$1 dir=$2 started=$SECONDS xml ok lines status
  shift 2
  xml=$PWD/$dir/ctest.xml
  rm -f "$xml"
  "${run_under[@]}" ctest --test-dir "$dir" --output-on-failure --no-tests=error --output-junit "$xml" -j "$jobs" "$@"
  status=$?
  if [ ! -s "$xml" ]; then
    say "ctest left no results in $xml"
    add_row "$name" 0 1 0 $((SECONDS - started))
    return
  fi
  lines=$(results "$xml")
  ok=$(grep -c '^failed' <<<"$lines")
  if [ $status -ne 0 ] && [ "$ok" -eq 0 ]; then
    say "ctest ended with code $status, but names no failed test"
    ok=1
  fi
  add_row "$name" "$(grep -c '^passed' <<<"$lines")" "$ok" "$(grep -c '^skipped' <<<"$lines")" $((SECONDS - started))
  failures+=$(awk -F'\t' -v row="$name" '$1 == "failed" { print "  " row ": " $2 }' <<<"$lines")
  skips+=$(awk -F'\t' -v row="$name" '$1 == "skipped" {
    print "  " row ": " $2 ": " ($4 == "" ? "did not say why" : $4) }' <<<"$lines")
  [ -z "$failures" ] || [[ $failures == *$'\n' ]] || failures+=$'\n'
  [ -z "$skips" ] || [[ $skips == *$'\n' ]] || skips+=$'\n'
}
failures='' skips='' run_under=()

# build_row NAME BUILD_DIR CMAKE_ARGUMENT...: configures and builds; a failure is a row of its own.
build_row() {
  local name=$1 dir=$2 started=$SECONDS log
  shift 2
  mkdir -p "$dir"
  log=$PWD/$dir/build.log
  : >"$log"
  say "--- $name: building in $dir/"
  if run_logged "$log" cmake -B "$dir" -G Ninja -DBUILD_TESTING=ON "$@" &&
    run_logged "$log" cmake --build "$dir" -j "$jobs"; then
    say "built in $((SECONDS - started)) s"
    return 0
  fi
  add_row "$name (does not build)" 0 1 0 $((SECONDS - started))
  failures+="  $name: does not build, see $dir/build.log"$'\n'
  return 1
}

# A warning is an error with the compilers that this project is kept free of warnings with; newer ones may know new ones.
warnings_for() {
  case "$("$1" -dumpversion 2>/dev/null)" in
    "$2" | "$2".*) printf '%s' -DPMFS_WERROR=ON ;;
    *) printf '%s' -DPMFS_WERROR=OFF ;;
  esac
}

# --- The rows ----------------------------------------------------------------------------------------------------------------

mkdir -p build
: >build/install.log
packages=("${packages_build[@]}" "${packages_test[@]}")
[ $all = no ] || packages+=("${packages_all[@]}")
install_packages "$PWD/build/install.log" "${packages[@]}"
say "packages: $installed"

built=no
if build_row "gcc release" build -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER=g++ "$(warnings_for g++ 12)"; then
  built=yes
  test_row "gcc release" build
fi

if [ $all = yes ]; then
  if [ $built = yes ]; then
    say "--- long forms"
    PMFS_LONG=1 PMFS_KILL_ROUNDS=20 test_row "gcc release, long forms" build
  fi
  if build_row "clang" build-clang -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_C_COMPILER=clang \
    -DCMAKE_CXX_COMPILER=clang++ -DPMFS_TRACE_STORES=ON -DCMAKE_EXPORT_COMPILE_COMMANDS=ON "$(warnings_for clang++ 14)"; then
    test_row "clang" build-clang
    say "--- clang-tidy"
    started=$SECONDS
    # The checks that .clang-tidy names; what it calls an error fails.
    # Each source once: not as it is compiled for the simulator, and without the tests.
    mkdir -p build-clang/tidy
    awk '
      /^{/ { record = ""; wanted = 1 }
      /_sim\.dir\// || /"file": ".*\/test\/.*"/ { wanted = 0 }
      { line = $0; sub(/^},$/, "}", line); record = record line "\n" }
      /^}/ && wanted { all = all (all == "" ? "" : ",\n") record }
      END { print "[\n" all "]" }' build-clang/compile_commands.json >build-clang/tidy/compile_commands.json
    if run-clang-tidy -p build-clang/tidy -quiet -j "$jobs" >build-clang/tidy.log 2>&1; then
      add_row "clang-tidy" 1 0 0 $((SECONDS - started))
    else
      grep -E 'error:|warning:' build-clang/tidy.log | sort -u | tail -n 40
      add_row "clang-tidy" 0 1 0 $((SECONDS - started))
      failures+="  clang-tidy: see build-clang/tidy.log"$'\n'
    fi
  fi
  if build_row "address+undefined sanitizer" build-asan -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_CXX_COMPILER=g++ \
    -DPMFS_ASAN=ON; then
    test_row "address+undefined sanitizer" build-asan
  fi
  # gcc 12's thread sanitizer cannot start where the kernel randomises addresses more than it expects.
  if setarch -R true 2>/dev/null; then
    run_under=(setarch -R)
  fi
  if build_row "thread sanitizer" build-tsan -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_CXX_COMPILER=g++ -DPMFS_TSAN=ON; then
    # Where one thread moves at a time there is nothing to find, and it takes most of an hour.
    test_row "thread sanitizer" build-tsan -E '^(protocol|format|operations|index|grow|levels|collapse|sequences|threads|mutation)_crash_test$'
  fi
  run_under=()
fi

# --- What came out -------------------------------------------------------------------------------------------------------------

say
printf '%-28s %7s %7s %8s %9s\n' "" passed failed skipped time
printf '%s\n' "${table[@]}"
no_fuse=$(fuse_missing)
[ -z "$no_fuse" ] || say "FUSE cannot be used here: $no_fuse. What needs it was skipped."
[ -z "$skips" ] || printf 'skipped:\n%s' "$skips"
[ -z "$failures" ] || printf 'failed:\n%s' "$failures"
say "$((SECONDS - began)) s in all"
say
say "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
