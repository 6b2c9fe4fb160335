// What every struct on the medium must satisfy. FORMAT.md describes each byte; the asserts keep the two together.
#pragma once

#include <type_traits>

#define PMFS_ON_MEDIA(T, bytes)                                                        \
  static_assert(sizeof(T) == (bytes));                                                 \
  static_assert(std::is_trivially_copyable_v<T>);                                      \
  static_assert(std::is_standard_layout_v<T>);               /* offsetof is defined */ \
  static_assert(std::has_unique_object_representations_v<T>) /* no implicit padding */
