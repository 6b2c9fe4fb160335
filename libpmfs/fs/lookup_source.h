// What the path cache asks when it does not know: directories and links read from the pool, under their locks.
// Rules and thread rules: dcache/lookup.h.
#pragma once

#include "dcache/lookup.h"
#include "fs/inode_table.h"

namespace pmfs {

struct Volume;

class VolumeLookup final : public dcache::LookupSource {
 public:
  explicit VolumeLookup(Volume& volume) : volume_(volume) {}

  Result<dcache::Answer> lookup(InodeNo dir, u64 generation, std::string_view name, const dcache::Searcher& who,
                                const dcache::Seen& seen) override;
  Result<dcache::Answer> parent(InodeNo dir, u64 generation, const dcache::Searcher& who,
                                const dcache::Seen& seen) override;
  Result<std::string> link_target(InodeNo link, u64 generation) override;

 private:
  Volume& volume_;
};

/// Both halves of an inode's generation.
inline u64 generation_of(const media::Inode& inode) {
  return media::join(media::high_half(inode.state_gen.get()), media::low_half(inode.gen_high.get()));
}

/// What a name that leads to this inode leads to. REQUIRES: its lock, or that of a directory that names it.
dcache::Target target_of(InodeNo ino, const media::Inode& inode);

/// The words that decide who may search a directory. REQUIRES: its lock.
dcache::Permission permission_of(const media::Inode& inode);

}  // namespace pmfs
