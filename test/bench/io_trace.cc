#include "test/bench/io_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_set>

#include "test/support/prng.h"

namespace pmfs::bench {

namespace {

constexpr unsigned kJobs = 8;
constexpr unsigned kFiles = 190;   // with 45 directories: 235 dentries
constexpr unsigned kShortest = 6;  // components of a file in a job's folder; 7 and 8 below it
// Of 13 requests, how many components each has: 89 together.
constexpr std::array<unsigned, 13> kComponents{7, 6, 7, 8, 7, 6, 7, 7, 6, 8, 7, 6, 7};

/// 0 .. n-1, k with weight 1 / (k + 1).
class Popular {
 public:
  explicit Popular(std::size_t n) {
    double sum = 0;
    for (std::size_t k = 0; k < n; ++k) upto_.push_back(sum += 1.0 / static_cast<double>(k + 1));
  }
  std::size_t draw(test::Prng& random) const {
    const double at = static_cast<double>(random.next() >> 11) * 0x1p-53 * upto_.back();
    const auto found = std::upper_bound(upto_.begin(), upto_.end(), at);
    return std::min(static_cast<std::size_t>(found - upto_.begin()), upto_.size() - 1);
  }

 private:
  std::vector<double> upto_;
};

using Indexes = std::vector<u16>;

struct Job {
  std::array<std::string, 3> folders;  // files in them have 6, 7, 8 components
  std::array<Indexes, 3> files;
};

std::vector<Job> make_tree(IoTrace& trace) {
  trace.dirs.emplace_back("/online1");
  for (unsigned g = 0; g < kJobs / 2; ++g) trace.dirs.push_back(fmt::format("/online1/group{}", g));
  std::vector<Job> jobs(kJobs);
  for (unsigned j = 0; j < kJobs; ++j) {
    const std::string home = fmt::format("/online1/group{}/user{:02}", j / 2, j);
    const std::string job = home + "/simulation";
    jobs[j].folders = {job + "/run1", job + "/run1/restart", job + "/run1/restart/part0"};
    for (const std::string& dir : {home, job, jobs[j].folders[0], jobs[j].folders[1], jobs[j].folders[2]})
      trace.dirs.push_back(dir);
  }
  for (unsigned i = 0; i < kFiles; ++i) {
    Job& job = jobs[i % kJobs];
    const unsigned level = i / kJobs % 3;
    job.files[level].push_back(static_cast<u16>(i));
    trace.files.push_back(fmt::format("{}/rank{:04}.dat", job.folders[level], i));
  }
  return jobs;
}

}  // namespace

IoTrace io_trace(u64 requests) {
  IoTrace trace;
  const std::vector<Job> jobs = make_tree(trace);
  test::Prng random(20200413);
  const Popular popular_job(kJobs);
  const u64 while_one_runs = std::max<u64>(requests / 40, 1);
  std::array<bool, kFiles> asked{};
  std::size_t running = 0;
  trace.requests.reserve(requests);
  std::array<Popular, 3> popular{Popular(jobs[0].files[0].size()), Popular(jobs[0].files[1].size()),
                                 Popular(jobs[0].files[2].size())};
  for (u64 i = 0; i < requests; ++i) {
    if (i % while_one_runs == 0) running = popular_job.draw(random);
    const Job& job = jobs[random.once_in(16) ? random.below(kJobs) : running];
    const unsigned level = kComponents[i % kComponents.size()] - kShortest;
    const Indexes& files = job.files[level];
    u16 file = files[std::min(popular[level].draw(random), files.size() - 1)];
    if (requests - i <= kFiles * kComponents.size()) {  // near the end: what of this length was never asked for
      for (const Job& other : jobs)
        for (const u16 one : other.files[level])
          if (!asked[one]) file = one;
    }
    asked[file] = true;
    trace.requests.push_back(file);
    trace.components += level + kShortest;
  }
  std::unordered_set<std::string_view> passed;
  for (const std::string& path : trace.files) {
    if (!asked[static_cast<std::size_t>(&path - trace.files.data())]) continue;
    for (std::size_t at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1))
      passed.insert(std::string_view(path).substr(0, at));
    passed.insert(path);
  }
  trace.dentries = passed.size();
  return trace;
}

}  // namespace pmfs::bench
