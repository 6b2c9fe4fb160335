#include "fuse_bridge/covered.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "mounted/mount_table.h"

namespace pmfs::bridge {

Covered::Covered(Filesystem& fs, std::string dir)
    : fs_(fs), dir_(std::move(dir)), changes_(::open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC)) {}

Covered::~Covered() {
  if (changes_ >= 0) ::close(changes_);
}

std::shared_ptr<const Covered::Inodes> Covered::now() {
  if (changes_ < 0) return nullptr;
  const std::lock_guard guard(lock_);
  // A change is told once: whoever hears of it reads the table before anybody else looks.
  pollfd changed{.fd = changes_, .events = POLLPRI, .revents = 0};
  if (::poll(&changed, 1, 0) != 0 || inodes_ == nullptr) inodes_ = read();
  return inodes_;
}

std::shared_ptr<const Covered::Inodes> Covered::read() {
  const std::vector<mounted::MountEntry> table = mounted::read_mount_table();
  const auto self =
      std::find_if(table.rbegin(), table.rend(), [&](const mounted::MountEntry& entry) { return entry.dir == dir_; });
  if (self == table.rend()) return nullptr;
  auto inodes = std::make_shared<Inodes>();
  for (const mounted::MountEntry& ours : table) {
    if (ours.device != self->device) continue;  // the mount itself, and each place it is bound to
    for (const mounted::MountEntry& other : table) {
      if (other.parent != ours.id || !other.dir.starts_with(ours.dir)) continue;
      const std::string path = ours.root + "/" + other.dir.substr(ours.dir.size());
      Credentials who = Credentials::root();
      who.checked_elsewhere = true;
      const Result<Attributes> found = fs_.stat(path, who, Follow::kNo);
      if (!found.ok()) return nullptr;  // renamed under a mount in another name space, perhaps
      inodes->insert(to_u64(found->ino));
    }
  }
  return inodes;
}

}  // namespace pmfs::bridge
