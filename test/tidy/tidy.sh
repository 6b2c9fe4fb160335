#!/usr/bin/env bash
# Checks the rules of this project that a script can check. Prints one line per break, "RULE: file:line: what is wrong",
# and fails if there was one. tidy_can_fail.sh breaks each rule on purpose and expects to hear of it.
#
#   tidy.sh [ROOT]      ROOT: the project's top folder; the one this file is in by default

set -u
export LC_ALL=C.UTF-8
cd "${1:-$(dirname "$0")/../..}" || exit 2

# --- What belongs to the project ------------------------------------------------------------------------------------------

list_files() {
  if [ "$(git rev-parse --show-toplevel 2>/dev/null)" = "$PWD" ]; then
    git ls-files --cached --others --exclude-standard
  else
    find . \( -path ./.git -o -path './build*' \) -prune -o -type f -printf '%P\n'
  fi | sort
}

cpp=() cmake=() shell=() text=()
names=$(list_files)
while IFS= read -r f; do
  [ -f "$f" ] || continue  # deleted, not yet committed
  case $f in
    *.cc | *.h | *.hpp | *.c) cpp+=("$f") text+=("$f") ;;
    CMakeLists.txt | */CMakeLists.txt | *.cmake | *.cmake.in) cmake+=("$f") text+=("$f") ;;
    *.sh | .ci/run) shell+=("$f") text+=("$f") ;;
    *.md | *.in | *.txt | *.1 | *.yml | NOTICE | .clang-* | .gitignore) text+=("$f") ;;
  esac
