// The C interface: open files and directories.
#include <fcntl.h>

#include "c_api/convert.h"

using namespace pmfs;
using namespace pmfs::c_api;

namespace {

static_assert(static_cast<int>(LockKind::kNone) == PMFS_UNLOCK);
static_assert(static_cast<int>(LockKind::kShared) == PMFS_LOCK_SHARED);
static_assert(static_cast<int>(LockKind::kExclusive) == PMFS_LOCK_EXCLUSIVE);

Result<LockKind> lock_kind_of(int kind) {
  if (kind < PMFS_UNLOCK || kind > PMFS_LOCK_EXCLUSIVE) return invalid("there is no such kind of lock");
  return static_cast<LockKind>(kind);
}

Wait wait_of(int wait) { return wait != 0 ? Wait::kYes : Wait::kNo; }

pmfs_dir_entry entry_of(const DirEntry& from) {
  static_assert(sizeof(pmfs_dir_entry::name) > kNameMax);
  pmfs_dir_entry to{};
  to.type = mode_bits(from.type);
  to.inode = to_u64(from.ino);
  to.cookie = from.cookie;
  to.name_bytes = from.name_len;
  from.view().copy(to.name, kNameMax);
  return to;
}

}  // namespace

int pmfs_open_file(pmfs_t* fs, pmfs_location_t at, int flags, std::uint32_t mode, const pmfs_credentials* who,
                   pmfs_file_t** file) {
  return answer([&]() -> Result<void> {
    if (file == nullptr) return invalid("there is no place for the handle");
    *file = nullptr;
    PMFS_ASSIGN(const Call call, call_on(fs, at, who));
    if (call.where.follow == Follow::kNo) flags |= O_NOFOLLOW;
    // The handle is made first: no file is created and then lost to a lack of memory.
    std::unique_ptr<pmfs_file_t> handle(new (std::nothrow) pmfs_file_t{{}, (flags & O_APPEND) != 0});
    if (handle == nullptr) return no_memory();
    PMFS_ASSIGN(handle->file, call.fs.open_file(call.where.at, flags, mode, call.who));
    *file = handle.release();
    return {};
  });
}

int pmfs_file_close(pmfs_file_t* file) {
  return answer([&]() -> Result<void> {
    PMFS_TRY(open_of(file));
    const std::unique_ptr<pmfs_file_t> gone(file);
    return gone->file.close();
  });
}

std::uint64_t pmfs_file_inode(const pmfs_file_t* file) { return file == nullptr ? 0 : to_u64(file->file.ino()); }

std::int64_t pmfs_file_read(const pmfs_file_t* file, std::uint64_t off, void* memory, std::size_t bytes) {
  return answer([&]() -> Result<std::size_t> {
    PMFS_ASSIGN(const File* const open, open_of(file));
    PMFS_ASSIGN(const std::span<std::byte> out, buffer<std::byte>(memory, bytes));
    return open->read(off, out);
  });
}

std::int64_t pmfs_file_write(pmfs_file_t* file, std::uint64_t off, const void* memory, std::size_t bytes) {
  return answer([&]() -> Result<std::size_t> {
    PMFS_ASSIGN(const File* const open, open_of(file));
    PMFS_ASSIGN(const std::span<const std::byte> in, buffer<const std::byte>(memory, bytes));
    return open->write(off, in);
  });
}

std::int64_t pmfs_file_append(pmfs_file_t* file, const void* memory, std::size_t bytes) {
  return answer([&]() -> Result<std::size_t> {
    PMFS_ASSIGN(const File* const open, open_of(file));
    PMFS_ASSIGN(const std::span<const std::byte> in, buffer<const std::byte>(memory, bytes));
    if (!file->appends) return Error{Errc::kBadHandle, "the file was not opened with O_APPEND", 0};
    return open->write(0, in);  // O_APPEND decides where
  });
}

int pmfs_file_sync(pmfs_file_t* file) {
  return answer([&]() -> Result<void> {
    PMFS_ASSIGN(const File* const open, open_of(file));
    return open->sync();
  });
}

int pmfs_file_stat(const pmfs_file_t* file, pmfs_attributes* attributes) {
  return answer([&]() -> Result<void> {
    PMFS_ASSIGN(const File* const open, open_of(file));
    PMFS_TRY(fillable(attributes));
    PMFS_ASSIGN(const Attributes found, open->stat());
    put(attributes_of(found), attributes);
    return {};
  });
}

