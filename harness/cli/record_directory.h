// The directory that a command fills while it follows another program.
#pragma once

#include <filesystem>
#include <string>

namespace headroom {

// Makes `path`, or runs/TIME-COMMAND-PID if it is empty. Throws InputError if that cannot be made
// or is not empty.
std::filesystem::path make_record_directory(std::filesystem::path path, const std::string& command);

}  // namespace headroom
