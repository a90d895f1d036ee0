// Whole files, read and written with errors that name them.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace headroom {

// Throws InputError naming the file and the system's reason.
std::string read_file(const std::filesystem::path& file);
// First line without its end; nothing when the file cannot be read (as in /proc and /sys).
std::optional<std::string> read_first_line(const std::filesystem::path& file);

// Replaces the file as a whole: after a crash either the old or the new text is there.
void write_file_durably(const std::filesystem::path& file, std::string_view text);

}  // namespace headroom
