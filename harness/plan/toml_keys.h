// What a TOML file must not hold because the parser answers it with an overflow of the stack.
#pragma once

#include <string>
#include <string_view>

namespace headroom {

// Throws InputError that names `path` and the line of the first dotted key of more than 100 parts:
// the parser makes a table of each part and takes them down by recursion.
void check_dotted_keys(std::string_view text, const std::string& path);

}  // namespace headroom
