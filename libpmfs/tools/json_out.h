// The one object that a command prints with --json. Its fields are documented in JSON.md.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "pmfs/pmfs.hpp"

namespace pmfs::tools {

using Json = nlohmann::ordered_json;

/// `{"schema": 1, "command": ...}`, to be filled.
Json json_object(std::string_view command);

/// Adds bytes that people gave (a name, a path, a label). What is not UTF-8 is shown with replacement characters, and
/// `<key>_base64` beside it has the bytes.
void add_bytes(Json& object, const std::string& key, std::string_view bytes);

/// Adds the fields of an inode's attributes.
void add_attributes(Json& object, const Attributes& attributes);

/// Prints the object on stdout, as one line.
void print_json(const Json& object);

}  // namespace pmfs::tools
