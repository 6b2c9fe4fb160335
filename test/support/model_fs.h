// The oracle: a file system of maps and vectors, too simple to be wrong. It answers each operation with an error code
// or nothing, and shows the whole tree as text, to be compared with what the real one shows.
//
// It knows no permissions: the model tests run as root. Times are not modelled here.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "pmfs/pmfs.hpp"

namespace pmfs::test {

class ModelFs {
 public:
  ModelFs();
  Errc mknod(const std::string& path);
  Errc mkdir(const std::string& path);
  Errc symlink(const std::string& target, const std::string& path);
  Errc link(const std::string& from, const std::string& to);
  Errc unlink(const std::string& path);
  Errc rmdir(const std::string& path);
  Errc rename(const std::string& from, const std::string& to, unsigned flags);
  Errc write(const std::string& path, u64 off, std::string_view data);
  Errc truncate(const std::string& path, u64 size);
  Errc chmod(const std::string& path, u32 mode);
  /// One line for each name, in order: path, type, mode, links, size, hash of contents or target.
  std::string tree() const;

 private:
  struct Node {
    FileType type{};
    u32 mode = 0;
    u32 links = 0;
    std::string data;  // contents or target
    std::map<std::string, std::shared_ptr<Node>> names;
    bool is_directory() const { return type == FileType::kDirectory; }
  };
  using NodePtr = std::shared_ptr<Node>;
  struct Place {
    NodePtr dir;  // null: the parent does not exist; see error
    std::string name;
    Errc error{};
    NodePtr there() const;
  };
  Place place(const std::string& path) const;
  Errc add(const std::string& path, FileType type, u32 mode, std::string data);
  bool below(const NodePtr& root, const NodePtr& node) const;
  void show(const NodePtr& dir, const std::string& path, std::string& out) const;

  NodePtr root_;
};

/// No error.
inline constexpr Errc kFine{};

/// The same text for a real file system. Fails the test if anything cannot be read.
std::string tree_of(Filesystem& fs);

}  // namespace pmfs::test
