#include "fuse_bridge/batch.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include "fuse_bridge/caller.h"
#include "fuse_bridge/covered.h"
#include "mounted/wire.h"

namespace pmfs::bridge {

namespace {

using mounted::BatchHeader;
using mounted::BatchOp;
using mounted::kAskKernel;
using mounted::PathHeader;
using mounted::ReplyHeader;
using mounted::ReplyRow;

struct Asked {
  std::string_view path;
  u16 flags = 0;
  u32 mode = 0;
};

struct BatchRequest {
  BatchHeader header;
  std::vector<Asked> paths;  // in the request's memory
};

/// @return nothing if it is not what wire.h says.
std::optional<BatchRequest> parse(std::span<const char> in, std::size_t out_bytes) {
  BatchRequest request;
  if (in.size() < sizeof request.header) return {};
  std::memcpy(&request.header, in.data(), sizeof request.header);
  const BatchHeader& header = request.header;
  if (header.version != mounted::kBatchVersion || header.bytes > in.size() || header.count == 0 ||
      header.count > mounted::kBatchPathsMax || sizeof(ReplyHeader) + header.count * sizeof(ReplyRow) > out_bytes ||
      (header.op != BatchOp::kResolve && header.op != BatchOp::kCreate))
    return {};
  std::size_t at = sizeof header;
  for (u32 i = 0; i < header.count; ++i) {
    PathHeader path;
    if (header.bytes < at + sizeof path) return {};
    std::memcpy(&path, &in[at], sizeof path);
    if (path.length == 0 || path.length > kPathMax || header.bytes - at < mounted::request_bytes(path.length))
      return {};
    request.paths.push_back({{&in[at + sizeof path], path.length}, path.flags, path.mode});
    at += mounted::request_bytes(path.length);
  }
  return request;
}

/// Who has sent the request. The groups' memory is here.
class Who {
 public:
  explicit Who(const fuse_ctx& ctx) : tid_(ctx.pid) {
    known_.uid = ctx.uid;
    known_.gid = ctx.gid;
    known_.privilege = Credentials::Privilege::kNone;
    known_.depends = &depends_;
  }
  /// By uid and gid alone. Whether that was enough, depends() tells afterwards.
  const Credentials& known() const { return known_; }
  bool depends() const { return depends_; }
  /// All there is to know; nothing if it cannot be known.
  std::optional<Credentials> whole() {
    if (!details_ && !(details_ = details_of(tid_))) return {};
    Credentials who = known_;
    who.depends = nullptr;
    who.groups = details_->groups;
    if (details_->may_search_all) who.privilege = Credentials::Privilege::kSearch;
    if (details_->may_change_all) who.privilege = Credentials::Privilege::kAll;
    return who;
  }

 private:
  const pid_t tid_;
  Credentials known_;
  bool depends_ = false;
  std::optional<CallerDetails> details_;
};

i32 error_number(const std::optional<Errc>& error) { return error ? to_errno(*error) : 0; }

ReplyRow row_of(const Attributes& a) {
  ReplyRow row;
  row.mode = a.mode;
  row.ino = to_u64(a.ino);
  row.generation = a.generation;
  row.links = a.links;
  row.uid = a.uid;
  row.gid = a.gid;
  row.size_bytes = a.size_bytes;
  row.blocks_512 = a.blocks_512;
  row.rdev = a.rdev;
  row.atime_ns = a.atime_ns;
  row.mtime_ns = a.mtime_ns;
  row.ctime_ns = a.ctime_ns;
  row.birth_ns = a.birth_ns;
  return row;
}

ReplyRow error_row(i32 error) {
  ReplyRow row;
  row.error = error;
  return row;
}

/// One request at work.
class Batch {
 public:
  Batch(Bridge& bridge, InodeNo start, const BatchRequest& request, const fuse_ctx& ctx)
      : bridge_(bridge), start_(start), request_(request), who_(ctx) {
    if (sees_our_mounts(ctx.pid)) covered_ = bridge.covered().now();
  }

  /// What to forget before the rows are true for everybody.
  struct Created {
    InodeNo parent;
    std::string name;
  };

  std::vector<ReplyRow> run(std::vector<Created>& created) {
    std::vector<ReplyRow> rows(request_.paths.size(), error_row(kAskKernel));
    if (covered_ == nullptr) return rows;
    if (request_.header.op == BatchOp::kCreate) {
      create(rows, created);
    } else {
      for (const bool follow : {true, false}) resolve(follow, rows);
    }
    return rows;
  }

 private:
  At at(std::string_view path) const {
    At where(start_, path);
    where.beneath = true;
    return where;
  }

  // --- Resolving

  void resolve(bool follow, std::vector<ReplyRow>& rows) {
    std::vector<std::string_view> paths;
    std::vector<std::size_t> numbers;
    for (std::size_t i = 0; i < request_.paths.size(); ++i) {
      const Asked& asked = request_.paths[i];
      if (((asked.flags & mounted::kFollowLast) != 0) != follow || asked.path.starts_with('/')) continue;
      paths.push_back(asked.path);
      numbers.push_back(i);
    }
    if (paths.empty()) return;
    std::vector<ReplyRow> found = look(paths, follow, who_.known());
    if (who_.depends()) {
      const std::optional<Credentials> whole = who_.whole();
      if (!whole) return;
      found = look(paths, follow, *whole);
    }
    for (std::size_t i = 0; i < numbers.size(); ++i) rows[numbers[i]] = found[i];
  }

