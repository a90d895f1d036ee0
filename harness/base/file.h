// Reads and writes whole files; errors name the file.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace headroom {

// Throws InputError naming the file and the system's reason.
std::string read_file(const std::filesystem::path& file);
// The first line without its line end; nullopt if the file is empty, not there or not ours to read.
// Throws InputError if reading fails for another reason.
std::optional<std::string> read_first_line(const std::filesystem::path& file);

// Waits until what was written to an open file is on its disk. False, with errno, if that fails.
bool on_disk(int descriptor);

// Replaces the file atomically: after a crash it holds either the old or the new text.
void write_file_durably(const std::filesystem::path& file, std::string_view text);

}  // namespace headroom
