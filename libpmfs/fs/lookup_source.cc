#include "fs/lookup_source.h"

#include <sys/stat.h>

#include <shared_mutex>

#include "fs/acl.h"
#include "fs/directory.h"
#include "fs/read_unlocked.h"
#include "fs/resolve.h"

namespace pmfs {

static_assert(dcache::kTypeMask == S_IFMT && dcache::kTypeDirectory == S_IFDIR && dcache::kTypeSymlink == S_IFLNK);

dcache::Target target_of(InodeNo ino, const media::Inode& inode) {
  return {ino, generation_of(inode), mode_of(inode) & S_IFMT};
}

dcache::Permission permission_of(const media::Inode& inode) {
  return {mode_of(inode), uid_of(inode), gid_of(inode), has_access_acl(inode)};
}

namespace {

bool is_live(const media::Inode& inode) { return media::low_half(inode.state_gen.get()) == media::kSlotLive; }

// REQUIRES: the lock, or `reads`.
Result<dcache::Answer> directory_answer(const Volume& volume, const InodeRef& dir, u64 generation,
                                        const dcache::Searcher& who, ReadSet* reads) {
  PMFS_TRY(check_same(volume, dir, generation, reads));
  const media::Inode& inode = dir.media();
  if (type_of(inode) != FileType::kDirectory)
    return Error{Errc::kNotDirectory, "a component of the path is not a directory", 0};
  dcache::Answer answer;
  answer.ino = dir.ino();
  answer.generation = generation_of(inode);
  answer.permission = permission_of(inode);
  if (answer.permission.has_acl && !who.may_all) {
    PMFS_ASSIGN(answer.acl_permits, permits(volume, dir, kMayExecute, {who.uid, who.gid, who.groups, who.depends}));
  }
  answer.removed = !is_live(inode);
  return answer;
}

// @error kCorrupt: `number` is no inode's.
Result<dcache::Target> target_of_number(Volume& volume, u64 number, const char* what) {
  if (number == 0 || number > volume.inodes.slots()) return Error{Errc::kCorrupt, what, 0};
  return target_of(InodeNo{number}, volume.inodes.slot(number - 1));
}

Result<dcache::Answer> look_up(Volume& volume, const InodeRef& dir, u64 generation, std::string_view name,
                               const dcache::Searcher& who, ReadSet* reads) {
  PMFS_ASSIGN(dcache::Answer answer, directory_answer(volume, dir, generation, who, reads));
  if (answer.removed) return answer;
  PMFS_ASSIGN(const auto entry, find_entry(volume, dir, name, reads));
  if (!entry.has_value()) return answer;
  // Its generation stands still: nobody frees it while its name is there.
  PMFS_ASSIGN(dcache::Target target, target_of_number(volume, to_u64(entry->ino), "an entry names no inode"));
  target.type = mode_bits(entry->type);
  answer.target = target;
  return answer;
}

Result<dcache::Answer> look_up_parent(Volume& volume, const InodeRef& dir, u64 generation,
                                      const dcache::Searcher& who, ReadSet* reads) {
  PMFS_ASSIGN(dcache::Answer answer, directory_answer(volume, dir, generation, who, reads));
  if (answer.removed) return answer;
  PMFS_ASSIGN(answer.target, target_of_number(volume, dir.media().parent.get(), "a directory's parent cannot be"));
  return answer;
}

// The shared lock, if it can be had within the time of some commits: a writer may be held up for any time.
std::shared_lock<std::shared_mutex> lock_soon(std::shared_mutex& mutex) {
  constexpr int kTries = 200, kPauses = 16;  // some 100 microseconds in all
  std::shared_lock lock(mutex, std::try_to_lock);
  for (int tries = 0; tries < kTries && !lock.owns_lock(); ++tries) {
    for (int i = 0; i < kPauses; ++i) __builtin_ia32_pause();
    (void)lock.try_lock();
  }
  return lock;
}

// Under the shared lock if it can be had soon, so that `seen` may remember the answer; else beside whoever has it.
template <class Look>
Result<dcache::Answer> answer_of(Volume& volume, const InodeRef& dir, const dcache::Seen& seen, Look&& look) {
  const std::shared_lock lock = lock_soon(dir->lock);
  if (!lock.owns_lock()) return read_unlocked(volume, dir, dir->version, look);
  PMFS_ASSIGN(const dcache::Answer answer, look(nullptr));
  seen(answer);
  return answer;
}

}  // namespace

Result<dcache::Answer> VolumeLookup::lookup(InodeNo dir_ino, u64 generation, std::string_view name,
                                            const dcache::Searcher& who, const dcache::Seen& seen) {
  PMFS_ASSIGN(const InodeRef dir, volume_.inodes.get(dir_ino));
  return answer_of(volume_, dir, seen,
                   [&](ReadSet* reads) { return look_up(volume_, dir, generation, name, who, reads); });
}

Result<dcache::Answer> VolumeLookup::parent(InodeNo dir_ino, u64 generation, const dcache::Searcher& who,
                                            const dcache::Seen& seen) {
  PMFS_ASSIGN(const InodeRef dir, volume_.inodes.get(dir_ino));
  return answer_of(volume_, dir, seen,
                   [&](ReadSet* reads) { return look_up_parent(volume_, dir, generation, who, reads); });
}

Result<std::string> VolumeLookup::link_target(InodeNo link_ino, u64 generation) {
  PMFS_ASSIGN(const InodeRef link, volume_.inodes.get(link_ino));
  std::shared_lock lock(link->lock);
  PMFS_TRY(check_same(volume_, link, generation));
  return read_target(volume_, link);
}

}  // namespace pmfs
