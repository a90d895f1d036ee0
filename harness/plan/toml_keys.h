// Rejects TOML that would overflow the parser's stack.
#pragma once

#include <string>
#include <string_view>

namespace headroom {

// Throws InputError that names `path` and the line of the first dotted key of more than 100 parts.
// The parser makes a nested table of each part and destroys them recursively.
void check_dotted_keys(std::string_view text, const std::string& path);

}  // namespace headroom