  std::vector<ReplyRow> look(const std::vector<std::string_view>& paths, bool follow, const Credentials& who) {
    const Follow last = follow ? Follow::kYes : Follow::kNo;
    std::vector<ReplyRow> rows;
    rows.reserve(paths.size());
    if (!covered_->empty()) {
      for (const std::string_view path : paths) rows.push_back(look_closely(path, last, who));
      return rows;
    }
    std::vector<Resolved> results(paths.size());
    const auto done = bridge_.fs().resolve(paths, results, who, {.start = start_, .follow = last, .beneath = true});
    for (const Resolved& result : results)
      rows.push_back(!done.ok()     ? error_row(kAskKernel)
                     : result.error ? error_row(error_number(result.error))
                                    : row_of(result.attributes));
    return rows;
  }

  // Each component is looked at: something may be mounted on it.
  ReplyRow look_closely(std::string_view path, Follow follow, const Credentials& who) {
    const auto components = bridge_.fs().resolve_components(at(path), who, follow);
    if (!components.ok() || covered_->contains(to_u64(start_))) return error_row(kAskKernel);
    for (const PassedComponent& passed : components->passed)
      if (covered_->contains(to_u64(passed.attributes.ino))) return error_row(kAskKernel);
    if (components->error) return error_row(error_number(components->error));
    return components->passed.empty() ? error_row(kAskKernel) : row_of(components->passed.back().attributes);
  }

  // --- Creating

  void create(std::vector<ReplyRow>& rows, std::vector<Created>& created) {
    std::optional<Credentials> who = who_.whole();
    if (!who) return;
    who->umask = request_.header.umask & 0777u;
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (!request_.paths[i].path.starts_with('/')) rows[i] = create_one(request_.paths[i], *who, created);
  }

  ReplyRow create_one(const Asked& asked, const Credentials& who, std::vector<Created>& created) {
    const std::size_t slash = asked.path.rfind('/');
    const std::string_view dir = slash == std::string_view::npos ? "." : asked.path.substr(0, slash);
    const std::string_view name = slash == std::string_view::npos ? asked.path : asked.path.substr(slash + 1);
    if (name.empty() || name == "." || name == "..") return error_row(kAskKernel);
    const ReplyRow parent = covered_->empty() ? stat_row(dir, who) : look_closely(dir, Follow::kYes, who);
    if (parent.error != 0) return parent;
    const auto made = bridge_.fs().mknod(at(asked.path), S_IFREG | (asked.mode & 07777u), 0, who);
    if (!made.ok()) return error_row(to_errno(made.error().code));
    created.push_back({InodeNo{parent.ino}, std::string(name)});
    return row_of(*made);
  }

  ReplyRow stat_row(std::string_view path, const Credentials& who) {
    const auto found = bridge_.fs().stat(at(path), who);
    return found.ok() ? row_of(*found) : error_row(to_errno(found.error().code));
  }

  Bridge& bridge_;
  const InodeNo start_;
  const BatchRequest& request_;
  Who who_;
  std::shared_ptr<const Covered::Inodes> covered_;
};

void reply(fuse_req_t req, const std::vector<ReplyRow>& rows) {
  std::vector<char> out(sizeof(ReplyHeader) + rows.size() * sizeof(ReplyRow));
  ReplyHeader header;
  header.count = static_cast<u32>(rows.size());
  std::memcpy(out.data(), &header, sizeof header);
  std::memcpy(&out[sizeof header], rows.data(), rows.size() * sizeof(ReplyRow));
  fuse_reply_ioctl(req, 0, out.data(), out.size());
}

}  // namespace

void answer_batch(Bridge& bridge, fuse_req_t req, InodeNo ino, std::span<const char> in, std::size_t out_bytes) {
  const std::optional<BatchRequest> request = parse(in, out_bytes);
  // Where owners are hidden the kernel judges by those that it is shown, and so it has to be asked. Through io_uring a
  // reply must come from this thread, but what was created is told to the kernel, and reported, by another one.
  const bool other_thread = request && request->header.op == BatchOp::kCreate && is_by_uring(req);
  if (!request || bridge.owner().hides() || other_thread) {
    fuse_reply_err(req, request ? EOPNOTSUPP : EINVAL);
    return;
  }
  std::vector<Batch::Created> created;
  std::vector<ReplyRow> rows = Batch(bridge, ino, *request, *fuse_req_ctx(req)).run(created);
  if (created.empty()) return reply(req, rows);
  bridge.notifier().do_later([&bridge, req, rows = std::move(rows), created = std::move(created)] {
    InodeNo last{};
    for (const Batch::Created& one : created) {
      // What the kernel does not know needs no forgetting: ENOENT is the ordinary answer.
      (void)fuse_lowlevel_notify_inval_entry(bridge.session(), to_u64(one.parent), one.name.data(), one.name.size());
      if (one.parent != last) (void)fuse_lowlevel_notify_inval_inode(bridge.session(), to_u64(one.parent), -1, 0);
      last = one.parent;
    }
    reply(req, rows);
  });
}

}  // namespace pmfs::bridge