int pmfs_file_truncate(pmfs_file_t* file, std::uint64_t size_bytes) {
  return answer([&]() -> Result<void> {
    PMFS_ASSIGN(const File* const open, open_of(file));
    return open->truncate(size_bytes);
  });
}

int pmfs_file_allocate(pmfs_file_t* file, int mode, std::uint64_t off, std::uint64_t bytes) {
  return answer([&]() -> Result<void> {
    PMFS_ASSIGN(const File* const open, open_of(file));
    return open->allocate(mode, off, bytes);
  });
}

std::int64_t pmfs_file_seek(const pmfs_file_t* file, std::uint64_t off, int whence) {
  return answer([&]() -> Result<u64> {
    PMFS_ASSIGN(const File* const open, open_of(file));
    return open->seek(off, whence);
  });
}

std::int64_t pmfs_file_copy(const pmfs_file_t* from, std::uint64_t off, pmfs_file_t* to, std::uint64_t to_off,
                            std::uint64_t bytes) {
  return answer([&]() -> Result<std::size_t> {
    PMFS_ASSIGN(const File* const source, open_of(from));
    PMFS_TRY(open_of(to));
    return source->copy_to(off, to->file, to_off, bytes);
  });
}

int pmfs_file_lock(pmfs_file_t* file, int kind, int wait) {
  return answer([&]() -> Result<void> {
    PMFS_ASSIGN(const File* const open, open_of(file));
    PMFS_ASSIGN(const LockKind wanted, lock_kind_of(kind));
    return open->lock(wanted, wait_of(wait));
  });
}

int pmfs_file_lock_range(pmfs_file_t* file, int kind, std::uint64_t first, std::uint64_t last, int wait) {
  return answer([&]() -> Result<void> {
    PMFS_ASSIGN(const File* const open, open_of(file));
    PMFS_ASSIGN(const LockKind wanted, lock_kind_of(kind));
    return open->lock_range({wanted, first, last}, wait_of(wait));
  });
}

int pmfs_lock_wait_new(pmfs_lock_wait_t** wait) {
  return answer([&]() -> Result<void> {
    if (wait == nullptr) return invalid("there is no place for the answer");
    *wait = new pmfs_lock_wait_handle;
    return {};
  });
}

void pmfs_lock_wait_interrupt(pmfs_lock_wait_t* wait) {
  if (wait != nullptr) wait->wait.interrupt();
}

void pmfs_lock_wait_free(pmfs_lock_wait_t* wait) { delete wait; }

int pmfs_file_lock_wait(pmfs_file_t* file, int kind, pmfs_lock_wait_t* wait) {
  return answer([&]() -> Result<void> {
    PMFS_ASSIGN(const File* const open, open_of(file));
    PMFS_ASSIGN(const LockKind wanted, lock_kind_of(kind));
    if (wait == nullptr) return invalid("the wait is NULL");
    return open->lock(wanted, Wait::kYes, &wait->wait);
  });
}

int pmfs_file_lock_range_wait(pmfs_file_t* file, int kind, std::uint64_t first, std::uint64_t last,
                              pmfs_lock_wait_t* wait) {
  return answer([&]() -> Result<void> {
    PMFS_ASSIGN(const File* const open, open_of(file));
    PMFS_ASSIGN(const LockKind wanted, lock_kind_of(kind));
    if (wait == nullptr) return invalid("the wait is NULL");
    return open->lock_range({wanted, first, last}, Wait::kYes, &wait->wait);
  });
}

int pmfs_file_test_lock(const pmfs_file_t* file, int* kind, std::uint64_t* first, std::uint64_t* last) {
  return answer([&]() -> Result<void> {
    PMFS_ASSIGN(const File* const open, open_of(file));
    if (kind == nullptr || first == nullptr || last == nullptr) return invalid("there is no place for the answer");
    PMFS_ASSIGN(const LockKind wanted, lock_kind_of(*kind));
    PMFS_ASSIGN(const std::optional<HeldLock> held, open->test_lock({wanted, *first, *last}));
    *kind = held ? static_cast<int>(held->range.kind) : PMFS_UNLOCK;
    if (!held) return {};
    *first = held->range.first;
    *last = held->range.last;
    return {};
  });
}

