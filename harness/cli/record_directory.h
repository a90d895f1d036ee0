// The directory that a command which follows somebody else's program fills.
#pragma once

#include <filesystem>
#include <string>

namespace headroom {

// Makes `path`, or runs/TIME-COMMAND-PID if it is empty. Throws InputError if that cannot be made
// or is not empty.
std::filesystem::path make_record_directory(std::filesystem::path path, const std::string& command);

}  // namespace headroom
