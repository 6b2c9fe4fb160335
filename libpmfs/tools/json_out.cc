#include "json_out.h"

#include <fmt/format.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cstdio>

#include "mode_text.h"

namespace pmfs::tools {

namespace {

/// Whether `bytes` are well-formed UTF-8 (RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF).
bool is_utf8(std::string_view bytes) {
  std::size_t i = 0;
  const auto at = [&](std::size_t index) { return static_cast<unsigned char>(bytes[index]); };
  while (i < bytes.size()) {
    const unsigned char lead = at(i);
    std::size_t length = 0;
    u32 code = 0;
    if (lead < 0x80) {
      ++i;
      continue;
    } else if (lead >= 0xc2 && lead <= 0xdf) {
      length = 2;
      code = lead & 0x1fu;
    } else if (lead >= 0xe0 && lead <= 0xef) {
      length = 3;
      code = lead & 0x0fu;
    } else if (lead >= 0xf0 && lead <= 0xf4) {
      length = 4;
      code = lead & 0x07u;
    } else {
      return false;
    }
    if (bytes.size() - i < length) return false;
    for (std::size_t k = 1; k < length; ++k) {
      if ((at(i + k) & 0xc0u) != 0x80u) return false;
      code = code << 6 | (at(i + k) & 0x3fu);
    }
    if (length == 3 && (code < 0x800 || (code >= 0xd800 && code <= 0xdfff))) return false;
    if (length == 4 && (code < 0x10000 || code > 0x10ffff)) return false;
    i += length;
  }
  return true;
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    u32 group = 0;
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    for (std::size_t k = 0; k < 3; ++k) {
      group = group << 8 | (k < count ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    }
    for (std::size_t k = 0; k < 4; ++k) out += k <= count ? kDigits[group >> (18 - 6 * k) & 63u] : '=';
  }
  return out;
}

}  // namespace

Json json_object(std::string_view command) {
  Json object;
  object["schema"] = 1;
  object["command"] = command;
  return object;
}

void add_bytes(Json& object, const std::string& key, std::string_view bytes) {
  object[key] = bytes;
  if (!is_utf8(bytes)) object[key + "_base64"] = base64(bytes);
}

void add_attributes(Json& object, const Attributes& attributes) {
  object["ino"] = to_u64(attributes.ino);
  object["generation"] = attributes.generation;
  object["type"] = type_word(attributes.type());
  object["mode"] = fmt::format("{:04o}", attributes.mode & 07777u);
  object["links"] = attributes.links;
  object["uid"] = attributes.uid;
  object["gid"] = attributes.gid;
  object["size_bytes"] = attributes.size_bytes;
  object["blocks_512"] = attributes.blocks_512;
  object["rdev_major"] = major(attributes.rdev);
  object["rdev_minor"] = minor(attributes.rdev);
  object["atime_ns"] = attributes.atime_ns;
  object["mtime_ns"] = attributes.mtime_ns;
  object["ctime_ns"] = attributes.ctime_ns;
  object["birth_ns"] = attributes.birth_ns;
}

void print_json(const Json& object) {
  const std::string text = object.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  std::fwrite(text.data(), 1, text.size(), stdout);
}

}  // namespace pmfs::tools