int pmfs_file_direct(pmfs_file_t* file, std::uint64_t off, std::uint64_t bytes, std::uint32_t flags,
                     pmfs_lease_t** lease) {
  return answer([&]() -> Result<void> {
    if (lease == nullptr) return invalid("there is no place for the handle");
    *lease = nullptr;
    PMFS_ASSIGN(const File* const open, open_of(file));
    if ((flags & ~u32{PMFS_DIRECT_WRITE | PMFS_DIRECT_FILL_HOLES}) != 0) return invalid("there is no such flag");
    const DirectUse use = (flags & PMFS_DIRECT_WRITE) != 0 ? DirectUse::kWrite : DirectUse::kRead;
    const Holes holes = (flags & PMFS_DIRECT_FILL_HOLES) != 0 ? Holes::kFill : Holes::kRefuse;
    std::unique_ptr<pmfs_lease_t> handle(new (std::nothrow) pmfs_lease_t{});
    if (handle == nullptr) return no_memory();
    PMFS_ASSIGN(handle->lease, open->direct(off, bytes, use, holes));
    *lease = handle.release();
    return {};
  });
}

std::int64_t pmfs_lease_pieces(const pmfs_lease_t* lease, pmfs_piece* pieces, std::uint64_t room) {
  return answer([&]() -> Result<u64> {
    PMFS_ASSIGN(const Lease* const open, open_of(lease));
    if (pieces == nullptr && room > 0) return invalid("there is no place for the pieces");
    const auto found = open->pieces();
    for (std::size_t i = 0; i < std::min<u64>(room, found.size()); ++i)
      pieces[i] = {const_cast<std::byte*>(found[i].data()), found[i].size()};
    return found.size();
  });
}

int pmfs_lease_persist(const pmfs_lease_t* lease, std::uint64_t from, std::uint64_t bytes) {
  return answer([&]() -> Result<void> {
    PMFS_ASSIGN(const Lease* const open, open_of(lease));
    return open->persist(from, bytes);
  });
}

int pmfs_lease_close(pmfs_lease_t* lease) {
  return answer([&]() -> Result<void> {
    PMFS_TRY(open_of(lease));
    const std::unique_ptr<pmfs_lease_t> gone(lease);
    return gone->lease.give_back();
  });
}

int pmfs_open_dir(pmfs_t* fs, pmfs_location_t at, const pmfs_credentials* who, pmfs_dir_t** dir) {
  return answer([&]() -> Result<void> {
    if (dir == nullptr) return invalid("there is no place for the handle");
    *dir = nullptr;
    PMFS_ASSIGN(const Call call, call_on(fs, at, who));
    if (call.where.follow == Follow::kNo) return invalid("a directory is always opened through links");
    PMFS_ASSIGN(Dir opened, call.fs.open_dir(call.where.at, call.who));
    *dir = new (std::nothrow) pmfs_dir_t{std::move(opened)};
    if (*dir == nullptr) return no_memory();
    return {};
  });
}

int pmfs_dir_read(pmfs_dir_t* dir, std::uint64_t cookie, pmfs_dir_entry* entry, pmfs_attributes* attributes) {
  bool there = false;
  const int error = answer([&]() -> Result<void> {
    PMFS_ASSIGN(Dir* const open, open_of(dir));
    PMFS_TRY(fillable(entry));
    PMFS_TRY(fillable(attributes, Given::kMay));
    DirEntry found;
    Attributes about;
    PMFS_ASSIGN(there, attributes == nullptr ? open->read(cookie, found) : open->read(cookie, found, about));
    if (!there) return {};
    put(entry_of(found), entry);
    put(attributes_of(about), attributes);
    return {};
  });
  return error != 0 ? error : static_cast<int>(there);
}

int pmfs_dir_rewind(pmfs_dir_t* dir) {
  return answer([&]() -> Result<void> {
    PMFS_ASSIGN(Dir* const open, open_of(dir));
    open->rewind();
    return {};
  });
}

std::uint64_t pmfs_dir_inode(const pmfs_dir_t* dir) { return dir == nullptr ? 0 : to_u64(dir->dir.ino()); }

int pmfs_dir_close(pmfs_dir_t* dir) {
  return answer([&]() -> Result<void> {
    PMFS_TRY(open_of(dir));
    const std::unique_ptr<pmfs_dir_t> gone(dir);
    return gone->dir.close();
  });
}
