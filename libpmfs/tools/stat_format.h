// What stat(1) prints about an object: its default form, and formats as of its -c.
#pragma once

#include <string>
#include <string_view>

#include "pmfs/pmfs.hpp"

namespace pmfs::tools {

/// An object that is to be described.
struct Described {
  std::string path;  ///< as given
  Attributes attributes;
  std::string target;  ///< of a symbolic link
};

/// stat's default form. A pool that is not mounted has no device number: "?".
std::string stat_text(const Described& object);

/// The format with its directives replaced, no newline added. Flags, width and precision as of printf:
///   %a %A mode, %b %B blocks and their size, %f mode in hexadecimal, %F type, %h links, %i inode, %n name, %N quoted,
///   %o block size, %s size, %u %U %g %G owner, %r %t %T %Hr %Lr device number, %x %y %z %w times, and %X %Y %Z %W in
///   seconds,
/// and "?" for all others.
std::string stat_text(const Described& object, std::string_view format);

}  // namespace pmfs::tools
