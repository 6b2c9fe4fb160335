#!/usr/bin/env bash
# Shows that tidy.sh has teeth: breaks each rule in a copy of the project and expects tidy to name the rule and the file.
#
# It works on a small project that keeps every rule, not on a copy of the real one: whether the real one keeps them is for
# tidy.sh itself to say.

set -u
here=$(cd "$(dirname "$0")" && pwd)
export TIDY_SHELLCHECK=no  # slow, and its own author's affair
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT

fresh() {
  rm -rf "$copy/p"
  mkdir -p "$copy/p"/{libpmfs/{include/pmfs,base,fs,tools},htree,dcache,fuse_bridge,examples,test/{unit,tidy},scripts}
  (
    cd "$copy/p" || exit
    echo 'Words.' | tee README.md NOTICE LICENSE >libpmfs/DESIGN.md
    printf '#pragma once\n' | tee libpmfs/include/pmfs/{types.h,pmfs.hpp} libpmfs/base/{rcu.h,persist.h,persist_pmem.h} \
      htree/htree.h dcache/lookup.h fuse_bridge/mount.h >libpmfs/fs/dir.h
    echo '#include <libpmem.h>' >libpmfs/base/persist_pmem.cc
    echo '#include <libpmemobj.h>' >libpmfs/fs/pool.cc
    echo '#include "fuse_bridge/mount.h"' >libpmfs/tools/mount_command.cc
    echo '#include "base/persist_pmem.h"' >libpmfs/tools/pmem_interpose.cc
    printf '#include "base/persist.h"\n#include "pmfs/types.h"\nvoid f() { g(Order::kFence1); }\n' >htree/htree.cc
    printf '#include "pmfs/pmfs.hpp"\n' | tee examples/hello.cc >fuse_bridge/ops.cc
    printf '#include "htree/htree.h"\n' >test/unit/htree_test.cc
    printf '#define X(a, b)\n  X(kFence1, "why")\n' >libpmfs/base/order.h
    echo 'kFence1: why.' >>libpmfs/DESIGN.md
    cat >libpmfs/fs/format.h <<'END'
#pragma once
struct Inner {
  u8 bytes[8];
};
PMFS_ON_MEDIA(Inner, 8);
struct alignas(64) Inode {  // one line
  Le64 state;        // [ 0] bool in a comment is no bool
  Le32 pair[2];
  Inner inner;
  u8 zero[40];
};
PMFS_ON_MEDIA(Inode, 64);
struct Volatile {
  bool fine = true;
  int* also = nullptr;
};
END
    echo 'add_library(all htree.cc pool.cc persist_pmem.cc mount_command.cc pmem_interpose.cc hello.cc ops.cc htree_test)' >CMakeLists.txt
    printf '#!/bin/sh\necho\n' >scripts/test.sh
    chmod +x scripts/test.sh
  )
}

failed=0
tried=0

# breaking RULE FILE COMMAND: runs the command in a fresh project; tidy must then fail, and name RULE and FILE.
breaking() {
  local rule=$1 file=$2 command=$3 said
  tried=$((tried + 1))
  fresh
  (cd "$copy/p" && eval "$command")
  if said=$(TIDY_ONLY=$rule "$here/tidy.sh" "$copy/p" 2>&1); then
    echo "tidy accepts: $command"
    failed=$((failed + 1))
  elif ! grep -q "^$rule: $file" <<<"$said"; then
    printf 'tidy fails for another reason than %s in %s: %s\n%s\n' "$rule" "$file" "$command" "$said"
    failed=$((failed + 1))
  fi
}

# add FILE LINE
add() { printf '%s\n' "$2" >>"$1"; }

fresh
if ! said=$("$here/tidy.sh" "$copy/p" 2>&1); then
  printf 'tidy rejects a project that keeps every rule:\n%s\n' "$said"
  failed=1
fi

breaking top-level src 'mkdir src && echo x >src/notes.md'
breaking top-level notes.md 'echo x >notes.md'

