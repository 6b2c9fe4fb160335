// must(result): the value of a call that cannot fail in this test.
#pragma once

#include "pmfs/result.h"
#include "test/support/catch.h"

namespace pmfs::test {

template <class T>
T must(Result<T> result) {
  if (!result.ok()) FAIL(describe(result.error().code) << " [" << result.error().what << "]");
  return std::move(*result);
}
inline void must(const Result<void>& result) {
  if (!result.ok()) FAIL(describe(result.error().code) << " [" << result.error().what << "]");
}

/// The code of a call's error; Errc{} if it had none.
template <class T>
Errc code_of(const Result<T>& result) {
  return result.ok() ? Errc{} : result.error().code;
}

}  // namespace pmfs::test
