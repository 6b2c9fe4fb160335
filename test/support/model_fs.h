// The oracle: a file system of maps and strings, too simple to be wrong. It answers each operation with an error code
// or none, and shows the whole tree as text, to be compared with what the real one shows.
//
// It knows no permissions: who asks is root, but that write(), allocate() and copy_range() are told whether a user
// does it, who takes set-id bits away. Symbolic links in it must lead nowhere. What follows is what Linux does.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "test/support/tree_text.h"

namespace pmfs::test {

/// No error.
inline constexpr Errc kFine{};

class ModelFs {
 public:
  struct Node : NodeText {
    Acl access;                 // complete; empty: the mode says it all
    Acl defaults;               // empty: none
    std::vector<bool> written;  // regular files: the blocks that are no holes
    bool linkable = false;      // a nameless file that may get a name
    std::map<std::string, std::shared_ptr<Node>> names;

    bool is_directory() const { return type == FileType::kDirectory; }
    bool is_file() const { return type == FileType::kRegular; }
    std::string line(const std::string& path) const;
  };
  using NodePtr = std::shared_ptr<Node>;
  struct Found {
    NodePtr node;  // null: see error
    Errc error{};
  };

  ModelFs();
  Found find(const std::string& path) const;
  std::string tree() const;

  // Names.
  /// @param mode  with S_IFMT.
  Errc make(const std::string& path, u32 mode, u64 rdev, u32 umask, std::string target = {});
  Errc link(const NodePtr& node, const std::string& to);
  Errc unlink(const std::string& path);
  Errc rmdir(const std::string& path);
  Errc rename(const std::string& from, const std::string& to, unsigned flags);
  /// @param out  gets the nameless file.
  Errc tmpfile(const std::string& dir, u32 mode, u32 umask, bool linkable, NodePtr& out);
  /// What open(O_RDWR | O_NOFOLLOW | flags) does beside opening. @param flags  of O_CREAT, O_EXCL, O_TRUNC.
  Errc open(const std::string& path, int flags, u32 mode, u32 umask);

  // Nodes, with names or without.
  static Errc set(Node& node, const SetAttributes& change);
  static Errc write(Node& node, u64 off, std::string_view data, bool by_user);
  static Errc allocate(Node& node, int mode, u64 off, u64 len, bool by_user);
  /// @param copied  gets the number of bytes.
  static Errc copy_range(const Node& from, u64 from_off, Node& to, u64 to_off, u64 len, bool by_user, u64& copied);
  static Errc set_xattr(Node& node, const std::string& name, const std::string& value, int flags);
  static Errc remove_xattr(Node& node, const std::string& name);
  static Errc get_xattr(const Node& node, const std::string& name, std::string& value);
  static Errc set_acl(Node& node, AclKind kind, const Acl& acl);
  /// SEEK_DATA or SEEK_HOLE. @param at  gets the place.
  static Errc seek(const Node& node, u64 off, bool data, u64& at);

 private:
  struct Place {
    NodePtr dir;  // null: the parent does not exist; see error
    std::string name;
    Errc error{};
    NodePtr there() const;
  };
  Place place(const std::string& path) const;
  static NodePtr new_node(const Node& dir, u32 mode, u64 rdev, u32 umask);

  NodePtr root_;
};

}  // namespace pmfs::test