done <<<"$names"
if [ ${#cpp[@]} -eq 0 ] || [ ${#cmake[@]} -eq 0 ]; then
  echo "tidy: no sources under $PWD" >&2
  exit 2
fi

# Lines of C++ files that match, as file:line:text. Comment-only lines are not code.
code() {
  grep -nHE "$1" "${cpp[@]}" | grep -vE '^[^:]+:[0-9]+:[[:space:]]*(//|\*)'
}

# broken RULE TEXT: says of each place that comes in, "file", "file:line" or "file:line:code", what is wrong there.
broken() {
  awk -v rule="$1" -v text="$2" '{
    place = match($0, /^[^:]+:[0-9]+/) ? substr($0, 1, RLENGTH) : $0
    print rule ": " place ": " text
  }'
}

# --- The rules -------------------------------------------------------------------------------------------------------------

top_level() {
  cut -d/ -f1 <<<"$names" | sort -u |
    grep -vxE 'libpmfs|htree|dcache|fuse_bridge|examples|test|scripts|CMakeLists\.txt|NOTICE|README\.md|LICENSE|\..*' |
    broken top-level "not one of the agreed top-level names"
}

# Every include of the project: file:line:<name> or file:line:"name".
includes=$(grep -nHE '^[[:space:]]*#[[:space:]]*include' "${cpp[@]}" |
  sed -E 's|^([^:]+:[0-9]+):[^<"]*([<"][^>"]*[>"]).*|\1:\2|')

# Who may include whom. The direction is base <- {htree, dcache} <- fs <- fuse_bridge <- tools; examples see the public
# headers; tests see everything, and nothing sees tests.
include_direction() {
  awk -F: '
    function folder_of(file) {
      if (file ~ /^libpmfs\/include\//) return "include"
      if (file ~ /^libpmfs\/(base|fs|mounted|c_api|tools)\//) { split(file, part, "/"); return part[2] }
      split(file, part, "/"); return part[1]
    }
    {
      file = $1; name = $3
      if (name !~ /^"/) {
        if (name ~ /^<(pmfs|base|fs|mounted|c_api|htree|dcache|fuse_bridge|test|tools)\//) bad("our own headers are included with quotes")
        next
      }
      gsub(/"/, "", name)
      from = folder_of(file)
      if (name ~ /\.\./) { bad("includes go by folder/file.h, never through .."); next }
      if (from == "test") next
      if (name !~ /\//) {
        if (from == "include") bad("a public header includes pmfs/file.h")
        next  # a neighbour in the same folder
      }
      to = name; sub(/\/.*/, "", to)
      ok = 0
      core = (name ~ /^pmfs\/(types|result|counters|durability)\.h$/)
      if (from == "include") ok = (to == "pmfs")
      else if (from == "base") ok = (to == "base" || core)
      else if (from == "htree") ok = (to == "htree" || to == "base" || core)
      else if (from == "dcache") ok = (to == "dcache" || core || name ~ /^base\/(rcu|assert|log)\.h$/)
      else if (from == "fs") ok = (to == "fs" || to == "base" || to == "htree" || to == "dcache" || to == "pmfs")
      else if (from == "mounted") ok = (to == "mounted" || to == "pmfs")
      else if (from == "c_api") ok = (to == "c_api" || to == "pmfs")
      else if (from == "fuse_bridge") ok = (to == "fuse_bridge" || to == "mounted" || to == "pmfs")
      else if (from == "tools")
        ok = (to == "tools" || to == "pmfs" || (name == "fuse_bridge/mount.h" && file ~ /\/[a-z_]*mount[a-z_]*\.(cc|h)$/) ||
              (name ~ /^base\/persist_pmem\.h$/ && file ~ /\/pmem_interpose\.cc$/))
      else if (from == "examples") ok = (to == "pmfs")
      if (!ok) bad(from " must not know " name)
    }
    function bad(why) { print "include-direction: " file ":" $2 ": " why }' <<<"$includes"
}

# Each outside library has one door.
one_door() {
  local header door
  # header (regular expression) -> files that may include it (regular expression)
  while read -r header door; do
    [ -n "$header" ] || continue
    grep -E ":<($header)>" <<<"$includes" | grep -vE "^($door):" | broken one-door "only $door may include this"
  done <<'TABLE'
libpmem\.h                   libpmfs/base/persist_pmem\.cc|libpmfs/tools/pmem_interpose\.cc|test/.*
libpmemobj(\.h|/.*|\+\+/.*)  libpmfs/fs/pool\.cc|test/.*|examples/.*
libpmem(log|blk|pool|set)\.h libpmfs/fs/pool\.cc
xxhash\.h|xxh3\.h            libpmfs/base/checksum\.cc
urcu.*                       libpmfs/base/rcu\.(h|cc)
fuse.*                       fuse_bridge/.*|test/fuse/.*
CLI/.*                       libpmfs/tools/.*|test/bench/.*
(fmt|nlohmann)/.*            libpmfs/tools/.*|test/.*
catch2/.*                    test/support/catch(\.h|_main\.cc)
TABLE
  code '\b(_mm_(sfence|mfence|clwb|clflush|clflushopt|stream_[a-z0-9]+)|__builtin_ia32_(sfence|mfence|clwb|clflush))\b|\bmsync\(|\basm\b' |
    grep -vE '^(libpmfs/base/persist[a-z_]*\.(cc|h)|libpmfs/fs/pool_source\.cc|libpmfs/tools/(pmem_interpose|count_steps)\.cc|test/.*|libpmfs/base/rcu\.(h|cc)):' |
    broken one-door "flush, fence and msync are called in libpmfs/base/persist*.cc alone (and where fs/pool_source.cc wipes a device)"
}

# The library never prints, exits or throws, and keeps C++ streams out.
quiet_library() {
  code '\bthrow\b|std::(cout|cerr|clog)|\b(printf|fprintf|puts|perror|exit|_exit|abort|quick_exit)\(|#include <iostream>' |
    grep -E '^(libpmfs/(base|fs|include|mounted|c_api)|htree|dcache)/' | grep -vE '^libpmfs/base/(assert|log)\.(cc|h):' |
    broken quiet-library "the library never prints, exits or throws (base/assert.cc and base/log.cc are the exceptions)"
}

line_form() {
  grep -nH $'\t' "${cpp[@]}" "${shell[@]}" "${cmake[@]}" | broken line-form "tab"
  awk 'length($0) > 120 { print FILENAME ":" FNR ":" }' "${cpp[@]}" | broken line-form "longer than 120 columns"
  grep -nHE '[[:space:]]+$' "${text[@]}" | broken line-form "space at the end of the line"
  local f
  for f in "${text[@]}"; do
    [ -s "$f" ] && [ -n "$(tail -c 1 "$f")" ] && printf '%s\n' "$f"
  done | broken line-form "no line end at the end of the file"
}

# No source lies beside the build: a test that is not built proves nothing.
all_built() {
  local f name
  for f in "${cpp[@]}"; do
    [[ $f == *.cc || $f == *.c ]] || continue
    name=$(basename "${f%.*}")
    grep -qE "(^|[^a-z0-9_])$name([^a-z0-9_]|\$)" "${cmake[@]}" || printf '%s\n' "$f"
  done | broken all-built "no CMakeLists.txt names it"
  grep -nHE 'file\([[:space:]]*GLOB|-march=native|FetchContent|ExternalProject|file\([[:space:]]*DOWNLOAD' "${cmake[@]}" |
    broken all-built "sources are listed by name; nothing is downloaded; the machine's own instruction set is not used"
}

# Structs on the medium (those with PMFS_ON_MEDIA in their file) are made of Le words, bytes, and other such structs.
on_media() {
  awk '
    /PMFS_ON_MEDIA\(/ && !/#define/ {
      name = $0; sub(/.*PMFS_ON_MEDIA\(/, "", name); sub(/,.*/, "", name); gsub(/ /, "", name); sub(/.*::/, "", name)
      media[name] = 1; here[FILENAME, name] = 1
    }
    { line[FILENAME, FNR] = $0; last[FILENAME] = FNR }
    END {
      for (file in last) {
        inside = ""
        for (i = 1; i <= last[file]; i++) {
          text = line[file, i]
          sub(/\/\/.*/, "", text)
          if (inside == "" && match(text, /^[ ]*(struct|union)[ ]+(alignas\([^)]*\)[ ]+)?[A-Za-z_0-9]+[ ]*\{/)) {
            word = substr(text, RSTART, RLENGTH); sub(/[ ]*\{.*/, "", word); sub(/.*[ ]/, "", word)
            if ((file, word) in here) { inside = word; depth = 0 }
          }
          if (inside == "") continue
          body = text
          sub(/^[ ]*(struct|union)[ ]+(alignas\([^)]*\)[ ]+)?[A-Za-z_0-9]*[ ]*\{/, "", body)
          if (body ~ /;/ && body !~ /\(|^[ ]*static|^[ ]*using|^[ ]*\}/) {
            type = body
            sub(/^[ ]+/, "", type); sub(/^(const|alignas\([^)]*\))[ ]+/, "", type)
            first = type; sub(/[ \[;].*/, "", first); sub(/^media::/, "", first)
            if (body ~ /\*|&|:[ ]*[0-9]+[ ]*;/ || !(first ~ /^(Le(16|32|64)|Le<.*>|u8|std::byte)$/ || first in media))
              print file ":" i ":" first
          }
          opened = gsub(/\{/, "{", text); closed = gsub(/\}/, "}", text)
          depth += opened - closed
          if (depth <= 0 && closed > 0) inside = ""
        }
      }
    }' "${cpp[@]}" |
    broken on-media "a struct on the medium holds Le16, Le32, Le64, u8 and such structs only (no bool, enum, pointer, bit-field)"
}

no_leftovers() {
  local f
  for f in "${text[@]}"; do
    [[ $f == test/tidy/* ]] || grep -nHE '\b(TODO|FIXME|XXX|HACK)\b' "$f"
  done | broken no-leftovers "unfinished work belongs into the issue tracker"
  for f in "${text[@]}"; do
    [[ $f == test/tidy/* ]] || grep -nHE '(^|[^A-Za-z0-9_.])/(home/[a-z0-9]+/|root/|work/|tmp/wt)' "$f"
  done | broken no-leftovers "a path of one machine"
  code '^[[:space:]]*#if 0\b' | broken no-leftovers "dead code"
}

# Every ordering tag is explained in DESIGN.md and used; see libpmfs/base/order.h.
order_tags() {
  local order=libpmfs/base/order.h tag others=()
  [ -f $order ] || return 0
  mapfile -t others < <(printf '%s\n' "${cpp[@]}" | grep -E '^(libpmfs/(base|fs)|htree)/' | grep -vxF $order)
  for tag in $(sed -nE 's/^ *X\((k[A-Za-z0-9]+),.*/\1/p' $order); do
    grep -qE "Order::$tag\b" "${others[@]}" || printf '%s: %s is used nowhere\n' "$order" "$tag"
    grep -qE "\b$tag\b" libpmfs/DESIGN.md 2>/dev/null || printf '%s: %s is missing from libpmfs/DESIGN.md\n' "$order" "$tag"
  done | sed 's/^/order-tags: /'
}

scripts() {
  local f
  for f in "${shell[@]}"; do
    bash -n "$f" 2>/dev/null || broken scripts "does not parse" <<<"$f"
    [[ $f == */lib.sh ]] || [ -x "$f" ] || broken scripts "not executable" <<<"$f"
  done
  if [ ${#shell[@]} -gt 0 ] && [ "${TIDY_SHELLCHECK:-yes}" = yes ] && command -v shellcheck >/dev/null; then
    shellcheck --severity=warning --format=gcc --exclude=SC1091,SC2154 "${shell[@]}" | sed 's/^/scripts: /'
  fi
}

# Each rule's function is named as the rule. TIDY_ONLY: one rule alone, for tidy_can_fail.sh.
rules=(top_level include_direction one_door quiet_library line_form all_built on_media no_leftovers order_tags scripts)
[ -z "${TIDY_ONLY:-}" ] || rules=("${TIDY_ONLY//-/_}")
found=$(for rule in "${rules[@]}"; do "$rule"; done)
if [ -n "$found" ]; then
  printf '%s\n' "$found"
  printf 'tidy: %s breaks of the rules\n' "$(wc -l <<<"$found")"
  exit 1
fi
printf 'tidy: %s C++ files, %s scripts, nothing to complain about\n' "${#cpp[@]}" "${#shell[@]}"
