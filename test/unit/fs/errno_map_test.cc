#include <cerrno>
#include <cstring>
#include <set>
#include <string>
#include <thread>

#include "fs/error_detail.h"
#include "pmfs/durability.h"
#include "pmfs/result.h"
#include "test/support/catch.h"

using namespace pmfs;

namespace {
constexpr auto kFirst = static_cast<u16>(Errc::kNotFound);
constexpr auto kLast = static_cast<u16>(Errc::kRefused);
}  // namespace

TEST_CASE("errors: every code has an errno and a sentence of its own", "[fs]") {
  std::set<std::string> sentences;
  for (u16 number = kFirst; number <= kLast; ++number) {
    const auto code = static_cast<Errc>(number);
    INFO(number);
    CHECK(to_errno(code) > 0);
    const std::string sentence = describe(code);
    CHECK(sentence.size() > 10);
    CHECK(sentence != "an error without a name");
    CHECK(sentences.insert(sentence).second);
  }
}

TEST_CASE("errors: a number that is no code is still answered", "[fs]") {
  CHECK(to_errno(static_cast<Errc>(0)) == EIO);
  CHECK(std::string(describe(static_cast<Errc>(60000))) == "an error without a name");
}

TEST_CASE("errors: the errno is the one the header promises", "[fs]") {
  CHECK(to_errno(Errc::kNotFound) == ENOENT);
  CHECK(to_errno(Errc::kCorrupt) == EUCLEAN);
  CHECK(to_errno(Errc::kForked) == EOWNERDEAD);
  CHECK(to_errno(Errc::kPoolBusy) == EBUSY);
  CHECK(to_errno(Errc::kPoolMissing) == ENOENT);
  CHECK(to_errno(Errc::kTooNew) == ENOTSUP);
  CHECK(to_errno(Errc::kStale) == ESTALE);
}

TEST_CASE("durability: every mode says what it survives", "[fs]") {
  for (const Durability mode : {Durability::kPersistent, Durability::kVolatile, Durability::kFileBacked,
                                Durability::kRelaxed, Durability::kPrivate}) {
    CHECK(std::strlen(describe(mode)) > 20);
  }
}

TEST_CASE("error detail: names the pool, then the words", "[fs]") {
  set_error_detail("/pools/a", "words");
  CHECK(std::string(error_detail()) == "/pools/a: words");
  set_error_detail({}, "words");
  CHECK(std::string(error_detail()) == "words");
  set_error_detail("p", "a", "b", "c");
  CHECK(std::string(error_detail()) == "p: abc");
  clear_error_detail();
  CHECK(std::string(error_detail()).empty());
}

TEST_CASE("error detail: each thread has its own", "[fs]") {
  set_error_detail("mine", "x");
  std::string seen = "?";
  std::thread([&seen] { seen = error_detail(); }).join();
  CHECK(seen.empty());
  CHECK(std::string(error_detail()) == "mine: x");
}

TEST_CASE("error detail: long words are cut, control characters are not passed on", "[fs]") {
  set_error_detail("pool", std::string(5000, 'x'));
  const std::string text = error_detail();
  CHECK(text.size() < 2000);
  CHECK(text.ends_with("..."));
  set_error_detail("a\033[2Jb\n", "c");
  CHECK(std::string(error_detail()) == "a?[2Jb?: c");
}