breaking include-direction libpmfs/base/persist.h "add libpmfs/base/persist.h '#include \"fs/dir.h\"'"
breaking include-direction libpmfs/base/persist.h "add libpmfs/base/persist.h '#include \"htree/htree.h\"'"
breaking include-direction libpmfs/base/persist.h "add libpmfs/base/persist.h '#include \"pmfs/pmfs.hpp\"'"
breaking include-direction htree/htree.cc "add htree/htree.cc '#include \"fs/dir.h\"'"
breaking include-direction htree/htree.cc "add htree/htree.cc '#include \"dcache/lookup.h\"'"
breaking include-direction htree/htree.cc "add htree/htree.cc '#include \"../libpmfs/fs/dir.h\"'"
breaking include-direction dcache/lookup.h "add dcache/lookup.h '#include \"base/persist.h\"'"
breaking include-direction dcache/lookup.h "add dcache/lookup.h '#include \"htree/htree.h\"'"
breaking include-direction libpmfs/fs/dir.h "add libpmfs/fs/dir.h '#include \"fuse_bridge/mount.h\"'"
breaking include-direction libpmfs/fs/dir.h "add libpmfs/fs/dir.h '#include \"test/support/prng.h\"'"
breaking include-direction fuse_bridge/ops.cc "add fuse_bridge/ops.cc '#include \"fs/dir.h\"'"
breaking include-direction libpmfs/tools/mount_command.cc "add libpmfs/tools/mount_command.cc '#include \"base/persist.h\"'"
breaking include-direction libpmfs/tools/ls.h "add libpmfs/tools/ls.h '#include \"fuse_bridge/mount.h\"'"
breaking include-direction examples/hello.cc "add examples/hello.cc '#include \"base/persist.h\"'"
breaking include-direction libpmfs/c_api/files.cc "mkdir libpmfs/c_api; add libpmfs/c_api/files.cc '#include \"fs/dir.h\"'"
breaking include-direction libpmfs/include/pmfs/pmfs.hpp "add libpmfs/include/pmfs/pmfs.hpp '#include \"base/persist.h\"'"
breaking include-direction examples/hello.cc "add examples/hello.cc '#include <pmfs/types.h>'"

breaking one-door htree/htree.cc "add htree/htree.cc '#include <libpmem.h>'"
breaking one-door libpmfs/fs/dir.h "add libpmfs/fs/dir.h '#include <libpmemobj.h>'"
breaking one-door libpmfs/fs/dir.h "add libpmfs/fs/dir.h '#include <xxhash.h>'"
breaking one-door dcache/lookup.h "add dcache/lookup.h '#include <urcu/urcu-bp.h>'"
breaking one-door libpmfs/fs/dir.h "add libpmfs/fs/dir.h '#include <fuse3/fuse_lowlevel.h>'"
breaking one-door libpmfs/fs/dir.h "add libpmfs/fs/dir.h '#include <CLI/CLI.hpp>'"
breaking one-door test/unit/htree_test.cc "add test/unit/htree_test.cc '#include <catch2/catch.hpp>'"
breaking one-door htree/htree.cc "add htree/htree.cc 'void g() { _mm_sfence(); }'"
breaking one-door libpmfs/fs/pool.cc "add libpmfs/fs/pool.cc 'void g() { msync(p, 1, MS_SYNC); }'"

breaking quiet-library libpmfs/fs/pool.cc "add libpmfs/fs/pool.cc 'void g() { throw 1; }'"
breaking quiet-library htree/htree.cc "add htree/htree.cc 'void g() { std::printf(\"x\"); }'"
breaking quiet-library htree/htree.cc "add htree/htree.cc 'void g() { std::exit(1); }'"

breaking line-form htree/htree.cc "printf 'int\tx;\n' >>htree/htree.cc"
breaking line-form htree/htree.cc "printf '// %0120d\n' 1 >>htree/htree.cc"
breaking line-form README.md "printf 'word \n' >>README.md"
breaking line-form README.md "printf 'word' >>README.md"

breaking all-built test/unit/leaf_test.cc "add test/unit/leaf_test.cc 'int x;'"
breaking all-built libpmfs/fs/tree.cc "add libpmfs/fs/tree.cc 'int x;'"
breaking all-built CMakeLists.txt "add CMakeLists.txt 'file(GLOB all *.cc)'"
breaking all-built CMakeLists.txt "add CMakeLists.txt 'add_compile_options(-march=native)'"

for member in 'bool live;' 'Kind kind;' 'void* next;' 'Le64* next;' 'Le32 a : 4;' 'u64 raw;' 'std::mutex lock;' 'int n;'; do
  breaking on-media libpmfs/fs/format.h "sed -i 's/^  Inner inner;/  $member/' libpmfs/fs/format.h"
done

breaking no-leftovers htree/htree.cc "add htree/htree.cc '// TODO: later'"
breaking no-leftovers README.md "add README.md 'FIXME'"
breaking no-leftovers README.md "add README.md 'see /home/somebody/notes'"
breaking no-leftovers htree/htree.cc "add htree/htree.cc '#if 0'"

breaking order-tags libpmfs/base/order.h "add libpmfs/base/order.h '  X(kFence2, \"why\")'; echo 'kFence2' >>libpmfs/DESIGN.md"
breaking order-tags libpmfs/base/order.h "add libpmfs/base/order.h '  X(kFence2, \"why\")'; echo 'int x = f(Order::kFence2);' >>htree/htree.cc"

breaking scripts scripts/test.sh "printf 'if\n' >>scripts/test.sh"
breaking scripts scripts/test.sh "chmod -x scripts/test.sh"

if [ $failed -ne 0 ]; then
  echo "tidy_can_fail: $failed of $tried breaks not found"
  exit 1
fi
echo "tidy_can_fail: all $tried breaks found"
